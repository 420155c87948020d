//! Comparing rows with queries: all scores, or the best rows.

use std::ops::{Range, RangeBounds};

use rayon::prelude::*;

use super::Table;
use crate::{
    error::ScoreError,
    op::{self, Best, Metric, Queries},
    scheme::NO_ROW,
};

/// Scores of some rows, for each of some queries.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scores {
    /// `[queries, rows]`, row-major.
    pub values: Vec<f32>,
    /// The rows that were scored.
    pub rows: Range<u32>,
}

impl Scores {
    /// Query by query: the scores of all rows, in order.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, f32> {
        // Without rows there is nothing, whatever the length.
        self.values.chunks_exact(self.rows.len().max(1))
    }
}

impl<'a> IntoIterator for &'a Scores {
    type Item = &'a [f32];
    type IntoIter = std::slice::ChunksExact<'a, f32>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The best rows of each of some queries.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TopK {
    /// `[queries, k]`, row-major, the best first. Where fewer rows have a score, what is left is [`TopK::NONE`].
    pub ids: Vec<u32>,
    /// The rows' scores, `[queries, k]`; negative infinity where there is no row.
    pub scores: Vec<f32>,
    /// Places of each query: as many as were asked for, or as there are rows.
    pub k: usize,
}

impl TopK {
    /// Stands where there is no row.
    pub const NONE: u32 = NO_ROW;

    /// The best rows of a query, and their scores; none for a query that was not asked.
    pub fn of(&self, query: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let places = query.saturating_mul(self.k)..query.saturating_add(1).saturating_mul(self.k);
        let ids = self.ids.get(places.clone()).unwrap_or_default();
        let scores = self.scores.get(places).unwrap_or_default();
        ids.iter().copied().zip(scores.iter().copied()).take_while(|(id, _)| *id != Self::NONE)
    }
}

/// Which rows [`Table::top_k`] looks at: all, if nothing is said.
///
/// # Examples
/// ```
/// use gatherum::TopKOptions;
/// // The nearest of the first 1,000 rows to rows 3 and 7, without themselves.
/// let options = TopKOptions::default().rows(0..1000).leave_out(&[Some(3), Some(7)]);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct TopKOptions<'a> {
    rows: Option<Range<u32>>,
    leave_out: &'a [Option<u32>],
}

impl<'a> TopKOptions<'a> {
    /// Looks at these rows alone.
    #[must_use]
    pub fn rows(mut self, rows: Range<u32>) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Leaves a row out for each query, such as the one that the query is: `[queries]`, or empty for none at all.
    #[must_use]
    pub fn leave_out(mut self, rows: &'a [Option<u32>]) -> Self {
        self.leave_out = rows;
        self
    }
}

impl Table {
    /// The most rows that [`Table::top_k`] keeps of a query.
    pub const MOST_K: usize = 1024;

    /// Scores `rows` of the table against each of `queries: [queries, dim]`, row-major.
    ///
    /// Rows are decoded where they are, a few at a time; the table is never expanded. Sums are of f32, over 16 lanes: column
    /// `c` goes to lane `c % 16`, in order; lanes are joined in a fixed order, and longer rows are summed by spans of 4,096
    /// columns, or fewer where a scheme takes long to decode them. A product and a sum are two roundings, so that the host and every adapter that keeps them apart give the
    /// same bits; where products are under 2^-126, some adapters take them for 0. The error of a dot product of `n`
    /// columns is thus at most `1.01 (n / 16 + 6) 2^-24` of the sum of the magnitudes of its terms. Devices
    /// send sums back, and cosines are made of them here: see [`Metric`].
    ///
    /// Where each row is one stored row that others share (scheme `hash`), each of those is multiplied once, whatever `rows`
    /// are, and its score is that of every row that shares it.
    ///
    /// # Errors
    /// [`ScoreError::QueryLength`] and [`ScoreError::NotFinite`] for queries that are none; [`ScoreError::Rows`] for rows
    /// that the table does not have; [`ScoreError::TooLarge`] where host memory is short; [`ScoreError::OverBudget`] where
    /// scratch would pass the budget; [`ScoreError::Device`] where the device fails.
    ///
    /// # Examples
    /// ```
    /// use gatherum::{EncodedTable, Engine, Metric};
    /// # pollster::block_on(async {
    /// let values = [1.0, 0.0, 3.0, 4.0, 0.0, 0.0];
    /// let (table, _) = EncodedTable::encode("points", &values, 2, &"f16".parse()?)?;
    /// let table = Engine::host().load(&table).await?;
    /// let query = [0.0, 2.0];
    /// assert_eq!(table.score(&query, Metric::Dot, ..).await?.values, [0.0, 8.0, 0.0]);
    /// assert_eq!(table.score(&query, Metric::Cosine, 1..).await?.values, [0.8, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn score(
        &self,
        queries: &[f32],
        metric: Metric,
        rows: impl RangeBounds<u32>,
    ) -> Result<Scores, ScoreError> {
        let queries = self.queries(queries, metric)?;
        let rows = op::rows(self.name(), &rows, self.spec().shape().rows())?;
        let mut values = self.room(0f32, queries.count(), rows.len())?;
        let _reading = self.reading().await;
        if !rows.is_empty() {
            let most = self.panel(&queries);
            for (values, first) in values.chunks_mut(rows.len() * most).zip((0..).step_by(most)) {
                let panel = queries.panel(first..first + values.len() / rows.len());
                let visit = |sums: &op::Sums| {
                    let at = (sums.first_row - rows.start) as usize;
                    values.par_chunks_mut(rows.len()).enumerate().for_each(|(query, values)| {
                        let values = &mut values[at..];
                        sums.scores(&panel, query, |row, score| {
                            let none = score.is_nan() && metric == Metric::Cosine;
                            values[row] = if none { 0.0 } else { score };
                        });
                    });
                };
                self.sums(&panel, rows.clone(), visit).await?;
            }
        }
        Ok(Scores { values, rows })
    }

    /// The `k` rows of the highest score for each of `queries: [queries, dim]`, the best first; of equal scores the lower id
    /// comes first. `k` is 1 to 1,024; a table of fewer rows has fewer places.
    ///
    /// All rows are compared, by the scores of [`Table::score`], of which the best are kept on the host, whatever the
    /// backend: a device sends back 4 bytes a row and query. Rows whose score is NaN have no place, nor have those without
    /// a direction, by cosine: see [`Metric::Cosine`].
    ///
    /// # Errors
    /// As [`Table::score`]; [`ScoreError::K`] for another `k`, [`ScoreError::LeaveOut`] where there are rows to leave out,
    /// and not one a query.
    ///
    /// # Examples
    /// ```
    /// use gatherum::{EncodedTable, Engine, Metric, TopKOptions};
    /// # pollster::block_on(async {
    /// let values = [1.0, 0.0, 3.0, 4.0, -1.0, 0.0];
    /// let (table, _) = EncodedTable::encode("points", &values, 2, &"f16".parse()?)?;
    /// let table = Engine::host().load(&table).await?;
    /// let found = table.top_k(&[1.0, 0.0], 2, Metric::Cosine, TopKOptions::default()).await?;
    /// assert_eq!((&found.ids[..], &found.scores[..]), (&[0, 1][..], &[1.0, 0.6][..]));
    /// let options = TopKOptions::default().leave_out(&[Some(0)]);
    /// let found = table.top_k(&[1.0, 0.0], 1, Metric::Cosine, options).await?;
    /// assert_eq!(found.of(0).collect::<Vec<_>>(), [(1, 0.6)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn top_k(
        &self,
        queries: &[f32],
        k: usize,
        metric: Metric,
        options: TopKOptions<'_>,
    ) -> Result<TopK, ScoreError> {
        let table = || self.name().to_owned();
        let queries = self.queries(queries, metric)?;
        let count = queries.count();
        if !(1..=Self::MOST_K).contains(&k) {
            return Err(ScoreError::K { table: table(), k: k as u64, most: Self::MOST_K as u64 });
        }
        let leave_out = options.leave_out;
        if !leave_out.is_empty() && leave_out.len() != count {
            let (got, queries) = (leave_out.len() as u64, count as u64);
            return Err(ScoreError::LeaveOut { table: table(), got, queries });
        }
        let all = self.spec().shape().rows();
        let rows = op::rows(self.name(), &options.rows.unwrap_or(0..all), all)?;
        let k = k.min(rows.len());
        let mut ids = self.room(TopK::NONE, count, k)?;
        let mut scores = self.room(f32::NEG_INFINITY, count, k)?;
        let most = self.panel(&queries);
        let _reading = self.reading().await;
        for first in (0..if k == 0 { 0 } else { count }).step_by(most) {
            let panel = queries.panel(first..count.min(first + most));
            let mut best = vec![Best::new(k); panel.count()];
            let visit = |sums: &op::Sums| {
                best.par_iter_mut().enumerate().for_each(|(query, best)| {
                    let left_out = leave_out.get(first + query).copied().flatten().unwrap_or(TopK::NONE);
                    let mut id = sums.first_row;
                    sums.scores(&panel, query, |_, score| {
                        if id != left_out {
                            best.push(id, score);
                        }
                        id += 1;
                    });
                });
            };
            self.sums(&panel, rows.clone(), visit).await?;
            let places = ids[first * k..].chunks_mut(k).zip(scores[first * k..].chunks_mut(k));
            for (best, (ids, scores)) in best.into_iter().zip(places) {
                for ((score, id), (id_place, score_place)) in best.finish().into_iter().zip(ids.iter_mut().zip(scores))
                {
                    (*id_place, *score_place) = (id, score);
                }
            }
        }
        Ok(TopK { ids, scores, k })
    }

    fn queries(&self, values: &[f32], metric: Metric) -> Result<Queries, ScoreError> {
        Queries::new(self.name(), self.spec(), values, metric)
    }

    /// Memory for an answer.
    pub(super) fn room<T: Clone>(&self, value: T, queries: usize, each: usize) -> Result<Vec<T>, ScoreError> {
        let mut values = Vec::new();
        let length = queries.checked_mul(each).filter(|length| values.try_reserve_exact(*length).is_ok());
        let Some(length) = length else {
            let (queries, each) = (queries as u64, each as u64);
            return Err(ScoreError::TooLarge { table: self.name().to_owned(), queries, each });
        };
        values.resize(length, value);
        Ok(values)
    }
}

/// Blocking twins, for callers without an executor.
#[cfg(not(target_arch = "wasm32"))]
impl Table {
    /// As [`Table::score`], blocking.
    ///
    /// # Errors
    /// As [`Table::score`].
    pub fn score_blocking(
        &self,
        queries: &[f32],
        metric: Metric,
        rows: impl RangeBounds<u32>,
    ) -> Result<Scores, ScoreError> {
        pollster::block_on(self.score(queries, metric, rows))
    }

    /// As [`Table::top_k`], blocking.
    ///
    /// # Errors
    /// As [`Table::top_k`].
    pub fn top_k_blocking(
        &self,
        queries: &[f32],
        k: usize,
        metric: Metric,
        options: TopKOptions<'_>,
    ) -> Result<TopK, ScoreError> {
        pollster::block_on(self.top_k(queries, k, metric, options))
    }
}
