//! The rows that buckets store, and how the table's rows share them.

use super::{Fitted, Hash};
use crate::{
    error::EncodeError,
    scheme::{FitFigure, Rows, Scheme, Stored},
    units::{Bytes, Shape},
};

/// The weighted mean of each bucket's rows; zeros where it has none.
pub(super) fn fit(scheme: &Hash, rows: &mut dyn Rows) -> Result<Fitted, EncodeError> {
    let (count, dim) = (rows.shape().rows(), rows.shape().dim());
    let stored = if count == 0 { 0 } else { scheme.buckets.rows() };
    let shape = Shape::new(stored.into(), dim.into())?;
    let refused = || EncodeError::Unfit {
        scheme: Scheme::of(std::sync::Arc::new(scheme.clone())).to_string(),
        dim,
        reason: format!("no host memory for {shape} means, {}", Bytes(3 * shape.f32_bytes().0)),
    };
    let length = (stored as usize).checked_mul(dim as usize).ok_or_else(refused)?;
    let mut sums = filled(length, 0f64).ok_or_else(refused)?;
    let mut weights = filled(stored as usize, 0f64).ok_or_else(refused)?;
    let mut firsts = filled(stored as usize, u32::MAX).ok_or_else(refused)?;
    let mut values = filled(length, 0f32).ok_or_else(refused)?;
    let mut row = 0u32;
    rows.pass(&mut |block| {
        for added in block.chunks_exact(dim as usize) {
            let bucket = scheme.buckets.row(row.into()) as usize;
            let weight = if scheme.equal { 1.0 } else { zipf(row) };
            for (sum, value) in sums[bucket * dim as usize..].iter_mut().zip(added) {
                *sum += weight * f64::from(*value);
            }
            weights[bucket] += weight;
            firsts[bucket] = firsts[bucket].min(row);
            row += 1;
        }
    })?;
    let buckets = values.chunks_exact_mut(dim as usize).zip(sums.chunks_exact(dim as usize)).zip(&weights);
    for ((values, sums), weight) in buckets.filter(|(_, weight)| **weight > 0.0) {
        for (value, sum) in values.iter_mut().zip(sums) {
            // A mean of numbers of f32 is one but for its rounding.
            #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
            let mean = (sum / weight) as f32;
            *value = mean;
        }
    }
    let figures = figures(scheme, count, stored).ok_or_else(refused)?;
    Ok(Fitted { stored: Stored { shape, values, firsts }, figures })
}

/// A row's share of the traffic, but for a factor that all have.
fn zipf(row: u32) -> f64 {
    1.0 / (f64::from(row) + 1.0)
}

/// How full buckets are, and how much of Zipf's traffic finds a row that is not its own.
fn figures(scheme: &Hash, rows: u32, stored: u32) -> Option<Vec<FitFigure>> {
    let mut chains = filled(stored as usize, 0u32)?;
    for row in 0..rows {
        chains[scheme.buckets.row(row.into()) as usize] += 1;
    }
    let shares = |row: &u32| chains[scheme.buckets.row((*row).into()) as usize] > 1;
    let traffic: f64 = (0..rows).map(zipf).sum();
    let shared: f64 = (0..rows).filter(shares).map(zipf).sum();
    let longest = chains.iter().copied().max().unwrap_or(0);
    let of = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    Some(vec![
        FitFigure { name: "rows a bucket", value: of(rows.into(), stored.into()) },
        FitFigure { name: "longest chain", value: longest.into() },
        FitFigure { name: "traffic that shares a bucket", value: of(shared, traffic) },
    ])
}

/// Memory, or none.
fn filled<T: Clone>(length: usize, value: T) -> Option<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(length).ok()?;
    values.resize(length, value);
    Some(values)
}
