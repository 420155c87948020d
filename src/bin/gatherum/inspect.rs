//! `inspect`: what is in a file.

use std::io::Write;

use gatherum::{
    Bytes, Part, TableSource,
    io::{Input, TableFile, Vocabulary},
};
use serde_json::{Value, json};

use crate::{
    failure::{Failure, Outcome},
    input::{Opened, TableArgs},
    output,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    table: TableArgs,

    /// Answer as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let opened = args.table.open()?;
    let path = &args.table.table;
    let file_bytes = path.metadata().map_err(|error| Failure::writing(path, &error))?.len();
    let name = path.to_string_lossy();
    match (&opened, args.json) {
        (Opened::Table { file, words }, true) => {
            output::write_json(out, &table_json(&name, file, words.as_ref(), file_bytes))
        }
        (Opened::Table { file, words }, false) => table_text(out, &name, file, words.as_ref(), file_bytes),
        (Opened::Rows(input), true) => output::write_json(out, &rows_json(&name, input, file_bytes)),
        (Opened::Rows(input), false) => rows_text(out, &name, input, file_bytes),
    }
}

/// The checksum of a part, which was compared when the file was opened.
fn checksum<'a>(file: &'a TableFile, part: &Part) -> &'a str {
    file.metadata(&format!("checksum.{}", part.name())).unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "a share of a few digits")]
fn share(bytes: Bytes, whole: Bytes) -> f64 {
    if whole.0 == 0 { 1.0 } else { bytes.0 as f64 / whole.0 as f64 }
}

fn table_json(name: &str, file: &TableFile, words: Option<&Vocabulary>, file_bytes: u64) -> Value {
    let spec = file.spec();
    let parts: Vec<Value> = spec
        .parts()
        .iter()
        .map(|part| {
            json!({
                "name": part.name(),
                "dtype": part.dtype().to_string(),
                "shape": part.shape(),
                "bytes": part.bytes().0,
                "checksum": checksum(file, part),
            })
        })
        .collect();
    json!({
        "file": name,
        "kind": "table",
        "format_version": file.metadata("format_version"),
        "scheme": spec.scheme().to_string(),
        "rows": spec.shape().rows(),
        "dim": spec.shape().dim(),
        "parts": parts,
        "words": words.map(Vocabulary::len),
        "bytes": spec.bytes().0,
        "bytes_as_f32": spec.shape().f32_bytes().0,
        "share": share(spec.bytes(), spec.shape().f32_bytes()),
        "file_bytes": file_bytes,
        "checksums": "verified",
    })
}

fn table_text(
    out: &mut dyn Write,
    name: &str,
    file: &TableFile,
    words: Option<&Vocabulary>,
    file_bytes: u64,
) -> Outcome {
    let spec = file.spec();
    let version = file.metadata("format_version").unwrap_or_default();
    writeln!(out, "{name}: a gatherum table, format version {version}; all checksums verified")?;
    writeln!(out, "scheme  {}", spec.scheme())?;
    writeln!(out, "shape   {}", spec.shape())?;
    for part in spec.parts() {
        let (dtype, shape, bytes) = (part.dtype().to_string(), format!("{:?}", part.shape()), part.bytes());
        let (name, bytes, sum) = (part.name(), format!("{bytes:#}"), checksum(file, part));
        writeln!(out, "part    {name:8} {dtype:4} {shape:16} {bytes:>14}  {sum}")?;
    }
    writeln!(out, "words   {}", words.map_or_else(|| "none".to_owned(), |words| words.len().to_string()))?;
    let f32_bytes = spec.shape().f32_bytes();
    let percent = 100.0 * share(spec.bytes(), f32_bytes);
    writeln!(out, "bytes   {:#}, {percent:.1} % of {f32_bytes:#} as f32; the file has {file_bytes} B", spec.bytes())?;
    Ok(())
}

fn rows_json(name: &str, input: &Input, file_bytes: u64) -> Value {
    let shape = input.rows.shape();
    json!({
        "file": name,
        "kind": "rows",
        "format": input.format.to_string(),
        "gzip": input.gzip,
        "tensor": input.tensor,
        "rows": shape.rows(),
        "dim": shape.dim(),
        "words": input.words.as_ref().map(Vocabulary::len),
        "bytes_as_f32": shape.f32_bytes().0,
        "file_bytes": file_bytes,
    })
}

fn rows_text(out: &mut dyn Write, name: &str, input: &Input, file_bytes: u64) -> Outcome {
    let gzip = if input.gzip { ", gzip" } else { "" };
    writeln!(out, "{name}: {}{gzip}; not compressed by gatherum", input.format)?;
    if let Some(tensor) = &input.tensor {
        writeln!(out, "tensor  {tensor}")?;
    }
    let shape = input.rows.shape();
    writeln!(out, "shape   {shape}")?;
    let words = input.words.as_ref().map_or_else(|| "none".to_owned(), |words| words.len().to_string());
    writeln!(out, "words   {words}")?;
    writeln!(out, "bytes   {:#} as f32; the file has {file_bytes} B", shape.f32_bytes())?;
    Ok(())
}
