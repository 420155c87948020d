//! Rows to packed codes.

use pulp::{Arch, Simd, WithSimd};

use super::{
    PackedInt,
    step::{LEAST_HALVES, Step},
};
use crate::scheme::{Misfit, simd::ends};

/// Encodes whole rows.
pub(super) fn rows<const BITS: usize>(
    scheme: &PackedInt,
    dim: usize,
    values: &[f32],
    codes: &mut [u8],
    steps: &mut [u8],
) -> Result<(), Misfit> {
    Arch::new().dispatch(Encode::<BITS> { scheme, dim, values, codes, steps })
}

/// Rows to encode.
pub(super) struct Encode<'a, const BITS: usize> {
    pub(super) scheme: &'a PackedInt,
    pub(super) dim: usize,
    pub(super) values: &'a [f32],
    pub(super) codes: &'a mut [u8],
    pub(super) steps: &'a mut [u8],
}

impl<const BITS: usize> WithSimd for Encode<'_, BITS> {
    type Output = Result<(), Misfit>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Self::Output {
        let (scheme, dim) = (self.scheme, self.dim);
        let group = scheme.group(dim);
        let mut steps = self.steps.chunks_exact_mut(scheme.step_bytes());
        let rows = self.values.chunks_exact(dim).zip(self.codes.chunks_exact_mut(scheme.row_bytes(dim)));
        for (row, (values, codes)) in rows.enumerate() {
            let misfit = |at: usize, reason| Misfit { index: row * dim + at, reason };
            let tiny = scheme.half && is_tiny(values);
            // A group is a multiple of 16 columns, or the row: it begins on a byte.
            let groups = values.chunks(group).zip(codes.chunks_mut(group.div_ceil(8) * BITS));
            for (number, (values, codes)) in groups.enumerate() {
                let step = scheme
                    .step(values, tiny)
                    .map_err(|reason| misfit(number * group + first_largest(values), reason))?;
                pack_group::<BITS>(scheme, values, step, codes);
                let Some(out) = steps.next() else { unreachable!("a step a group") };
                step.write(scheme.half, out);
            }
        }
        Ok(())
    }
}

/// Values of a group that are encoded before they are packed.
const AT_ONCE: usize = 64;

#[inline(always)]
fn pack_group<const BITS: usize>(scheme: &PackedInt, values: &[f32], step: Step, packed: &mut [u8]) {
    for (values, packed) in values.chunks(AT_ONCE).zip(packed.chunks_mut(AT_ONCE / 8 * BITS)) {
        let mut codes = [0; AT_ONCE];
        scheme.codes(values, step, &mut codes[..values.len()]);
        for (codes, packed) in codes.as_chunks::<8>().0.iter().zip(packed.chunks_mut(BITS)) {
            let mut word = 0;
            for (lane, code) in codes.iter().enumerate() {
                word |= u32::from(*code) << (BITS * lane);
            }
            packed.copy_from_slice(&word.to_le_bytes()[..packed.len()]);
        }
    }
}

/// Whether a row is not zero, and too small for scales in halves.
#[inline(always)]
fn is_tiny(values: &[f32]) -> bool {
    let (lo, hi) = ends(values);
    let largest = hi.max(-lo);
    largest > 0.0 && largest < LEAST_HALVES
}

/// Where the largest magnitude is.
fn first_largest(values: &[f32]) -> usize {
    (0..values.len()).max_by(|a, b| values[*a].abs().total_cmp(&values[*b].abs()).then(b.cmp(a))).unwrap_or(0)
}
