//! Which rows a batch needs, and in which shards they are.

use std::ops::Range;

use rayon::slice::ParallelSliceMut;

use crate::{memory::Shard, scheme::NO_ROW};

/// In place of a row: an id that is left out.
pub(in crate::table) const LEFT_OUT: u32 = NO_ROW - 1;

/// The rows of a batch, each once, in ascending order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// The shards that have them, those first that were there when this was made.
    pub(super) needed: Vec<Needed>,
    /// The rows as numbers of a table that is these shards, one behind the other.
    pub(super) rows: Vec<u32>,
    /// Rows of that table.
    pub(super) total: u32,
    /// For each id the place of its row among the rows; [`NO_ROW`] and [`LEFT_OUT`] as they were.
    pub(super) places: Vec<u32>,
}

/// A shard that has some of the rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Needed {
    pub(super) shard: usize,
    /// Its first row in the table of the needed shards.
    pub(super) first: u32,
    /// Its rows among those of the plan.
    pub(super) rows: Range<usize>,
}

impl Plan {
    /// For ids that name the stored `rows` of a table without shards, under 2^32 of them: numbers of rows stay as they are.
    pub(super) fn of_rows(rows: &[u32]) -> Self {
        let (rows, places) = distinct(rows);
        // All are of one shard, so that they have one place.
        let needed = if rows.is_empty() { vec![] } else { vec![Needed { shard: 0, first: 0, rows: 0..rows.len() }] };
        Self { needed, rows, total: 0, places }
    }

    /// For ids that name the stored `rows`, under 2^32 of them. `resident` says which of some shards are there.
    pub(super) fn new(rows: &[u32], shards: &[Shard], resident: impl FnOnce(&[usize]) -> Vec<bool>) -> Self {
        let (mut rows, places) = distinct(rows);
        let mut needed: Vec<Needed> = Vec::new();
        let mut at = 0;
        while let Some(row) = rows.get(at) {
            let number = shards.partition_point(|shard| shard.first_row <= *row) - 1;
            let end = shards[number].first_row + shards[number].rows;
            let until = at + rows[at..].partition_point(|row| *row < end);
            needed.push(Needed { shard: number, first: 0, rows: at..until });
            at = until;
        }
        let there = resident(&needed.iter().map(|needed| needed.shard).collect::<Vec<_>>());
        let (mut needed, absent): (Vec<_>, Vec<_>) = needed.into_iter().zip(there).partition(|(_, there)| *there);
        needed.extend(absent);
        let mut needed: Vec<Needed> = needed.into_iter().map(|(needed, _)| needed).collect();
        let mut first = 0;
        for needed in &mut needed {
            let shard = &shards[needed.shard];
            needed.first = first;
            first += shard.rows;
            for row in &mut rows[needed.rows.clone()] {
                *row = *row - shard.first_row + needed.first;
            }
        }
        Self { needed, rows, total: first, places }
    }
}

/// The rows, each once, in ascending order, and for each id the place of its own among those.
fn distinct(rows: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut places = rows.to_vec();
    // Row and position in one number, so that they are sorted together.
    let keys = rows.iter().zip(0u64..).filter(|(row, _)| **row < LEFT_OUT);
    let mut keys: Vec<u64> = keys.map(|(row, position)| u64::from(*row) << 32 | position).collect();
    keys.par_sort_unstable();
    let mut rows: Vec<u32> = Vec::new();
    for key in keys {
        let (row, position) = (high(key), low(key));
        if rows.last() != Some(&row) {
            rows.push(row);
        }
        places[position as usize] = count(rows.len() - 1);
    }
    (rows, places)
}

fn high(key: u64) -> u32 {
    count(usize::try_from(key >> 32).unwrap_or(usize::MAX))
}

fn low(key: u64) -> u32 {
    count(usize::try_from(key & u64::from(u32::MAX)).unwrap_or(usize::MAX))
}

/// A number that is under 2^32.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Placement, Scheme, Shape};

    #[test]
    fn each_row_once_by_shards_those_that_are_there_first() {
        let spec = "f32".parse::<Scheme>().unwrap().spec(Shape::new(10, 4).unwrap()).unwrap();
        let placement = Placement::plan(&spec, Bytes(64)).unwrap();
        let firsts: Vec<u32> = placement.shards().iter().map(|shard| shard.first_row).collect();
        assert_eq!(firsts, [0, 4, 8]);
        let ids = [9, 1, NO_ROW, 5, 1, 8, LEFT_OUT, 2];
        let plan = Plan::new(&ids, placement.shards(), |shards| {
            assert_eq!(shards, [0, 1, 2]);
            vec![false, true, false]
        });
        assert_eq!(plan.places, [4, 0, NO_ROW, 2, 0, 3, LEFT_OUT, 1]);
        // Shards 1, 0 and 2, of 4, 4 and 2 rows.
        assert_eq!((&plan.rows[..], plan.total), (&[5, 6, 1, 8, 9][..], 10));
        let needed = |shard, first, rows| Needed { shard, first, rows };
        assert_eq!(plan.needed, [needed(1, 0, 2..3), needed(0, 4, 0..2), needed(2, 8, 3..5)]);
        assert_eq!(Plan::new(&[], placement.shards(), |_| vec![]), Plan::default());
    }
}
