//! `f16`: IEEE 754 binary16, rounded to nearest, ties to even.
//!
//! ```text
//! values: F16 [rows, dim]
//! byte 0   2   4        2*dim
//!      |x0 |x1 |x2 | ... |   row 0, then row 1 without a gap
//! ```
//!
//! Error bound: half a unit in the last of 11 bits, `|x| * 2^-11`, or half the smallest step, `2^-25`, for values under
//! `2^-14`. A value that would round to infinity (from 65520) is refused.

use std::{fmt, sync::Arc};

use half::{f16, slice::HalfFloatSliceExt};

use super::{
    Build, Category, Codec, Dtype, Misfit, Part, SchemeInfo, Shader,
    pool::{BaggedRows, Fold, FoldRow, Replace, pool_rows},
    simd::{DecodeRow, decode_rows, touch},
};
use crate::units::Shape;

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "f16",
    summary: "half precision, rounded to nearest",
    options: "",
    examples: &["f16"],
    variants: &["f16"],
    build: Build::Codec(|_| Ok(Arc::new(F16))),
};

/// The least magnitude that rounds to infinity: halfway between the largest half, 65504, and 65536.
const OVERFLOW: f32 = 65520.0;

#[derive(Debug)]
struct F16;

impl Codec for F16 {
    fn fmt_scheme(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("f16")
    }

    fn parts(&self, shape: Shape) -> Vec<Part> {
        let shape = vec![u64::from(shape.rows()), u64::from(shape.dim())];
        vec![Part::new("values", Dtype::F16, Category::Payload, shape)]
    }

    fn encode_rows(&self, _dim: usize, values: &[f32], parts: &mut [&mut [u8]]) -> Result<(), Misfit> {
        if let Some(index) = values.iter().position(|value| value.abs() >= OVERFLOW) {
            return Err(Misfit { index, reason: "the largest half-precision value is 65504" });
        }
        // Converted by blocks, so that the halves need no memory of their own and any alignment of the part will do.
        let mut halves = [f16::ZERO; 256];
        for (bytes, values) in parts[0].chunks_mut(512).zip(values.chunks(256)) {
            let halves = &mut halves[..values.len()];
            halves.convert_from_f32_slice(values);
            for (bytes, half) in bytes.as_chunks_mut().0.iter_mut().zip(halves) {
                *bytes = half.to_le_bytes();
            }
        }
        Ok(())
    }

    fn decode_rows(&self, dim: usize, parts: &[&[u8]], rows: &[u32], out: &mut [f32]) {
        decode_rows(&Halves { dim, bytes: parts[0] }, dim, rows, out);
    }

    fn pool_rows(&self, dim: usize, parts: &[&[u8]], bags: &BaggedRows<'_>, out: &mut [f32]) {
        pool_rows(&Halves { dim, bytes: parts[0] }, dim, bags, out);
    }

    fn error_bound(&self, row: &[f32]) -> f64 {
        let largest = row.iter().fold(0.0, |largest: f64, value| largest.max(f64::from(value.abs())));
        (largest * 2f64.powi(-11)).max(2f64.powi(-25))
    }

    fn reference(&self, dim: usize, parts: &[&[u8]], row: usize, column: usize) -> f64 {
        let at = (row * dim + column) * 2;
        let bits = u16::from_le_bytes([parts[0][at], parts[0][at + 1]]);
        half_by_definition(bits)
    }

    fn shader(&self) -> Shader {
        Shader::plain("f16", include_str!("../../shaders/codec/f16.wgsl"))
    }
}

struct Halves<'a> {
    dim: usize,
    bytes: &'a [u8],
}

impl Halves<'_> {
    #[inline(always)]
    fn row(&self, row: usize) -> &[u8] {
        &self.bytes[row * self.dim * 2..][..self.dim * 2]
    }
}

impl DecodeRow for Halves<'_> {
    #[inline(always)]
    fn decode_row(&self, row: usize, out: &mut [f32]) {
        self.fold_columns(row, 0, out, Replace);
    }

    #[inline(always)]
    fn touch_row(&self, row: usize) -> u8 {
        touch(self.row(row))
    }
}

impl FoldRow for Halves<'_> {
    #[inline(always)]
    fn fold_columns(&self, row: usize, first: usize, out: &mut [f32], fold: impl Fold) {
        let bytes = &self.row(row)[first * 2..][..out.len() * 2];
        match bytemuck::try_cast_slice::<u8, u16>(bytes) {
            Ok(halves) => {
                if halves.iter().fold(false, |special, half| special | is_special(u16::from_le(*half))) {
                    for (value, half) in out.iter_mut().zip(halves) {
                        *value = fold.fold(*value, widen(u16::from_le(*half)));
                    }
                } else {
                    for (value, half) in out.iter_mut().zip(halves) {
                        *value = fold.fold(*value, widen_finite(u16::from_le(*half)));
                    }
                }
            }
            // A part at an odd address. The loop is apart because pairs of bytes make no vectors.
            Err(_) => {
                for (value, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
                    *value = fold.fold(*value, widen(u16::from_le_bytes(*bytes)));
                }
            }
        }
    }
}

/// The value of a half by the definition of the format, for references.
pub(super) fn half_by_definition(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        exponent => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// Whether a half is infinite or no number: of the greatest exponent.
#[inline(always)]
fn is_special(half: u16) -> bool {
    half & 0x7c00 == 0x7c00
}

/// The value of a half, by steps that every instruction set has lanes for. Exact for all 65,536 of them.
#[inline(always)]
pub(super) fn widen(half: u16) -> f32 {
    let special = if is_special(half) { 255 << 23 } else { 0 };
    f32::from_bits(widen_finite(half).to_bits() | special)
}

/// The same of a half that is not special, by half as many steps.
#[inline(always)]
fn widen_finite(half: u16) -> f32 {
    // Its sign is copied to all bits in front of it. Its exponent in the place of an f32's is too small by the difference of
    // the biases, for subnormal halves too.
    let bits = i32::from(half.cast_signed()).cast_unsigned() << 13;
    f32::from_bits(bits & 0x8fff_e000) * f32::from_bits((127 + 112) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_widened_exactly() {
        let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let mut padded = vec![0; bytes.len() + 1];
        padded[1..].copy_from_slice(&bytes);
        // The same bytes at an even and at an odd address.
        for bytes in [&bytes, &padded[1..]] {
            let mut out = vec![0f32; 1 << 16];
            F16.decode_rows(1 << 16, &[bytes], &[0], &mut out);
            for (half, value) in (0..=u16::MAX).zip(out) {
                let expected = f16::from_bits(half).to_f32();
                // Hardware makes signalling NaN quiet; the payload is nobody's value.
                let same = value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan();
                assert!(same, "{half:#06x} is {value}, not {expected}");
            }
        }
    }
}
