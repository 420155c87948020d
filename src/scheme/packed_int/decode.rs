//! Packed codes to rows.

use super::{PackedInt, step::Step};
use crate::scheme::{
    pool::{BaggedRows, Fold, FoldRow, Replace, TILE, pool_rows},
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
    /// A tile is within one group.
    #[inline(always)]
    fn has_tiles(&self) -> bool {
        self.groups == 1 || self.group.is_multiple_of(TILE)
    }

    #[inline(always)]
    fn fold_columns(&self, row: usize, first: usize, out: &mut [f32], fold: impl Fold) {
        let group = if self.groups == 1 { 0 } else { first / self.group };
        let step = Step::read(self.scheme, &self.steps(row)[group * self.step_bytes..]);
        fold_group::<BITS, AFFINE>(step, &self.codes(row)[first / 8 * BITS..], out, fold);
    }

    /// Bytes next to one another are decoded next to one another: first codes have the first half or quarter of the tile.
    #[inline(always)]
    fn fold_tile(&self, row: usize, first: usize, tile: &mut [f32; TILE], fold: impl Fold) {
        if BITS == 3 {
            return self.fold_columns(row, first, tile, fold);
        }
        let group = if self.groups == 1 { 0 } else { first / self.group };
        let step = Step::read(self.scheme, &self.steps(row)[group * self.step_bytes..]);
        let bytes = &self.codes(row)[first / 8 * BITS..][..TILE / 8 * BITS];
        for (at, byte) in bytes.iter().enumerate() {
            for code in 0..8 / BITS {
                let out = &mut tile[code * (TILE / 8 * BITS) + at];
                *out = fold.fold(*out, step.value::<BITS, AFFINE>(u32::from(*byte) >> (BITS * code)));
            }
        }
    }

    #[inline(always)]
    fn column_at(place: usize) -> usize {
        let bytes = TILE / 8 * BITS;
        if BITS == 3 { place } else { place % bytes * (8 / BITS) + place / bytes }
    }

    #[inline(always)]
    fn fold_row(&self, row: usize, out: &mut [f32], fold: impl Fold) {
        let (codes, steps) = (self.codes(row), self.steps(row));
        if self.groups == 1 {
            return fold_group::<BITS, AFFINE>(Step::read(self.scheme, steps), codes, out, fold);
        }
        // A group is a multiple of 16 columns: whole bytes.
        let groups = out.chunks_mut(self.group).zip(codes.chunks(self.group / 8 * BITS));
        for ((out, codes), step) in groups.zip(steps.chunks_exact(self.step_bytes)) {
            fold_group::<BITS, AFFINE>(Step::read(self.scheme, step), codes, out, fold);
        }
    }
}

/// Folds as many codes as `out` has columns.
#[inline(always)]
fn fold_group<const BITS: usize, const AFFINE: bool>(step: Step, codes: &[u8], out: &mut [f32], fold: impl Fold) {
    // Eight codes are `BITS` bytes: one word, that lanes shift by as much as they need.
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
        let length = (rest.len() * BITS).div_ceil(8);
        bytes[..length].copy_from_slice(&last[..length]);
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
    for (code, out) in out.iter_mut().enumerate() {
        *out = step.value::<BITS, AFFINE>(word >> (BITS * code));
    }
    out
}

impl Step {
    /// What the code in the low bits says.
    #[inline(always)]
    fn value<const BITS: usize, const AFFINE: bool>(self, bits: u32) -> f32 {
        let code = (bits & ((1 << BITS) - 1)).cast_signed();
        if AFFINE {
            code as f32 * self.scale + self.bias
        } else {
            // 0 is 0.0, not -0.0, whatever the sign of the scale.
            (code - (1 << (BITS - 1))) as f32 * self.scale + 0.0
        }
    }
}
