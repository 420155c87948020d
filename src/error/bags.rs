//! Bags that cannot be.

use thiserror::Error;

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
