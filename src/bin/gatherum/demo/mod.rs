//! `demo`: a real table by every scheme, on every backend.

mod measure;
mod report;

use std::{ffi::OsString, io::Write, path::PathBuf};

use gatherum::{EncodedTable, Engine, IdPolicy, Scheme, Table};

use crate::{
    backend::BackendArgs,
    cosine::{self, Neighbor, Query},
    data::Data,
    failure::Outcome,
    input::{self, ChoiceArgs},
    output,
    wordsim::Pairs,
};
use measure::{Backends, Measured, OnBackend};

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// A table of one's own, of any format that `compress` reads; else one of 10,000 GloVe words that is built in
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    #[command(flatten)]
    choice: ChoiceArgs,

    /// Only this scheme; may be repeated
    #[arg(long, short, value_name = "SCHEME")]
    scheme: Vec<String>,

    /// A word whose neighbors are shown; may be repeated
    #[arg(long, value_name = "WORD", default_values = ["king", "piano", "germany", "friday"])]
    word: Vec<OsString>,

    /// Neighbors shown of each word
    #[arg(short, value_name = "K", default_value_t = 6)]
    k: usize,

    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

const AFTER: &str = "\
Errors are against the rows as they are given, as f32. WordSim-353 is Spearman's rank correlation of the table's cosines
with what people said of pairs of words; pairs whose words the table lacks are left out. Lookups are of 4,096 random ids
a call, to host memory, after some calls to warm up; the median call counts. `same bits` says whether all rows of the
table came out the same on all backends. Without --backend, all are tried: the host, and each adapter.

The built-in table is the first 10,000 words of GloVe (PDDL 1.0); WordSim-353 is CC BY 4.0.";

pub(crate) fn run(args: &Args, backend: &BackendArgs, out: &mut dyn Write) -> Outcome {
    let schemes = input::parse_schemes(&args.scheme)?;
    let data = Data::open(args.table.as_deref(), &args.choice)?;
    let mut backends = Backends::find(backend)?;
    let pairs = Pairs::wordsim_353();
    let found = data.words().map(|words| pairs.find(words)).filter(|found| found.len() > 1);
    let bar = output::progress("measuring", (schemes.len() * backends.engines.len()) as u64);
    let mut measured = Vec::new();
    for scheme in &schemes {
        let (table, report) = data.encode(scheme)?;
        let mut one = Measured::new(scheme, report);
        for engine in &backends.engines {
            match OnBackend::measure(engine, &table, found.as_ref()) {
                Ok(on) => one.on.push(Some(on)),
                // One adapter may not hold what another does.
                Err(failure) if backends.engines.len() > 1 => {
                    backends.skipped.push(format!("{scheme} on {}: {failure}", engine.backend().name));
                    one.on.push(None);
                }
                Err(failure) => return Err(failure),
            }
            bar.inc(1);
        }
        measured.push(one);
    }
    bar.finish_and_clear();
    let neighbors = neighbors(args, &data, &backends.engines[0], &measured)?;
    let report = report::Report { data: &data, backends: &backends, pairs: &pairs, found, measured, neighbors };
    if args.json { output::write_json(out, &report.json()) } else { report.write(out) }
}

/// What a table has to keep of the best WordSim for its neighbors to be shown.
const KEPT: f64 = 0.9;

/// The nearest rows of some words, in the smallest of the tables that keep their meaning.
struct Neighbors {
    scheme: Scheme,
    /// Row of the word, and the rows near it.
    of: Vec<(u32, Vec<Neighbor>)>,
}

fn neighbors(args: &Args, data: &Data, engine: &Engine, measured: &[Measured]) -> Outcome<Option<Neighbors>> {
    let best = measured.iter().filter_map(Measured::wordsim).fold(0.0, f64::max);
    let kept = measured.iter().filter(|one| one.wordsim().is_none_or(|wordsim| wordsim >= KEPT * best));
    let smallest = kept.min_by_key(|one| one.report.bytes_after);
    let (Some(words), Some(smallest)) = (data.words(), smallest) else { return Ok(None) };
    // A table of one's own may lack the words that are asked for by default.
    let rows: Vec<u32> = args.word.iter().filter_map(|word| words.find(word.as_encoded_bytes())).collect();
    let scheme = smallest.scheme.clone();
    let (encoded, _) = data.encode(&scheme)?;
    let table = load(engine, &encoded)?;
    drop(encoded);
    let vectors = table.gather_blocking(&rows, IdPolicy::Error)?;
    let queries: Vec<Query> = rows
        .iter()
        .zip(&vectors)
        .map(|(row, vector)| Query { vector: vector.to_vec(), leave_out: Some(*row) })
        .collect();
    let found = cosine::nearest(&table, &queries, args.k)?;
    Ok(Some(Neighbors { scheme, of: rows.into_iter().zip(found).collect() }))
}

fn load(engine: &Engine, table: &EncodedTable) -> Outcome<Table> {
    Ok(engine.load_blocking(table)?)
}
