//! Score: sums of products of rows and queries.
//!
//! ```text
//! for each block of rows, on all cores:
//!     values = decode(rows)               # to scratch in the nearest cache, padded with zeros to 16 columns
//!     for each row, each four queries:
//!         dots = the sums of their products
//!     squares = the sums of the rows' own
//! ```

use std::{borrow::Cow, ops::Range};

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::HostTable;
use crate::{
    op::{LANES, Panel, Sums},
    scheme::MOST_READ,
};

/// Rows of a block, unless they are long: their values are in scratch for all queries.
const BLOCK_ROWS: usize = 256;
/// The most values of a block, unless a row has more: 64 KiB.
const BLOCK_VALUES: usize = 1 << 14;
/// Queries that a row is multiplied with at a time: their sums fill the registers of AVX2.
const TILE: usize = 4;

impl HostTable {
    /// Sums of `rows` and the queries of `panel`, to `sums`: stored rows, or rows of the table where each is of several stored
    /// ones.
    pub(crate) fn score(&self, panel: &Panel<'_>, rows: Range<u32>, sums: &mut Sums) {
        let (dim, count) = (self.dim(), panel.count());
        let length = rows.len();
        let each = self.spec().each();
        let several = self.spec().buckets().filter(|_| each > 1);
        let block = (BLOCK_VALUES / dim).clamp(1, BLOCK_ROWS);
        (sums.first_row, sums.rows, sums.block) = (rows.start, length, block);
        sums.dots.resize(length * count, 0.0);
        sums.squares.resize(if panel.squares() { length } else { 0 }, 0.0);
        // Without squares each block gets none of them.
        let mut squares: Vec<&mut [f32]> = sums.squares.chunks_mut(block).collect();
        squares.resize_with(length.div_ceil(block), Default::default);
        let padded = dim.next_multiple_of(LANES);
        let queries = pad(panel.values, dim);
        let blocks = sums.dots.par_chunks_mut(block * count).zip(squares).enumerate();
        blocks.for_each_init(
            || [vec![0f32; block * dim], vec![0f32; block * padded]],
            |[scratch, wide], (number, (dots, squares))| {
                // A number of rows of the table, and one of a block.
                let first = rows.start + u32::try_from(number * block).unwrap_or(u32::MAX);
                let length = dots.len() / count;
                let mut ids = [0; BLOCK_ROWS * MOST_READ];
                let ids = &mut ids[..length * each];
                for (row, ids) in (first..).zip(ids.chunks_exact_mut(each)) {
                    ids.fill(row);
                    if let Some(buckets) = several {
                        ids.iter_mut().enumerate().for_each(|(table, id)| *id = buckets.row(row.into(), table));
                    }
                }
                if dim == padded {
                    self.decode(ids, &mut wide[..length * dim]);
                } else {
                    let values = &mut scratch[..length * dim];
                    self.decode(ids, values);
                    // What is past a row's end stays 0.
                    for (wide, values) in wide.chunks_exact_mut(padded).zip(values.chunks_exact(dim)) {
                        wide[..dim].copy_from_slice(values);
                    }
                }
                let values = &wide[..length * padded];
                Arch::new().dispatch(Multiply {
                    dim: padded,
                    span: panel.span,
                    values,
                    queries: &queries,
                    dots,
                    squares,
                });
            },
        );
    }
}

/// Rows with zeros behind them, up to whole lanes: adding products of zeros changes no sum.
fn pad(values: &[f32], dim: usize) -> Cow<'_, [f32]> {
    let padded = dim.next_multiple_of(LANES);
    if dim == padded {
        return Cow::Borrowed(values);
    }
    let mut wide = vec![0f32; values.len() / dim * padded];
    for (wide, values) in wide.chunks_exact_mut(padded).zip(values.chunks_exact(dim)) {
        wide[..dim].copy_from_slice(values);
    }
    Cow::Owned(wide)
}

/// The sums of a block.
struct Multiply<'a> {
    /// Columns, a multiple of [`LANES`].
    dim: usize,
    /// Columns of a span, one too.
    span: usize,
    /// `[rows, dim]`.
    values: &'a [f32],
    /// `[queries, dim]`.
    queries: &'a [f32],
    /// `[queries, rows]`.
    dots: &'a mut [f32],
    /// `[rows]`, or empty.
    squares: &'a mut [f32],
}

impl WithSimd for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Registers that hold the lanes of a sum.
        match LANES / S::F32_LANES {
            1 => self.run::<S, 1>(simd),
            2 => self.run::<S, 2>(simd),
            4 => self.run::<S, 4>(simd),
            _ => self.run::<pulp::Scalar, LANES>(pulp::Scalar::new()),
        }
    }
}

impl Multiply<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize>(self, simd: S) {
        let rows = self.values.len() / self.dim;
        let tiles = self.queries.chunks(TILE * self.dim).zip(self.dots.chunks_mut(TILE * rows));
        for (queries, dots) in tiles {
            for (row, values) in self.values.chunks_exact(self.dim).enumerate() {
                if queries.len() == TILE * self.dim {
                    let tile = std::array::from_fn(|query| &queries[query * self.dim..][..self.dim]);
                    for (query, sum) in multiply::<S, R, TILE>(simd, self.span, values, tile).into_iter().enumerate() {
                        dots[query * rows + row] = sum;
                    }
                } else {
                    for (query, dots) in queries.chunks_exact(self.dim).zip(dots.chunks_exact_mut(rows)) {
                        [dots[row]] = multiply::<S, R, 1>(simd, self.span, values, [query]);
                    }
                }
            }
        }
        for (values, square) in self.values.chunks_exact(self.dim).zip(self.squares) {
            [*square] = multiply::<S, R, 1>(simd, self.span, values, [values]);
        }
    }
}

/// Sums of the products of a row with some queries: of each span, and of those.
#[inline(always)]
fn multiply<S: Simd, const R: usize, const Q: usize>(
    simd: S,
    span: usize,
    row: &[f32],
    queries: [&[f32]; Q],
) -> [f32; Q] {
    let length = row.len().min(span);
    let mut sums = multiply_span::<S, R, Q>(simd, &row[..length], queries.map(|query| &query[..length]));
    for first in (length..row.len()).step_by(span) {
        let end = row.len().min(first + span);
        let part = multiply_span::<S, R, Q>(simd, &row[first..end], queries.map(|query| &query[first..end]));
        for query in 0..Q {
            sums[query] += part[query];
        }
    }
    sums
}

#[inline(always)]
fn multiply_span<S: Simd, const R: usize, const Q: usize>(simd: S, row: &[f32], queries: [&[f32]; Q]) -> [f32; Q] {
    let mut sums = [[simd.splat_f32s(0.0); R]; Q];
    let (row, _) = S::as_simd_f32s(row);
    let (row, _) = row.as_chunks::<R>();
    let queries = queries.map(|query| S::as_simd_f32s(query).0.as_chunks::<R>().0);
    let queries = queries.map(|query| &query[..row.len()]);
    for (at, values) in row.iter().enumerate() {
        for query in 0..Q {
            for part in 0..R {
                let product = simd.mul_f32s(values[part], queries[query][at][part]);
                sums[query][part] = simd.add_f32s(sums[query][part], product);
            }
        }
    }
    sums.map(|sum| {
        let mut lane = [0f32; LANES];
        S::as_mut_simd_f32s(&mut lane).0.copy_from_slice(&sum);
        let [a, b, c, d] = [0, 4, 8, 12].map(|first| <[f32; 4]>::try_from(&lane[first..first + 4]).unwrap_or_default());
        let quarter: [f32; 4] = std::array::from_fn(|at| (a[at] + b[at]) + (c[at] + d[at]));
        (quarter[0] + quarter[1]) + (quarter[2] + quarter[3])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of the sums, written as its definition is.
    fn defined(row: &[f32], query: &[f32]) -> f32 {
        let mut total = None;
        for (row, query) in row.chunks(4096).zip(query.chunks(4096)) {
            let mut a = [0f32; 16];
            for (column, (x, y)) in row.iter().zip(query).enumerate() {
                a[column % 16] += x * y;
            }
            let b: Vec<f32> = (0..4).map(|i| (a[i] + a[4 + i]) + (a[8 + i] + a[12 + i])).collect();
            let span = (b[0] + b[1]) + (b[2] + b[3]);
            total = Some(total.map_or(span, |total: f32| total + span));
        }
        total.unwrap()
    }

    #[test]
    fn a11_sums_have_one_order_on_every_instruction_set() {
        for dim in [1, 15, 16, 17, 100, 4096, 4097, 9000] {
            let values: Vec<f32> = (0..7 * dim).map(|n| (n as f32 * 0.7).sin()).collect();
            let queries: Vec<f32> = (0..6 * dim).map(|n| (n as f32 * 1.3).cos()).collect();
            let [mut wide, mut narrow] = [(); 2].map(|()| (vec![0f32; 42], vec![0f32; 7]));
            let queries = &queries[..];
            let (rows, factors, padded) = (pad(&values, dim), pad(queries, dim), dim.next_multiple_of(LANES));
            let (dots, squares) = (&mut wide.0[..], &mut wide.1[..]);
            Arch::new().dispatch(Multiply { dim: padded, span: 4096, values: &rows, queries: &factors, dots, squares });
            let (dots, squares) = (&mut narrow.0[..], &mut narrow.1[..]);
            let multiply = Multiply { dim: padded, span: 4096, values: &rows, queries: &factors, dots, squares };
            multiply.with_simd(pulp::Scalar::new());
            let row = |row: usize| &values[row * dim..][..dim];
            for at in 0..42 {
                let want = defined(row(at % 7), &queries[at / 7 * dim..][..dim]).to_bits();
                assert_eq!((wide.0[at].to_bits(), narrow.0[at].to_bits()), (want, want), "{dim} columns, {at}");
            }
            for at in 0..7 {
                let want = defined(row(at), row(at)).to_bits();
                assert_eq!((wide.1[at].to_bits(), narrow.1[at].to_bits()), (want, want), "{dim} columns, {at}");
            }
        }
    }
}
