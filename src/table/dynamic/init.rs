//! What a row is when it is made: a function of the seed, the id and the column alone, so that it is known before the row is.
//!
//! ```text
//! a = murmur3(id, low word of the seed)           b = murmur3(id, high word of the seed ^ 0x9e3779b9)
//! word(draw) = mix(mix(a + draw * 0x9e3779b9) ^ b)                      # mix: the last steps of murmur3
//! uniform    = low + top 24 bits of word(column) * ((high - low) / 2^24), kept within low..=high
//! normal     = (sum of the 8 halves of word(4 column) .. word(4 column + 3) - 262140) * std / 53509.92...
//! ```
//! Integers, one product and one sum or less, each rounded as IEEE 754 says: the bits are the same on the host and on every
//! device (`shaders/dynamic/initial.wgsl`). The sum of 8 uniform numbers has the shape of a normal distribution (Irwin 1927, Hall 1927)
//! up to 4.9 standard deviations, where it ends; its kurtosis is 2.85 instead of 3.

use half::f16;

use crate::{
    error::DynamicError,
    gpu::{OutputDtype, RowKind},
    scheme::murmur3,
};

/// What a row is when an id is first used. It depends on the seed, the id and the column alone: not on when the row is made, nor on
/// where, and a row that was evicted is made again as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Initializer {
    /// Zeros.
    #[default]
    Zeros,
    /// Numbers spread evenly over `low..=high`, as 2^24 steps of it.
    Uniform {
        /// Another one gives other rows.
        seed: u64,
        /// The least.
        low: f32,
        /// The largest.
        high: f32,
    },
    /// Numbers spread normally about 0, none farther than 4.9 `std` from it.
    Normal {
        /// Another one gives other rows.
        seed: u64,
        /// The standard deviation.
        std: f32,
    },
}

/// The mean of a sum of 8 numbers of 16 bits, all as likely.
const MEAN: f32 = 262_140.0;

/// Its standard deviation: the root of `8 (65536^2 - 1) / 12`.
const DEVIATION: f64 = 53_509.919_921_450;

/// The least magnitude that rounds to infinity as f16.
const HALF_OVERFLOW: f32 = 65520.0;

impl Initializer {
    /// It as numbers, which kernels have as constants.
    ///
    /// # Errors
    /// [`DynamicError::Initializer`] for numbers that are not finite, or a range that is none.
    #[expect(clippy::cast_possible_truncation, reason = "both halves of the seed are taken; steps are rounded to f32")]
    pub(super) fn kind(self, table: &str, dim: u32, dtype: OutputDtype) -> Result<RowKind, DynamicError> {
        let refuse = |problem| Err(DynamicError::Initializer { table: table.to_owned(), problem });
        let words = |seed: u64| [seed as u32, (seed >> 32) as u32];
        // Devices may take the least numbers for 0.
        let normal = |value: f32| if value.is_normal() { value } else { 0.0 };
        let zeros = RowKind { dim, dtype, kind: 0, seed: [0; 2], low: 0.0, high: 0.0, step: 0.0 };
        let (kind, largest) = match self {
            Self::Zeros => (zeros, 0.0),
            Self::Uniform { seed, low, high } => {
                if !(low.is_finite() && high.is_finite() && (high - low).is_finite()) {
                    return refuse("the range is not finite");
                }
                if low > high {
                    return refuse("the range ends below its start");
                }
                let step = (f64::from(high) - f64::from(low)) / f64::from(1 << 24);
                if step > 0.0 && step < f64::from(f32::MIN_POSITIVE) {
                    return refuse("a step of the range is below 2^-126");
                }
                let (low, high) = (normal(low), normal(high));
                (
                    RowKind { kind: 1, seed: words(seed), low, high, step: step as f32, ..zeros },
                    low.abs().max(high.abs()),
                )
            }
            Self::Normal { seed, std } => {
                let step = f64::from(std) / DEVIATION;
                if !(std.is_finite() && std >= 0.0) || f64::from(std) * 4.9 > f64::from(f32::MAX) {
                    return refuse("the standard deviation is negative or not finite");
                }
                if step > 0.0 && step < f64::from(f32::MIN_POSITIVE) {
                    return refuse("the standard deviation is below 2^-110");
                }
                let step = step as f32;
                (RowKind { kind: 2, seed: words(seed), step, ..zeros }, step * MEAN)
            }
        };
        if dtype == OutputDtype::F16 && largest >= HALF_OVERFLOW {
            return refuse("f16 rows hold numbers up to 65504");
        }
        Ok(kind)
    }
}

/// The last steps of murmur3.
fn mix(word: u32) -> u32 {
    let word = (word ^ (word >> 16)).wrapping_mul(0x85eb_ca6b);
    let word = (word ^ (word >> 13)).wrapping_mul(0xc2b2_ae35);
    word ^ (word >> 16)
}

/// Fills the row of an id: values as the table has them.
pub(super) fn row(kind: &RowKind, id: u64, out: &mut [f32]) {
    let hash = [murmur3(id, kind.seed[0]), murmur3(id, kind.seed[1] ^ 0x9e37_79b9)];
    for (column, out) in (0..).zip(out) {
        let value = value(kind, hash, column);
        *out = match kind.dtype {
            OutputDtype::F32 => value,
            OutputDtype::F16 => f16::from_f32(value).to_f32(),
        };
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers under 2^24")]
fn value(kind: &RowKind, [a, b]: [u32; 2], column: u32) -> f32 {
    let word = |draw: u32| mix(mix(a.wrapping_add(draw.wrapping_mul(0x9e37_79b9))) ^ b);
    match kind.kind {
        1 => (kind.low + (word(column) >> 8) as f32 * kind.step).max(kind.low).min(kind.high),
        2 => {
            let first = column.wrapping_mul(4);
            let halves = (0..4).map(|draw| word(first.wrapping_add(draw))).map(|word| (word & 0xffff) + (word >> 16));
            (halves.sum::<u32>() as f32 - MEAN) * kind.step
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(initializer: Initializer, ids: std::ops::Range<u64>) -> Vec<f32> {
        let kind = initializer.kind("t", 64, OutputDtype::F32).unwrap();
        let mut out = Vec::new();
        for id in ids {
            let mut values = [0.0; 64];
            row(&kind, id, &mut values);
            out.extend(values);
        }
        out
    }

    /// Mean and variance in f64.
    fn moments(values: &[f32]) -> (f64, f64) {
        let count = values.len() as f64;
        let mean = values.iter().map(|value| f64::from(*value)).sum::<f64>() / count;
        (mean, values.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / count)
    }

    #[test]
    fn the_deviation_is_that_of_the_sum() {
        assert!((DEVIATION - (8.0 * (65536f64.powi(2) - 1.0) / 12.0).sqrt()).abs() < 1e-6);
    }

    #[test]
    fn values_are_spread_as_they_should_be() {
        let values = rows(Initializer::Uniform { seed: 1, low: -0.05, high: 0.25 }, 0..4096);
        assert!(values.iter().all(|value| (-0.05..=0.25).contains(value)));
        let (mean, variance) = moments(&values);
        // 262,144 draws: five standard errors.
        assert!((mean - 0.1).abs() < 5.0 * 0.3 / 12f64.sqrt() / 512.0, "{mean}");
        assert!((variance / (0.09 / 12.0) - 1.0).abs() < 0.02, "{variance}");
        let values = rows(Initializer::Normal { seed: 1, std: 2.0 }, 0..4096);
        assert!(values.iter().all(|value| value.abs() <= 9.8));
        let (mean, variance) = moments(&values);
        assert!(mean.abs() < 5.0 * 2.0 / 512.0, "{mean}");
        assert!((variance / 4.0 - 1.0).abs() < 0.02, "{variance}");
    }

    #[test]
    fn rows_of_other_ids_columns_and_seeds_are_others() {
        let uniform = |seed| Initializer::Uniform { seed, low: 0.0, high: 1.0 };
        let values = rows(uniform(7), 0..64);
        let mut bits: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
        bits.sort_unstable();
        bits.dedup();
        assert!(bits.len() > 4090, "{} of 4096 are distinct", bits.len());
        assert_ne!(rows(uniform(8), 0..1), values[..64]);
        assert_ne!(rows(uniform(7 | 1 << 32), 0..1), values[..64]);
        assert_ne!(rows(uniform(7), 1 << 32..(1 << 32) + 1), values[..64]);
    }

    #[test]
    fn ranges_that_are_none_are_refused() {
        for initializer in [
            Initializer::Uniform { seed: 0, low: 1.0, high: 0.5 },
            Initializer::Uniform { seed: 0, low: f32::NAN, high: 0.5 },
            Initializer::Uniform { seed: 0, low: f32::MIN, high: f32::MAX },
            Initializer::Uniform { seed: 0, low: 0.0, high: 1e-35 },
            Initializer::Normal { seed: 0, std: -1.0 },
            Initializer::Normal { seed: 0, std: f32::INFINITY },
        ] {
            assert!(initializer.kind("t", 64, OutputDtype::F32).is_err(), "{initializer:?}");
        }
        assert_eq!(rows(Initializer::Uniform { seed: 0, low: 0.5, high: 0.5 }, 0..1), [0.5; 64]);
    }
}
