//! The demo's figures, as text and as JSON.

use std::io::Write;

use gatherum::{Bytes, io::Vocabulary};
use serde_json::{Value, json};

use super::{
    Neighbors,
    measure::{Backends, Measured, OnBackend},
};
use crate::{
    data::Data,
    failure::Outcome,
    output,
    wordsim::{Found, Pairs},
};

pub(super) struct Report<'a> {
    pub(super) data: &'a Data,
    pub(super) backends: &'a Backends,
    pub(super) pairs: &'a Pairs,
    pub(super) found: Option<Found>,
    pub(super) measured: Vec<Measured>,
    pub(super) neighbors: Option<Neighbors>,
}

impl Report<'_> {
    pub(super) fn write(&self, out: &mut dyn Write) -> Outcome {
        let shape = self.data.shape();
        writeln!(out, "{}: {shape}, {} as f32", self.data.name(), shape.f32_bytes())?;
        match &self.found {
            Some(found) => writeln!(out, "WordSim-353: {} of its {} pairs", found.len(), self.pairs.len())?,
            None => writeln!(out, "WordSim-353: left out, as the table lacks its words")?,
        }
        writeln!(out)?;
        for (letter, engine) in ('A'..='Z').zip(&self.backends.engines) {
            writeln!(out, "{letter}  {}", engine.backend())?;
        }
        for skipped in &self.backends.skipped {
            writeln!(out, "left out: {skipped}")?;
        }
        writeln!(out)?;
        self.write_schemes(out)?;
        self.write_neighbors(out)
    }

    fn write_schemes(&self, out: &mut dyn Write) -> Outcome {
        let mut header: Vec<String> =
            ["scheme", "bytes", "of f32", "rel. error", "WordSim", "same bits"].map(str::to_owned).to_vec();
        header.extend(('A'..='Z').zip(&self.backends.engines).map(|(letter, _)| format!("lookups/s {letter}")));
        let mut table = output::table(&header);
        for one in &self.measured {
            let report = &one.report;
            let mut row = vec![
                one.scheme.to_string(),
                report.bytes_after.0.to_string(),
                format!("{:.1} %", 100.0 * report.share()),
                format!("{:.5}", report.relative_error),
                one.wordsim().map_or_else(|| "-".to_owned(), |value| format!("{value:.4}")),
                one.same_bits().map_or("-", |same| if same { "yes" } else { "NO" }).to_owned(),
            ];
            let speed = |on: &OnBackend| output::short(on.lookups_per_second);
            row.extend(one.on.iter().map(|on| on.as_ref().map_or_else(|| "-".to_owned(), speed)));
            table.add_row(row);
        }
        Ok(writeln!(out, "{}", table.trim_fmt())?)
    }

    fn write_neighbors(&self, out: &mut dyn Write) -> Outcome {
        let (Some(neighbors), Some(words)) = (&self.neighbors, self.data.words()) else { return Ok(()) };
        if neighbors.of.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nNearest by cosine, in the table of {}:", neighbors.scheme)?;
        for (row, found) in &neighbors.of {
            let found = found.iter().map(|one| format!("{} {:.3}", output::word_text(words, one.id), one.cosine));
            writeln!(out, "{:8}  {}", output::word_text(words, *row), found.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }

    pub(super) fn json(&self) -> Value {
        let shape = self.data.shape();
        let backends: Vec<Value> =
            self.backends.engines.iter().map(|engine| output::backend_json(engine.backend())).collect();
        json!({
            "table": {
                "name": self.data.name(),
                "rows": shape.rows(),
                "dim": shape.dim(),
                "words": self.data.words().map(Vocabulary::len),
                "bytes_as_f32": shape.f32_bytes().0,
            },
            "wordsim": { "pairs": self.pairs.len(), "used": self.found.as_ref().map_or(0, Found::len) },
            "backends": backends,
            "skipped": self.backends.skipped,
            "schemes": self.measured.iter().map(|one| self.scheme_json(one)).collect::<Vec<_>>(),
            "neighbors": self.neighbors_json(),
        })
    }

    fn scheme_json(&self, one: &Measured) -> Value {
        let backends: Vec<Value> = self
            .backends
            .engines
            .iter()
            .zip(&one.on)
            .filter_map(|(engine, on)| Some((engine, on.as_ref()?)))
            .map(|(engine, on)| {
                json!({
                    "backend": engine.backend().to_string(),
                    "rows_hash": format!("xxh3:{:016x}", on.hash),
                    "wordsim": on.wordsim,
                    "lookups_per_second": on.lookups_per_second.round(),
                })
            })
            .collect();
        let (report, Bytes(bytes)) = (&one.report, one.report.bytes_after);
        json!({
            "scheme": one.scheme.to_string(),
            "stored_as": report.spec.scheme().to_string(),
            "bytes": bytes,
            "share": report.share(),
            "relative_error": report.relative_error,
            "max_error": report.max_error,
            "mean_cosine": report.mean_cosine,
            "min_cosine": report.min_cosine,
            "same_bits": one.same_bits(),
            "backends": backends,
        })
    }

    fn neighbors_json(&self) -> Value {
        let Some(neighbors) = &self.neighbors else { return Value::Null };
        let word = |row| output::word_json(self.data.words(), row);
        let of: Vec<Value> = neighbors
            .of
            .iter()
            .map(|(row, found)| {
                let found: Vec<Value> = found
                    .iter()
                    .map(|one| json!({ "id": one.id, "word": word(one.id), "cosine": one.cosine }))
                    .collect();
                json!({ "id": row, "word": word(*row), "neighbors": found })
            })
            .collect();
        json!({ "scheme": neighbors.scheme.to_string(), "words": of })
    }
}
