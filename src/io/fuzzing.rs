//! One entry point a reader, for fuzzers: any bytes must give rows or an error, without a panic and without memory that the
//! bytes do not account for.

use std::io::{Cursor, Read, Seek};

use super::{TableFile, Vocabulary, gguf as gguf_file, npy, npz as npz_file, open::open_reader, tensors};
use crate::{
    source::{RowSource, TableSource},
    units::Shape,
};

/// An entry point.
pub type Entry = fn(&[u8]);

/// All of them, by the names of their fuzz targets.
pub const ENTRIES: &[(&str, Entry)] = &[
    ("rows", rows),
    ("safetensors", safetensors),
    ("index", index),
    ("gguf", gguf),
    ("npy", npy),
    ("npz", npz),
    ("word_vectors", word_vectors),
    ("word2vec_binary", word2vec_binary),
    ("words", words),
    ("table", table),
];

/// Values that are read at a time.
const BLOCK: usize = 1 << 16;
/// Rows that are read in all: a text of a few bytes is never more, a matrix of no bytes a row has no rows.
const MOST_ROWS: u32 = 1 << 12;

/// Any file that rows are read from, its format told by its content.
pub fn rows(bytes: &[u8]) {
    if let Ok(mut input) = open_reader("fuzz", Cursor::new(bytes.to_vec()), None) {
        drain(&mut *input.rows);
    }
}

/// A safetensors file, with and without a tensor's name.
pub fn safetensors(bytes: &[u8]) {
    for tensor in [None, Some("weight")] {
        if let Ok(mut found) = tensors::open("fuzz.safetensors", Cursor::new(bytes), tensor) {
            drain(&mut found.matrix);
        }
    }
}

/// The index of several safetensors files.
pub fn index(bytes: &[u8]) {
    let _ = tensors::Index::parse("fuzz.index.json", bytes);
}

/// A sparse matrix of SciPy's.
pub fn npz(bytes: &[u8]) {
    if let Ok(mut rows) = npz_file::open("fuzz.npz", Cursor::new(bytes)) {
        drain(&mut rows);
    }
}

/// A GGUF file, with and without a tensor's name.
pub fn gguf(bytes: &[u8]) {
    for tensor in [None, Some("weight")] {
        if let Ok(mut found) = gguf_file::open("fuzz.gguf", Cursor::new(bytes.to_vec()), tensor) {
            drain(&mut *found.rows);
        }
    }
}

/// A `.npy` file.
pub fn npy(bytes: &[u8]) {
    if let Ok(mut matrix) = npy::open("fuzz.npy", Cursor::new(bytes)) {
        drain(&mut matrix);
    }
}

/// Word vectors as text, plain or gzip.
pub fn word_vectors(bytes: &[u8]) {
    named("fuzz.txt", bytes);
}

/// Word vectors as word2vec's binary, plain or gzip.
pub fn word2vec_binary(bytes: &[u8]) {
    named("fuzz.bin", bytes);
}

fn named(file: &str, bytes: &[u8]) {
    if let Ok(mut input) = open_reader(file, Cursor::new(bytes.to_vec()), None) {
        drain(&mut *input.rows);
        let words = input.words.unwrap_or_default();
        assert!(words.is_empty() || words.find(words.get(0)) == Some(0), "the first word is the first");
    }
}

/// A text file of words.
pub fn words(bytes: &[u8]) {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    for rows in [0, lines, lines + 1] {
        let _ = Vocabulary::read_lines("fuzz.txt", Cursor::new(bytes), u32::try_from(rows).unwrap_or(u32::MAX));
    }
}

/// A table file.
pub fn table(bytes: &[u8]) {
    if let Ok(table) = TableFile::from_reader("fuzz", Cursor::new(bytes)) {
        read_parts(&table);
        let _ = table.words();
    }
}

fn read_parts<R: Read + Seek + Send>(table: &TableFile<R>) {
    let mut task = std::task::Context::from_waker(std::task::Waker::noop());
    for (number, part) in table.spec().parts().iter().enumerate() {
        let mut bytes = vec![0; usize::try_from(part.bytes().0).unwrap_or(usize::MAX).min(BLOCK)];
        let read = std::pin::pin!(table.read_part(number, 0, &mut bytes)).poll(&mut task);
        assert!(matches!(read, std::task::Poll::Ready(Ok(()))), "a checked file is read");
    }
}

/// Reads rows from the first on, twice.
fn drain(source: &mut dyn RowSource) {
    let shape: Shape = source.shape();
    let dim = shape.dim() as usize;
    let block = u32::try_from((BLOCK / dim).max(1)).unwrap_or(1).min(shape.rows());
    let mut values = vec![0.0; block as usize * dim];
    for _ in 0..2 {
        let mut first = 0;
        while first < shape.rows().min(MOST_ROWS) {
            let rows = block.min(shape.rows() - first);
            if source.read_rows(first, &mut values[..rows as usize * dim]).is_err() {
                break;
            }
            first += rows;
        }
    }
}
