//! Packed codes to rows.

use super::{PackedInt, step::Step};
use crate::scheme::{
    pool::{BaggedRows, Fold, FoldRow, Replace, pool_rows},
    simd::{DecodeRow, decode_rows, touch},
};

/// What is done with rows, whatever their codes.
pub(super) trait Use {
    fn with(self, dim: usize, decoder: &impl FoldRow);
}

/// The listed rows are decoded.
pub(super) struct Decode<'a> {
    pub(super) rows: &'a [u32],
    pub(super) out: &'a mut [f32],
}

impl Use for Decode<'_> {
    fn with(self, dim: usize, decoder: &impl FoldRow) {
        decode_rows(decoder, dim, self.rows, self.out);
    }
}

/// Rows are folded into their bags'.
pub(super) struct Pooled<'a> {
    pub(super) bags: &'a BaggedRows<'a>,
    pub(super) out: &'a mut [f32],
}

impl Use for Pooled<'_> {
    fn with(self, dim: usize, decoder: &impl FoldRow) {
        pool_rows(decoder, dim, self.bags, self.out);
    }
}

impl PackedInt {
    /// Uses the rows of these parts.
    pub(super) fn rows(&self, dim: usize, parts: &[&[u8]], how: impl Use) {
        match (self.bits, self.affine) {
            (2, false) => how.with(dim, &Rows::<2, false>::new(self, dim, parts)),
            (2, true) => how.with(dim, &Rows::<2, true>::new(self, dim, parts)),
            (3, false) => how.with(dim, &Rows::<3, false>::new(self, dim, parts)),
            (3, true) => how.with(dim, &Rows::<3, true>::new(self, dim, parts)),
            (_, false) => how.with(dim, &Rows::<4, false>::new(self, dim, parts)),
            (_, true) => how.with(dim, &Rows::<4, true>::new(self, dim, parts)),
        }
    }
}

/// Rows to decode.
struct Rows<'a, const BITS: usize, const AFFINE: bool> {
    scheme: &'a PackedInt,
    group: usize,
    groups: usize,
    row_bytes: usize,
    step_bytes: usize,
    codes: &'a [u8],
    steps: &'a [u8],
}

impl<'a, const BITS: usize, const AFFINE: bool> Rows<'a, BITS, AFFINE> {
    fn new(scheme: &'a PackedInt, dim: usize, parts: &[&'a [u8]]) -> Self {
        let group = scheme.group(dim);
        let (row_bytes, step_bytes) = (scheme.row_bytes(dim), scheme.step_bytes());
        let (codes, steps) = (parts[0], parts[1]);
        Self { scheme, group, groups: dim.div_ceil(group), row_bytes, step_bytes, codes, steps }
    }

    #[inline(always)]
    fn codes(&self, row: usize) -> &[u8] {
        &self.codes[row * self.row_bytes..][..self.row_bytes]
    }

    #[inline(always)]
    fn steps(&self, row: usize) -> &[u8] {
        let width = self.groups * self.step_bytes;
        &self.steps[row * width..][..width]
    }
}

impl<const BITS: usize, const AFFINE: bool> DecodeRow for Rows<'_, BITS, AFFINE> {
    #[inline(always)]
    fn decode_row(&self, row: usize, out: &mut [f32]) {
        self.fold_row(row, out, Replace);
    }

    #[inline(always)]
    fn touch_row(&self, row: usize) -> u8 {
        touch(self.codes(row)) | touch(self.steps(row))
    }
}

impl<const BITS: usize, const AFFINE: bool> FoldRow for Rows<'_, BITS, AFFINE> {
    #[inline(always)]
    fn fold_row(&self, row: usize, out: &mut [f32], fold: impl Fold) {
        let (codes, steps) = (self.codes(row), self.steps(row));
        if self.groups == 1 {
            fold_group::<BITS, AFFINE>(Step::read(self.scheme, steps), codes, out, fold);
        } else {
            // A group is a multiple of 16 columns: whole bytes.
            let groups = out.chunks_mut(self.group).zip(codes.chunks(self.group / 8 * BITS));
            for ((out, codes), step) in groups.zip(steps.chunks_exact(self.step_bytes)) {
                fold_group::<BITS, AFFINE>(Step::read(self.scheme, step), codes, out, fold);
            }
        }
    }
}

/// Eight codes are `BITS` bytes: one word, that lanes shift by as much as they need.
#[inline(always)]
fn fold_group<const BITS: usize, const AFFINE: bool>(step: Step, codes: &[u8], out: &mut [f32], fold: impl Fold) {
    let (whole, rest) = out.as_chunks_mut::<8>();
    let (eights, last) = codes.split_at(whole.len() * BITS);
    for (out, bytes) in whole.iter_mut().zip(eights.as_chunks::<BITS>().0) {
        let values = decode8::<BITS, AFFINE>(step, *bytes);
        for lane in 0..8 {
            out[lane] = fold.fold(out[lane], values[lane]);
        }
    }
    if !rest.is_empty() {
        let mut bytes = [0; BITS];
        bytes[..last.len()].copy_from_slice(last);
        for (out, value) in rest.iter_mut().zip(decode8::<BITS, AFFINE>(step, bytes)) {
            *out = fold.fold(*out, value);
        }
    }
}

#[inline(always)]
fn decode8<const BITS: usize, const AFFINE: bool>(step: Step, bytes: [u8; BITS]) -> [f32; 8] {
    let mut word = 0;
    for (place, byte) in bytes.into_iter().enumerate() {
        word |= u32::from(byte) << (8 * place);
    }
    let mut out = [0.0; 8];
    // 0 is 0.0, not -0.0, whatever the sign of the scale.
    let (sign, scale) = (1f32.copysign(step.scale), step.scale.abs());
    let offset = (1 << (BITS - 1)) as f32 * sign;
    for (lane, out) in out.iter_mut().enumerate() {
        let code = (word >> (BITS * lane) & ((1 << BITS) - 1)).cast_signed() as f32;
        *out = if AFFINE { code * step.scale + step.bias } else { (code * sign - offset) * scale };
    }
    out
}
