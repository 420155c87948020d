//! `evaluate`: what of a table's meaning each scheme keeps.

mod analogies;
mod neighbors;
mod plot;
mod report;

use std::{io::Write, path::PathBuf};

use gatherum::{EncodeReport, EncodedTable, Engine, Scheme, Table};
use indicatif::ProgressBar;

use crate::{
    backend::BackendArgs,
    data::Data,
    failure::{Exit, Failure, Outcome},
    input::{self, ChoiceArgs},
    output,
    wordsim::{Found, Pairs},
};
use analogies::{Accuracy, Analogies, Asked};
use neighbors::{Nearest, SAMPLES, Sample};

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

    /// Pairs of words that people compared, a line each: word, word, number; may be repeated [default: WordSim-353]
    #[arg(long, value_name = "FILE")]
    pairs: Vec<PathBuf>,

    /// Analogies, a line each: `athens greece oslo norway`; lines of `: name` begin a section
    #[arg(long, value_name = "FILE")]
    analogies: Option<PathBuf>,

    /// Rows from the first on among which the answer of an analogy is looked for
    #[arg(long, value_name = "N", default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(1..))]
    analogy_words: u32,

    /// Answer as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Answer as CSV
    #[arg(long)]
    csv: bool,

    /// Draw neighbors kept against bytes to this SVG file, too
    #[arg(long, value_name = "OUT.svg")]
    plot: Option<PathBuf>,
}

const AFTER: &str = "\
Neighbors kept is the share of a row's 10 nearest by cosine in the f32 table that are among its 10 nearest in the compressed
one, where rows are those of the same table, over 300 rows, all of the table being searched: `frequent` are spread evenly
over the first half of the rows, or the first 50,000 if that is fewer; `traffic` are the quantiles of Zipf's law, by which
row n is asked for 1 / n times as often as the first; `rare` are spread over the last half, or the last 50,000. The rows
must be in the order of their frequency for that to make sense, as those of word vectors are.

Pairs are compared by Spearman's rank correlation of the table's cosines with the numbers in the file. Analogies are
answered by the row nearest to b - a + c, of vectors of length 1, without those three (3CosAdd). Words are looked up as they
are written, and else in lower case; what has a word that is not there, or not among the first --analogy-words, is left out.

The built-in table is the first 10,000 words of GloVe (PDDL 1.0); WordSim-353 is CC BY 4.0.";

pub(crate) fn run(args: &Args, backend: &BackendArgs, out: &mut dyn Write) -> Outcome {
    let schemes = input::parse_schemes(&args.scheme)?;
    let mut pairs = args.pairs.iter().map(|path| Pairs::read(path)).collect::<Outcome<Vec<Pairs>>>()?;
    if pairs.is_empty() {
        pairs.push(Pairs::wordsim_353());
    }
    let analogies = args.analogies.as_ref().map(|path| Analogies::read(path)).transpose()?;
    let data = Data::open(args.table.as_deref(), &args.choice)?;
    if data.words().is_none() && (analogies.is_some() || !args.pairs.is_empty()) {
        let what = format!("{}: pairs and analogies are asked for, and the table has no words", data.name());
        return Err(Failure::new(Exit::NotThere, what, "name a file with the words by --words FILE"));
    }
    let engine = backend.engine()?;
    let tasks = Tasks {
        samples: neighbors::samples(data.shape().rows()),
        pairs: pairs.iter().map(|pairs| data.words().map(|words| pairs.find(words))).collect(),
        asked: analogies.as_ref().zip(data.words()).map(|(all, words)| all.find(words, args.analogy_words)),
    };
    let bar = output::progress("evaluating", (1 + schemes.len() as u64) * STEPS);
    // What the schemes are compared with.
    let (rows, _) = data.encode(&input::parse_scheme("f32")?)?;
    let nearest = tasks.nearest(&place(&engine, &rows)?, &bar)?;
    drop(rows);
    bar.set_position(STEPS);
    let mut evaluated = Vec::new();
    for (number, scheme) in (2..).zip(&schemes) {
        evaluated.push(tasks.evaluate(&engine, &data, scheme, &nearest, &bar)?);
        bar.set_position(number * STEPS);
    }
    bar.finish_and_clear();
    let report = report::Report { data: &data, engine: &engine, pairs: &pairs, tasks: &tasks, evaluated: &evaluated };
    if let Some(path) = &args.plot {
        let drawn = plot::svg(&data.name(), &evaluated)?;
        output::save(path, |file| file.write_all(drawn.as_bytes()))?;
    }
    match (args.json, args.csv) {
        (true, _) => output::write_json(out, &report.json()),
        (_, true) => report.csv(out),
        _ => report.write(out),
    }
}

/// Steps of the bar for a scheme: encoding, each sample, and the words.
const STEPS: u64 = 2 + SAMPLES as u64;

/// What is asked of each table.
struct Tasks {
    samples: [Sample; SAMPLES],
    /// As many as files of pairs; `None` for a table without words.
    pairs: Vec<Option<Found>>,
    asked: Option<Asked>,
}

/// A scheme's figures.
struct Evaluated {
    /// As it was asked for; what of it follows from the table is in the report's.
    scheme: Scheme,
    report: EncodeReport,
    /// Shares of the nearest that are kept; `None` where no row of the sample has a neighbor.
    kept: [Option<f64>; SAMPLES],
    /// Rank correlations; `None` where too few words are there.
    pairs: Vec<Option<f64>>,
    analogies: Option<Accuracy>,
}

impl Tasks {
    fn nearest(&self, table: &Table, bar: &ProgressBar) -> Outcome<[Nearest; SAMPLES]> {
        let mut all = <[Nearest; SAMPLES]>::default();
        for (nearest, sample) in all.iter_mut().zip(&self.samples) {
            *nearest = sample.nearest(table)?;
            bar.inc(1);
        }
        Ok(all)
    }

    fn evaluate(
        &self,
        engine: &Engine,
        data: &Data,
        scheme: &Scheme,
        reference: &[Nearest; SAMPLES],
        bar: &ProgressBar,
    ) -> Outcome<Evaluated> {
        let (encoded, report) = data.encode(scheme)?;
        let table = place(engine, &encoded)?;
        drop(encoded);
        bar.inc(1);
        let nearest = self.nearest(&table, bar)?;
        let kept = std::array::from_fn(|sample| neighbors::kept(&reference[sample], &nearest[sample]));
        let mut pairs = Vec::new();
        for found in &self.pairs {
            pairs.push(found.as_ref().map(|found| found.evaluate(&table)).transpose()?.flatten());
        }
        let analogies = self.asked.as_ref().map(|asked| asked.answer(&table)).transpose()?;
        Ok(Evaluated { scheme: scheme.clone(), report, kept, pairs, analogies })
    }
}

fn place(engine: &Engine, table: &EncodedTable) -> Outcome<Table> {
    Ok(engine.load_blocking(table)?)
}
