//! What can be wrong with a file.

use std::io;

use thiserror::Error;

use crate::{
    error::{EncodeError, SchemeError, ShapeError, SourceError, SparseError, TableError},
    units::Bytes,
};

/// A file that could not be read or written. `file` is its path as the caller gave it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system failed.
    #[error("{what}: {error}")]
    Io {
        /// What was read or written.
        what: String,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// A source of bytes that failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A table without checksums of blocks, which cannot be read on demand.
    #[error("{file}: has no checksums of blocks, by which pieces of it are believed; read it whole, or write it again")]
    NoBlocks {
        /// The file.
        file: String,
    },
    /// No format this library reads.
    #[error("{file}: {reason}")]
    Unrecognised {
        /// The file.
        file: String,
        /// What it is not, and what can be done.
        reason: String,
    },
    /// A header that does not parse, or contradicts itself.
    #[error("{file}: damaged header: {reason}")]
    Header {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A header longer than the format allows.
    #[error("{file}: the header claims {claimed:#}; at most {most:#} are read")]
    HeaderTooLarge {
        /// The file.
        file: String,
        /// Bytes the file says its header has.
        claimed: Bytes,
        /// The most there may be.
        most: Bytes,
    },
    /// A file shorter or longer than its header says.
    #[error("{file}: the file has {has:#}, its header describes {needed:#}{}", length_hint(*.has, *.needed))]
    Length {
        /// The file.
        file: String,
        /// Bytes that the header describes.
        needed: Bytes,
        /// Bytes there are.
        has: Bytes,
    },
    /// A safetensors file that is no table of this library.
    #[error("{file}: not a gatherum table: {reason}; `compress` makes one of it")]
    NotTable {
        /// The file.
        file: String,
        /// What is missing.
        reason: String,
    },
    /// A table, where plain rows are wanted.
    #[error("{file}: is a gatherum table already; name one of its tensors to read that one: {tensors}")]
    IsTable {
        /// The file.
        file: String,
        /// Its tensors, separated by commas.
        tensors: String,
    },
    /// A table of a later format.
    #[error("{file}: table format version `{version}`; this library reads version `{known}`")]
    Version {
        /// The file.
        file: String,
        /// The version as the file has it.
        version: String,
        /// The version that is read.
        known: &'static str,
    },
    /// A table of a scheme that this library does not know, or that does not fit its rows.
    #[error("{file}: {error}")]
    Scheme {
        /// The file.
        file: String,
        /// Why.
        #[source]
        error: SchemeError,
    },
    /// A table whose scheme cannot store rows of its width.
    #[error("{file}: {error}")]
    Unfit {
        /// The file.
        file: String,
        /// Why.
        #[source]
        error: EncodeError,
    },
    /// A part of a table that is missing, unknown or of another type or shape than the scheme asks for.
    #[error("{file}: part `{part}` {problem}")]
    Part {
        /// The file.
        file: String,
        /// The part's name.
        part: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Bytes that are not those that were written.
    #[error("{file}: {part} is damaged: its checksum is {computed}, the file was written with {stored}")]
    Checksum {
        /// The file.
        file: String,
        /// The part, or the description in the header.
        part: String,
        /// As the file has it.
        stored: String,
        /// Of the bytes that are there.
        computed: String,
    },
    /// A line of a text file.
    #[error("{file}, line {line}: {reason}")]
    BadLine {
        /// The file.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A record of a binary word2vec file.
    #[error("{file}, record {record} (at byte {offset}): {reason}")]
    BadRecord {
        /// The file.
        file: String,
        /// Number of the record, from 0: the row it would be.
        record: u64,
        /// Where it begins; in the decompressed bytes, where the file is compressed.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// Another number of rows than the header promises.
    #[error("{file}: the header promises {promised} rows, the file has {has}")]
    RowCount {
        /// The file.
        file: String,
        /// Rows by the header.
        promised: u64,
        /// Rows there are.
        has: u64,
    },
    /// A type that rows are not read from.
    #[error("{file}: {tensor} holds {dtype}; rows are read from {supported}")]
    Dtype {
        /// The file.
        file: String,
        /// The tensor or array.
        tensor: String,
        /// Its type as the file has it.
        dtype: String,
        /// The types that are read.
        supported: &'static str,
    },
    /// A tensor that is no matrix.
    #[error("{file}: {tensor} has shape {shape:?}; a table has 2 dimensions, [rows, columns]")]
    Dimensions {
        /// The file.
        file: String,
        /// The tensor or array.
        tensor: String,
        /// Its dimensions.
        shape: Vec<u64>,
    },
    /// A table that is too large, or has no columns.
    #[error("{file}: {error}")]
    Shape {
        /// The file.
        file: String,
        /// Why.
        #[source]
        error: ShapeError,
    },
    /// A sparse matrix whose numbers do not go together.
    #[error("{file}: {error}")]
    Sparse {
        /// The file.
        file: String,
        /// Why.
        #[source]
        error: SparseError,
    },
    /// Several tensors that may be meant.
    #[error("{file}: several tensors could be the table; name one: {candidates}")]
    Ambiguous {
        /// The file.
        file: String,
        /// Names and shapes, separated by commas.
        candidates: String,
    },
    /// No such tensor, or none that could be a table.
    #[error("{file}: {wanted}; there are: {present}")]
    NoTensor {
        /// The file.
        file: String,
        /// What was looked for.
        wanted: String,
        /// What there is.
        present: String,
    },
    /// A value beyond the range of f32.
    #[error("{file}: row {row}, column {column}: {value:e} does not fit f32")]
    Overflow {
        /// The file.
        file: String,
        /// Row of the value.
        row: u64,
        /// Column of the value.
        column: u32,
        /// The value.
        value: f64,
    },
    /// Another number of words than of rows.
    #[error("{file}: {words} words for {rows} rows")]
    WordCount {
        /// Where the words are from.
        file: String,
        /// Words there are.
        words: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// A word that cannot be stored.
    #[error("the word of row {row} {problem}")]
    Word {
        /// Its row.
        row: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A table that was not written to its end; nothing was saved.
    #[error("{file}: part `{part}` got {written:#} of {needed:#}; the table is not saved")]
    Unfinished {
        /// The file.
        file: String,
        /// The part.
        part: String,
        /// Bytes written.
        written: Bytes,
        /// Bytes it has.
        needed: Bytes,
    },
}

/// A table file that could not be placed as its bytes came. Nothing of it is left on the engine.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The file is damaged, or no table.
    #[error(transparent)]
    File(#[from] FileError),
    /// The engine has no room for it, or its device failed.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl FileError {
    /// An [`io::Error`] while doing `what`.
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}

impl From<FileError> for SourceError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { what, error } => Self::Io { what, error },
            FileError::Source(error) => error,
            other => Self::Invalid(other.to_string()),
        }
    }
}

fn length_hint(has: Bytes, needed: Bytes) -> &'static str {
    if has < needed { ": it is cut short" } else { ": it has bytes too many" }
}
