//! How many of a row's nearest stay its nearest.

use gatherum::{IdPolicy, Metric, Table, TopKOptions};

use crate::failure::Outcome;

/// Neighbors that are compared.
const K: usize = 10;
/// Rows of a sample.
const COUNT: u32 = 300;
/// Rows that are frequent, and rows that are rare, where the table has twice as many.
const PART: u32 = 50_000;

/// Samples, and so figures of a scheme.
pub(super) const SAMPLES: usize = 3;

/// Some rows of a table.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) rows: Vec<u32>,
}

/// The nearest of each row of a sample; none for a row without a direction.
pub(super) type Nearest = Vec<Vec<u32>>;

/// The same rows each time.
pub(super) fn samples(rows: u32) -> [Sample; SAMPLES] {
    let part = PART.min(rows.div_ceil(2));
    let frequent = spread(0, part);
    let rare = spread(rows - part, part);
    let traffic = (0..COUNT).map(|place| zipf(rows, (f64::from(place) + 0.5) / f64::from(COUNT))).collect();
    [("frequent", frequent), ("traffic", traffic), ("rare", rare)].map(|(name, rows)| Sample { name, rows })
}

/// Rows spread evenly over `length` rows from `first` on.
fn spread(first: u32, length: u32) -> Vec<u32> {
    let count = COUNT.min(length);
    let row = |place: u32| u64::from(place) * u64::from(length) / u64::from(count.max(1));
    (0..count).map(|place| first + u32::try_from(row(place)).unwrap_or(0)).collect()
}

/// The row that a share of all lookups does not reach, where the first row takes 1, the second 1 / 2, the n-th 1 / n.
fn zipf(rows: u32, share: f64) -> u32 {
    // The sum of 1 / n up to x is about the logarithm of x.
    let number = (share * f64::from(rows).ln_1p()).exp();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to rows + 1")]
    let row = number as u32 - 1;
    row.min(rows - 1)
}

impl Sample {
    /// The nearest of each row, without itself.
    pub(super) fn nearest(&self, table: &Table) -> Outcome<Nearest> {
        let queries = table.gather_blocking(&self.rows, IdPolicy::Error)?.values;
        let selves: Vec<Option<u32>> = self.rows.iter().copied().map(Some).collect();
        let options = TopKOptions::default().leave_out(&selves);
        let found = table.top_k_blocking(&queries, K, Metric::Cosine, options)?;
        Ok((0..self.rows.len()).map(|query| found.of(query).map(|(id, _)| id).collect()).collect())
    }
}

/// The mean share of the one's nearest that are the other's, over rows that have any.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub(super) fn kept(reference: &Nearest, nearest: &Nearest) -> Option<f64> {
    let rows = || reference.iter().zip(nearest).filter(|(wanted, _)| !wanted.is_empty());
    let share = |(wanted, found): (&Vec<u32>, &Vec<u32>)| {
        wanted.iter().filter(|id| found.contains(id)).count() as f64 / wanted.len() as f64
    };
    let count = rows().count();
    (count > 0).then(|| rows().map(share).sum::<f64>() / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_within_the_table() {
        for rows in [1, 2, 299, 300, 10_000, 341_479, u32::MAX - 1] {
            for sample in samples(rows) {
                assert!(!sample.rows.is_empty() && sample.rows.iter().all(|row| *row < rows), "{} {rows}", sample.name);
                assert!(sample.rows.is_sorted());
            }
        }
        let [frequent, traffic, rare] = samples(341_479);
        assert_eq!((frequent.rows[0], frequent.rows.len()), (0, 300));
        assert!(*frequent.rows.last().unwrap() < 50_000 && rare.rows[0] == 291_479);
        // ln 2 / ln 341,480 of the lookups are the first row's.
        assert_eq!(traffic.rows.iter().filter(|row| **row == 0).count(), 16);
    }

    #[test]
    fn what_is_kept_is_a_mean_share() {
        let one = vec![vec![1, 2, 3, 4], vec![], vec![5, 6]];
        assert_eq!(kept(&one, &one), Some(1.0));
        assert_eq!(kept(&one, &vec![vec![4, 9, 1, 8], vec![7], vec![6, 5]]), Some(0.75));
        assert_eq!(kept(&vec![vec![]], &vec![vec![1]]), None);
    }
}
