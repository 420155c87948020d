//! Loops over rows, compiled for each instruction set and chosen at run time.
//!
//! What is called in such a loop must be `#[inline(always)]`, closures included: a function that stays apart is compiled
//! for the baseline, and is several times slower.

use pulp::{Arch, Simd, WithSimd};

use super::NO_ROW;

/// Folds `values` over eight lanes, so that no step waits for the one before, and the lanes in order at the end: the
/// result does not depend on the width of the vectors. `start` must not change a value that `step` combines it with.
#[inline(always)]
pub(crate) fn fold<T: Copy>(values: &[f32], start: T, step: impl Fn(T, f32) -> T, join: impl Fn(T, T) -> T) -> T {
    let mut lanes = [start; 8];
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for lane in 0..8 {
            lanes[lane] = step(lanes[lane], chunk[lane]);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, value);
    }
    let [first, others @ ..] = lanes;
    others.into_iter().fold(first, join)
}

/// How one row is decoded.
pub(super) trait DecodeRow {
    /// Decodes `row` to `out: [dim]`. To be marked `#[inline(always)]`.
    fn decode_row(&self, row: usize, out: &mut [f32]);

    /// Reads a byte of each cache line that `row` is stored in (see [`touch`]). To be marked `#[inline(always)]`, and to
    /// be left out where decoding takes no longer than reading.
    fn touch_row(&self, _row: usize) -> u8 {
        0
    }
}

/// Rows that are touched before they are decoded: enough to wait for many cache lines at once, and few enough to find
/// them in the cache after.
pub(super) const TOUCHED: usize = 64;

/// Decodes the listed rows ([`NO_ROW`] gives zeros) to `out: [rows.len(), dim]`.
///
/// Random rows are waited for, not computed: the processor looks a few rows ahead, no further than its window of
/// instructions reaches. So the lines of some rows are read first, in a loop of nothing else, whose misses overlap.
pub(super) fn decode_rows(decoder: &impl DecodeRow, dim: usize, rows: &[u32], out: &mut [f32]) {
    Arch::new().dispatch(Decode { decoder, dim, rows, out });
}

struct Decode<'a, D> {
    decoder: &'a D,
    dim: usize,
    rows: &'a [u32],
    out: &'a mut [f32],
}

impl<D: DecodeRow> WithSimd for Decode<'_, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (out, rows) in self.out.chunks_mut(self.dim * TOUCHED).zip(self.rows.chunks(TOUCHED)) {
            let mut read = 0;
            for &row in rows {
                if row != NO_ROW {
                    read |= self.decoder.touch_row(row as usize);
                }
            }
            // Keeps the reads, which nothing else needs.
            std::hint::black_box(read);
            for (out, &row) in out.chunks_exact_mut(self.dim).zip(rows) {
                if row == NO_ROW {
                    out.fill(0.0);
                } else {
                    self.decoder.decode_row(row as usize, out);
                }
            }
        }
    }
}

/// Reads a byte of each cache line of `bytes`, and answers with all of them: what has been read is near.
#[inline(always)]
pub(super) fn touch(bytes: &[u8]) -> u8 {
    bytes.iter().step_by(64).chain(bytes.last()).fold(0, |read, byte| read | byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The baseline and the widest instruction set at hand: the same bits.
    #[test]
    fn a11_instruction_sets_agree() {
        struct Halved(Vec<f32>);
        impl DecodeRow for Halved {
            #[inline(always)]
            fn decode_row(&self, row: usize, out: &mut [f32]) {
                let dim = out.len();
                for (out, value) in out.iter_mut().zip(&self.0[row * dim..]) {
                    *out = value * 0.3 + 0.7;
                }
            }
        }
        let decoder = Halved((0..100 * 37).map(|value| value as f32 * 0.1).collect());
        let rows: Vec<u32> = (0..100).chain([NO_ROW, 3, NO_ROW]).collect();
        let [mut wide, mut narrow] = [(); 2].map(|()| vec![f32::NAN; rows.len() * 37]);
        decode_rows(&decoder, 37, &rows, &mut wide);
        Decode { decoder: &decoder, dim: 37, rows: &rows, out: &mut narrow }.with_simd(pulp::Scalar::new());
        assert!(wide.iter().zip(&narrow).all(|(wide, narrow)| wide.to_bits() == narrow.to_bits()));
        assert!(wide[100 * 37..101 * 37].iter().all(|value| value.to_bits() == 0));
        assert_eq!(wide[101 * 37..102 * 37], wide[3 * 37..4 * 37]);
    }

    #[test]
    fn folds_do_not_lose_the_rest() {
        for length in 0..40 {
            let values: Vec<f32> = (0..length).map(|value| value as f32).collect();
            let sum = |a: f32, b: f32| a + b;
            assert_eq!(fold(&values, 0.0, sum, sum), (0..length).sum::<i32>() as f32);
        }
    }
}
