//! A dynamic table that could not be made, or a call of one that could not be answered.

use thiserror::Error;

use super::{DeviceError, GatherError, OverBudget, ShapeError, TableError};
use crate::units::Bytes;

/// A dynamic table that could not be made, or a call of one that could not be answered. Where nothing else is said, nothing has
/// changed then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DynamicError {
    /// A number of rows that there cannot be room for.
    #[error("dynamic table `{table}`: room for {capacity} rows; there is room for 1 to {most}")]
    Capacity {
        /// The table's name.
        table: String,
        /// Rows asked for.
        capacity: u64,
        /// The most.
        most: u64,
    },
    /// A map of ids that the device does not bind.
    #[error(
        "dynamic table `{table}`: the map of {capacity} ids takes {map:#}, and the device binds {binding:#} at a time"
    )]
    MapTooLarge {
        /// The table's name.
        table: String,
        /// Rows asked for.
        capacity: u64,
        /// Bytes of the map.
        map: Bytes,
        /// The most one binding may have.
        binding: Bytes,
    },
    /// Growing to fewer rows than there is room for.
    #[error("dynamic table `{table}` has room for {capacity} rows and does not shrink to {wanted}")]
    Shrinks {
        /// The table's name.
        table: String,
        /// Rows that there is room for.
        capacity: u64,
        /// Rows asked for.
        wanted: u64,
    },
    /// Rows of halves that do not end on a word.
    #[error("dynamic table `{table}`: f16 rows of {dim} columns; f16 rows have an even number, as two share a word")]
    OddHalves {
        /// The table's name.
        table: String,
        /// Columns of a row.
        dim: u32,
    },
    /// An initialiser that gives no rows of the table.
    #[error("dynamic table `{table}`: the initializer cannot be: {problem}")]
    Initializer {
        /// The table's name.
        table: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Host memory is short.
    #[error("dynamic table `{table}`: no host memory for {needed:#}")]
    HostMemory {
        /// The table's name.
        table: String,
        /// What was asked for.
        needed: Bytes,
    },
    /// A batch that names more ids than there is room for.
    #[error("dynamic table `{table}`: the batch names {distinct} ids, and there is room for {capacity} rows")]
    TooManyIds {
        /// The table's name.
        table: String,
        /// Ids of the batch, each counted once.
        distinct: u64,
        /// Rows that there is room for.
        capacity: u64,
    },
    /// A batch that needs more room than is free, where [no row may go](crate::Eviction::Refuse).
    #[error("dynamic table `{table}`: the batch names {new} new ids, and {free} of {capacity} rows are free")]
    Full {
        /// The table's name.
        table: String,
        /// Ids of the batch that have no row, each counted once.
        new: u64,
        /// Rows that are free.
        free: u64,
        /// Rows that there is room for.
        capacity: u64,
    },
    /// An id that has no row, under [`Missing::Error`](crate::Missing::Error).
    #[error("dynamic table `{table}`: {} at position {position} has no row ({count} such ids in all)", super::lookup::bad_id(*id))]
    Missing {
        /// The table's name.
        table: String,
        /// Position of the first such id in the batch.
        position: u64,
        /// That id; `None` where it lies in a caller's buffer that cannot be copied from.
        id: Option<i128>,
        /// How many such ids the batch has.
        count: u64,
    },
    /// Values that are not one row an id.
    #[error("dynamic table `{table}`: {got} values are no {ids} rows of {dim} columns")]
    Values {
        /// The table's name.
        table: String,
        /// Ids of the batch.
        ids: u64,
        /// Columns of a row.
        dim: u32,
        /// Values given.
        got: u64,
    },
    /// A value that is NaN or infinite, or that the table's type does not hold.
    #[error("dynamic table `{table}`: row {row} (id {id}), column {column} is {value}; {reason}")]
    Value {
        /// The table's name.
        table: String,
        /// Position of the row in the batch.
        row: u64,
        /// Its id.
        id: u64,
        /// The column.
        column: u32,
        /// The value.
        value: f32,
        /// Why it is refused.
        reason: &'static str,
    },
    /// Scores that are not one an id, or for a table whose rows do not go by score.
    #[error("dynamic table `{table}`: {problem}")]
    Scores {
        /// The table's name.
        table: String,
        /// What is wrong with them.
        problem: String,
    },
    /// The shape cannot be.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The rows could not be placed.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The rows could not be looked up. Those that the call was to make are made.
    #[error(transparent)]
    Gather(#[from] GatherError),
}

impl From<OverBudget> for DynamicError {
    fn from(error: OverBudget) -> Self {
        Self::Gather(error.into())
    }
}

impl From<DeviceError> for DynamicError {
    fn from(error: DeviceError) -> Self {
        Self::Gather(error.into())
    }
}
