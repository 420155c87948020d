//! `inspect`: what is in a file.

use std::io::Write;

use gatherum::{
    Bytes, Part, TableSource, TableSpec,
    io::{Input, Vocabulary},
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
    let name = path.to_string_lossy();
    let on_disk = || path.metadata().map(|metadata| metadata.len()).map_err(|error| Failure::writing(path, &error));
    match &opened {
        Opened::Rows(input) if args.json => output::write_json(out, &rows_json(&name, input, on_disk()?)),
        Opened::Rows(input) => rows_text(out, &name, input, on_disk()?),
        Opened::Table { file, words } => {
            let seen = Seen {
                name: &name,
                spec: file.spec(),
                metadata: &|key| file.metadata(key),
                words: words.as_ref().map(Vocabulary::len),
                file_bytes: on_disk()?,
                verified: Verified::All,
            };
            seen.write(args.json, out)
        }
        Opened::Remote(stored) => {
            let seen = Seen {
                name: &name,
                spec: stored.spec(),
                metadata: &|key| stored.metadata(key),
                words: stored.has_words().then(|| stored.spec().shape().rows() as usize),
                file_bytes: stored.file_bytes().0,
                verified: Verified::Header,
            };
            seen.write(args.json, out)
        }
    }
}

/// Which checksums were compared.
#[derive(Clone, Copy)]
enum Verified {
    All,
    Header,
}

/// What was seen of a table.
struct Seen<'a> {
    name: &'a str,
    spec: &'a TableSpec,
    metadata: &'a dyn Fn(&str) -> Option<&'a str>,
    words: Option<usize>,
    file_bytes: u64,
    verified: Verified,
}

#[expect(clippy::cast_precision_loss, reason = "a share of a few digits")]
fn share(bytes: Bytes, whole: Bytes) -> f64 {
    if whole.0 == 0 { 1.0 } else { bytes.0 as f64 / whole.0 as f64 }
}

impl Seen<'_> {
    fn write(&self, json: bool, out: &mut dyn Write) -> Outcome {
        if json { output::write_json(out, &self.json()) } else { self.text(out) }
    }

    fn checksum(&self, part: &Part) -> &str {
        (self.metadata)(&format!("checksum.{}", part.name())).unwrap_or_default()
    }

    fn json(&self) -> Value {
        let spec = self.spec;
        let part = |part: &Part| {
            json!({
                "name": part.name(),
                "dtype": part.dtype().to_string(),
                "shape": part.shape(),
                "bytes": part.bytes().0,
                "checksum": self.checksum(part),
            })
        };
        json!({
            "file": self.name,
            "kind": "table",
            "format_version": (self.metadata)("format_version"),
            "scheme": spec.scheme().to_string(),
            "rows": spec.shape().rows(),
            "dim": spec.shape().dim(),
            "parts": spec.parts().iter().map(part).collect::<Vec<_>>(),
            "words": self.words,
            "bytes": spec.bytes().0,
            "bytes_as_f32": spec.shape().f32_bytes().0,
            "share": share(spec.bytes(), spec.shape().f32_bytes()),
            "file_bytes": self.file_bytes,
            "checksums": match self.verified {
                Verified::All => "verified",
                Verified::Header => "header verified",
            },
        })
    }

    fn text(&self, out: &mut dyn Write) -> Outcome {
        let (name, spec) = (self.name, self.spec);
        let version = (self.metadata)("format_version").unwrap_or_default();
        let verified = match self.verified {
            Verified::All => "all checksums verified",
            Verified::Header => "its header read and verified",
        };
        writeln!(out, "{name}: a gatherum table, format version {version}; {verified}")?;
        writeln!(out, "scheme  {}", spec.scheme())?;
        writeln!(out, "shape   {}", spec.shape())?;
        for part in spec.parts() {
            let (dtype, shape, bytes) = (part.dtype().to_string(), format!("{:?}", part.shape()), part.bytes());
            let (name, bytes, sum) = (part.name(), format!("{bytes:#}"), self.checksum(part));
            writeln!(out, "part    {name:8} {dtype:4} {shape:16} {bytes:>14}  {sum}")?;
        }
        writeln!(out, "words   {}", self.words.map_or_else(|| "none".to_owned(), |words| words.to_string()))?;
        let f32_bytes = spec.shape().f32_bytes();
        let percent = 100.0 * share(spec.bytes(), f32_bytes);
        let file_bytes = self.file_bytes;
        writeln!(
            out,
            "bytes   {:#}, {percent:.1} % of {f32_bytes:#} as f32; the file has {file_bytes} B",
            spec.bytes()
        )?;
        Ok(())
    }
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
