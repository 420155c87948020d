//! Sums of rows that others share: of each stored row once, and then as the rows of the table find them.

use std::ops::Range;

use super::Table;
use crate::{
    error::ScoreError,
    op::{Panel, Sums},
    scheme::Buckets,
};

/// Sums of all stored rows.
pub(super) struct SharedSums {
    buckets: Buckets,
    /// `[queries, stored rows]`.
    dots: Vec<f32>,
    /// `[stored rows]`, or empty.
    squares: Vec<f32>,
}

impl Table {
    /// Sums of all stored rows and the queries of `panel`.
    pub(super) async fn shared_sums(&self, panel: &Panel<'_>, buckets: Buckets) -> Result<SharedSums, ScoreError> {
        let (stored, count) = (buckets.rows() as usize, panel.count());
        let mut dots = self.room(0f32, count, stored)?;
        let mut squares = self.room(0f32, usize::from(panel.squares()), stored)?;
        let visit = |sums: &Sums| {
            let first = sums.first_row as usize;
            sums.each_run(count, |query, row, run| {
                dots[query * stored + first + row..][..run.len()].copy_from_slice(run);
            });
            if !sums.squares.is_empty() {
                squares[first..][..sums.rows].copy_from_slice(&sums.squares);
            }
        };
        self.own_sums(panel, 0..buckets.rows(), visit).await?;
        Ok(SharedSums { buckets, dots, squares })
    }
}

impl SharedSums {
    /// Those of `rows` of the table.
    pub(super) fn expand(&self, rows: Range<u32>, sums: &mut Sums) {
        (sums.first_row, sums.rows, sums.block) = (rows.start, rows.len(), rows.len());
        let find = |stored: &[f32], out: &mut Vec<f32>| {
            out.extend(rows.clone().map(|row| stored[self.buckets.row(row.into(), 0) as usize]));
        };
        sums.dots.clear();
        self.dots.chunks_exact(self.buckets.rows() as usize).for_each(|stored| find(stored, &mut sums.dots));
        sums.squares.clear();
        if !self.squares.is_empty() {
            find(&self.squares, &mut sums.squares);
        }
        sums.measure();
    }
}
