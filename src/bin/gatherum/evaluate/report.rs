//! The figures, as text, as JSON and as CSV.

use std::io::Write;

use gatherum::{Engine, io::Vocabulary};
use serde_json::{Value, json};

use super::{Accuracy, Evaluated, Found, Pairs, Tasks};
use crate::{data::Data, failure::Outcome, output};

pub(super) struct Report<'a> {
    pub(super) data: &'a Data,
    pub(super) engine: &'a Engine,
    pub(super) pairs: &'a [Pairs],
    pub(super) tasks: &'a Tasks,
    pub(super) evaluated: &'a [Evaluated],
}

impl Report<'_> {
    /// Columns after the scheme: the name, and a scheme's figure with so many digits; `None` for what it lacks.
    fn columns(&self) -> Vec<(String, Column)> {
        let mut columns: Vec<(String, Column)> = vec![
            ("rel. error".to_owned(), Column { digits: 5, of: Box::new(|one| Some(one.report.relative_error)) }),
            ("cosine".to_owned(), Column { digits: 5, of: Box::new(|one| Some(one.report.mean_cosine)) }),
        ];
        for (number, sample) in self.tasks.samples.iter().enumerate() {
            let of = move |one: &Evaluated| one.kept[number];
            columns.push((format!("nn10 {}", sample.name), Column { digits: 4, of: Box::new(of) }));
        }
        for (number, pairs) in self.pairs.iter().enumerate() {
            let of = move |one: &Evaluated| one.pairs[number];
            columns.push((pairs.name.clone(), Column { digits: 4, of: Box::new(of) }));
        }
        if self.tasks.asked.is_some() {
            let of = |one: &Evaluated| one.analogies.as_ref().and_then(Accuracy::share);
            columns.push(("analogies".to_owned(), Column { digits: 4, of: Box::new(of) }));
        }
        columns
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> Outcome {
        let shape = self.data.shape();
        writeln!(out, "{}: {shape}, {} as f32, on {}", self.data.name(), shape.f32_bytes(), self.engine.backend())?;
        let rows: Vec<String> =
            self.tasks.samples.iter().map(|sample| format!("{} {}", sample.rows.len(), sample.name)).collect();
        writeln!(out, "nn10: share of the 10 nearest rows that are kept, of {} rows", rows.join(", "))?;
        for (pairs, found) in self.pairs.iter().zip(&self.tasks.pairs) {
            let found = found.as_ref().map_or(0, Found::len);
            writeln!(out, "{}: {found} of {} pairs", pairs.name, pairs.len())?;
        }
        if let Some(asked) = &self.tasks.asked {
            let (count, total, rows) = (asked.len(), asked.total, asked.searched);
            writeln!(out, "analogies: {count} of {total}, answered by the first {rows} rows")?;
        }
        writeln!(out)?;
        let columns = self.columns();
        let mut header = ["scheme", "bytes", "of f32"].map(str::to_owned).to_vec();
        header.extend(columns.iter().map(|(name, _)| name.clone()));
        let mut table = output::table(&header);
        for one in self.evaluated {
            let mut row = vec![
                one.scheme.to_string(),
                one.report.bytes_after.0.to_string(),
                format!("{:.1} %", 100.0 * one.report.share()),
            ];
            row.extend(columns.iter().map(|(_, column)| column.text(one)));
            table.add_row(row);
        }
        Ok(writeln!(out, "{}", table.trim_fmt())?)
    }

    /// A header, and a line a scheme; what there is not is empty.
    pub(super) fn csv(&self, out: &mut dyn Write) -> Outcome {
        let columns = self.columns();
        let names = ["scheme", "bytes", "of f32"].into_iter().chain(columns.iter().map(|(name, _)| name.as_str()));
        writeln!(out, "{}", names.map(quoted).collect::<Vec<_>>().join(","))?;
        for one in self.evaluated {
            let (scheme, share) = (one.scheme.to_string(), one.report.share());
            write!(out, "{},{},{share}", quoted(&scheme), one.report.bytes_after.0)?;
            for (_, column) in &columns {
                write!(out, ",{}", (column.of)(one).map_or_else(String::new, |value| value.to_string()))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    pub(super) fn json(&self) -> Value {
        let shape = self.data.shape();
        let pairs: Vec<Value> = self
            .pairs
            .iter()
            .zip(&self.tasks.pairs)
            .map(|(pairs, found)| {
                json!({ "name": pairs.name, "pairs": pairs.len(), "used": found.as_ref().map_or(0, Found::len) })
            })
            .collect();
        let analogies = self.tasks.asked.as_ref();
        json!({
            "table": {
                "name": self.data.name(),
                "rows": shape.rows(),
                "dim": shape.dim(),
                "words": self.data.words().map(Vocabulary::len),
                "bytes_as_f32": shape.f32_bytes().0,
            },
            "backend": output::backend_json(self.engine.backend()),
            "pairs": pairs,
            "analogies": analogies.map(|asked| {
                json!({ "questions": asked.total, "used": asked.len(), "rows": asked.searched })
            }),
            "schemes": self.evaluated.iter().map(|one| self.scheme_json(one)).collect::<Vec<_>>(),
        })
    }

    fn scheme_json(&self, one: &Evaluated) -> Value {
        let samples = self.tasks.samples.iter().zip(one.kept);
        let kept: serde_json::Map<String, Value> =
            samples.map(|(sample, kept)| (sample.name.to_owned(), kept.into())).collect();
        let pairs = self.pairs.iter().zip(&one.pairs);
        let pairs: serde_json::Map<String, Value> =
            pairs.map(|(pairs, value)| (pairs.name.clone(), (*value).into())).collect();
        let analogies = one.analogies.as_ref().map(|accuracy| {
            let sections = accuracy.sections.iter();
            let sections: Vec<Value> = sections
                .map(|section| json!({ "name": section.name, "asked": section.asked, "right": section.right }))
                .collect();
            json!({ "share": accuracy.share(), "sections": sections })
        });
        json!({
            "scheme": one.scheme.to_string(),
            "stored_as": one.report.spec.scheme().to_string(),
            "bytes": one.report.bytes_after.0,
            "share": one.report.share(),
            "relative_error": one.report.relative_error,
            "mean_cosine": one.report.mean_cosine,
            "neighbors_kept": kept,
            "pairs": pairs,
            "analogies": analogies,
        })
    }
}

/// A figure of each scheme.
struct Column {
    digits: usize,
    of: Figure,
}

type Figure = Box<dyn Fn(&Evaluated) -> Option<f64>>;

impl Column {
    fn text(&self, one: &Evaluated) -> String {
        (self.of)(one).map_or_else(|| "-".to_owned(), |value| format!("{value:.*}", self.digits))
    }
}

/// A field of CSV: in quotes where it has a comma, a quote or a line's end.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(quoted("int8"), "int8");
        assert_eq!(quoted("int8:affine,group=16"), "\"int8:affine,group=16\"");
        assert_eq!(quoted("a \"b\""), "\"a \"\"b\"\"\"");
    }
}
