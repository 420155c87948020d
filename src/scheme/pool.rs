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

/// How a value goes into what was there before. A trait and no closure: closures are not always inlined, and what stays
/// apart is compiled for the baseline.
pub(super) trait Fold: Copy {
    /// To be marked `#[inline(always)]`.
    fn fold(self, before: f32, value: f32) -> f32;
}

/// In its place: plain decoding.
#[derive(Clone, Copy)]
pub(super) struct Replace;

impl Fold for Replace {
    #[inline(always)]
    fn fold(self, _before: f32, value: f32) -> f32 {
        value
    }
}

#[derive(Clone, Copy)]
struct Add;

impl Fold for Add {
    #[inline(always)]
    fn fold(self, before: f32, value: f32) -> f32 {
        before + value
    }
}

#[derive(Clone, Copy)]
struct AddTimes(f32);

impl Fold for AddTimes {
    #[inline(always)]
    fn fold(self, before: f32, value: f32) -> f32 {
        before + value * self.0
    }
}

/// The first of equals, as it is: `f32::max` leaves it open which zero it gives.
#[derive(Clone, Copy)]
struct Greater;

impl Fold for Greater {
    #[inline(always)]
    fn fold(self, before: f32, value: f32) -> f32 {
        if value > before { value } else { before }
    }
}

/// A decoder whose values can be folded into others as they come.
pub(super) trait FoldRow: DecodeRow {
    /// Folds the row into `out: [dim]`. To be marked `#[inline(always)]`.
    fn fold_row(&self, row: usize, out: &mut [f32], fold: impl Fold);

    /// As [`DecodeRow::touch_row`], for a loop that writes little, where touching rows pays for every decoder.
    #[inline(always)]
    fn touch_folded(&self, row: usize) -> u8 {
        self.touch_row(row)
    }
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
        let (mut bag, mut at) = (0, 0);
        for rows in bags.rows.chunks(TOUCHED) {
            let mut read = 0;
            for &row in rows {
                if row != NO_ROW {
                    read |= decoder.touch_folded(row as usize);
                }
            }
            // Keeps the reads, which nothing else needs.
            std::hint::black_box(read);
            for &row in rows {
                while bags.ends[bag] <= at {
                    bag += 1;
                }
                let out = &mut out[bag * dim..][..dim];
                match (bags.pool, bags.weights) {
                    (Pool::Sum, _) if row == NO_ROW => {}
                    (Pool::Sum, None) => decoder.fold_row(row as usize, out, Add),
                    (Pool::Sum, Some(weights)) => decoder.fold_row(row as usize, out, AddTimes(weights[at])),
                    (Pool::Max, _) if row == NO_ROW => out.iter_mut().for_each(|most| *most = Greater.fold(*most, 0.0)),
                    (Pool::Max, _) => decoder.fold_row(row as usize, out, Greater),
                }
                at += 1;
            }
        }
    }
}

#[inline(always)]
fn fold_values(out: &mut [f32], values: &[f32], fold: impl Fold) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = fold.fold(*out, *value);
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
                (Pool::Sum, None) => fold_values(out, values, Add),
                (Pool::Sum, Some(weights)) => fold_values(out, values, AddTimes(weights[at])),
                (Pool::Max, _) => fold_values(out, values, Greater),
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EncodedTable, Scheme, TableSource};

    /// Each scheme's own loop, on the widest instruction set at hand, and the plain one over decoded rows: the same bits.
    #[test]
    fn a11_loops_agree() {
        let (dim, count) = (37, 100);
        let values: Vec<f32> = (0..count * dim).map(|value| (value as f32 * 0.37).sin()).collect();
        let rows: Vec<u32> = (0..100).chain([NO_ROW, 3, 3, NO_ROW]).collect();
        let weights: Vec<f32> = rows.iter().map(|row| (*row as f32).cos()).collect();
        let ends = [0, 1, 70, 70, 101, 104];
        for scheme in Scheme::all().iter().flat_map(|info| info.variants) {
            let scheme: Scheme = scheme.parse().unwrap();
            let (encoded, _) = EncodedTable::encode("pool", &values, dim, &scheme).unwrap();
            let stored = encoded.spec().stored_rows();
            let rows: Vec<u32> = rows.iter().map(|row| if *row == NO_ROW { *row } else { row % stored }).collect();
            let (parts, codec) = (encoded.parts().collect::<Vec<_>>(), encoded.spec().scheme().codec());
            for (pool, weights) in [(Pool::Sum, None), (Pool::Sum, Some(&weights[..])), (Pool::Max, None)] {
                let bags = BaggedRows { rows: &rows, weights, ends: &ends, pool };
                let [mut own, mut plain] = [(); 2].map(|()| vec![pool.start(); ends.len() * dim]);
                codec.pool_rows(dim, &parts, &bags, &mut own);
                pool_decoded(&**codec, dim, &parts, &bags, &mut plain);
                let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert!(bits(&own) == bits(&plain), "{scheme}, {pool:?}, weighted {}", weights.is_some());
                assert!(own[..dim].iter().all(|value| *value == pool.start()), "a bag without rows");
            }
        }
    }
}
