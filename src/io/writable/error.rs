//! What can be wrong with a table that is written to.

use std::io;

use thiserror::Error;

use crate::{
    error::{EncodeError, SourceError},
    io::FileError,
    units::Bytes,
};

/// A table that could not be opened for writing, or was not written to. Nothing that was acknowledged is lost; `file` is the path
/// of the table as the caller gave it, or that of its journal.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WritableError {
    /// The table's file is damaged, or no table.
    #[error(transparent)]
    File(FileError),
    /// Somebody else writes to the table, or reads it by a reader of theirs: another process, or another handle in this one.
    #[error("{file}: another writer has it open; there may be one at a time")]
    Locked {
        /// The journal.
        file: String,
    },
    /// A scheme whose rows are not stored each by itself.
    #[error("{file}: rows of scheme `{scheme}` cannot be written one by one: {reason}; encode the table anew")]
    NotWritable {
        /// The table.
        file: String,
        /// Its scheme.
        scheme: String,
        /// What its rows have in common.
        reason: &'static str,
    },
    /// A file in the journal's place that is none. It is left as it is.
    #[error("{file}: not a journal of this library: {reason}")]
    NotJournal {
        /// The journal.
        file: String,
        /// What is missing.
        reason: String,
    },
    /// A journal of a later format. It is left as it is.
    #[error("{file}: journal format version {version}; this library reads version {known}")]
    Version {
        /// The journal.
        file: String,
        /// The version as the file has it.
        version: i64,
        /// The version that is read.
        known: i64,
    },
    /// A journal of another table. It is left as it is.
    #[error("{file}: is the journal of another table: {journal}; the table beside it is {table}")]
    OtherTable {
        /// The journal.
        file: String,
        /// Scheme, shape and checksum of the table that it is of.
        journal: String,
        /// Those of the table that is there.
        table: String,
    },
    /// A journal whose bytes are not those that were written. It is left as it is.
    #[error("{file}: the journal is damaged: {what}")]
    Damaged {
        /// The journal.
        file: String,
        /// Where, and how that is known.
        what: String,
    },
    /// Values that are no whole rows, one for each id. Nothing was taken.
    #[error("{file}: {got} values for {ids} ids x {dim} columns, which need {needed}")]
    Length {
        /// The table.
        file: String,
        /// Ids given.
        ids: u64,
        /// Columns of a row.
        dim: u32,
        /// Values needed.
        needed: u64,
        /// Values given.
        got: u64,
    },
    /// An id that names no row. Nothing was taken.
    #[error("{file}: id {id} at position {position} is none of its {rows} rows")]
    NoRow {
        /// The table.
        file: String,
        /// Position of the first such id.
        position: u64,
        /// That id.
        id: i128,
        /// Rows of the table.
        rows: u32,
    },
    /// A value that the table's scheme does not store, such as a NaN. Nothing was taken.
    #[error("{file}: the values at position {position} of the ids: {error}")]
    Encode {
        /// The table.
        file: String,
        /// Position of the row among the ids.
        position: u64,
        /// Which row and column, which value, and why.
        #[source]
        error: EncodeError,
    },
    /// More than the table and its journal may have of the disk. Nothing was written; what was staged still is.
    #[error(
        "{file}: {needed:#} more of the disk would pass its {cap:#} ({used:#} are in use); merge, or raise the cap"
    )]
    DiskCap {
        /// The table.
        file: String,
        /// Bytes that it may take beside those in use, those of a merge among them.
        needed: Bytes,
        /// Bytes of the table and its journal.
        used: Bytes,
        /// The most that they may take, with what a merge takes beside them.
        cap: Bytes,
    },
    /// The disk is full. Nothing was changed; what was staged still is.
    #[error("{file}: the disk is full: {reason}")]
    DiskFull {
        /// What was written.
        file: String,
        /// The system's words.
        reason: String,
    },
    /// The journal could not be read or written.
    #[error("{file}: {doing}: {reason}")]
    Journal {
        /// The journal.
        file: String,
        /// What was being done.
        doing: &'static str,
        /// The store's words.
        reason: String,
    },
}

impl From<FileError> for WritableError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { what, error } | FileError::Source(SourceError::Io { what, error })
                if error.kind() == io::ErrorKind::StorageFull =>
            {
                Self::DiskFull { file: what, reason: error.to_string() }
            }
            other => Self::File(other),
        }
    }
}

impl From<SourceError> for WritableError {
    fn from(error: SourceError) -> Self {
        FileError::Source(error).into()
    }
}
