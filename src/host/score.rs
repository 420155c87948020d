//! Score: sums of products of rows and queries.
//!
//! ```text
//! for each block of rows, on all cores:
//!     values = decode(rows)               # to scratch in the nearest cache
//!     for each row, each four queries:
//!         dots = the sums of their products
//!     squares = the sums of the rows' own
//! ```

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::HostTable;
use crate::op::{LANES, Panel, SPAN_COLUMNS, Sums};

/// Rows of a block, unless they are long: their values are in scratch for all queries.
const BLOCK_ROWS: usize = 256;
/// The most values of a block, unless a row has more: 64 KiB.
const BLOCK_VALUES: usize = 1 << 14;
/// Queries that a row is multiplied with at a time: their sums fill the registers of AVX2.
const TILE: usize = 4;

impl HostTable {
    /// Sums of `rows` and the queries of `panel`, to `sums`.
    pub(crate) fn score(&self, panel: &Panel<'_>, rows: Range<u32>, sums: &mut Sums) {
        let (dim, count) = (self.dim(), panel.count());
        let length = rows.len();
        let block = (BLOCK_VALUES / dim).clamp(1, BLOCK_ROWS);
        (sums.first_row, sums.rows, sums.block) = (rows.start, length, block);
        sums.dots.resize(length * count, 0.0);
        sums.squares.resize(if panel.squares() { length } else { 0 }, 0.0);
        // Without squares each block gets none of them.
        let mut squares: Vec<&mut [f32]> = sums.squares.chunks_mut(block).collect();
        squares.resize_with(length.div_ceil(block), Default::default);
        let blocks = sums.dots.par_chunks_mut(block * count).zip(squares).enumerate();
        blocks.for_each_init(
            || vec![0f32; block * dim],
            |scratch, (number, (dots, squares))| {
                // A number of rows of the table, and one of a block.
                let first = rows.start + u32::try_from(number * block).unwrap_or(u32::MAX);
                let ids: [u32; BLOCK_ROWS] = std::array::from_fn(|row| first + u32::try_from(row).unwrap_or(0));
                let length = dots.len() / count;
                let values = &mut scratch[..length * dim];
                self.decode(&ids[..length], values);
                Arch::new().dispatch(Multiply { dim, values, queries: panel.values, dots, squares });
            },
        );
    }
}

/// The sums of a block.
struct Multiply<'a> {
    dim: usize,
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
    fn with_simd<S: Simd>(self, _simd: S) {
        let rows = self.values.len() / self.dim;
        let tiles = self.queries.chunks(TILE * self.dim).zip(self.dots.chunks_mut(TILE * rows));
        for (queries, dots) in tiles {
            for (row, values) in self.values.chunks_exact(self.dim).enumerate() {
                if queries.len() == TILE * self.dim {
                    let tile = std::array::from_fn(|query| &queries[query * self.dim..][..self.dim]);
                    for (query, sum) in multiply::<TILE>(values, tile).into_iter().enumerate() {
                        dots[query * rows + row] = sum;
                    }
                } else {
                    for (query, dots) in queries.chunks_exact(self.dim).zip(dots.chunks_exact_mut(rows)) {
                        [dots[row]] = multiply(values, [query]);
                    }
                }
            }
        }
        for (values, square) in self.values.chunks_exact(self.dim).zip(self.squares) {
            [*square] = multiply(values, [values]);
        }
    }
}

/// Sums of the products of a row with some queries: of each span, and of those.
#[inline(always)]
fn multiply<const Q: usize>(row: &[f32], queries: [&[f32]; Q]) -> [f32; Q] {
    if row.len() <= SPAN_COLUMNS {
        return multiply_span(row, queries);
    }
    let mut sums: Option<[f32; Q]> = None;
    for (span, first) in row.chunks(SPAN_COLUMNS).zip((0..).step_by(SPAN_COLUMNS)) {
        let part = multiply_span(span, queries.map(|query| &query[first..][..span.len()]));
        sums = Some(match sums {
            None => part,
            Some(sums) => std::array::from_fn(|query| sums[query] + part[query]),
        });
    }
    sums.unwrap_or([0.0; Q])
}

#[inline(always)]
fn multiply_span<const Q: usize>(row: &[f32], queries: [&[f32]; Q]) -> [f32; Q] {
    let mut lanes = [[0f32; LANES]; Q];
    let (chunks, rest) = row.as_chunks::<LANES>();
    let parts = queries.map(|query| query.as_chunks::<LANES>());
    for (at, values) in chunks.iter().enumerate() {
        for query in 0..Q {
            let factors = &parts[query].0[at];
            for lane in 0..LANES {
                lanes[query][lane] += values[lane] * factors[lane];
            }
        }
    }
    for query in 0..Q {
        for (lane, (value, factor)) in rest.iter().zip(parts[query].1).enumerate() {
            lanes[query][lane] += value * factor;
        }
    }
    lanes.map(|lane| {
        let quarter = |at: usize| (lane[at] + lane[4 + at]) + (lane[8 + at] + lane[12 + at]);
        (quarter(0) + quarter(1)) + (quarter(2) + quarter(3))
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
            let (dots, squares) = (&mut wide.0[..], &mut wide.1[..]);
            Arch::new().dispatch(Multiply { dim, values: &values, queries, dots, squares });
            let (dots, squares) = (&mut narrow.0[..], &mut narrow.1[..]);
            Multiply { dim, values: &values, queries, dots, squares }.with_simd(pulp::Scalar::new());
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
