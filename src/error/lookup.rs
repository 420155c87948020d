//! Lookups, bags and scores that could not be answered.

use thiserror::Error;

use super::{DeviceError, OverBudget, ShardError};

/// A gather that could not be answered. No output was written that a caller could take for an answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GatherError {
    /// An id that names no row, under [`IdPolicy::Error`](crate::IdPolicy::Error).
    #[error(
        "table `{table}`: {} at position {position} is outside of its {rows} rows ({count} such ids in all)",
        bad_id(*id)
    )]
    BadId {
        /// The table's name.
        table: String,
        /// Position of the first bad id in the batch.
        position: u64,
        /// That id; `None` where it lies in a caller's buffer that cannot be copied from.
        id: Option<i128>,
        /// Rows of the table.
        rows: u64,
        /// How many bad ids the batch has.
        count: u64,
    },
    /// The output has another size than `ids x dim`.
    #[error("table `{table}`: the output takes {got} values, {ids} ids x {dim} columns need {needed}")]
    OutputLength {
        /// The table's name.
        table: String,
        /// Ids of the batch.
        ids: u64,
        /// Columns of a row.
        dim: u32,
        /// Values needed.
        needed: u64,
        /// Values the output has.
        got: u64,
    },
    /// Bags that do not fit their ids, weights or output. Nothing was computed.
    #[error("table `{table}`: {error}")]
    Bags {
        /// The table's name.
        table: String,
        /// What is wrong with them.
        #[source]
        error: BagsError,
    },
    /// The engine works on the host: there is no device to hold a buffer.
    #[error("table `{table}` is on the host backend, which has no device buffers; gather to host memory instead")]
    NoDevice {
        /// The table's name.
        table: String,
    },
    /// A caller's buffer that cannot serve.
    #[error("table `{table}`: the {role} buffer {problem}")]
    Buffer {
        /// The table's name.
        table: String,
        /// Which one: ids or output.
        role: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A shard of a table on demand was not loaded.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// Leases hold so much of a table that what was asked for finds no room beside it. Nothing was computed.
    #[error("table `{table}`: what leases hold leaves too little of the {pages} pages that fit; drop one")]
    CacheBusy {
        /// The table's name.
        table: String,
        /// Pages, or shards, that fit in all.
        pages: usize,
    },
    /// A recorded lookup in a table on demand needs all shards, and not all are there.
    #[error(
        "table `{table}`: {resident} of its {shards} shards are there, and a recorded lookup needs all; warm it before"
    )]
    NotResident {
        /// The table's name.
        table: String,
        /// Shards that are there.
        resident: usize,
        /// Shards of the table.
        shards: usize,
    },
    /// A recorded lookup in a table whose rows change: it could run after they did.
    #[error(
        "table `{table}`: its rows change, and a recorded lookup could read old ones when it runs; use `gather_buffer`"
    )]
    Changing {
        /// The table's name.
        table: String,
    },
    /// Scratch or output would pass the budget.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A score that could not be answered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScoreError {
    /// The queries are no whole number of rows.
    #[error("table `{table}`: {got} values are no whole number of queries of {dim} columns")]
    QueryLength {
        /// The table's name.
        table: String,
        /// Values given.
        got: u64,
        /// Columns of a row.
        dim: u64,
    },
    /// A query with a value that is NaN or infinite.
    #[error("table `{table}`: query {query}, column {column}: {value} is not finite")]
    NotFinite {
        /// The table's name.
        table: String,
        /// Which query.
        query: u64,
        /// Which of its columns.
        column: u64,
        /// The value.
        value: f32,
    },
    /// A number of best rows that is not kept.
    #[error("table `{table}`: the best {k} rows cannot be asked for, but 1 to {most} of them")]
    K {
        /// The table's name.
        table: String,
        /// The number asked for.
        k: u64,
        /// The most that can be.
        most: u64,
    },
    /// A range of rows that the table does not have.
    #[error("table `{table}`: rows {start}..{end} are not within its {rows} rows")]
    Rows {
        /// The table's name.
        table: String,
        /// The first row asked for.
        start: u64,
        /// The row after the last.
        end: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// Rows to leave out that are not one a query.
    #[error("table `{table}`: {got} rows to leave out, where there are {queries} queries")]
    LeaveOut {
        /// The table's name.
        table: String,
        /// Rows given.
        got: u64,
        /// Queries given.
        queries: u64,
    },
    /// The answer does not fit host memory.
    #[error("table `{table}`: the answer of {queries} queries x {each} does not fit host memory")]
    TooLarge {
        /// The table's name.
        table: String,
        /// Queries given.
        queries: u64,
        /// Scores of each.
        each: u64,
    },
    /// A shard of a table on demand was not loaded.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// Scratch would pass the budget.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Bags that do not fit their ids, weights or output.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BagsError {
    /// The first bag does not begin with the first id.
    #[error("the first offset is {offset}, not 0")]
    FirstOffset {
        /// The offset.
        offset: i128,
    },
    /// A bag begins before the one ahead of it, or at a negative offset.
    #[error("offset {at} is {offset}, less than the one before, {before}")]
    Decreasing {
        /// Index of the offset.
        at: u64,
        /// The offset.
        offset: i128,
        /// The one before.
        before: i128,
    },
    /// A negative number of ids.
    #[error("length {at} is {length}, which is negative")]
    Length {
        /// Index of the bag.
        at: u64,
        /// Its length.
        length: i128,
    },
    /// The last bag does not end with the last id.
    #[error("the bags end at {end}, the batch has {ids} ids")]
    End {
        /// Where they end, or where the last one begins if that is behind the ids.
        end: i128,
        /// Ids of the batch.
        ids: u64,
    },
    /// Offsets that include the last one, and there is none.
    #[error("offsets that include the last one are at least one, and there is none")]
    NoOffsets,
    /// Not one weight an id.
    #[error("{weights} weights for {ids} ids")]
    Weights {
        /// Weights given.
        weights: u64,
        /// Ids of the batch.
        ids: u64,
    },
    /// A weight that is NaN or infinite, of an id other than the padding id.
    #[error("the weight at position {position} is {weight}; weights must be finite")]
    Weight {
        /// Its position.
        position: u64,
        /// The weight.
        weight: f32,
    },
    /// A maximum has no use for weights.
    #[error("weights go with sum and mean; the mode is max")]
    WeightedMax,
    /// The output has another size than `bags x dim`.
    #[error("the output takes {got} values, {bags} bags x {dim} columns need {needed}")]
    OutputLength {
        /// Bags of the batch.
        bags: u64,
        /// Columns of a row.
        dim: u32,
        /// Values needed.
        needed: u64,
        /// Values the output has.
        got: u64,
    },
}

pub(super) fn bad_id(id: Option<i128>) -> String {
    id.map_or_else(|| "the id".to_owned(), |id| format!("id {id}"))
}
