//! Packed codes to rows.

use super::{PackedInt, step::Step};
use crate::scheme::simd::{DecodeRow, decode_rows, touch};

/// Decodes the listed rows.
pub(super) fn rows<const BITS: usize, const AFFINE: bool>(
    scheme: &PackedInt,
    dim: usize,
    codes: &[u8],
    steps: &[u8],
    rows: &[u32],
    out: &mut [f32],
) {
    let group = scheme.group(dim);
    let (row_bytes, step_bytes) = (scheme.row_bytes(dim), scheme.step_bytes());
    let decoder = Rows::<BITS, AFFINE> {
        half: scheme.half,
        group,
        groups: dim.div_ceil(group),
        row_bytes,
        step_bytes,
        codes,
        steps,
    };
    decode_rows(&decoder, dim, rows, out);
}

/// Rows to decode.
struct Rows<'a, const BITS: usize, const AFFINE: bool> {
    half: bool,
    group: usize,
    groups: usize,
    row_bytes: usize,
    step_bytes: usize,
    codes: &'a [u8],
    steps: &'a [u8],
}

impl<const BITS: usize, const AFFINE: bool> Rows<'_, BITS, AFFINE> {
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
        let (codes, steps) = (self.codes(row), self.steps(row));
        if self.groups == 1 {
            decode_group::<BITS, AFFINE>(Step::read::<AFFINE>(self.half, steps), codes, out);
        } else {
            // A group is a multiple of 16 columns: whole bytes.
            let groups = out.chunks_mut(self.group).zip(codes.chunks(self.group / 8 * BITS));
            for ((out, codes), step) in groups.zip(steps.chunks_exact(self.step_bytes)) {
                decode_group::<BITS, AFFINE>(Step::read::<AFFINE>(self.half, step), codes, out);
            }
        }
    }

    #[inline(always)]
    fn touch_row(&self, row: usize) -> u8 {
        touch(self.codes(row)) | touch(self.steps(row))
    }
}

/// Eight codes are `BITS` bytes: one word, that lanes shift by as much as they need.
#[inline(always)]
fn decode_group<const BITS: usize, const AFFINE: bool>(step: Step, codes: &[u8], out: &mut [f32]) {
    let (whole, rest) = out.as_chunks_mut::<8>();
    let (eights, last) = codes.split_at(whole.len() * BITS);
    for (out, bytes) in whole.iter_mut().zip(eights.as_chunks::<BITS>().0) {
        *out = decode8::<BITS, AFFINE>(step, *bytes);
    }
    if !rest.is_empty() {
        let mut bytes = [0; BITS];
        bytes[..last.len()].copy_from_slice(last);
        rest.copy_from_slice(&decode8::<BITS, AFFINE>(step, bytes)[..rest.len()]);
    }
}

#[inline(always)]
fn decode8<const BITS: usize, const AFFINE: bool>(step: Step, bytes: [u8; BITS]) -> [f32; 8] {
    let mut word = 0;
    for (place, byte) in bytes.into_iter().enumerate() {
        word |= u32::from(byte) << (8 * place);
    }
    let mut out = [0.0; 8];
    for (lane, out) in out.iter_mut().enumerate() {
        let code = (word >> (BITS * lane) & ((1 << BITS) - 1)).cast_signed();
        *out =
            if AFFINE { code as f32 * step.scale + step.bias } else { (code - (1 << (BITS - 1))) as f32 * step.scale };
    }
    out
}
