//! Table files that are made for a bench, of any size, in bounded memory.

use std::path::{Path, PathBuf};

use gatherum::{
    Encoder, RowSource, Scheme, Shape, SourceError,
    io::{StoredTable, TableWriter},
    store::FileSource,
};

use super::Random;

/// Rows that are made when they are read.
struct Made {
    shape: Shape,
}

impl RowSource for Made {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn read_rows(&mut self, first: u32, out: &mut [f32]) -> Result<(), SourceError> {
        let mut random = Random::new(u64::from(first));
        out.iter_mut().for_each(|value| *value = random.next() as f32 / (1u32 << 30) as f32 - 1.0);
        Ok(())
    }
}

/// The number that a variable of the environment has.
pub fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or)
}

/// The text that a variable of the environment has.
pub fn text(name: &str, or: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| or.to_owned())
}

/// The table that `TABLE` names, or one of `ROWS` x `DIM` by `SCHEME` that is made in `folder`.
pub fn table(folder: &Path, rows: u64, dim: u64) -> PathBuf {
    match std::env::var("TABLE") {
        Ok(path) => PathBuf::from(path),
        Err(_) => {
            let path = folder.join("table.safetensors");
            make(&path, number("ROWS", rows), number("DIM", dim), &text("SCHEME", "f32"));
            path
        }
    }
}

fn make(path: &Path, rows: u64, dim: u64, scheme: &str) {
    let mut rows = Made { shape: Shape::new(rows, dim).expect("a shape") };
    let scheme: Scheme = scheme.parse().expect("a scheme");
    let spec = scheme.spec(rows.shape).expect("a table");
    let mut writer = TableWriter::create(path, &spec, None).expect("a file");
    Encoder::new(&scheme).run(&mut rows, &mut writer).expect("a table");
    writer.finish().expect("a file");
}

/// The table in a file, of which the header was read.
pub fn open(path: &Path) -> StoredTable<FileSource> {
    pollster::block_on(StoredTable::open(FileSource::open(path).expect("the file"))).expect("a table")
}
