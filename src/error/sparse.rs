//! What can be wrong with a sparse matrix.

use thiserror::Error;

/// A sparse matrix whose numbers do not go together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SparseError {
    /// Slices of the wrong length.
    #[error("`{what}` has {has} items, not {needed}")]
    Length {
        /// Which.
        what: &'static str,
        /// Items it has.
        has: u64,
        /// Items it should have.
        needed: u64,
    },
    /// A row whose values cannot be where it says.
    #[error("row {row}: its values begin at {start} and end at {end}, of {values}")]
    Starts {
        /// The row.
        row: u64,
        /// Its first value.
        start: u64,
        /// Where its values end.
        end: u64,
        /// Values there are.
        values: u64,
    },
    /// A row that the matrix does not have.
    #[error("value {index} is in row {row} of {rows}")]
    Row {
        /// Index of the value.
        index: u64,
        /// Its row.
        row: u64,
        /// Rows of the matrix.
        rows: u32,
    },
    /// A column that the matrix does not have.
    #[error("row {row}: value {index} is in column {column} of {dim}")]
    Column {
        /// The row.
        row: u64,
        /// Index of the value.
        index: u64,
        /// Its column.
        column: u64,
        /// Columns of the matrix.
        dim: u32,
    },
    /// Columns that do not ascend in a row.
    #[error("row {row}: value {index} is in column {column}, and the one before in {before}; columns must ascend")]
    Order {
        /// The row.
        row: u64,
        /// Index of the value.
        index: u64,
        /// Column of the value before.
        before: u32,
        /// Its column.
        column: u32,
    },
    /// Two values for one place, where that is refused.
    #[error("row {row}, column {column} has several values")]
    Duplicate {
        /// The row.
        row: u64,
        /// The column.
        column: u32,
    },
}
