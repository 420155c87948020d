//! `compress`: from a file of rows to a table file.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    io::Write,
    path::{Path, PathBuf},
    time::Instant,
};

use gatherum::{Bytes, EncodeError, EncodeReport, Encoder, Scheme, io::TableWriter};
use serde_json::json;

use crate::{
    failure::{Exit, Failure, Outcome},
    input::{self, ChoiceArgs, about},
    output,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A safetensors file (or the .index.json of several), GGUF, .npy, SciPy's .npz of a sparse matrix, or word vectors of
    /// GloVe, word2vec or fastText, which may be gzip
    input: PathBuf,

    #[command(flatten)]
    choice: ChoiceArgs,

    /// How rows are stored; the schemes are listed below
    #[arg(long, short, value_name = "SCHEME")]
    scheme: String,

    /// A text file of one number a line, as many as rows: how often each is asked for, which hash, multihash and qr weigh them
    /// by. Without it rows are taken to be in the order of Zipf's law
    #[arg(long, value_name = "FILE")]
    frequencies: Option<PathBuf>,

    /// The table file to write; one that is there is replaced once the new one is complete
    #[arg(long, short, value_name = "TABLE")]
    output: PathBuf,

    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// The schemes there are, for `--help`.
pub(crate) fn schemes_help() -> String {
    let mut text = String::from("Schemes:\n");
    for info in Scheme::all() {
        // Writing to a String does not fail.
        let _ = writeln!(text, "  {:6} {}", info.name, info.summary);
        if !info.options.is_empty() {
            let _ = writeln!(text, "  {:6}   options: {}; for example {}", "", info.options, info.examples.join(", "));
        }
    }
    text
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let scheme = input::parse_scheme(&args.scheme)?;
    refuse_own_input(args)?;
    let start = Instant::now();
    let mut input = input::open_rows(&args.input, &args.choice.options())?;
    let shape = input.rows.shape();
    let bar = output::progress("compressing", u64::from(shape.rows()));
    let mut encoder = Encoder::new(&scheme).on_progress(|progress| bar.set_position(progress.done.into()));
    if let Some(path) = &args.frequencies {
        encoder = encoder.frequencies(input::read_frequencies(path)?);
    }
    let encoder = encoder.fit(&mut *input.rows).map_err(about_rows(args))?;
    let scheme = encoder.scheme().clone();
    let spec = scheme.spec(shape).map_err(about(&args.input))?;
    let mut writer = TableWriter::create(&args.output, &spec, input.words.as_ref()).map_err(writing(&args.output))?;
    let report = encoder.run(&mut *input.rows, &mut writer).map_err(about(&args.input))?;
    bar.finish_and_clear();
    writer.finish().map_err(writing(&args.output))?;
    let seconds = start.elapsed().as_secs_f64();
    let file_bytes = args.output.metadata().map_err(|error| Failure::writing(&args.output, &error))?.len();
    let words = input.words.as_ref().map(gatherum::io::Vocabulary::len);
    let fit: serde_json::Map<_, _> =
        report.fit.iter().map(|figure| (figure.name.replace(' ', "_"), figure.value.into())).collect();
    if args.json {
        return output::write_json(
            out,
            &json!({
                "input": args.input.to_string_lossy(),
                "format": input.format.to_string(),
                "tensor": input.tensor,
                "output": args.output.to_string_lossy(),
                "scheme": scheme.to_string(),
                "rows": shape.rows(),
                "dim": shape.dim(),
                "words": words,
                "bytes_before": report.bytes_before.0,
                "bytes_after": report.bytes_after.0,
                "share": report.share(),
                "file_bytes": file_bytes,
                "max_error": report.max_error,
                "max_error_row": report.max_error_row,
                "relative_error": report.relative_error,
                "mean_cosine": report.mean_cosine,
                "min_cosine": report.min_cosine,
                "fit": fit,
                "seconds": seconds,
            }),
        );
    }
    let words = words.map_or_else(|| "none".to_owned(), |words| words.to_string());
    write!(out, "{}", text(&report, &input.format.to_string(), &words))?;
    writeln!(out, "written         {}, {} in {seconds:.2} s", args.output.display(), Bytes(file_bytes))?;
    Ok(())
}

fn text(report: &EncodeReport, format: &str, words: &str) -> String {
    let shape = report.spec.shape();
    let mut text = format!(
        "table           {shape} from {format}; words: {words}\n\
         scheme          {}\n\
         bytes           {:#} as f32, {:#} as stored: {:.1} %\n\
         relative error  {:.3e}\n\
         largest error   {:.3e} (row {})\n\
         cosine          mean {:.6}, least {:.6}\n",
        report.spec.scheme(),
        report.bytes_before,
        report.bytes_after,
        100.0 * report.share(),
        report.relative_error,
        report.max_error,
        report.max_error_row,
        report.mean_cosine,
        report.min_cosine,
    );
    for figure in &report.fit {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{:15} {}", figure.name, (figure.value * 1e6).round() / 1e6);
    }
    text
}

/// Names the file that an error of a fit is about: that of the frequencies, or of the rows.
fn about_rows(args: &Args) -> impl Fn(EncodeError) -> Failure {
    |error| match (&error, &args.frequencies) {
        (
            EncodeError::Frequencies { .. } | EncodeError::Frequency { .. } | EncodeError::NoTraffic { .. },
            Some(frequencies),
        ) => Failure::from(error).about(frequencies),
        _ => Failure::from(error).about(&args.input),
    }
}

/// An error of the output's file.
fn writing(path: &Path) -> impl Fn(gatherum::io::FileError) -> Failure {
    move |error| match error {
        gatherum::io::FileError::Io { error, .. } => Failure::writing(path, &error),
        error => error.into(),
    }
}

/// Rows are read while the output is written, and the output replaces what has its name: that must be no input.
fn refuse_own_input(args: &Args) -> Outcome {
    let mut inputs = vec![args.input.clone()];
    inputs.extend(args.choice.words.clone());
    inputs.extend(args.frequencies.clone());
    inputs.extend(files_of_index(&args.input));
    match inputs.iter().find(|input| output::is_same_file(input, &args.output)) {
        Some(input) => Err(Failure::new(
            Exit::Usage,
            format!("{}: the output would replace the input {}", args.output.display(), input.display()),
            "name another file by -o",
        )),
        None => Ok(()),
    }
}

/// The files that a `.index.json` names; none for any other file. What is wrong with it is told when it is opened.
fn files_of_index(path: &Path) -> Vec<PathBuf> {
    if !path.file_name().unwrap_or(OsStr::new("")).to_string_lossy().ends_with(".index.json") {
        return Vec::new();
    }
    let index = std::fs::File::open(path).ok().map(std::io::BufReader::new);
    let index: Option<serde_json::Value> = index.and_then(|index| serde_json::from_reader(index).ok());
    let Some(map) = index.as_ref().and_then(|index| index.get("weight_map")?.as_object()) else { return Vec::new() };
    let mut names: Vec<&str> = map.values().filter_map(|name| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| path.with_file_name(name)).collect()
}
