//! The nearest rows by cosine: every row is compared, in f64.
//!
//! ```text
//! for each block of rows, decoded by the engine:
//!     for each task of the block, on all cores:
//!         for each row: cosine with each query; the best k are kept
//!     the tasks' best are merged
//! ```
//! Memory is the table as it is stored and one block. Rows of zeros have no direction and are left out.

use std::cmp::Ordering;

use gatherum::{GatherError, IdPolicy, Table};
use rayon::prelude::*;

/// f32 values of a block: 4 MiB of them.
const BLOCK_VALUES: usize = 1 << 20;
/// f32 values of a task.
const TASK_VALUES: usize = 1 << 14;

/// What is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) vector: Vec<f32>,
    /// A row that is no answer: the one that the query is.
    pub(crate) leave_out: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Neighbor {
    pub(crate) id: u32,
    pub(crate) cosine: f64,
}

impl Neighbor {
    /// The nearer one first; of equals the lower id.
    fn order(&self, other: &Self) -> Ordering {
        other.cosine.total_cmp(&self.cosine).then(self.id.cmp(&other.id))
    }
}

/// Cosine of two vectors; `None` where one has no direction.
pub(crate) fn cosine(one: &[f32], other: &[f32]) -> Option<f64> {
    let norms = (dot(one, one) * dot(other, other)).sqrt();
    let cosine = dot(one, other) / norms;
    (norms > 0.0 && cosine.is_finite()).then(|| cosine.clamp(-1.0, 1.0))
}

/// Over four lanes, in an order that depends on nothing but the length.
fn dot(one: &[f32], other: &[f32]) -> f64 {
    let ((ones, one_rest), (others, other_rest)) = (one.as_chunks::<4>(), other.as_chunks::<4>());
    let mut lanes = [0f64; 4];
    for (one, other) in ones.iter().zip(others) {
        for lane in 0..4 {
            lanes[lane] += f64::from(one[lane]) * f64::from(other[lane]);
        }
    }
    let rest: f64 = one_rest.iter().zip(other_rest).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum();
    lanes.iter().sum::<f64>() + rest
}

/// The best `k` of those seen.
#[derive(Clone, Debug)]
struct Best {
    k: usize,
    kept: Vec<Neighbor>,
    /// Whatever comes after it is not among the best.
    worst: Option<Neighbor>,
}

impl Best {
    fn new(k: usize) -> Self {
        Self { k, kept: Vec::new(), worst: None }
    }

    fn push(&mut self, one: Neighbor) {
        if self.k == 0 || self.worst.is_some_and(|worst| worst.order(&one) == Ordering::Less) {
            return;
        }
        self.kept.push(one);
        if self.kept.len() >= self.k.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.k {
            let (_, worst, _) = self.kept.select_nth_unstable_by(self.k - 1, Neighbor::order);
            self.worst = Some(*worst);
            self.kept.truncate(self.k);
        }
    }

    fn finish(mut self) -> Vec<Neighbor> {
        self.cut();
        self.kept.sort_unstable_by(Neighbor::order);
        self.kept
    }
}

/// The `k` nearest rows of each query, the nearest first, ties by the lower id. `progress` gets the rows compared so far.
pub(crate) fn nearest(
    table: &Table,
    queries: &[Query],
    k: usize,
    mut progress: impl FnMut(u32),
) -> Result<Vec<Vec<Neighbor>>, GatherError> {
    let (rows, dim) = (table.spec().shape().rows(), table.spec().shape().dim() as usize);
    let k = k.min(rows as usize);
    let mut best = vec![Best::new(k); queries.len()];
    let block = (BLOCK_VALUES / dim).max(1);
    let mut values = Vec::new();
    for first in (0..rows).step_by(block) {
        let ids: Vec<u32> = (first..rows).take(block).collect();
        values.resize(ids.len() * dim, 0f32);
        table.gather_into_blocking(&ids, IdPolicy::Error, &mut values)?;
        let task = (TASK_VALUES / dim).max(1);
        let found: Vec<Vec<Best>> = values
            .par_chunks(task * dim)
            .zip(ids.par_chunks(task))
            .map(|(values, ids)| compare(queries, k, ids, values))
            .collect();
        for found in found {
            for (best, found) in best.iter_mut().zip(found) {
                found.kept.into_iter().for_each(|one| best.push(one));
            }
        }
        progress(first + u32::try_from(ids.len()).unwrap_or(u32::MAX));
    }
    Ok(best.into_iter().map(Best::finish).collect())
}

/// The best of some rows, `values: [ids.len(), dim]`, for each query.
fn compare(queries: &[Query], k: usize, ids: &[u32], values: &[f32]) -> Vec<Best> {
    let dim = values.len() / ids.len().max(1);
    let mut best = vec![Best::new(k); queries.len()];
    for (id, row) in ids.iter().zip(values.chunks_exact(dim.max(1))) {
        for (query, best) in queries.iter().zip(&mut best) {
            if query.leave_out != Some(*id)
                && let Some(cosine) = cosine(&query.vector, row)
            {
                best.push(Neighbor { id: *id, cosine });
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatherum::{EncodedTable, Engine};

    fn table(values: &[f32], dim: usize) -> Table {
        let (table, _) = EncodedTable::encode("t", values, dim, &"f32".parse().unwrap()).unwrap();
        Engine::host().load_blocking(&table).unwrap()
    }

    #[test]
    fn ties_go_to_the_lower_id_and_zeros_are_left_out() {
        let table = table(&[1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0, -1.0, 0.0, 3.0, 0.0], 2);
        let query = Query { vector: vec![1.0, 0.0], leave_out: Some(0) };
        let found = nearest(&table, &[query], 100, |_| {}).unwrap();
        let ids: Vec<u32> = found[0].iter().map(|neighbor| neighbor.id).collect();
        assert_eq!(ids, [1, 5, 3, 4]);
        assert!((found[0][3].cosine + 1.0).abs() < 1e-15);
    }

    #[test]
    fn the_best_are_those_of_a_full_sort() {
        let dim = 3;
        let values: Vec<f32> = (0..60_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 20) as f32 - 2048.0).collect();
        let table = table(&values, dim);
        let vector = vec![0.3, -1.0, 2.0];
        let mut all: Vec<Neighbor> = (0..)
            .zip(values.chunks_exact(dim))
            .filter_map(|(id, row)| Some(Neighbor { id, cosine: cosine(&vector, row)? }))
            .collect();
        all.sort_by(Neighbor::order);
        for k in [0, 1, 7, 1000, 30_000] {
            let found = nearest(&table, &[Query { vector: vector.clone(), leave_out: None }], k, |_| {}).unwrap();
            assert_eq!(found[0], all[..k.min(all.len())], "k = {k}");
        }
    }

    #[test]
    fn hostile_rows_have_a_cosine_or_none() {
        assert_eq!(cosine(&[0.0, 0.0], &[1.0, 0.0]), None);
        assert_eq!(cosine(&[f32::NAN, 0.0], &[1.0, 0.0]), None);
        assert_eq!(cosine(&[f32::MAX, f32::MAX], &[f32::MAX, f32::MAX]), Some(1.0));
    }
}
