//! One error enum a phase. Each carries the numbers a caller acts on.

mod dynamic;
mod lookup;
mod shard;
mod sparse;

use thiserror::Error;

pub use dynamic::DynamicError;
pub use lookup::{BagsError, GatherError, ScoreError};
pub use shard::{ShardCause, ShardError};
pub use sparse::SparseError;

use crate::units::Bytes;

/// A table's shape that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// A table of no columns.
    #[error("a table of {rows} rows has 0 columns; it needs at least 1")]
    NoColumns {
        /// Rows asked for.
        rows: u64,
    },
    /// More columns than the engine takes.
    #[error("a table of {dim} columns; at most {most} are supported")]
    TooManyColumns {
        /// Columns asked for.
        dim: u64,
        /// The most there may be.
        most: u32,
    },
    /// More rows than a 32-bit row number tells apart.
    #[error("a table of {rows} rows; at most {most} are supported")]
    TooManyRows {
        /// Rows asked for.
        rows: u64,
        /// The most there may be.
        most: u64,
    },
}

/// A scheme string that does not parse.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SchemeError {
    /// No scheme of that name.
    #[error("unknown scheme `{name}`; known schemes: {known}")]
    Unknown {
        /// The name as given.
        name: String,
        /// The names that exist, separated by commas.
        known: String,
    },
    /// An option the scheme does not have, or has twice.
    #[error("scheme `{scheme}`: option `{option}` {problem}")]
    Option {
        /// The scheme's name.
        scheme: String,
        /// The option as given.
        option: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Rows that could not be read from where they come from.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The input is damaged or not what it says; the text names file, place and reason.
    #[error("{0}")]
    Invalid(String),
    /// Reading failed.
    #[error("{what}: {error}")]
    Io {
        /// What was read or written: a file, a part of it.
        what: String,
        /// The system's error.
        #[source]
        error: std::io::Error,
    },
}

/// A table that could not be encoded. Nothing is left behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A NaN or an infinity.
    #[error("row {row}, column {column} is {value}; a table must be finite")]
    NotFinite {
        /// Row of the value.
        row: u64,
        /// Column of the value.
        column: u32,
        /// The value.
        value: f32,
    },
    /// A value the scheme cannot hold within its bound.
    #[error("row {row}, column {column}: {value} does not fit scheme `{scheme}`: {reason}")]
    Precision {
        /// Row of the value.
        row: u64,
        /// Column of the value.
        column: u32,
        /// The value.
        value: f32,
        /// The scheme as written.
        scheme: String,
        /// Why it does not fit.
        reason: &'static str,
    },
    /// The scheme and the shape do not go together.
    #[error("scheme `{scheme}` does not fit rows of {dim} columns: {reason}")]
    Unfit {
        /// The scheme as written.
        scheme: String,
        /// Columns of a row.
        dim: u32,
        /// Why.
        reason: String,
    },
    /// The number of frequencies is not that of the rows.
    #[error("{got} frequencies are none of {rows} rows; there must be one a row")]
    Frequencies {
        /// Frequencies given.
        got: u64,
        /// Rows of the table.
        rows: u32,
    },
    /// A frequency that is none: negative, NaN or infinite.
    #[error("the frequency of row {row} is {value}; it must be finite and at least 0")]
    Frequency {
        /// The row.
        row: u64,
        /// What was given for it.
        value: f32,
    },
    /// Frequencies that are all 0, of which no row has a weight.
    #[error("the frequencies of all {rows} rows are 0; one at least must be over 0")]
    NoTraffic {
        /// Rows of the table.
        rows: u32,
    },
    /// The number of values is not rows x dim.
    #[error("{values} values are no table of {rows} rows x {dim} columns")]
    Length {
        /// Values given.
        values: u64,
        /// Rows promised.
        rows: u64,
        /// Columns promised.
        dim: u64,
    },
    /// The shape cannot be.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The input could not be read, or the output not written.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// A device that is lost, or failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The device is gone, with all its buffers; build a new engine and load the tables again.
    #[error("the device is lost: {reason}; build a new engine and load the tables again")]
    Lost {
        /// The driver's words.
        reason: String,
    },
    /// The driver had no memory left.
    #[error("the device is out of memory making {what} of {needed:#}")]
    OutOfMemory {
        /// The label of what was being made.
        what: String,
        /// Its size.
        needed: Bytes,
    },
    /// wgpu refused something this library did: a fault of ours, please report it.
    #[error("the device refused a command: {0}")]
    Refused(String),
}

/// An engine that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// No adapter fits what was asked for.
    #[error("no adapter matches `{wanted}`; found: {found}")]
    NoAdapter {
        /// What was asked for.
        wanted: String,
        /// What there is, separated by commas.
        found: String,
    },
    /// The device's limits are below what the kernels need.
    #[error("{adapter}: {limit} is {has}, the kernels need {needs}")]
    Limit {
        /// The adapter's name.
        adapter: String,
        /// The limit's name as wgpu spells it.
        limit: &'static str,
        /// What the device has.
        has: u64,
        /// What is needed.
        needs: u64,
    },
    /// The adapter gave no device.
    #[error("{adapter}: no device: {reason}")]
    NoDevice {
        /// The adapter's name.
        adapter: String,
        /// The driver's words.
        reason: String,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A table that could not be placed on the engine. Nothing of it is left there.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// More than the engine's budget.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// One row is larger than the device binds at a time.
    #[error("table `{table}`: a row takes {row:#} and the device binds {binding:#} at a time")]
    RowTooLarge {
        /// The table's name.
        table: String,
        /// Bytes of a row.
        row: Bytes,
        /// The most one binding may have.
        binding: Bytes,
    },
    /// A scheme whose shards do not stand alone.
    #[error("table `{table}`: scheme `{scheme}` is not loaded on demand: {reason}; load the table whole")]
    NotOnDemand {
        /// The table's name.
        table: String,
        /// Its scheme.
        scheme: String,
        /// What of the scheme needs more than one shard.
        reason: &'static str,
    },
    /// A budget for shards on demand that does not hold the largest of them.
    #[error("table `{table}`: a shard takes {shard:#}, and {budget:#} are for all that may be there")]
    ShardBudget {
        /// The table's name.
        table: String,
        /// Bytes of the largest shard.
        shard: Bytes,
        /// The budget.
        budget: Bytes,
    },
    /// The encoded parts could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A refusal by the memory budget: nothing was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{needed:#} more would pass the budget of {budget:#} ({live:#} are in use; the largest part asked for is {largest:#})"
)]
pub struct OverBudget {
    /// What was asked for, in all.
    pub needed: Bytes,
    /// The budget.
    pub budget: Bytes,
    /// What is in use already.
    pub live: Bytes,
    /// The largest single buffer among what was asked for.
    pub largest: Bytes,
}
