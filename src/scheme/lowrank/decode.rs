//! Products of rows and a basis.
//!
//! ```text
//! for 4 rows, 32 columns at a time:
//!     sums = 0
//!     for j in 0..K: sums += u[row][j] * B[j][columns]      # the basis is read once for 4 rows
//! ```

use pulp::{Arch, Simd, WithSimd};

/// Rows of `U` that are decoded at a time, about: 16 KiB of values.
const FACTOR_VALUES: usize = 1 << 12;
/// Rows and columns whose sums are kept in registers.
const TILE_ROWS: usize = 4;
const TILE_COLUMNS: usize = 32;

/// Decodes `rows` of `U` by `factor` (columns, rows, their values) and multiplies them by `basis: [columns, dim]`.
pub(super) fn decode(
    dim: usize,
    basis: &[f32],
    rows: &[u32],
    out: &mut [f32],
    factor: impl Fn(usize, &[u32], &mut [f32]),
) {
    let columns = basis.len() / dim;
    let block = (FACTOR_VALUES / columns).max(TILE_ROWS).min(rows.len());
    let mut values = vec![0f32; block * columns];
    for (rows, out) in rows.chunks(block.max(1)).zip(out.chunks_mut(block.max(1) * dim)) {
        let values = &mut values[..rows.len() * columns];
        factor(columns, rows, values);
        Arch::new().dispatch(Product { dim, columns, basis, factor: values, out });
    }
}

/// `values: [rows, dim]` times the transposed `basis: [columns, dim]`.
pub(super) fn project(dim: usize, basis: &[f32], values: &[f32]) -> Vec<f32> {
    let columns = basis.len() / dim;
    let mut factor = vec![0f32; values.len() / dim * columns];
    Arch::new().dispatch(Project { dim, columns, basis, values, factor: &mut factor });
    factor
}

pub(super) struct Product<'a> {
    pub(super) dim: usize,
    pub(super) columns: usize,
    pub(super) basis: &'a [f32],
    pub(super) factor: &'a [f32],
    pub(super) out: &'a mut [f32],
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let (dim, columns) = (self.dim, self.columns);
        let wide = dim / TILE_COLUMNS * TILE_COLUMNS;
        for (out, factor) in self.out.chunks_mut(TILE_ROWS * dim).zip(self.factor.chunks(TILE_ROWS * columns)) {
            let whole = out.len() == TILE_ROWS * dim;
            for first in (0..wide).step_by(TILE_COLUMNS) {
                if whole {
                    tile::<TILE_ROWS>(dim, columns, first, self.basis, factor, out);
                } else {
                    for (out, factor) in out.chunks_exact_mut(dim).zip(factor.chunks_exact(columns)) {
                        tile::<1>(dim, columns, first, self.basis, factor, out);
                    }
                }
            }
            if wide < dim {
                for (out, factor) in out.chunks_exact_mut(dim).zip(factor.chunks_exact(columns)) {
                    let out = &mut out[wide..];
                    out.fill(0.0);
                    for (u, basis) in factor.iter().zip(self.basis.chunks_exact(dim)) {
                        for (sum, value) in out.iter_mut().zip(&basis[wide..]) {
                            *sum += u * value;
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn tile<const ROWS: usize>(dim: usize, columns: usize, first: usize, basis: &[f32], factor: &[f32], out: &mut [f32]) {
    let mut sums = [[0f32; TILE_COLUMNS]; ROWS];
    for j in 0..columns {
        let Some(values) = basis[j * dim + first..].first_chunk::<TILE_COLUMNS>() else { unreachable!("a tile") };
        for (row, sums) in sums.iter_mut().enumerate() {
            let u = factor[row * columns + j];
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += u * value;
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        out[row * dim + first..][..TILE_COLUMNS].copy_from_slice(sums);
    }
}

struct Project<'a> {
    dim: usize,
    columns: usize,
    basis: &'a [f32],
    values: &'a [f32],
    factor: &'a mut [f32],
}

impl WithSimd for Project<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let rows = self.values.chunks_exact(self.dim).zip(self.factor.chunks_exact_mut(self.columns));
        for (values, factor) in rows {
            for (u, basis) in factor.iter_mut().zip(self.basis.chunks_exact(self.dim)) {
                *u = dot(values, basis);
            }
        }
    }
}

/// Over 16 lanes, in an order that does not depend on the width of the vectors.
#[inline(always)]
fn dot(one: &[f32], other: &[f32]) -> f32 {
    let mut lanes = [0f32; 16];
    let ((ones, one), (others, other)) = (one.as_chunks::<16>(), other.as_chunks::<16>());
    for (one, other) in ones.iter().zip(others) {
        for lane in 0..16 {
            lanes[lane] += one[lane] * other[lane];
        }
    }
    for (lane, (one, other)) in lanes.iter_mut().zip(one.iter().zip(other)) {
        *lane += one * other;
    }
    lanes.iter().sum()
}
