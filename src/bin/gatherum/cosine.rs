//! The nearest rows by cosine, as f64 has it.
//!
//! ```text
//! scores = the table's, in f32, on its backend
//! for each row whose score is not clearly behind that of the k-th, or is 0:
//!     cosine in f64, of the row as it is decoded
//! ```
//! A score is within `slack` of the cosine. `k` rows reach the `k`-th score, so `k` cosines reach it less `slack`, and what is
//! among the nearest has a score of at least that less another `slack`. A score of 0 may stand for rows that f32 cannot
//! square, so all of these are looked at. Rows of zeros have no direction and are left out.

use std::cmp::Ordering;

use gatherum::{IdPolicy, Metric, Table};

use crate::failure::Outcome;

/// f32 values of rows that are looked at at a time: 4 MiB of them.
const BLOCK_VALUES: usize = 1 << 20;

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

/// The `k` nearest rows of each query, the nearest first, ties by the lower id.
pub(crate) fn nearest(table: &Table, queries: &[Query], k: usize) -> Outcome<Vec<Vec<Neighbor>>> {
    queries.iter().map(|query| nearest_to(table, query, k)).collect()
}

fn nearest_to(table: &Table, query: &Query, k: usize) -> Outcome<Vec<Neighbor>> {
    let mut found = Vec::new();
    if k == 0 || cosine(&query.vector, &query.vector).is_none() {
        return Ok(found);
    }
    let scores = table.score_blocking(&query.vector, Metric::Cosine, ..)?.values;
    // The row that is left out may be one of the nearest.
    let most = k.saturating_add(usize::from(query.leave_out.is_some()));
    let least = least_score(&scores, most, query.vector.len());
    let near = (0..)
        .zip(&scores)
        .filter(|(id, score)| (**score == 0.0 || f64::from(**score) >= least) && Some(*id) != query.leave_out);
    let ids: Vec<u32> = near.map(|(id, _)| id).collect();
    for ids in ids.chunks((BLOCK_VALUES / query.vector.len()).max(1)) {
        let rows = table.gather_blocking(ids, IdPolicy::Error)?;
        let cosines = ids.iter().zip(&rows).map(|(id, row)| Some((*id, cosine(&query.vector, row)?)));
        found.extend(cosines.flatten().map(|(id, cosine)| Neighbor { id, cosine }));
    }
    found.sort_unstable_by(Neighbor::order);
    found.truncate(k);
    Ok(found)
}

/// What the score of a row must reach that may be among the `most` nearest.
fn least_score(scores: &[f32], most: usize, dim: usize) -> f64 {
    let mut known: Vec<f32> = scores.iter().copied().filter(|score| *score != 0.0).collect();
    if known.len() <= most {
        return f64::NEG_INFINITY;
    }
    let (_, last, _) = known.select_nth_unstable_by(most - 1, |one, other| other.total_cmp(one));
    // `Table::score` states `1.01 (n / 16 + 6) 2^-24` of a sum, once for the dot product and half for the root of
    // the square; the score is rounded once: under `(n / 8 + 12) 2^-24` in all.
    #[expect(clippy::cast_precision_loss, reason = "a row has few columns")]
    let slack = (dim as f64 / 8.0 + 12.0) / f64::from(1 << 24);
    f64::from(*last) - 2.0 * slack
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
        let found = nearest(&table, &[query], 100).unwrap();
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
            let found = nearest(&table, &[Query { vector: vector.clone(), leave_out: None }], k).unwrap();
            assert_eq!(found[0], all[..k.min(all.len())], "k = {k}");
        }
    }

    #[test]
    fn what_f32_cannot_tell_apart_is_in_the_order_of_f64() {
        // The cosines fall by less than f32 shows, and one row is too large for it to square.
        let rows: Vec<f32> = (0..2_000).flat_map(|row| [1.0, (2_000 - row) as f32 * 1e-7]).chain([0.0, 3e38]).collect();
        let table = table(&rows, 2);
        let vector = vec![1.0, 1.0];
        let found = nearest(&table, &[Query { vector: vector.clone(), leave_out: Some(3) }], 1_500).unwrap();
        let ids: Vec<u32> = found[0].iter().map(|neighbor| neighbor.id).collect();
        assert_eq!(ids, (0..1_501).filter(|id| *id != 3).collect::<Vec<u32>>());
        let found = nearest(&table, &[Query { vector: vec![0.0, 1.0], leave_out: None }], 1).unwrap();
        assert_eq!(found[0][0].id, 2_000);
        let found = nearest(&table, &[Query { vector: vec![0.0, 0.0], leave_out: None }], 1).unwrap();
        assert_eq!(found[0], []);
    }

    #[test]
    fn hostile_rows_have_a_cosine_or_none() {
        assert_eq!(cosine(&[0.0, 0.0], &[1.0, 0.0]), None);
        assert_eq!(cosine(&[f32::NAN, 0.0], &[1.0, 0.0]), None);
        assert_eq!(cosine(&[f32::MAX, f32::MAX], &[f32::MAX, f32::MAX]), Some(1.0));
    }
}
