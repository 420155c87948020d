//! `neighbors`: the nearest rows by cosine.

use std::{ffi::OsString, io::Write};

use gatherum::IdPolicy;
use serde_json::json;

use crate::{
    backend::BackendArgs,
    cosine::{self, Query},
    failure::{Exit, Failure, Outcome},
    input::{Loaded, Reads, TableArgs, about},
    output,
};

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    #[command(flatten)]
    table: TableArgs,

    /// The word whose neighbors are wanted, compared byte for byte
    #[arg(long, value_name = "WORD", required_unless_present = "id", conflicts_with = "id")]
    word: Option<OsString>,

    /// The row whose neighbors are wanted
    #[arg(long, value_name = "N")]
    id: Option<u64>,

    /// How many
    #[arg(short, value_name = "K", default_value_t = 10)]
    k: usize,

    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Every row is decoded and compared where the table is, and the nearest once more in f64, so that their order is that of f64; of
equal cosines the lower id comes first. The row that is asked for is left out, and so are rows of zeros, which have no
direction.";

pub(crate) fn run(args: &Args, backend: &BackendArgs, out: &mut dyn Write) -> Outcome {
    let loaded = args.table.load(&backend.engine()?, Reads::All)?;
    let id = match (&args.word, args.id) {
        (Some(word), _) => u64::from(loaded.find(word)?),
        (None, id) => id.unwrap_or_default(),
    };
    let vector = loaded.table.gather_blocking(&[id], IdPolicy::Error).map_err(about(&args.table.table))?.values;
    // A row of the table: the gather has compared it.
    let row = u32::try_from(id).unwrap_or(u32::MAX);
    if cosine::cosine(&vector, &vector).is_none() {
        let what = format!("{}: row {row} has no direction: it is all zeros", args.table.table.display());
        return Err(Failure::new(Exit::Other, what, "ask for another row"));
    }
    let query = Query { vector, leave_out: Some(row) };
    let found = cosine::nearest(&loaded.table, &[query], args.k)?;
    let neighbors = found.into_iter().next().unwrap_or_default();
    write(args, &loaded, row, &neighbors, out)
}

fn write(args: &Args, loaded: &Loaded, row: u32, neighbors: &[cosine::Neighbor], out: &mut dyn Write) -> Outcome {
    let words = loaded.words.as_ref();
    if args.json {
        let found: Vec<_> = neighbors
            .iter()
            .map(|one| json!({ "id": one.id, "word": output::word_json(words, one.id), "cosine": one.cosine }))
            .collect();
        let query = json!({ "id": row, "word": output::word_json(words, row) });
        return output::write_json(out, &json!({ "query": query, "neighbors": found }));
    }
    for one in neighbors {
        let word = words.map_or_else(String::new, |words| output::word_text(words, one.id));
        writeln!(out, "{:.6}\t{}\t{word}", one.cosine, one.id)?;
    }
    Ok(())
}
