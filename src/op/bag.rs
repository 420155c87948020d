//! Bags: which ids become one row, and how.

use std::ops::Range;

use super::{BadIds, Ids, Resolver};
use crate::{
    error::BagsError,
    scheme::{MOST_READ, Pool},
};

/// How the rows of a bag become one.
///
/// Each is computed in f32 with one accumulator a column that begins at 0.0, ids in their order, multiplying by the weight
/// (if there is one) and then adding. A bag without ids is 0.0 throughout in all modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BagMode {
    /// The sum of its rows, each times its weight where there are weights.
    Sum,
    /// The sum, times the reciprocal of the **number of ids** that are not the padding id. Weights do not change the number: a
    /// weighted mean is `(w1 x1 + ... + wn xn) / n`. To divide by the sum of the weights, divide the weights by it before.
    Mean,
    /// The largest value in each column; of 0.0 and -0.0 the first. Takes no weights.
    Max,
}

/// Ids cut into bags, each of which becomes one row, as PyTorch's `EmbeddingBag` has it.
///
/// Bags follow one another without a gap and cover all ids. Offsets and lengths are slices of `u32`, `u64` or `i64`, whatever
/// the ids are; weights are one f32 an id.
///
/// # Examples
/// ```
/// use gatherum::{BagMode, Bags, EncodedTable, Engine, IdPolicy};
/// let values = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5];
/// let (table, _) = EncodedTable::encode("words", &values, 2, &"f32".parse()?)?;
/// let table = Engine::host().load_blocking(&table)?;
/// // Ids 2 and 0; no ids; id 1.
/// let bags = Bags::offsets(&[0_u32, 2, 2], BagMode::Sum);
/// let rows = table.bag_blocking(&[2_u32, 0, 1], &bags, IdPolicy::Error)?;
/// assert_eq!(rows.values, [2.0, 3.0, 0.0, 0.0, 1.0, 1.5]);
///
/// // Id 1 is padding: it adds nothing, and the mean does not count it.
/// let bags = Bags::lengths(&[3_u32], BagMode::Mean).weights(&[0.5, f32::NAN, 1.0]).padding_id(1);
/// let rows = table.bag_blocking(&[2_u32, 1, 0], &bags, IdPolicy::Error)?;
/// assert_eq!(rows.values, [0.5, 0.875]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bags<'a> {
    bounds: Bounds<'a>,
    mode: BagMode,
    weights: Option<&'a [f32]>,
    padding: Option<i128>,
    normalised: bool,
}

#[derive(Clone, Copy, Debug)]
enum Bounds<'a> {
    Offsets(Ids<'a>),
    OffsetsWithLast(Ids<'a>),
    Lengths(Ids<'a>),
}

impl<'a> Bags<'a> {
    /// Bags by where each begins: `offsets: [bags]`. The first offset is 0, none is less than the one before, and the last bag
    /// ends with the ids.
    #[must_use]
    pub fn offsets(offsets: impl Into<Ids<'a>>, mode: BagMode) -> Self {
        Self::new(Bounds::Offsets(offsets.into()), mode)
    }

    /// Bags by where each begins, and the number of ids behind: `offsets: [bags + 1]`, PyTorch's `include_last_offset`.
    #[must_use]
    pub fn offsets_with_last(offsets: impl Into<Ids<'a>>, mode: BagMode) -> Self {
        Self::new(Bounds::OffsetsWithLast(offsets.into()), mode)
    }

    /// Bags by how many ids each has: `lengths: [bags]`, whose sum is the number of ids.
    #[must_use]
    pub fn lengths(lengths: impl Into<Ids<'a>>, mode: BagMode) -> Self {
        Self::new(Bounds::Lengths(lengths.into()), mode)
    }

    fn new(bounds: Bounds<'a>, mode: BagMode) -> Self {
        Self { bounds, mode, weights: None, padding: None, normalised: false }
    }

    /// A weight for each id: `weights: [ids]`, finite but for those of the padding id. For sum and mean.
    #[must_use]
    pub fn weights(self, weights: &'a [f32]) -> Self {
        Self { weights: Some(weights), ..self }
    }

    /// An id to ignore: it adds nothing and is not counted, by the mean or as a bad id; the weight at its place goes with it.
    ///
    /// It is compared with ids as they are given, before any policy sees them, and may lie outside of the table.
    #[must_use]
    pub fn padding_id(self, id: impl Into<i128>) -> Self {
        Self { padding: Some(id.into()), ..self }
    }

    /// Divides each result by its L2 norm. A row of zeros stays one, and so does one whose values are all subnormal.
    ///
    /// This is done last, after the mean's division, in f32 by sums and products alone: the relative error is at most
    /// `(dim / 32 + 12) 2^-24`.
    #[must_use]
    pub fn l2_normalised(self) -> Self {
        Self { normalised: true, ..self }
    }

    /// Checks bags and weights against the ids.
    pub(crate) fn check(&self, ids: Ids<'a>) -> Result<CheckedBags<'a>, BagsError> {
        let starts = match self.bounds {
            Bounds::Offsets(offsets) => starts(offsets, ids.len(), false)?,
            Bounds::OffsetsWithLast(offsets) => starts(offsets, ids.len(), true)?,
            Bounds::Lengths(lengths) => ends(lengths, ids.len())?,
        };
        let bags = CheckedBags {
            ids,
            weights: self.weights,
            padding: self.padding,
            mode: self.mode,
            normalised: self.normalised,
            starts,
        };
        bags.check_weights()?;
        Ok(bags)
    }
}

/// Where bags begin, and where the last one ends.
fn starts(offsets: Ids<'_>, ids: usize, with_last: bool) -> Result<Vec<usize>, BagsError> {
    let mut starts = Vec::with_capacity(offsets.len() + 1);
    let mut before = 0;
    for (at, offset) in offsets.iter().enumerate() {
        if at == 0 && offset != 0 {
            return Err(BagsError::FirstOffset { offset });
        }
        if offset < before {
            return Err(BagsError::Decreasing { at: at as u64, offset, before });
        }
        before = offset;
        starts.push(usize::try_from(offset).unwrap_or(usize::MAX));
    }
    match (with_last, starts.is_empty()) {
        (true, true) => return Err(BagsError::NoOffsets),
        (false, false) => starts.push(ids),
        (false, true) => starts.push(0),
        (true, false) => {}
    }
    // The last bag may not begin behind the ids, nor end before or behind them.
    let end = if with_last || offsets.is_empty() { before } else { before.max(ids as i128) };
    if end == ids as i128 { Ok(starts) } else { Err(BagsError::End { end, ids: ids as u64 }) }
}

/// The same from lengths.
fn ends(lengths: Ids<'_>, ids: usize) -> Result<Vec<usize>, BagsError> {
    let mut starts = Vec::with_capacity(lengths.len() + 1);
    let mut end = 0i128;
    starts.push(0);
    for (at, length) in lengths.iter().enumerate() {
        if length < 0 {
            return Err(BagsError::Length { at: at as u64, length });
        }
        // Under 2^64 times the number of bags.
        end += length;
        starts.push(usize::try_from(end).unwrap_or(usize::MAX));
    }
    if end == ids as i128 { Ok(starts) } else { Err(BagsError::End { end, ids: ids as u64 }) }
}

/// Bags that fit their ids and weights.
#[derive(Debug)]
pub(crate) struct CheckedBags<'a> {
    pub(crate) ids: Ids<'a>,
    pub(crate) weights: Option<&'a [f32]>,
    pub(crate) normalised: bool,
    padding: Option<i128>,
    mode: BagMode,
    /// Where each bag begins, and where the last one ends.
    starts: Vec<usize>,
}

/// The most ids that one thread of a device takes at a time: a bag of more is summed by stretches, in their order, the
/// padding id among them. Where a table takes several passes, each stretch takes all of them before the next.
pub(crate) const STRETCH: u32 = 1024;

/// Ids that are looked at a time, on the stack.
const BLOCK: usize = 1024;

impl CheckedBags<'_> {
    /// Bags `part`, with `rows` in place of their ids; `left_out` is that of the padding id.
    pub(crate) fn of_rows<'b>(&'b self, part: Range<usize>, rows: &'b [u32], left_out: u32) -> CheckedBags<'b> {
        let begin = self.starts[part.start];
        debug_assert_eq!(self.starts[part.end] - begin, rows.len(), "a row for each id");
        CheckedBags {
            ids: rows.into(),
            weights: self.weights.map(|weights| &weights[begin..][..rows.len()]),
            normalised: self.normalised,
            padding: self.padding.map(|_| left_out.into()),
            mode: self.mode,
            starts: self.starts[part.start..=part.end].iter().map(|start| start - begin).collect(),
        }
    }

    /// Number of bags.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Positions of a bag's ids.
    pub(crate) fn range(&self, bag: usize) -> Range<usize> {
        self.starts[bag]..self.starts[bag + 1]
    }

    /// What its rows are folded by.
    pub(crate) fn pool(&self) -> Pool {
        if self.mode == BagMode::Max { Pool::Max } else { Pool::Sum }
    }

    /// What a bag of so many ids is multiplied by at the end.
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "rounding is what is wanted")]
    pub(crate) fn scale(&self, kept: usize) -> f32 {
        if self.mode == BagMode::Mean { (1.0 / kept.max(1) as f64) as f32 } else { 1.0 }
    }

    /// Ids of a bag without the padding id.
    pub(crate) fn kept(&self, bag: usize) -> usize {
        let mut kept = 0;
        self.each_block(self.range(bag), |_, ids, keep| {
            kept += keep.map_or(ids.len(), |keep| keep.iter().filter(|keep| **keep).count());
        });
        kept
    }

    /// Calls `each` with the ids at `positions` by blocks: the first position, the ids, and which of them are no padding,
    /// unless all are.
    pub(crate) fn each_block(&self, positions: Range<usize>, mut each: impl FnMut(usize, Ids<'_>, Option<&[bool]>)) {
        let Some(padding) = self.padding else {
            return each(positions.start, self.ids.slice(positions), None);
        };
        let mut keep = [true; BLOCK];
        for first in positions.clone().step_by(BLOCK) {
            let ids = self.ids.slice(first..positions.end.min(first + BLOCK));
            let keep = &mut keep[..ids.len()];
            ids.mark_others(padding, keep);
            each(first, ids, Some(keep));
        }
    }

    /// Counts bad ids, the padding id left out.
    pub(crate) fn bad_ids(&self, resolver: Resolver) -> BadIds {
        let mut bad = BadIds::default();
        let all = 0..self.ids.len();
        self.each_block(all, |first, ids, keep| match keep {
            None => bad.merge(first as u64, resolver.check(ids)),
            Some(keep) => {
                let mut rows = [0; BLOCK * MOST_READ];
                let rows = &mut rows[..ids.len() * resolver.each()];
                if resolver.resolve(ids, rows).count > 0 {
                    let ids = rows.iter().step_by(resolver.each()).zip(keep).enumerate();
                    for (at, _) in ids.filter(|(_, (row, keep))| **keep && **row == crate::scheme::NO_ROW) {
                        bad.merge((first + at) as u64, BadIds { count: 1, first: Some(0) });
                    }
                }
            }
        });
        bad
    }

    fn check_weights(&self) -> Result<(), BagsError> {
        let Some(weights) = self.weights else { return Ok(()) };
        if self.mode == BagMode::Max {
            return Err(BagsError::WeightedMax);
        }
        if weights.len() != self.ids.len() {
            return Err(BagsError::Weights { weights: weights.len() as u64, ids: self.ids.len() as u64 });
        }
        if weights.iter().all(|weight| weight.is_finite()) {
            return Ok(());
        }
        let mut wrong = None;
        self.each_block(0..self.ids.len(), |first, ids, keep| {
            let bad = |at: &usize| !weights[first + at].is_finite() && keep.is_none_or(|keep| keep[*at]);
            wrong = wrong.or_else(|| (0..ids.len()).find(bad).map(|at| first + at));
        });
        match wrong {
            Some(at) => Err(BagsError::Weight { position: at as u64, weight: weights[at] }),
            None => Ok(()),
        }
    }
}
