//! The leading right singular vectors of a table, in bounded memory.
//!
//! ```text
//! narrow tables:                                 wide tables, by subspace iteration (Halko et al. 2011):
//!     G = sum over blocks X of X^T X                 Q = random [dim, l], l a little over K
//!     vectors = leading eigenvectors of G            4 times: Q = orthonormal(sum over blocks X of X^T (X Q))
//!                                                    T = sum over blocks X of (X Q)^T (X Q)
//!                                                    vectors = Q times leading eigenvectors of T
//! ```
//! The first is exact but for f64's rounding, in one pass and `8 dim^2` bytes; the second is near it in five passes and
//! `16 l dim` bytes. Sums are of blocks in order, so the number of cores changes no bit; the instruction set may.

use faer::{Accum, Mat, MatRef, Par, Side, linalg::matmul::matmul};
use rayon::prelude::*;

use super::{Fitted, Rank};
use crate::{error::EncodeError, scheme::Rows};

/// Up to so many columns the exact way is taken; it is also where most vectors are wanted anyway.
const EXACT_DIM: usize = 512;
const EXACT_DIM_MANY: usize = 4096;
/// Rounds of the subspace iteration.
const ROUNDS: usize = 4;
/// Values that one task takes: 2 MiB as f64.
const TASK_VALUES: usize = 1 << 18;

/// The rank as it is written from now on, and what was learnt.
pub(super) fn fit(rank: Rank, rows: &mut dyn Rows) -> Result<(Rank, Fitted), EncodeError> {
    let dim = rows.shape().dim() as usize;
    let spectrum = match rank {
        Rank::Columns(k) => {
            let k = (k as usize).min(dim);
            if is_exact(dim, k) { exact(rows)? } else { subspace(rows, (k + 16.max(k / 8)).min(dim))? }
        }
        Rank::Energy(_) if is_exact(dim, dim) => exact(rows)?,
        Rank::Energy(share) => {
            let mut width = 64.min(dim);
            loop {
                let found = subspace(rows, width)?;
                if width == dim || found.rank(share).is_some() {
                    break found;
                }
                width = (width * 2).min(dim).min(super::MOST_RANK as usize);
            }
        }
    };
    let k = match rank {
        Rank::Columns(k) => (k as usize).min(dim),
        Rank::Energy(share) => spectrum.rank(share).unwrap_or(spectrum.values.len()),
    };
    if k > super::MOST_RANK as usize {
        return Err(unfit(
            rows,
            format!("it needs {k} columns for that energy; at most {} are supported", super::MOST_RANK),
        ));
    }
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
    let basis = (0..k).flat_map(|j| (0..dim).map(move |c| (c, j))).map(|(c, j)| spectrum.vectors[(c, j)] as f32);
    let found = u32::try_from(k).unwrap_or(u32::MAX);
    let fitted = Fitted { rank: found, basis: basis.collect(), energy: spectrum.share(k) };
    Ok((if let Rank::Energy(_) = rank { Rank::Columns(found) } else { rank }, fitted))
}

fn is_exact(dim: usize, k: usize) -> bool {
    dim <= EXACT_DIM || dim <= EXACT_DIM_MANY && k * 4 > dim
}

fn unfit(rows: &dyn Rows, reason: String) -> EncodeError {
    EncodeError::Unfit { scheme: "lowrank".to_owned(), dim: rows.shape().dim(), reason }
}

/// Squared singular values, the largest first, and their vectors as columns.
struct Spectrum {
    values: Vec<f64>,
    vectors: Mat<f64>,
    /// The sum of all squared singular values, those not found too.
    total: f64,
}

impl Spectrum {
    /// Of a symmetric matrix.
    fn of(matrix: &Mat<f64>, total: f64, rows: &dyn Rows) -> Result<Self, EncodeError> {
        let Ok(eigen) = matrix.self_adjoint_eigen(Side::Lower) else {
            return Err(unfit(rows, "the search for its singular vectors did not end".to_owned()));
        };
        // Ascending as they come.
        let (values, vectors) = (eigen.S().column_vector(), eigen.U());
        let last = values.nrows();
        let sorted = Mat::from_fn(last, last, |row, column| vectors[(row, last - 1 - column)]);
        Ok(Self { values: values.iter().rev().map(|value| value.max(0.0)).collect(), vectors: sorted, total })
    }

    /// The share of the first `k`.
    fn share(&self, k: usize) -> f64 {
        if self.total > 0.0 { (self.values[..k].iter().sum::<f64>() / self.total).min(1.0) } else { 1.0 }
    }

    /// The least rank that keeps this share. What f64 rounds may not ask for one more.
    fn rank(&self, share: f64) -> Option<usize> {
        (1..=self.values.len()).find(|k| self.share(*k) >= share - 1e-12)
    }
}

fn exact(rows: &mut dyn Rows) -> Result<Spectrum, EncodeError> {
    let dim = rows.shape().dim() as usize;
    let mut gram = Mat::zeros(dim, dim);
    sum(rows, dim, &mut gram, |block| product(block.transpose(), block))?;
    let total = (0..dim).map(|at| gram[(at, at)]).sum();
    Spectrum::of(&gram, total, rows)
}

fn subspace(rows: &mut dyn Rows, width: usize) -> Result<Spectrum, EncodeError> {
    let dim = rows.shape().dim() as usize;
    let mut random = Random(1);
    let mut subspace = Mat::from_fn(dim, width, |_, _| random.next());
    for _ in 0..ROUNDS {
        let mut next = Mat::zeros(dim, width);
        sum(rows, dim, &mut next, |block| product(block.transpose(), product(block, subspace.as_ref()).as_ref()))?;
        subspace = next.qr().compute_thin_Q();
    }
    let mut small = Mat::zeros(width + 1, width);
    sum(rows, dim, &mut small, |block| {
        let inside = product(block, subspace.as_ref());
        let mut sums = Mat::zeros(width + 1, width);
        sums.submatrix_mut(0, 0, width, width).copy_from(product(inside.transpose(), inside.as_ref()));
        // The energy of the block, in a row of its own.
        sums[(width, 0)] = block.squared_norm_l2();
        sums
    })?;
    let total = small[(width, 0)];
    let small = small.submatrix(0, 0, width, width).to_owned();
    let found = Spectrum::of(&small, total, rows)?;
    Ok(Spectrum { vectors: product(subspace.as_ref(), found.vectors.as_ref()), ..found })
}

/// Adds what `term` makes of each block of rows `[n, dim]`, in order.
fn sum(
    rows: &mut dyn Rows,
    dim: usize,
    sum: &mut Mat<f64>,
    term: impl Fn(MatRef<'_, f64>) -> Mat<f64> + Sync,
) -> Result<(), EncodeError> {
    let task = (TASK_VALUES / dim).max(1) * dim;
    rows.pass(&mut |values| {
        let terms: Vec<Mat<f64>> = values
            .par_chunks(task)
            .map(|values| {
                let values: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
                term(MatRef::from_row_major_slice(&values, values.len() / dim, dim))
            })
            .collect();
        for term in terms {
            *sum += term;
        }
    })
}

fn product(one: MatRef<'_, f64>, other: MatRef<'_, f64>) -> Mat<f64> {
    let mut product = Mat::zeros(one.nrows(), other.ncols());
    matmul(&mut product, Accum::Replace, one, other, 1.0, Par::Seq);
    product
}

/// Numbers in -1..1 that are the same in every run: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        #[expect(clippy::cast_precision_loss, reason = "53 bits")]
        let unit = (bits >> 11) as f64 * 2f64.powi(-52);
        unit - 1.0
    }
}
