//! Rows folded into one without being decoded to memory: a decoder's loop with a sum or a maximum at its end.

use pulp::{Arch, Simd, WithSimd};

use super::{
    Codec, NO_ROW,
    simd::{DecodeRow, TOUCHED},
};

/// What folds rows into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pool {
    /// Their sum.
    Sum,
    /// Their maximum in each column.
    Max,
}

impl Pool {
    /// What it starts with: a value that every row changes or equals.
    pub(crate) const fn start(self) -> f32 {
        match self {
            Self::Sum => 0.0,
            Self::Max => f32::MIN,
        }
    }
}

/// Rows of several bags, one bag behind another. [`NO_ROW`] adds nothing to a sum, and is a row of zeros to a maximum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BaggedRows<'a> {
    pub(crate) rows: &'a [u32],
    /// What each row is multiplied by before it is added, where rows have weights.
    pub(crate) weights: Option<&'a [f32]>,
    /// Where each bag ends in `rows`; the last one at the end of `rows`.
    pub(crate) ends: &'a [usize],
    pub(crate) pool: Pool,
}

/// A decoder whose values can be folded into others as they come.
pub(super) trait FoldRow: DecodeRow {
    /// Puts `fold(before, value)` for `before` in each column of `out: [dim]`. To be marked `#[inline(always)]`.
    fn fold_row(&self, row: usize, out: &mut [f32], fold: impl Fn(f32, f32) -> f32);
}

/// [`Codec::pool_rows`] by such a decoder.
pub(super) fn pool_rows(decoder: &impl FoldRow, dim: usize, bags: &BaggedRows<'_>, out: &mut [f32]) {
    Arch::new().dispatch(PoolRows { decoder, dim, bags, out });
}

struct PoolRows<'a, D> {
    decoder: &'a D,
    dim: usize,
    bags: &'a BaggedRows<'a>,
    out: &'a mut [f32],
}

impl<D: FoldRow> WithSimd for PoolRows<'_, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { decoder, dim, bags, out } = self;
        let touch = |rows: &[u32]| {
            let mut read = 0;
            for &row in rows {
                if row != NO_ROW {
                    read |= decoder.touch_row(row as usize);
                }
            }
            std::hint::black_box(read);
        };
        match (bags.pool, bags.weights) {
            (Pool::Sum, None) => each(dim, bags, out, touch, |_, row, out| {
                if row != NO_ROW {
                    decoder.fold_row(row as usize, out, |sum, value| sum + value);
                }
            }),
            (Pool::Sum, Some(weights)) => each(dim, bags, out, touch, |at, row, out| {
                if row != NO_ROW {
                    let weight = weights[at];
                    decoder.fold_row(row as usize, out, |sum, value| sum + value * weight);
                }
            }),
            (Pool::Max, _) => each(dim, bags, out, touch, |_, row, out| {
                if row == NO_ROW {
                    out.iter_mut().for_each(|most| *most = greater(*most, 0.0));
                } else {
                    decoder.fold_row(row as usize, out, greater);
                }
            }),
        }
    }
}

/// The first of equals, as it is: `f32::max` leaves it open which zero it gives.
#[inline(always)]
fn greater(most: f32, value: f32) -> f32 {
    if value > most { value } else { most }
}

/// Goes through all rows in order, with the place of each one's bag; those ahead are touched first.
#[inline(always)]
fn each(
    dim: usize,
    bags: &BaggedRows<'_>,
    out: &mut [f32],
    touch: impl Fn(&[u32]),
    mut fold: impl FnMut(usize, u32, &mut [f32]),
) {
    let (mut bag, mut at) = (0, 0);
    for rows in bags.rows.chunks(TOUCHED) {
        touch(rows);
        let until = at + rows.len();
        while at < until {
            while bags.ends[bag] <= at {
                bag += 1;
            }
            let out = &mut out[bag * dim..][..dim];
            for at in at..until.min(bags.ends[bag]) {
                fold(at, bags.rows[at], out);
            }
            at = until.min(bags.ends[bag]);
        }
    }
}

/// [`Codec::pool_rows`] for codecs without a [`FoldRow`]: rows are decoded by blocks that stay in the nearest cache.
pub(super) fn pool_decoded<C: Codec + ?Sized>(
    codec: &C,
    dim: usize,
    parts: &[&[u8]],
    bags: &BaggedRows<'_>,
    out: &mut [f32],
) {
    /// Values of a block, unless a row has more.
    const BLOCK: usize = 1 << 12;
    let block = (BLOCK / dim).clamp(1, bags.rows.len().max(1));
    let mut values = vec![0.0; block * dim];
    let (mut bag, mut at) = (0, 0);
    for rows in bags.rows.chunks(block) {
        let values = &mut values[..rows.len() * dim];
        codec.decode_rows(dim, parts, rows, values);
        for (&row, values) in rows.iter().zip(values.chunks_exact(dim)) {
            while bags.ends[bag] <= at {
                bag += 1;
            }
            let out = &mut out[bag * dim..][..dim];
            match (bags.pool, bags.weights) {
                (Pool::Sum, _) if row == NO_ROW => {}
                (Pool::Sum, None) => out.iter_mut().zip(values).for_each(|(sum, value)| *sum += value),
                (Pool::Sum, Some(weights)) => {
                    out.iter_mut().zip(values).for_each(|(sum, value)| *sum += value * weights[at]);
                }
                (Pool::Max, _) => out.iter_mut().zip(values).for_each(|(most, value)| *most = greater(*most, *value)),
            }
            at += 1;
        }
    }
}
