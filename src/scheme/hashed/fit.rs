//! The rows that ids share: weighted least squares, table by table.
//!
//! ```text
//! until a sweep takes little off the error:
//!     for each table:
//!         for each row r of weight w:                     # a pass
//!             sums[row of r] += w * what the other tables leave of r
//!             weights[row of r] += w
//!         rows of the table = sums / weights              # the least error while the others stay
//! ```
//!
//! What is left of a row is its difference to a sum of others. Of a product `x y` with `y` given, it is `x = sum(w r y) / sum(w y y)`
//! in each column; halves are apart, and one sweep finds both.

use std::sync::Arc;

use super::{Fitted, Hashed, Index, figures::figures};
use crate::{
    error::EncodeError,
    scheme::{Buckets, Join, NO_ROW, Rows, Scheme, Stored},
    units::{Bytes, Shape},
};

const MOST_SWEEPS: usize = 16;
/// A sweep that takes less of the error is the last one.
const LEAST_GAIN: f64 = 1e-4;
/// What is left of the energy when the rest is rounding.
const ROUNDING: f64 = 1e-12;

/// What rows weigh.
#[derive(Clone, Debug)]
pub(super) enum Traffic {
    /// The same.
    Equal,
    /// By Zipf's law, in the order of their frequency.
    Zipf,
    Given(Arc<[f32]>),
}

impl Traffic {
    pub(super) fn of(&self, row: u32) -> f64 {
        match self {
            Self::Equal => 1.0,
            Self::Zipf => 1.0 / (f64::from(row) + 1.0),
            Self::Given(frequencies) => frequencies[row as usize].into(),
        }
    }
}

pub(super) fn fit<I: Index>(scheme: &Hashed<I>, rows: &mut dyn Rows) -> Result<Fitted, EncodeError> {
    let (count, dim) = (rows.shape().rows(), rows.shape().dim());
    let buckets = scheme.buckets_of(count);
    let stored = if count == 0 { 0 } else { buckets.rows() };
    let shape = Shape::new(stored.into(), scheme.width(dim).into())?;
    let traffic = rows.frequencies().map_or(Traffic::Zipf, Traffic::Given);
    let weights = if scheme.equal { Traffic::Equal } else { traffic.clone() };
    let refused = || EncodeError::Unfit {
        scheme: Scheme::of(Arc::new(scheme.clone())).to_string(),
        dim,
        reason: format!("no host memory to fit {shape} stored rows, {} and more", Bytes(3 * shape.f32_bytes().0)),
    };
    let mut fit = Fit::new(buckets, scheme.index.join(), shape, weights).ok_or_else(refused)?;
    if count > 0 {
        fit.run(rows)?;
    }
    let figures = figures(count, buckets, &traffic, fit.residual()).ok_or_else(refused)?;
    Ok(Fitted { stored: Stored { shape, values: fit.values, firsts: fit.firsts }, figures })
}

struct Fit {
    buckets: Buckets,
    join: Join,
    /// Columns of a stored row.
    width: usize,
    weights: Traffic,
    /// `[stored rows, width]`.
    values: Vec<f32>,
    /// The first row that reads each.
    firsts: Vec<u32>,
    /// Of the table that is fitted: `[rows, width]`, and `[rows, width]` for a product, else `[rows]`.
    sums: Vec<f64>,
    divisors: Vec<f64>,
    /// Weighted squares of the rows, and of what is left of them.
    energy: f64,
    left: f64,
}

impl Fit {
    /// Zeros; none where memory is short.
    fn new(buckets: Buckets, join: Join, shape: Shape, weights: Traffic) -> Option<Self> {
        let (stored, width) = (shape.rows() as usize, shape.dim() as usize);
        let tables = if stored == 0 { 0 } else { buckets.each() };
        let longest = (0..tables).map(|table| buckets.table(table).len()).max().unwrap_or(0);
        let mut values = filled(stored.checked_mul(width)?, 0f32)?;
        if join == Join::Product && stored > 0 {
            // A product of zeros would stay one.
            values[buckets.table(1).start as usize * width..].fill(1.0);
        }
        let divisors = if join == Join::Product { longest.checked_mul(width)? } else { longest };
        Some(Self {
            buckets,
            join,
            width,
            weights,
            values,
            firsts: filled(stored, NO_ROW)?,
            sums: filled(longest.checked_mul(width)?, 0f64)?,
            divisors: filled(divisors, 0f64)?,
            energy: 0.0,
            left: 0.0,
        })
    }

    fn run(&mut self, rows: &mut dyn Rows) -> Result<(), EncodeError> {
        let tables = self.buckets.each();
        let sweeps = if tables == 1 || self.join == Join::Halves { 1 } else { MOST_SWEEPS };
        for sweep in 0..sweeps {
            let before = self.left;
            for table in 0..tables {
                self.sums.fill(0.0);
                self.divisors.fill(0.0);
                let dim = rows.shape().dim() as usize;
                let mut row = 0;
                rows.pass(&mut |block| {
                    for values in block.chunks_exact(dim) {
                        self.take(sweep, table, row, values);
                        row += 1;
                    }
                })?;
                self.update(table);
            }
            let gain = if sweep == 0 { f64::INFINITY } else { before - self.left };
            if gain <= LEAST_GAIN * self.left || self.left <= ROUNDING * self.energy {
                break;
            }
        }
        Ok(())
    }

    /// Adds what a row asks of its row in a table.
    fn take(&mut self, sweep: usize, table: usize, number: u32, row: &[f32]) {
        let weight = self.weights.of(number);
        let read = self.buckets.all(number.into());
        if sweep == 0 {
            let first = &mut self.firsts[read[table] as usize];
            *first = number.min(*first);
            if table == 0 {
                let energy = weight * row.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>();
                self.energy += energy;
                self.left += energy;
            }
        }
        let width = self.width;
        let stored = |table: usize| &self.values[read[table] as usize * width..][..width];
        let own = (read[table] - self.buckets.table(table).start) as usize;
        let sums = &mut self.sums[own * width..][..width];
        match self.join {
            Join::Sum => {
                self.divisors[own] += weight;
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * f64::from(*value));
                for other in (0..self.buckets.each()).filter(|other| *other != table) {
                    sums.iter_mut().zip(stored(other)).for_each(|(sum, value)| *sum -= weight * f64::from(*value));
                }
            }
            Join::Product => {
                let divisors = &mut self.divisors[own * width..][..width];
                for (((sum, divisor), value), other) in sums.iter_mut().zip(divisors).zip(row).zip(stored(1 - table)) {
                    let weighted = weight * f64::from(*other);
                    *sum += weighted * f64::from(*value);
                    *divisor += weighted * f64::from(*other);
                }
            }
            Join::Halves => {
                self.divisors[own] += weight;
                let half = row.chunks(width).nth(table).unwrap_or_default();
                sums.iter_mut().zip(half).for_each(|(sum, value)| *sum += weight * f64::from(*value));
            }
        }
    }

    /// Makes the rows of a table what their sums say, and takes off what that is worth.
    fn update(&mut self, table: usize) {
        let begin = self.buckets.table(table).start as usize * self.width;
        let each = if self.join == Join::Product { 1 } else { self.width };
        let values = self.values[begin..].chunks_mut(each).zip(self.sums.chunks(each)).zip(&self.divisors);
        for ((values, sums), divisor) in values.filter(|(_, divisor)| **divisor > 0.0) {
            for (value, sum) in values.iter_mut().zip(sums) {
                let best = sum / divisor;
                // What the others leave may pass the range of f32.
                #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
                let new = best.clamp(f32::MIN.into(), f32::MAX.into()) as f32;
                let (before, after) = (f64::from(*value) - best, f64::from(new) - best);
                self.left -= divisor * (before * before - after * after);
                *value = new;
            }
        }
    }

    /// The share of the energy that is left.
    fn residual(&self) -> f64 {
        if self.energy > 0.0 { self.left.max(0.0) / self.energy } else { 0.0 }
    }
}

/// Memory, or none.
pub(super) fn filled<T: Clone>(length: usize, value: T) -> Option<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(length).ok()?;
    values.resize(length, value);
    Some(values)
}
