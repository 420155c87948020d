//! `lookup`: rows by id or word.

use std::{
    ffi::OsString,
    io::{BufWriter, Write},
    path::PathBuf,
};

use clap::ValueEnum;
use gatherum::{IdPolicy, Ids, Rows};

use crate::{
    backend::BackendArgs,
    failure::{Exit, Failure, Outcome},
    input::{Loaded, Reads, TableArgs, about},
    output,
};

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    #[command(flatten)]
    table: TableArgs,

    /// Ids, separated by commas; negative ones as --ids=-1; may be repeated
    #[arg(long, value_name = "IDS", allow_hyphen_values = true, required_unless_present = "word")]
    ids: Vec<String>,

    /// A word, compared byte for byte; may be repeated
    #[arg(long, value_name = "WORD")]
    word: Vec<OsString>,

    /// What an id outside of the table does
    #[arg(long, value_enum, default_value_t = Policy::Error)]
    policy: Policy,

    /// Answer as {"ids": [...], "rows": [[...], ...]}
    #[arg(long, conflicts_with = "npy")]
    json: bool,

    /// Write the rows to a .npy file of f32
    #[arg(long, value_name = "OUT")]
    npy: Option<PathBuf>,
}

const AFTER: &str = "\
Rows come in this order: those of all --ids as given, then those of all --word as given.
Each value is written with as few digits as give the same f32 again.";

/// [`IdPolicy`], for the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// Fail, and answer nothing
    Error,
    /// Answer a row of zeros
    Zero,
    /// Count negative ids from the end, as -1 for the last row; zeros for all others
    Wrap,
}

impl From<Policy> for IdPolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Error => Self::Error,
            Policy::Zero => Self::Zero,
            Policy::Wrap => Self::Wrap,
        }
    }
}

pub(crate) fn run(args: &Args, backend: &BackendArgs, out: &mut dyn Write) -> Outcome {
    let mut ids = IdList::default();
    for text in &args.ids {
        ids.parse(text)?;
    }
    // Before the table is read: a file that cannot be written is known now.
    if let Some(npy) = args.npy.as_deref().filter(|npy| output::is_same_file(npy, &args.table.table)) {
        let what = format!("{}: the output would replace the table", npy.display());
        return Err(Failure::new(Exit::Usage, what, "name another file by --npy"));
    }
    let loaded = args.table.load(&backend.engine()?, Reads::Few)?;
    for word in &args.word {
        ids.push(loaded.find(word)?.into())?;
    }
    let rows = ids.gather(&loaded, args.policy.into()).map_err(about(&args.table.table))?;
    if let Some(first) = rows.bad.first {
        // Not on standard output, whose shape scripts rely on.
        let (count, last) = (rows.bad.count, loaded.rows());
        let _ = writeln!(
            std::io::stderr(),
            "note: {count} ids name none of the {last} rows, the first at position {first}; their rows are zeros"
        );
    }
    match (&args.npy, args.json) {
        (Some(path), _) => {
            output::save(path, |file| gatherum::io::write_npy(file, &rows.values, rows.dim as usize))?;
            let (count, dim) = (ids.values.len(), rows.dim);
            writeln!(out, "{}: {count} x {dim} f32", path.display())?;
            Ok(())
        }
        (None, true) => write_json(out, &ids, &rows),
        (None, false) => write_text(out, &ids, &rows, &loaded),
    }
}

/// Ids in the order of the answer.
#[derive(Debug, Default)]
struct IdList {
    values: Vec<i128>,
}

impl IdList {
    /// Adds ids that are separated by commas; an empty text has none.
    fn parse(&mut self, text: &str) -> Outcome {
        if text.trim().is_empty() {
            return Ok(());
        }
        for (place, id) in text.split(',').enumerate() {
            let id: i128 = id.trim().parse().map_err(|error| {
                let what = format!("--ids: id {place} is {id:?}: {error}");
                Failure::new(Exit::Usage, what, "give whole numbers, separated by commas: --ids 1,2,3")
            })?;
            self.push(id)?;
        }
        Ok(())
    }

    fn push(&mut self, id: i128) -> Outcome {
        if id < i128::from(i64::MIN) || id > i128::from(u64::MAX) {
            let what = format!("--ids: id {id} does not fit 64 bits");
            return Err(Failure::new(Exit::Usage, what, "give ids of 64 bits, signed or unsigned"));
        }
        self.values.push(id);
        Ok(())
    }

    /// Looks them up as `i64` where all fit, else as `u64`.
    fn gather(&self, loaded: &Loaded, policy: IdPolicy) -> Outcome<Rows<f32>> {
        let signed: Result<Vec<i64>, _> = self.values.iter().map(|id| i64::try_from(*id)).collect();
        let unsigned: Result<Vec<u64>, _> = self.values.iter().map(|id| u64::try_from(*id)).collect();
        let ids: Ids<'_> = match (&signed, &unsigned) {
            (Ok(ids), _) => ids.into(),
            (Err(_), Ok(ids)) => ids.into(),
            (Err(_), Err(_)) => {
                let what = "--ids: negative ids and ids beyond 2^63 - 1 in one call";
                return Err(Failure::new(Exit::Usage, what, "look them up in two calls"));
            }
        };
        Ok(loaded.table.gather_blocking(ids, policy)?)
    }
}

fn write_json(out: &mut dyn Write, ids: &IdList, rows: &Rows<f32>) -> Outcome {
    // Written row by row: a JSON value of all rows would take many times their memory, and turn f32 to f64.
    let mut out = BufWriter::new(out);
    write!(out, "{{\"ids\": [")?;
    for (number, id) in ids.values.iter().enumerate() {
        write!(out, "{}{id}", if number == 0 { "" } else { ", " })?;
    }
    write!(out, "], \"rows\": [")?;
    for (number, row) in rows.iter().enumerate() {
        write!(out, "{}", if number == 0 { "" } else { ", " })?;
        serde_json::to_writer(&mut out, row)?;
    }
    writeln!(out, "]}}")?;
    Ok(out.flush()?)
}

/// A line a row: id, word where the table has words, values.
fn write_text(out: &mut dyn Write, ids: &IdList, rows: &Rows<f32>, loaded: &Loaded) -> Outcome {
    for (id, row) in ids.values.iter().zip(rows) {
        write!(out, "{id}\t")?;
        if let Some(words) = &loaded.words {
            if let Some(row) = u32::try_from(*id).ok().filter(|row| *row < loaded.rows()) {
                out.write_all(words.get(row))?;
            }
            write!(out, "\t")?;
        }
        for (column, value) in row.iter().enumerate() {
            write!(out, "{}{value:?}", if column == 0 { "" } else { " " })?;
        }
        writeln!(out)?;
    }
    Ok(())
}
