//! Which scale and bias a group gets.

use half::f16;

use super::PackedInt;
use crate::scheme::{
    f16::widen,
    simd::{ends, fold},
};

/// The least f32 scale of a symmetric group.
pub(super) const LEAST_STEP: f32 = f32::MIN_POSITIVE;
/// The least f32 scale and bias of an affine group: sums of multiples of `2^-125` are never subnormal.
pub(super) const LEAST_AFFINE: f32 = 1.0 / (1u128 << 102) as f32;
/// Rows of a lesser magnitude have no scales in halves: their spacing, `2^-24`, would be more than an eighth of a step of
/// `int4`.
pub(super) const LEAST_HALVES: f32 = 1.0 / (1 << 17) as f32;

/// The ranges that are tried, but for the whole one: shares of it, the widest first.
const FACTORS: [f64; 10] = [0.9375, 0.875, 0.8125, 0.75, 0.6875, 0.625, 0.5625, 0.5, 0.4375, 0.375];

const LARGEST_HALF: f32 = 65504.0;
const LEAST_NORMAL_HALF: f32 = 1.0 / (1 << 14) as f32;
const LEAST_HALF: f32 = 1.0 / (1 << 24) as f32;

/// What a group of columns is decoded with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) scale: f32,
    pub(super) bias: f32,
}

impl Step {
    #[inline(always)]
    pub(super) fn read(scheme: &PackedInt, bytes: &[u8]) -> Self {
        let scale = number(scheme.half, bytes, 0);
        Self { scale, bias: if scheme.affine { number(scheme.half, bytes, 1) } else { 0.0 } }
    }

    /// Writes scale and bias, or as many of them as there are bytes for.
    pub(super) fn write(self, half: bool, bytes: &mut [u8]) {
        let numbers = [self.scale, self.bias];
        if half {
            for (bytes, number) in bytes.chunks_exact_mut(2).zip(numbers) {
                bytes.copy_from_slice(&f16::from_f32(number).to_le_bytes());
            }
        } else {
            for (bytes, number) in bytes.chunks_exact_mut(4).zip(numbers) {
                bytes.copy_from_slice(&number.to_le_bytes());
            }
        }
    }
}

/// A stored scale or bias.
#[inline(always)]
fn number(half: bool, bytes: &[u8], at: usize) -> f32 {
    if half {
        widen(u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]))
    } else {
        f32::from_le_bytes([bytes[4 * at], bytes[4 * at + 1], bytes[4 * at + 2], bytes[4 * at + 3]])
    }
}

impl PackedInt {
    /// The codes' ends, as numbers that the scale multiplies.
    #[inline(always)]
    pub(super) fn code_ends(&self) -> (f32, f32) {
        let low = if self.affine { 0.0 } else { -((1 << (self.bits - 1)) as f32) };
        (low, low + ((1 << self.bits) - 1) as f32)
    }

    /// The step of a group, or why there is none; `tiny` where its row is too small for scales in halves.
    #[inline(always)]
    pub(super) fn step(&self, values: &[f32], tiny: bool) -> Result<Step, &'static str> {
        let (lo, hi) = ends(values);
        if let Some(step) = self.grid_step(values, lo, hi, tiny) {
            return Ok(step);
        }
        if tiny {
            return Err("its row's values are under 2^-17, too small for scales in halves; `scales=f32` holds it");
        }
        let Some(whole) = self.range_step(lo, hi, 1.0) else {
            return Err(if self.half {
                "its scale or bias is over 65504, the largest half; `scales=f32` holds it"
            } else {
                "the range of its group is over the largest f32; symmetric codes, without `affine`, hold it"
            });
        };
        if !self.search {
            return Ok(whole);
        }
        let unit = 1.0 / whole.scale;
        let mut best = whole;
        let mut least = self.squares(values, whole, unit);
        for factor in FACTORS {
            if let Some(step) = self.range_step(lo, hi, factor) {
                // What overflows makes an infinity or a NaN, which is not less.
                let squares = self.squares(values, step, unit);
                if squares < least {
                    (best, least) = (step, squares);
                }
            }
        }
        Ok(best)
    }

    /// The step that makes exactly these values, where one does: they are whole numbers of steps from 0, or from the least.
    #[inline(always)]
    fn grid_step(&self, values: &[f32], lo: f32, hi: f32, tiny: bool) -> Option<Step> {
        let extent = if self.affine { f64::from(hi) - f64::from(lo) } else { f64::from(larger(lo, hi)) };
        let held = |value: f32| if self.half { nearest_half(value) } else { value };
        let bias = if self.affine { held(flush(lo)) } else { 0.0 };
        if extent == 0.0 {
            // One value, or all zero: the bias alone.
            let holds = (!self.half || is_half(bias)) && (!tiny || bias == lo);
            return holds.then_some(Step { scale: 0.0, bias });
        }
        if self.affine && bias != lo {
            return None;
        }
        let least = if self.affine { LEAST_AFFINE } else { LEAST_STEP };
        let most_steps = if self.affine { (1 << self.bits) - 1 } else { 1 << (self.bits - 1) };
        for steps in (1..=most_steps).rev() {
            let scale = held(nearest(extent / f64::from(steps)));
            let step = Step { scale: if !self.affine && hi >= -lo { -scale } else { scale }, bias };
            let holds = if self.half { scale > 0.0 && is_half(scale) } else { scale >= least && scale.is_finite() };
            if holds && self.makes(values, step) {
                return Some(step);
            }
        }
        None
    }

    /// Whether `step` makes exactly these values. The first that it does not ends the question.
    #[inline(always)]
    fn makes(&self, values: &[f32], step: Step) -> bool {
        let (low, high) = self.code_ends();
        let inverse = 1.0 / step.scale;
        values.iter().all(|value| {
            let code = whole((value - step.bias) * inverse, low, high) - ROUND;
            code * step.scale + step.bias == *value
        })
    }

    /// The step of a range, of which a share is used: symmetric of its largest magnitude, affine of its middle.
    #[inline(always)]
    fn range_step(&self, lo: f32, hi: f32, factor: f64) -> Option<Step> {
        let span = self.span();
        let end = nearest(span);
        if !self.affine {
            let scale = nearest(f64::from(larger(lo, hi)) * (factor / span));
            let scale = self.hold_scale(scale, LEAST_STEP, |scale| (scale * end).is_finite())?;
            return Some(Step { scale: if hi >= -lo { -scale } else { scale }, bias: 0.0 });
        }
        if !(hi - lo).is_finite() {
            return None;
        }
        let cut = (f64::from(hi) - f64::from(lo)) * ((1.0 - factor) / 2.0);
        let (lo, hi) = (nearest(f64::from(lo) + cut), f64::from(hi) - cut);
        let bias = if self.half { half_below(lo) } else { flush(lo) };
        if self.half && !is_half(bias) {
            return None;
        }
        let scale = nearest((hi - f64::from(bias)) / span);
        let decodes = |scale: f32| (scale * end).is_finite() && (scale * end + bias).is_finite();
        Some(Step { scale: self.hold_scale(scale, LEAST_AFFINE, decodes)?, bias })
    }

    /// A positive scale as it can be stored: no less in halves, and in f32 no more than what decodes to finite values.
    #[inline(always)]
    fn hold_scale(&self, scale: f32, least: f32, decodes: impl Fn(f32) -> bool) -> Option<f32> {
        if self.half {
            let scale = half_above(scale).max(LEAST_HALF);
            return is_half(scale).then_some(scale);
        }
        let mut scale = scale.max(least);
        while !decodes(scale) {
            scale = scale.next_down();
        }
        Some(scale)
    }

    /// The sum of squared errors by `step`, in units of `1 / unit`, which keeps it from overflowing.
    #[inline(always)]
    fn squares(&self, values: &[f32], step: Step, unit: f32) -> f32 {
        let (low, high) = self.code_ends();
        let inverse = 1.0 / step.scale;
        let add = |sum: f32, value: f32| {
            let code = whole((value - step.bias) * inverse, low, high) - ROUND;
            let error = (value - (code * step.scale + step.bias)) * unit;
            sum + error * error
        };
        fold(values, 0.0, add, |sum, other| sum + other)
    }

    /// Codes of `values`, as they are stored.
    #[inline(always)]
    pub(super) fn codes(&self, values: &[f32], step: Step, codes: &mut [u8]) {
        let (low, high) = self.code_ends();
        let zero = if self.affine { 0 } else { 1 << (self.bits - 1) };
        if step.scale == 0.0 {
            codes.fill(zero);
            return;
        }
        let inverse = 1.0 / step.scale;
        for (code, &value) in codes.iter_mut().zip(values) {
            *code = whole((value - step.bias) * inverse, low, high).to_bits().to_le_bytes()[0].wrapping_add(zero);
        }
    }
}

/// Adding 1.5 * 2^23 leaves the whole number, rounded to nearest even, in the low bits of an f32 under 2^22.
const ROUND: f32 = 12_582_912.0;

/// The nearest whole number in `low..=high`, plus [`ROUND`].
#[inline(always)]
fn whole(steps: f32, low: f32, high: f32) -> f32 {
    // Plain comparisons: those of `f32::max` see to NaN, which there is none of.
    let steps = if steps > low { steps } else { low };
    let steps = if steps < high { steps } else { high };
    steps + ROUND
}

#[inline(always)]
fn larger(lo: f32, hi: f32) -> f32 {
    if hi >= -lo { hi } else { -lo }
}

#[inline(always)]
fn flush(bias: f32) -> f32 {
    if bias.abs() < LEAST_AFFINE { 0.0 } else { bias }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
pub(super) fn nearest(value: f64) -> f32 {
    value as f32
}

/// Whether a number rounded as halves are is one: not over the largest.
#[inline(always)]
fn is_half(rounded: f32) -> bool {
    (-LARGEST_HALF..=LARGEST_HALF).contains(&rounded)
}

/// The nearest half, ties to even, as an f32; over [`LARGEST_HALF`] where there is none.
#[inline(always)]
fn nearest_half(value: f32) -> f32 {
    let magnitude = value.abs();
    let rounded = if magnitude < LEAST_NORMAL_HALF {
        // The last bit of a number in 0.5..1 is the spacing of subnormal halves.
        (magnitude + 0.5) - 0.5
    } else {
        let bits = magnitude.to_bits();
        f32::from_bits((bits + 0xfff + (bits >> 13 & 1)) & !0x1fff)
    };
    rounded.copysign(value)
}

/// What lies between a half and the next one away from 0.
#[inline(always)]
fn spacing(half: f32) -> f32 {
    let magnitude = half.abs();
    if magnitude < LEAST_NORMAL_HALF { LEAST_HALF } else { f32::from_bits(magnitude.to_bits() & 0x7f80_0000) / 1024.0 }
}

/// A half that is no less than a positive number, and no more than one spacing over it.
#[inline(always)]
fn half_above(value: f32) -> f32 {
    let half = nearest_half(value);
    if half < value { half + spacing(half) } else { half }
}

/// A half that is no more than `value`, and no more than one spacing under it.
#[inline(always)]
fn half_below(value: f32) -> f32 {
    let half = nearest_half(value);
    if half > value { half - spacing(half) } else { half }
}
