//! What an encoding cost.

use std::fmt;

use pulp::{Arch, Simd, WithSimd};

use crate::{
    scheme::{FitFigure, TableSpec},
    units::Bytes,
};

/// Sizes and errors of an encoded table, measured on every value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EncodeReport {
    /// What was made.
    pub spec: TableSpec,
    /// The table as f32.
    pub bytes_before: Bytes,
    /// All parts.
    pub bytes_after: Bytes,
    /// The largest `|stored - original|`.
    pub max_error: f64,
    /// Row of that value.
    pub max_error_row: u32,
    /// `|stored - original| / |original|`, Frobenius norms over the table; 0 for a table of zeros.
    pub relative_error: f64,
    /// Mean over rows of the cosine between stored and original; rows of zeros are left out.
    pub mean_cosine: f64,
    /// The least of these cosines.
    pub min_cosine: f64,
    /// What a scheme learnt of the table before it encoded it; empty for one that learns nothing.
    pub fit: Vec<FitFigure>,
}

impl EncodeReport {
    /// Bytes after over bytes before.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share of a few digits")]
    pub fn share(&self) -> f64 {
        if self.bytes_before.0 == 0 { 1.0 } else { self.bytes_after.0 as f64 / self.bytes_before.0 as f64 }
    }
}

impl fmt::Display for EncodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}: {} -> {} ({:.1} %), relative error {:.2e}, largest error {:.2e} (row {}), cosine {:.6} (least {:.6})",
            self.spec.scheme(),
            self.spec.shape(),
            self.bytes_before,
            self.bytes_after,
            100.0 * self.share(),
            self.relative_error,
            self.max_error,
            self.max_error_row,
            self.mean_cosine,
            self.min_cosine,
        )
    }
}

/// Sums over some rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    max_error: f32,
    max_error_row: u32,
    error: f64,
    norm: f64,
    cosines: f64,
    cosine_rows: u64,
    min_cosine: f64,
}

impl Default for Tally {
    fn default() -> Self {
        Self { max_error: 0.0, max_error_row: 0, error: 0.0, norm: 0.0, cosines: 0.0, cosine_rows: 0, min_cosine: 1.0 }
    }
}

/// What one row adds.
#[derive(Clone, Copy, Debug)]
struct RowSums {
    max_error: f32,
    error: f64,
    original: f64,
    stored: f64,
    dot: f64,
}

/// Rows to measure: `[n, dim]` each.
struct Measure<'a> {
    first: u32,
    dim: usize,
    original: &'a [f32],
    stored: &'a [f32],
}

impl WithSimd for Measure<'_> {
    type Output = Tally;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Tally {
        let mut tally = Tally::default();
        tally.add(self.first, self.dim, self.original, self.stored);
        tally
    }
}

impl Tally {
    /// The sums of rows from row `first` on: `[n, dim]` each.
    pub(super) fn of(first: u32, dim: usize, original: &[f32], stored: &[f32]) -> Self {
        Arch::new().dispatch(Measure { first, dim, original, stored })
    }

    /// Adds rows from row `first` on.
    #[inline(always)]
    fn add(&mut self, first: u32, dim: usize, original: &[f32], stored: &[f32]) {
        for ((row, original), stored) in (first..).zip(original.chunks_exact(dim)).zip(stored.chunks_exact(dim)) {
            let sums = row_sums(original, stored);
            if sums.max_error > self.max_error {
                self.max_error = sums.max_error;
                self.max_error_row = row;
            }
            self.error += sums.error;
            self.norm += sums.original;
            if sums.original > 0.0 {
                let cosine =
                    if sums.stored > 0.0 { sums.dot / (sums.original.sqrt() * sums.stored.sqrt()) } else { 0.0 };
                self.cosines += cosine;
                self.cosine_rows += 1;
                self.min_cosine = self.min_cosine.min(cosine);
            }
        }
    }

    /// Adds the sums of later rows.
    pub(super) fn merge(mut self, later: Self) -> Self {
        if later.max_error > self.max_error {
            self.max_error = later.max_error;
            self.max_error_row = later.max_error_row;
        }
        self.error += later.error;
        self.norm += later.norm;
        self.cosines += later.cosines;
        self.cosine_rows += later.cosine_rows;
        self.min_cosine = self.min_cosine.min(later.min_cosine);
        self
    }

    #[expect(clippy::cast_precision_loss, reason = "a table has under 2^32 rows")]
    pub(super) fn report(self, spec: TableSpec) -> EncodeReport {
        EncodeReport {
            bytes_before: spec.shape().f32_bytes(),
            bytes_after: spec.bytes(),
            max_error: f64::from(self.max_error),
            max_error_row: self.max_error_row,
            relative_error: if self.norm > 0.0 { (self.error / self.norm).sqrt() } else { 0.0 },
            mean_cosine: if self.cosine_rows > 0 { self.cosines / self.cosine_rows as f64 } else { 1.0 },
            min_cosine: self.min_cosine,
            fit: spec.scheme().codec().figures(),
            spec: spec.without_rows(),
        }
    }
}

/// Sums of one row, in f64. One loop a sum: the compiler makes poor vectors of a loop with several.
#[inline(always)]
fn row_sums(original: &[f32], stored: &[f32]) -> RowSums {
    let differ = |x: f32, y: f32| (y - x).abs();
    let square = |x: f32| f64::from(x) * f64::from(x);
    RowSums {
        max_error: fold_pairs(
            original,
            stored,
            0.0,
            |most, x, y| if differ(x, y) > most { differ(x, y) } else { most },
        )
        .into_iter()
        .fold(0.0, f32::max),
        error: sum(original, stored, |x, y| square(differ(x, y))),
        original: sum(original, stored, |x, _| square(x)),
        stored: sum(original, stored, |_, y| square(y)),
        dot: sum(original, stored, |x, y| f64::from(x) * f64::from(y)),
    }
}

#[inline(always)]
fn sum(original: &[f32], stored: &[f32], term: impl Fn(f32, f32) -> f64) -> f64 {
    fold_pairs(original, stored, 0.0, |sum, x, y| sum + term(x, y)).into_iter().sum()
}

/// Folds pairs of values over a fixed number of lanes, so that results do not depend on the width of the vectors.
#[inline(always)]
fn fold_pairs<T: Copy>(xs: &[f32], ys: &[f32], start: T, step: impl Fn(T, f32, f32) -> T) -> [T; LANES] {
    let mut lanes = [start; LANES];
    let (x_chunks, x_rest) = xs.as_chunks::<LANES>();
    let (y_chunks, y_rest) = ys.as_chunks::<LANES>();
    for (x, y) in x_chunks.iter().zip(y_chunks) {
        for lane in 0..LANES {
            lanes[lane] = step(lanes[lane], x[lane], y[lane]);
        }
    }
    for (lane, (&x, &y)) in lanes.iter_mut().zip(x_rest.iter().zip(y_rest)) {
        *lane = step(*lane, x, y);
    }
    lanes
}

/// Enough for the additions not to wait for one another.
const LANES: usize = 16;
