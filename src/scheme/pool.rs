//! Rows folded into one without being decoded to memory: a decoder's loop with a sum or a maximum at its end.

use pulp::{Arch, Simd, WithSimd};

use super::{
    Buckets, Codec, NO_ROW,
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

/// Rows of several bags, one bag behind another. [`NO_ROW`] adds nothing to a sum, and is a row of zeros to a maximum. Where an
/// id reads several rows, each stands here by as many numbers; ends and weights count ids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BaggedRows<'a> {
    pub(crate) rows: &'a [u32],
    /// What each row is multiplied by before it is added, where rows have weights.
    pub(crate) weights: Option<&'a [f32]>,
    /// Where each bag ends in `rows`, in ids; the last one at the end of `rows`.
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

/// Columns that are folded over some rows before the next are: as many as every processor keeps in registers.
pub(super) const TILE: usize = 64;

/// A decoder whose values can be folded into others as they come.
pub(super) trait FoldRow: DecodeRow {
    /// Folds columns `first` to `first + out.len() - 1` of the row into `out`: a tile, or what is left behind the last, of a
    /// row that has tiles. To be marked `#[inline(always)]`, and to have nothing in it that keeps `out` from registers.
    fn fold_columns(&self, row: usize, first: usize, out: &mut [f32], fold: impl Fold);

    /// Whether rows can be folded by tiles of [`TILE`] columns.
    #[inline(always)]
    fn has_tiles(&self) -> bool {
        true
    }

    /// As [`FoldRow::fold_columns`] of a tile, which has its columns in the order that [`FoldRow::column_at`] gives.
    #[inline(always)]
    fn fold_tile(&self, row: usize, first: usize, tile: &mut [f32; TILE], fold: impl Fold) {
        self.fold_columns(row, first, tile, fold);
    }

    /// The column of a tile that stands at this place of it. Rows are folded fastest in an order that their codes have.
    #[inline(always)]
    fn column_at(place: usize) -> usize {
        place
    }

    /// Folds the row into `out: [dim]`, with tiles or without. To be marked `#[inline(always)]`.
    #[inline(always)]
    fn fold_row(&self, row: usize, out: &mut [f32], fold: impl Fold) {
        self.fold_columns(row, 0, out, fold);
    }

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
            let mut left = rows;
            while !left.is_empty() {
                while bags.ends[bag] <= at {
                    bag += 1;
                }
                let (rows, others) = left.split_at(left.len().min(bags.ends[bag] - at));
                let weights = bags.weights.map(|weights| &weights[at..][..rows.len()]);
                let run = Run { rows, weights, pool: bags.pool };
                run.fold(decoder, &mut out[bag * dim..][..dim]);
                (left, at) = (others, at + rows.len());
            }
        }
    }
}

/// Rows of one bag that are near.
struct Run<'a> {
    rows: &'a [u32],
    weights: Option<&'a [f32]>,
    pool: Pool,
}

impl Run<'_> {
    /// Folds all into `out`. A tile of it is in registers meanwhile: a load and a store for each row take as long as decoding.
    #[inline(always)]
    fn fold<D: FoldRow>(&self, decoder: &D, out: &mut [f32]) {
        if !decoder.has_tiles() {
            return self.fold_part(&WholeRows(decoder), out);
        }
        let (tiles, rest) = out.as_chunks_mut::<TILE>();
        let behind = tiles.len() * TILE;
        for (first, out) in (0..).step_by(TILE).zip(tiles) {
            let mut tile = [0.0; TILE];
            for (place, value) in tile.iter_mut().enumerate() {
                *value = out[D::column_at(place)];
            }
            self.fold_part(&Tile(decoder, first), &mut tile);
            for (place, value) in tile.iter().enumerate() {
                out[D::column_at(place)] = *value;
            }
        }
        if !rest.is_empty() {
            self.fold_part(&Columns(decoder, behind), rest);
        }
    }

    #[inline(always)]
    fn fold_part<T: AsMut<[f32]> + ?Sized>(&self, part: &impl FoldPart<T>, out: &mut T) {
        match (self.pool, self.weights) {
            (Pool::Sum, None) => {
                for &row in self.rows {
                    if row != NO_ROW {
                        part.fold(row as usize, out, Add);
                    }
                }
            }
            (Pool::Sum, Some(weights)) => {
                for (&row, &weight) in self.rows.iter().zip(weights) {
                    if row != NO_ROW {
                        part.fold(row as usize, out, AddTimes(weight));
                    }
                }
            }
            (Pool::Max, _) => {
                for &row in self.rows {
                    if row == NO_ROW {
                        out.as_mut().iter_mut().for_each(|most| *most = Greater.fold(*most, 0.0));
                    } else {
                        part.fold(row as usize, out, Greater);
                    }
                }
            }
        }
    }
}

/// What is folded of each row.
trait FoldPart<T: ?Sized> {
    fn fold(&self, row: usize, out: &mut T, fold: impl Fold);
}

struct WholeRows<'a, D>(&'a D);

impl<D: FoldRow> FoldPart<[f32]> for WholeRows<'_, D> {
    #[inline(always)]
    fn fold(&self, row: usize, out: &mut [f32], fold: impl Fold) {
        self.0.fold_row(row, out, fold);
    }
}

/// From a column on.
struct Columns<'a, D>(&'a D, usize);

impl<D: FoldRow> FoldPart<[f32]> for Columns<'_, D> {
    #[inline(always)]
    fn fold(&self, row: usize, out: &mut [f32], fold: impl Fold) {
        self.0.fold_columns(row, self.1, out, fold);
    }
}

/// From a column on.
struct Tile<'a, D>(&'a D, usize);

impl<D: FoldRow> FoldPart<[f32; TILE]> for Tile<'_, D> {
    #[inline(always)]
    fn fold(&self, row: usize, out: &mut [f32; TILE], fold: impl Fold) {
        self.0.fold_tile(row, self.1, out, fold);
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
    let each = codec.buckets(1).map_or(1, Buckets::each);
    let block = (BLOCK / dim).clamp(1, (bags.rows.len() / each).max(1));
    let mut values = vec![0.0; block * dim];
    let (mut bag, mut at) = (0, 0);
    for rows in bags.rows.chunks(block * each) {
        let values = &mut values[..rows.len() / each * dim];
        codec.decode_rows(dim, parts, rows, values);
        for (&row, values) in rows.iter().step_by(each).zip(values.chunks_exact(dim)) {
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
        for dim in [37, 150] {
            loops_agree(dim, 100);
        }
    }

    fn loops_agree(dim: usize, count: usize) {
        let values: Vec<f32> = (0..count * dim).map(|value| (value as f32 * 0.37).sin()).collect();
        let rows: Vec<u32> = (0..100).chain([NO_ROW, 3, 3, NO_ROW]).collect();
        let weights: Vec<f32> = rows.iter().map(|row| (*row as f32).cos()).collect();
        let ends = [0, 1, 70, 70, 101, 104];
        for scheme in Scheme::all().iter().flat_map(|info| info.variants) {
            let scheme: Scheme = scheme.parse().unwrap();
            let (encoded, _) = EncodedTable::encode("pool", &values, dim, &scheme).unwrap();
            let stored = encoded.spec().stored_rows();
            let read = |row: &u32| {
                let numbers = (0..).step_by(7).map(|apart| if *row == NO_ROW { *row } else { (row + apart) % stored });
                numbers.take(encoded.spec().each()).collect::<Vec<_>>()
            };
            let rows: Vec<u32> = rows.iter().flat_map(read).collect();
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
