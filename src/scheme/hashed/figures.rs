//! What a fit tells of the rows that ids share.

use super::fit::{Traffic, filled};
use crate::scheme::{Buckets, FitFigure, buckets::MOST_READ};

/// Rows whose stored ones are compared at a time, unless more read one.
const COMPARED: u32 = 1 << 20;

/// How full stored rows are, how much of the traffic finds what another row of the table finds too, and what the fit has
/// left; none where memory is short.
pub(super) fn figures(rows: u32, buckets: Buckets, traffic: &Traffic, residual: f64) -> Option<Vec<FitFigure>> {
    let stored = if rows == 0 { 0 } else { buckets.rows() };
    let mut chains = filled(stored as usize, 0u32)?;
    for row in 0..rows {
        buckets.all(row.into())[..buckets.each()].iter().for_each(|read| chains[*read as usize] += 1);
    }
    let all: f64 = (0..rows).map(|row| traffic.of(row)).sum();
    let colliding = if rows == 0 { 0.0 } else { colliding(rows, buckets, &chains, traffic)? };
    let of = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    #[expect(clippy::cast_precision_loss, reason = "at most four")]
    let reads = f64::from(rows) * buckets.each() as f64;
    Some(vec![
        FitFigure { name: "rows a bucket", value: of(reads, stored.into()) },
        FitFigure { name: "longest chain", value: chains.iter().copied().max().unwrap_or(0).into() },
        FitFigure { name: "traffic that collides", value: of(colliding, all) },
        FitFigure { name: "residual energy", value: residual },
    ])
}

/// The traffic of rows that read just what another row reads.
fn colliding(rows: u32, buckets: Buckets, chains: &[u32], traffic: &Traffic) -> Option<f64> {
    if buckets.each() == 1 {
        let shares = |row: &u32| chains[buckets.row((*row).into(), 0) as usize] > 1;
        return Some((0..rows).filter(shares).map(|row| traffic.of(row)).sum());
    }
    let mut sum = 0.0;
    let mut read: Vec<([u32; MOST_READ], u32)> = Vec::new();
    let first = buckets.table(0);
    let mut begin = first.start;
    while begin < first.end {
        // By ranges of the first table, so that few are in memory.
        let (mut end, mut count) = (begin, 0);
        while end < first.end && (count == 0 || chains[end as usize].saturating_add(count) <= COMPARED) {
            count += chains[end as usize];
            end += 1;
        }
        read.clear();
        read.try_reserve(count as usize).ok()?;
        let all = (0..rows).map(|row| (buckets.all(row.into()), row));
        read.extend(all.filter(|(read, _)| (begin..end).contains(&read[0])));
        read.sort_unstable();
        for same in read.chunk_by(|one, other| one.0 == other.0).filter(|same| same.len() > 1) {
            sum += same.iter().map(|(_, row)| traffic.of(*row)).sum::<f64>();
        }
        begin = end;
    }
    Some(sum)
}
