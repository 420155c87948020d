//! What an encoding cost.

use std::fmt;

use crate::{scheme::TableSpec, units::Bytes};

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

impl Tally {
    /// Adds rows from row `first` on: `[n, dim]` each. Call it inside of a SIMD dispatch.
    #[inline(always)]
    pub(super) fn add(&mut self, first: u32, dim: usize, original: &[f32], stored: &[f32]) {
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
            spec,
        }
    }
}

/// Sums of one row, in f64, over four lanes.
#[inline(always)]
fn row_sums(original: &[f32], stored: &[f32]) -> RowSums {
    const LANES: usize = 8;
    let mut max_error = [0f32; LANES];
    let [mut error, mut norm, mut kept, mut dot] = [[0f64; LANES]; 4];
    let mut step = |x: &[f32; LANES], y: &[f32; LANES]| {
        for lane in 0..LANES {
            let difference = (y[lane] - x[lane]).abs();
            max_error[lane] = if difference > max_error[lane] { difference } else { max_error[lane] };
            let (x, y, difference) = (f64::from(x[lane]), f64::from(y[lane]), f64::from(difference));
            error[lane] += difference * difference;
            norm[lane] += x * x;
            kept[lane] += y * y;
            dot[lane] += x * y;
        }
    };
    let (xs, x_rest) = original.as_chunks::<LANES>();
    let (ys, y_rest) = stored.as_chunks::<LANES>();
    for (x, y) in xs.iter().zip(ys) {
        step(x, y);
    }
    if !x_rest.is_empty() {
        let (mut x, mut y) = ([0f32; LANES], [0f32; LANES]);
        x[..x_rest.len()].copy_from_slice(x_rest);
        y[..y_rest.len()].copy_from_slice(y_rest);
        step(&x, &y);
    }
    RowSums {
        max_error: max_error.into_iter().fold(0.0, f32::max),
        error: error.into_iter().sum(),
        original: norm.into_iter().sum(),
        stored: kept.into_iter().sum(),
        dot: dot.into_iter().sum(),
    }
}
