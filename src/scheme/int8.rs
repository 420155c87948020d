//! `int8[:affine][,group=N]`: one signed byte a value, and a scale a row or a group of `N` columns.
//!
//! ```text
//! codes: I8 [rows, dim]                    scales: F32 [rows, groups]           symmetric
//! byte 0  1  2       dim                   byte 0   4         4*groups
//!      |c0|c1|c2| ... |  then row 1             |s0 |s1 | ... |  then row 1     x = c * s
//!
//!                                          scales: F32 [rows, groups, 2]        affine
//!                                          byte 0   4   8         8*groups
//!                                               |s0 |b0 |s1 | ... |             x = c * s + b
//! ```
//!
//! `groups` is 1, or `ceil(dim / N)`; column `j` belongs to group `j / N`. Codes run from -127 to 127 (symmetric) and from
//! -128 to 127 (affine). Decoding is one f32 multiplication, and one f32 addition after it where affine.
//!
//! **Encoding.** With `m` the largest magnitude of a group, symmetric: `s = m / 127`. A group whose values all are `m`,
//! `-m` or 0 takes `s = m / 64`, so that it decodes exactly. With `lo` and `hi` the ends of a group, affine:
//! `s = (hi - lo) / 255`, `b = lo + 128 s`; a constant group takes `s = 0`, `b` the constant. Codes are the nearest
//! whole numbers.
//!
//! **Error bound.** Half a step, and what f32 rounds: `s/2 (1 + 2^-12) + 2^-22 m`. The step is never less than `2^-126`
//! (symmetric) or `2^-102` (affine), nor is a bias other than 0: no decoded value is then subnormal, and drivers that
//! flush those to zero give the same bits as the others.
//!
//! **Rounding of the decoders.** A product of a code and a scale has at most 8 + 24 significant bits, so the f64 reference of a
//! symmetric table is exact, and one multiplication rounds it as the conversion to f32 does. Affine values are rounded twice,
//! each time by at most `2^-24` of the result, `|c s|` and `|c s + b|`. A group of values in `lo..hi` has
//! `|c s| <= 128 (hi - lo) / 255`, so both are at most `1.01 m`, and the largest stored magnitude is `m` but for half a step,
//! `m / 255`: `2.1 * 2^-24` of it covers both.

use std::{fmt, sync::Arc};

use pulp::{Arch, Simd, WithSimd};

use super::{
    Build, Category, Codec, Dtype, Misfit, Part, SchemeInfo, Shader,
    options::Options,
    pool::{BaggedRows, Fold, FoldRow, Replace, TILE, pool_rows},
    simd::{DecodeRow, decode_rows, ends, fold, touch},
};
use crate::{error::SchemeError, units::Shape};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "int8",
    summary: "a signed byte a value, a scale a row or group",
    options: "affine, group=N",
    examples: &["int8", "int8:affine"],
    variants: &["int8", "int8:affine", "int8:group=32", "int8:affine,group=16"],
    build: Build::Codec(build),
};

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Codec>, SchemeError> {
    let affine = options.flag("affine")?;
    let group = options.number("group")?;
    if group.is_some_and(|group| group == 0 || !group.is_multiple_of(4)) {
        return Err(options.error("group", "takes a positive multiple of 4"));
    }
    Ok(Arc::new(Int8 { affine, group }))
}

#[derive(Debug)]
struct Int8 {
    affine: bool,
    group: Option<u32>,
}

/// What a group of columns is decoded with.
#[derive(Clone, Copy, Debug)]
struct Step {
    scale: f32,
    bias: f32,
}

/// The least step of a symmetric group.
const LEAST_STEP: f32 = f32::MIN_POSITIVE;
/// The least step and bias of an affine group: sums of multiples of `2^-125` are never subnormal.
const LEAST_AFFINE: f32 = 1.0 / (1u128 << 102) as f32;

impl Int8 {
    fn group(&self, dim: usize) -> usize {
        self.group.map_or(dim, |group| (group as usize).min(dim))
    }

    fn rows<'a, const AFFINE: bool>(&self, dim: usize, parts: &[&'a [u8]]) -> Rows<'a, AFFINE> {
        let group = self.group(dim);
        Rows { dim, group, groups: dim.div_ceil(group), codes: parts[0], steps: parts[1] }
    }
}

impl Codec for Int8 {
    fn fmt_scheme(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.affine, self.group) {
            (false, None) => f.write_str("int8"),
            (true, None) => f.write_str("int8:affine"),
            (false, Some(group)) => write!(f, "int8:group={group}"),
            (true, Some(group)) => write!(f, "int8:affine,group={group}"),
        }
    }

    fn parts(&self, shape: Shape) -> Vec<Part> {
        let (rows, dim) = (u64::from(shape.rows()), u64::from(shape.dim()));
        let groups = self.group.map_or(1, |group| dim.div_ceil(u64::from(group)));
        let scales = if self.affine { vec![rows, groups, 2] } else { vec![rows, groups] };
        vec![
            Part::new("codes", Dtype::I8, Category::Payload, vec![rows, dim]),
            Part::new("scales", Dtype::F32, Category::Scales, scales),
        ]
    }

    fn encode_rows(&self, dim: usize, values: &[f32], parts: &mut [&mut [u8]]) -> Result<(), Misfit> {
        let [codes, steps] = parts else { unreachable!("int8 has two parts") };
        let group = self.group(dim);
        if self.affine {
            Arch::new().dispatch(Encode::<true> { dim, group, values, codes, steps });
        } else {
            Arch::new().dispatch(Encode::<false> { dim, group, values, codes, steps });
        }
        Ok(())
    }

    fn decode_rows(&self, dim: usize, parts: &[&[u8]], rows: &[u32], out: &mut [f32]) {
        if self.affine {
            decode_rows(&self.rows::<true>(dim, parts), dim, rows, out);
        } else {
            decode_rows(&self.rows::<false>(dim, parts), dim, rows, out);
        }
    }

    fn pool_rows(&self, dim: usize, parts: &[&[u8]], bags: &BaggedRows<'_>, out: &mut [f32]) {
        if self.affine {
            pool_rows(&self.rows::<true>(dim, parts), dim, bags, out);
        } else {
            pool_rows(&self.rows::<false>(dim, parts), dim, bags, out);
        }
    }

    fn error_bound(&self, row: &[f32]) -> f64 {
        let bound = |values: &[f32]| {
            let (lo, hi) = ends(values);
            let largest = f64::from(lo.abs().max(hi.abs()));
            let step = if self.affine {
                ((f64::from(hi) - f64::from(lo)) / 255.0).max(f64::from(LEAST_AFFINE) * 2.0)
            } else {
                (largest / 127.0).max(f64::from(LEAST_STEP))
            };
            step / 2.0 * (1.0 + 2f64.powi(-12)) + largest * 2f64.powi(-22)
        };
        row.chunks(self.group(row.len().max(1))).map(bound).fold(0.0, f64::max)
    }

    fn reference(&self, dim: usize, parts: &[&[u8]], row: usize, column: usize) -> f64 {
        let group = self.group.map_or(dim, |group| group as usize);
        let at = row * dim.div_ceil(group) + column / group;
        let number = |word: usize| {
            f64::from(f32::from_bits((0..4).map(|byte| u32::from(parts[1][word * 4 + byte]) << (8 * byte)).sum()))
        };
        let code = match i16::from(parts[0][row * dim + column]) {
            code @ 128.. => f64::from(code - 256),
            code => f64::from(code),
        };
        if self.affine { code * number(2 * at) + number(2 * at + 1) } else { code * number(at) }
    }

    fn rounding(&self, row: &[f64]) -> f64 {
        let largest = row.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        if self.affine { largest * 2.1 * 2f64.powi(-24) } else { 0.0 }
    }

    fn shader(&self) -> Shader {
        Shader::plain("int8", include_str!("../../shaders/codec/int8.wgsl"))
    }

    fn constants(&self, dim: u32) -> Vec<(&'static str, f64)> {
        let group = self.group.map_or(0, |group| if group >= dim { 0 } else { group });
        vec![("AFFINE", f64::from(u8::from(self.affine))), ("GROUP", f64::from(group))]
    }
}

/// Rows to decode.
struct Rows<'a, const AFFINE: bool> {
    dim: usize,
    group: usize,
    groups: usize,
    codes: &'a [u8],
    steps: &'a [u8],
}

impl<const AFFINE: bool> Rows<'_, AFFINE> {
    #[inline(always)]
    fn codes(&self, row: usize) -> &[u8] {
        &self.codes[row * self.dim..][..self.dim]
    }

    #[inline(always)]
    fn steps(&self, row: usize) -> &[u8] {
        let width = self.groups * step_bytes::<AFFINE>();
        &self.steps[row * width..][..width]
    }
}

impl<const AFFINE: bool> DecodeRow for Rows<'_, AFFINE> {
    #[inline(always)]
    fn decode_row(&self, row: usize, out: &mut [f32]) {
        self.fold_row(row, out, Replace);
    }

    #[inline(always)]
    fn touch_row(&self, row: usize) -> u8 {
        touch(self.codes(row)) | touch(self.steps(row))
    }
}

impl<const AFFINE: bool> FoldRow for Rows<'_, AFFINE> {
    /// A tile is within one group.
    #[inline(always)]
    fn has_tiles(&self) -> bool {
        self.groups == 1 || self.group.is_multiple_of(TILE)
    }

    #[inline(always)]
    fn fold_columns(&self, row: usize, first: usize, out: &mut [f32], fold: impl Fold) {
        let group = if self.groups == 1 { 0 } else { first / self.group };
        let step = &self.steps(row)[group * step_bytes::<AFFINE>()..];
        fold_group::<AFFINE>(step, &self.codes(row)[first..][..out.len()], out, fold);
    }

    #[inline(always)]
    fn fold_row(&self, row: usize, out: &mut [f32], fold: impl Fold) {
        let (codes, steps) = (self.codes(row), self.steps(row));
        if self.groups == 1 {
            return fold_group::<AFFINE>(steps, codes, out, fold);
        }
        let groups = out.chunks_mut(self.group).zip(codes.chunks(self.group));
        for ((out, codes), step) in groups.zip(steps.chunks_exact(step_bytes::<AFFINE>())) {
            fold_group::<AFFINE>(step, codes, out, fold);
        }
    }
}

#[inline(always)]
fn fold_group<const AFFINE: bool>(step: &[u8], codes: &[u8], out: &mut [f32], fold: impl Fold) {
    let scale = read_f32(step);
    if AFFINE {
        let bias = read_f32(&step[4..]);
        for (value, &code) in out.iter_mut().zip(codes) {
            *value = fold.fold(*value, f32::from(code.cast_signed()) * scale + bias);
        }
    } else {
        for (value, &code) in out.iter_mut().zip(codes) {
            *value = fold.fold(*value, f32::from(code.cast_signed()) * scale);
        }
    }
}

/// Rows to encode.
struct Encode<'a, const AFFINE: bool> {
    dim: usize,
    group: usize,
    values: &'a [f32],
    codes: &'a mut [u8],
    steps: &'a mut [u8],
}

impl<const AFFINE: bool> WithSimd for Encode<'_, AFFINE> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let mut steps = self.steps.chunks_exact_mut(step_bytes::<AFFINE>());
        for (values, codes) in self.values.chunks_exact(self.dim).zip(self.codes.chunks_exact_mut(self.dim)) {
            for (values, codes) in values.chunks(self.group).zip(codes.chunks_mut(self.group)) {
                let step = if AFFINE { affine_step(values) } else { symmetric_step(values) };
                quantise(values, step, if AFFINE { -128.0 } else { -127.0 }, codes);
                let Some(out) = steps.next() else { unreachable!("a step a group") };
                out[..4].copy_from_slice(&step.scale.to_le_bytes());
                if AFFINE {
                    out[4..].copy_from_slice(&step.bias.to_le_bytes());
                }
            }
        }
    }
}

/// Bytes of a group's parameters.
#[inline(always)]
const fn step_bytes<const AFFINE: bool>() -> usize {
    if AFFINE { 8 } else { 4 }
}

#[inline(always)]
fn read_f32(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[inline(always)]
fn symmetric_step(values: &[f32]) -> Step {
    let greater = |a: f32, b: f32| if b.abs() > a { b.abs() } else { a };
    let largest = fold(values, 0.0, greater, greater);
    if largest == 0.0 {
        return Step { scale: 0.0, bias: 0.0 };
    }
    let sixty_fourth = largest / 64.0;
    if sixty_fourth >= LEAST_STEP && values.iter().all(|value| value.abs() == largest || *value == 0.0) {
        return Step { scale: sixty_fourth, bias: 0.0 };
    }
    let mut scale = (largest / 127.0).max(LEAST_STEP);
    if !(scale * 127.0).is_finite() {
        scale = scale.next_down();
    }
    Step { scale, bias: 0.0 }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is what is wanted")]
fn affine_step(values: &[f32]) -> Step {
    let (lo, hi) = ends(values);
    let flush = |bias: f32| if bias.abs() < LEAST_AFFINE { 0.0 } else { bias };
    if lo == hi {
        return Step { scale: 0.0, bias: flush(lo) };
    }
    let mut scale = (((f64::from(hi) - f64::from(lo)) / 255.0) as f32).max(LEAST_AFFINE);
    let bias = flush((f64::from(lo) + 128.0 * f64::from(scale)) as f32);
    while !(127.0 * scale + bias).is_finite() || !(-128.0 * scale + bias).is_finite() {
        scale = scale.next_down();
    }
    Step { scale, bias }
}

/// Codes of `values`: the nearest whole number of steps from the bias, at least `least`, at most 127.
#[inline(always)]
fn quantise(values: &[f32], step: Step, least: f32, codes: &mut [u8]) {
    if step.scale == 0.0 {
        codes.fill(0);
        return;
    }
    // Adding 1.5 * 2^23 leaves the whole number, rounded to nearest even, in the low bits of an f32 under 2^22.
    const ROUND: f32 = 12_582_912.0;
    let inverse = 1.0 / step.scale;
    for (code, &value) in codes.iter_mut().zip(values) {
        // Plain comparisons: those of `f32::max` see to NaN, which there is none of.
        let steps = (value - step.bias) * inverse;
        let steps = if steps > least { steps } else { least };
        let steps = if steps < 127.0 { steps } else { 127.0 };
        *code = (steps + ROUND).to_bits().to_le_bytes()[0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The baseline and the widest instruction set at hand: the same codes and steps.
    #[test]
    fn a11_instruction_sets_agree_on_codes() {
        let values: Vec<f32> = (0..50 * 101).map(|value| (value as f32 * 0.37).sin() * value as f32).collect();
        for group in [101, 32] {
            let made = |wide: bool| {
                let [mut codes, mut steps] = [vec![0; values.len()], vec![0; 50 * 101_usize.div_ceil(group) * 8]];
                let encode = Encode::<true> { dim: 101, group, values: &values, codes: &mut codes, steps: &mut steps };
                if wide {
                    Arch::new().dispatch(encode);
                } else {
                    encode.with_simd(pulp::Scalar::new());
                }
                (codes, steps)
            };
            assert!(made(true) == made(false), "groups of {group}");
        }
    }
}
