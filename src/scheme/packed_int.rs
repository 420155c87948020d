//! `int2`, `int3`, `int4` `[:affine][,group=N][,scales=f32][,clip=none]`: codes of 2, 3 or 4 bits, packed, and a scale a row
//! or a group of `N` columns.
//!
//! ```text
//! codes: U8 [rows, ceil(dim * bits / 8)]: column j is bits `bits * j` to `bits * j + bits - 1` of the row, the first bit
//! of a byte being its lowest; what is left of the last byte is not read, and written as 0
//!
//! int4 byte    0               1                       ceil(dim / 2)
//!      bit     0..3    4..7    0..3    4..7
//!             |  c0  |  c1  |  c2  |  c3  | ... |      then row 1
//!
//! int3 byte    0                     1                         2
//!      bit     0..2   3..5   6 7     0    1..3  4..6   7       0 1    2..4   5..7
//!             |  c0  |  c1  |  c2 . . c2 |  c3 |  c4 | c5 . .  c5  |  c6  |  c7  | ... |
//!
//! int2 byte    0                       1
//!      bit     0 1  2 3  4 5  6 7      0 1
//!             | c0 | c1 | c2 | c3 |   | c4 | ... |
//!
//! scales: F16 [rows, groups]             symmetric     scales: F16 [rows, groups, 2]           affine
//! byte 0   2         2*groups                          byte 0   2   4         4*groups
//!      |s0 |s1 | ... |  x = (c - 2^(bits-1)) * s            |s0 |b0 |s1 | ... |  x = c * s + b
//! ```
//!
//! With `scales=f32` the scales are F32, and as many. `groups` is 1, or `ceil(dim / N)`; `N` is a multiple of 16, so that a
//! group begins on a byte and 16 columns share a step. Codes are unsigned. Decoding is one f32 multiplication, of an exact
//! difference, or followed by one f32 addition. A symmetric scale may be negative; 0 is 0.0 then too, not -0.0, since not
//! every driver tells which of both is the larger one.
//!
//! **Encoding.** With `m` the largest magnitude of a group, symmetric: `s = m / (2^(bits-1) - 1)`, of the sign that puts `m`
//! on the negative side, where there is one code more: a narrower range (below) then reaches it. `int2` needs this most: it
//! has the four levels -2, -1, 0, 1 and not three. Where all values of a group are `m`, `-m` or 0, `m / s` is a power of two,
//! so that they decode exactly. With `lo` and `hi` the ends of a group, affine: `b = lo`, `s = (hi - b) / (2^bits - 1)`; a
//! constant group takes `s = 0`. Halves are rounded first, `b` down and `s` up, so that the range stays covered, and codes
//! are the nearest to what they make.
//!
//! `clip=search`, the default, tries 11 ranges from 3/8 of the whole one to all of it, in steps of 1/16: symmetric the
//! largest magnitude shrinks, affine both ends move to the middle. The least squared error is taken, of equals the widest.
//! Few bits gain much by this: one large value no longer takes the levels of all others.
//!
//! **Error bound.** With the whole range no value is more than half a step from its code's: `e = t/2 (1 + 2^-12) + 2^-21 m`,
//! the second term for what f32 rounds. `t` is `m / (2^(bits-1) - 1)` or `(hi - lo) / (2^bits - 1)`, with halves
//! `(hi - lo + 2^-10 |lo| + 2^-24) / (2^bits - 1)` times `1 + 2^-9`, plus `2^-24`: the spacing of halves is `2^-10` of a
//! value or less, and `2^-24` at the least. A constant affine group has, with halves, `2^-11 m + 2^-25` instead.
//! A searched range has no larger sum of squares than the whole one, `n e^2` over `n` columns: no error is over
//! `sqrt(n) e (1 + (n/8 + 32) 2^-24)`, the last factor for the sums' own rounding. Nor is it over `e` and what the least
//! range leaves out, `5/8 m` or `5/16 (hi - lo)`. The bound is the lesser one.
//!
//! **Rounding.** Symmetric, a decoder's one multiplication, of 4 bits by 24, rounds the reference, which holds the product
//! exactly. Affine it rounds twice, each time by at most `2^-24` of the result, `c s` or `x`: `c s` is `x - b`, and `b` is the
//! least stored value or less than a half's spacing under it, so with `m` the largest stored magnitude that is
//! `2^-24 (2.002 m + m)`.
//!
//! **Refusals.** Halves hold no scale or bias over 65504, and a row of values under `2^-17` would have steps that are mostly
//! rounding; `scales=f32` takes both. An affine group whose range is over f32's largest number is refused: symmetric ones
//! hold it. A large offset is no reason: it costs `2^-11 / (2^bits - 1)` of itself at most, less than halves would.
//!
//! f32 scales are at least `2^-126` (symmetric) or `2^-102` (affine), as are biases other than 0, and halves are multiples
//! of `2^-24`: no decoded value is subnormal.

mod decode;
mod encode;
mod nibbles;
mod step;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

pub use self::nibbles::swap_nibbles;
use self::{
    decode::{Decode, Pooled},
    step::{LEAST_AFFINE, LEAST_STEP},
};
use super::{
    Build, Category, Codec, Dtype, Misfit, Part, SchemeInfo, Shader, f16::half_by_definition, options::Options,
    pool::BaggedRows, simd::ends,
};
use crate::{error::SchemeError, units::Shape};

const OPTIONS: &str = "affine, group=N, scales=f32, clip=none";

pub(super) const INT4: SchemeInfo = SchemeInfo {
    name: "int4",
    summary: "4 bits a value, a scale a row or group",
    options: OPTIONS,
    examples: &["int4:affine", "int4:affine,group=32"],
    variants: &["int4", "int4:affine", "int4:affine,group=32"],
    build: Build::Codec(|options| build(options, 4)),
};

pub(super) const INT3: SchemeInfo = SchemeInfo {
    name: "int3",
    summary: "3 bits a value, a scale a row or group",
    options: OPTIONS,
    examples: &["int3:affine"],
    variants: &["int3:affine", "int3:group=16,scales=f32,clip=none"],
    build: Build::Codec(|options| build(options, 3)),
};

pub(super) const INT2: SchemeInfo = SchemeInfo {
    name: "int2",
    summary: "2 bits a value, a scale a row or group",
    options: OPTIONS,
    examples: &["int2:affine"],
    variants: &["int2:affine,scales=f32"],
    build: Build::Codec(|options| build(options, 2)),
};

/// Columns that share a step whatever the group: those that a shader decodes at a time, and whole bytes of codes.
const BLOCK: u32 = 16;

fn build(options: &mut Options<'_>, bits: u32) -> Result<Arc<dyn Codec>, SchemeError> {
    let affine = options.flag("affine")?;
    let group = options.number("group")?;
    if group.is_some_and(|group| group == 0 || !group.is_multiple_of(BLOCK)) {
        return Err(options.error("group", "takes a positive multiple of 16"));
    }
    let half = options.choice("scales", &["f16", "f32"])? == 0;
    let search = options.choice("clip", &["search", "none"])? == 0;
    Ok(Arc::new(PackedInt { bits, affine, group, half, search }))
}

/// A scheme of the family.
#[derive(Clone, Copy, Debug)]
struct PackedInt {
    bits: u32,
    affine: bool,
    group: Option<u32>,
    /// Whether scales are halves, else f32.
    half: bool,
    /// Whether ranges are searched.
    search: bool,
}

impl PackedInt {
    fn group(&self, dim: usize) -> usize {
        self.group.map_or(dim, |group| (group as usize).min(dim))
    }

    /// Bytes of a row's codes.
    fn row_bytes(&self, dim: usize) -> usize {
        (dim * self.bits as usize).div_ceil(8)
    }

    /// Bytes of a group's scale and bias.
    fn step_bytes(&self) -> usize {
        (if self.half { 2 } else { 4 }) * (if self.affine { 2 } else { 1 })
    }

    /// Steps from one end of the whole range to the other; symmetric, from 0 to either.
    fn span(&self) -> f64 {
        f64::from((1 << (if self.affine { self.bits } else { self.bits - 1 })) - 1)
    }

    fn group_bound(&self, values: &[f32]) -> f64 {
        let (lo, hi) = ends(values);
        let (lo, hi) = (f64::from(lo), f64::from(hi));
        let largest = lo.abs().max(hi.abs());
        let (range, left_out) = if self.affine { (hi - lo, 5.0 / 16.0) } else { (largest, 5.0 / 8.0) };
        let mut step = range / self.span();
        if self.half {
            let offset = if self.affine { lo.abs() * 2f64.powi(-10) + 2f64.powi(-24) } else { 0.0 };
            step = (range + offset) / self.span() * (1.0 + 2f64.powi(-9)) + 2f64.powi(-24);
        } else {
            step = step.max(2.0 * f64::from(if self.affine { LEAST_AFFINE } else { LEAST_STEP }));
        }
        let mut whole = step / 2.0 * (1.0 + 2f64.powi(-12)) + largest * 2f64.powi(-21);
        if self.half && self.affine && lo == hi {
            whole = whole.max(largest * 2f64.powi(-11) + 2f64.powi(-25));
        }
        if !self.search {
            return whole;
        }
        let columns = values.len() as f64;
        let squares = columns.sqrt() * whole * (1.0 + (columns / 8.0 + 32.0) * 2f64.powi(-24));
        squares.min(whole + range * left_out)
    }
}

impl Codec for PackedInt {
    fn fmt_scheme(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "int{}", self.bits)?;
        let group = self.group.map(|group| format!("group={group}"));
        let options = [
            self.affine.then_some("affine"),
            group.as_deref(),
            (!self.half).then_some("scales=f32"),
            (!self.search).then_some("clip=none"),
        ];
        for (number, option) in options.into_iter().flatten().enumerate() {
            write!(f, "{}{option}", if number == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }

    fn parts(&self, shape: Shape) -> Vec<Part> {
        let (rows, dim) = (u64::from(shape.rows()), u64::from(shape.dim()));
        let groups = self.group.map_or(1, |group| dim.div_ceil(u64::from(group)));
        let scales = if self.affine { vec![rows, groups, 2] } else { vec![rows, groups] };
        let dtype = if self.half { Dtype::F16 } else { Dtype::F32 };
        vec![
            Part::new("codes", Dtype::U8, Category::Payload, vec![rows, (dim * u64::from(self.bits)).div_ceil(8)]),
            Part::new("scales", dtype, Category::Scales, scales),
        ]
    }

    fn encode_rows(&self, dim: usize, values: &[f32], parts: &mut [&mut [u8]]) -> Result<(), Misfit> {
        let [codes, steps] = parts else { unreachable!("two parts") };
        match self.bits {
            2 => encode::rows::<2>(self, dim, values, codes, steps),
            3 => encode::rows::<3>(self, dim, values, codes, steps),
            _ => encode::rows::<4>(self, dim, values, codes, steps),
        }
    }

    fn decode_rows(&self, dim: usize, parts: &[&[u8]], rows: &[u32], out: &mut [f32]) {
        self.rows(dim, parts, Decode { rows, out });
    }

    fn pool_rows(&self, dim: usize, parts: &[&[u8]], bags: &BaggedRows<'_>, out: &mut [f32]) {
        self.rows(dim, parts, Pooled { bags, out });
    }

    fn error_bound(&self, row: &[f32]) -> f64 {
        row.chunks(self.group(row.len().max(1))).map(|values| self.group_bound(values)).fold(0.0, f64::max)
    }

    fn reference(&self, dim: usize, parts: &[&[u8]], row: usize, column: usize) -> f64 {
        let bits = self.bits as usize;
        let row_bits = (dim * bits).div_ceil(8) * 8;
        let bit = |at: usize| parts[0][at / 8] >> (at % 8) & 1;
        let code: u8 = (0..bits).map(|place| bit(row * row_bits + column * bits + place) << place).sum();
        let group = self.group.map_or(dim, |group| group as usize);
        let number = |at: usize| {
            let bytes = if self.half { 2 } else { 4 };
            let word = (0..bytes).map(|byte| u32::from(parts[1][at * bytes + byte]) << (8 * byte)).sum::<u32>();
            match u16::try_from(word) {
                Ok(half) if self.half => half_by_definition(half),
                _ => f64::from(f32::from_bits(word)),
            }
        };
        let at = row * dim.div_ceil(group) + column / group;
        if self.affine {
            f64::from(code) * number(2 * at) + number(2 * at + 1)
        } else {
            // Plus 0, so that 0 has no sign.
            (f64::from(code) - f64::from(1 << (bits - 1))) * number(at) + 0.0
        }
    }

    fn rounding(&self, row: &[f64]) -> f64 {
        let largest = row.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        if self.affine { largest * 3.1 * 2f64.powi(-24) } else { 0.0 }
    }

    fn shader(&self) -> Shader {
        let stem = match self.bits {
            2 => "int2",
            3 => "int3",
            _ => "int4",
        };
        Shader::plain(stem, include_str!("../../shaders/codec/packed_int.wgsl"))
    }

    fn constants(&self, dim: u32) -> Vec<(&'static str, f64)> {
        let group = self.group.map_or(0, |group| if group >= dim { 0 } else { group });
        vec![
            ("BITS", f64::from(self.bits)),
            ("AFFINE", f64::from(u8::from(self.affine))),
            ("HALF", f64::from(u8::from(self.half))),
            ("GROUP", f64::from(group)),
        ]
    }
}
