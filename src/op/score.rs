//! Score: how near each row is to a query, and the nearest of them.
//!
//! ```text
//! for each query q, each row r:
//!     dot[q, r] = sum over columns, in f32          # on the table's backend: see `LANES` for the order
//!     square[r] = the same of the row with itself   # Cosine only
//!     score = Dot ? dot : dot / (|q| sqrt(square))  # here, in f64, rounded to f32 once
//! ```
//! Backends sum, and nothing else: what follows is one code for all, so that equal sums are equal answers.

use std::ops::{Bound, Range, RangeBounds};

use super::span::longest_span;
use crate::{error::ScoreError, scheme::TableSpec};

/// How a query and a row are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Metric {
    /// The sum of the products of their columns. Sums that pass the range of f32 are infinite, or NaN.
    Dot,
    /// The same over the product of their lengths: -1 to 1.
    ///
    /// What has no length has no direction: a query or a row of zeros scores 0, and [`Table::top_k`](crate::Table::top_k)
    /// leaves it out. So do rows whose length leaves what f32 can square: under 2^-40 (9e-13) or over 2^64 (1.8e19). A
    /// query may have any length.
    Cosine,
}

/// Rows longer than what a thread takes (see [`longest_span`]) are summed by spans of it, whose sums are added in order. Within
/// a span, sums are over 16 lanes: column `c` of a span goes to lane `c % 16`, in order, multiplied and then added, not fused. The
/// lanes `a` of a span are joined as `b[i] = (a[i] + a[4 + i]) + (a[8 + i] + a[12 + i])`, `(b[0] + b[1]) + (b[2] + b[3])`.
pub(crate) const LANES: usize = 16;

/// The least square of a row that has a direction, 2^-80. What products under 2^-126 may lose, `n 2^-126` of `n` columns, is
/// then under `n 2^-46` of it.
const LEAST_SQUARE: f32 = 1.0 / (1_u128 << 80) as f32;

/// Queries that have been checked, `[count, dim]`, as backends multiply them.
#[derive(Debug)]
pub(crate) struct Queries {
    pub(crate) metric: Metric,
    pub(crate) dim: usize,
    /// Columns of a span.
    span: usize,
    values: Vec<f32>,
    /// 1 / length of each; NaN for those without a direction. Empty for [`Metric::Dot`].
    inverses: Vec<f64>,
}

impl Queries {
    /// # Errors
    /// [`ScoreError::QueryLength`] and [`ScoreError::NotFinite`].
    pub(crate) fn new(table: &str, spec: &TableSpec, values: &[f32], metric: Metric) -> Result<Self, ScoreError> {
        let (dim, span) = (spec.shape().dim() as usize, longest_span(spec) as usize * LANES);
        if !values.len().is_multiple_of(dim) {
            return Err(ScoreError::QueryLength { table: table.to_owned(), got: values.len() as u64, dim: dim as u64 });
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(ScoreError::NotFinite {
                table: table.to_owned(),
                query: (at / dim) as u64,
                column: (at % dim) as u64,
                value: values[at],
            });
        }
        let mut values = values.to_vec();
        let mut inverses = Vec::new();
        if metric == Metric::Cosine {
            inverses.reserve(values.len() / dim);
            for query in values.chunks_exact_mut(dim) {
                inverses.push(scale(query));
            }
        }
        Ok(Self { metric, dim, span, values, inverses })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Spans of a row: each has a sum of its own.
    pub(crate) fn spans(&self) -> usize {
        self.dim.div_ceil(self.span)
    }

    /// Some of them, in order.
    pub(crate) fn panel(&self, queries: Range<usize>) -> Panel<'_> {
        Panel {
            dim: self.dim,
            span: self.span,
            values: &self.values[queries.start * self.dim..queries.end * self.dim],
            inverses: (self.metric == Metric::Cosine).then(|| &self.inverses[queries]),
        }
    }
}

/// Brings the largest magnitude of a query to 1..2 by a power of two, which no cosine depends on and which keeps its square
/// in range, and gives the inverse of its length; NaN for zeros.
fn scale(query: &mut [f32]) -> f64 {
    let largest = query.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    if largest == 0.0 {
        return f64::NAN;
    }
    // The exponent of an f32 is a normal f64's, whether the f32 is subnormal or not.
    let exponent = (f64::from(largest).to_bits() >> 52) & 0x7ff;
    let factor = f64::from_bits((2046 - exponent) << 52);
    let mut square = 0.0;
    for value in query {
        let scaled = f64::from(*value) * factor;
        #[expect(clippy::cast_possible_truncation, reason = "exact, or far below what the largest rounds away")]
        let narrow = scaled as f32;
        *value = narrow;
        square += f64::from(narrow) * f64::from(narrow);
    }
    1.0 / square.sqrt()
}

/// Queries that are scored together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel<'a> {
    pub(crate) dim: usize,
    /// Columns of a span: a multiple of [`LANES`].
    pub(crate) span: usize,
    /// `[count, dim]`.
    pub(crate) values: &'a [f32],
    inverses: Option<&'a [f64]>,
}

impl Panel<'_> {
    pub(crate) fn count(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Spans of a row: each has a sum of its own.
    pub(crate) fn spans(&self) -> usize {
        self.dim.div_ceil(self.span)
    }

    /// Whether the squares of rows are needed.
    pub(crate) fn squares(&self) -> bool {
        self.inverses.is_some()
    }
}

/// What a backend has summed of some rows.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) first_row: u32,
    pub(crate) rows: usize,
    /// Rows of a block; the last may be shorter.
    pub(crate) block: usize,
    /// `[blocks][queries][rows of the block]`.
    pub(crate) dots: Vec<f32>,
    /// `[rows]`, or empty where they are not needed.
    pub(crate) squares: Vec<f32>,
    /// 1 / length of each row, once [`Sums::measure`] has been called.
    inverses: Vec<f64>,
}

impl Sums {
    /// Calls `each` with every query, the first row of a run, and its dot products for the run.
    pub(crate) fn each_run(&self, count: usize, mut each: impl FnMut(usize, usize, &[f32])) {
        for first in (0..self.rows).step_by(self.block.max(1)) {
            let rows = self.block.min(self.rows - first);
            let block = &self.dots[first * count..][..rows * count];
            block.chunks_exact(rows).enumerate().for_each(|(query, run)| each(query, first, run));
        }
    }

    /// Takes the lengths of rows from their squares.
    pub(crate) fn measure(&mut self) {
        self.inverses.clear();
        self.inverses.extend(self.squares.iter().map(|square| inverse(*square)));
    }

    /// Calls `each` with the row, from the first one on, and the score of query `at` for all rows, in order. The score is NaN
    /// where there is none.
    pub(crate) fn scores(&self, panel: &Panel<'_>, at: usize, mut each: impl FnMut(usize, f32)) {
        let count = panel.count();
        for first in (0..self.rows).step_by(self.block.max(1)) {
            let rows = self.block.min(self.rows - first);
            let dots = &self.dots[first * count + at * rows..][..rows];
            match panel.inverses {
                None => dots.iter().enumerate().for_each(|(row, dot)| each(first + row, *dot)),
                Some(inverses) => {
                    let inverse = inverses[at];
                    for (row, (dot, length)) in dots.iter().zip(&self.inverses[first..]).enumerate() {
                        each(first + row, cosine(*dot, inverse, *length));
                    }
                }
            }
        }
    }
}

/// The inverse of a row's length by its square; NaN where it has no direction.
fn inverse(square: f32) -> f64 {
    if (LEAST_SQUARE..f32::INFINITY).contains(&square) { 1.0 / f64::from(square).sqrt() } else { f64::NAN }
}

/// Cosine by a dot product and the inverses of both lengths; NaN where one is.
#[inline(always)]
fn cosine(dot: f32, one: f64, other: f64) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
    let cosine = (f64::from(dot) * one * other) as f32;
    // Adding 0 makes -0 the 0 that it is equal to.
    cosine.clamp(-1.0, 1.0) + 0.0
}

/// The rows that `range` names of a table of so many.
pub(crate) fn rows(table: &str, range: &impl RangeBounds<u32>, rows: u32) -> Result<Range<u32>, ScoreError> {
    let start = match range.start_bound() {
        Bound::Included(start) => u64::from(*start),
        Bound::Excluded(start) => u64::from(*start) + 1,
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(end) => u64::from(*end) + 1,
        Bound::Excluded(end) => u64::from(*end),
        Bound::Unbounded => u64::from(rows),
    };
    match (u32::try_from(start), u32::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end && end <= rows => Ok(start..end),
        _ => Err(ScoreError::Rows { table: table.to_owned(), start, end, rows: u64::from(rows) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_any_length_are_scaled_exactly() {
        for factor in [1.0, 3.0, f32::MAX / 4.0, f32::MIN_POSITIVE, 1e-45, 1e-30] {
            let mut query = [factor, -factor, 0.0, factor];
            let inverse = scale(&mut query);
            assert!((1.0..2.0).contains(&query[0]), "{factor}: {query:?}");
            assert_eq!([query[1], query[2], query[3]], [-query[0], 0.0, query[0]]);
            assert!((inverse * 3f64.sqrt() * f64::from(query[0]) - 1.0).abs() < 1e-15);
        }
        assert!(scale(&mut [0.0, -0.0]).is_nan());
    }

    #[test]
    fn cosines_are_in_range_or_none() {
        assert_eq!(cosine(1.000_000_1, 1.0, 1.0), 1.0);
        assert_eq!(cosine(-0.0, 1.0, 1.0).to_bits(), 0);
        assert_eq!(cosine(3.0, inverse(4.0), 0.5), 0.75);
        for (dot, one, square) in
            [(0.0, 1.0, 0.0), (1e-30, 1.0, 1e-30), (1e30, 1.0, f32::INFINITY), (0.0, f64::NAN, 1.0)]
        {
            assert!(cosine(dot, one, inverse(square)).is_nan());
        }
    }

    #[test]
    fn ranges_are_within_the_table() {
        assert_eq!(rows("t", &(..), 5).unwrap(), 0..5);
        assert_eq!(rows("t", &(2..=4), 5).unwrap(), 2..5);
        assert_eq!(rows("t", &(5..), 5).unwrap(), 5..5);
        for range in [(Bound::Included(0), Bound::Included(u32::MAX)), (Bound::Excluded(u32::MAX), Bound::Unbounded)] {
            assert!(rows("t", &range, 5).is_err());
        }
        let error = rows("t", &(Bound::Included(3), Bound::Excluded(2)), 5).unwrap_err();
        assert!(error.to_string().contains("rows 3..2"), "{error}");
    }
}
