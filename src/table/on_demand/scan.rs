//! All rows in order, for scores: shards come and go within the budget.

use std::ops::Range;

use super::Shards;
use crate::{error::ScoreError, gpu::GpuShard, host::HostTable, store::Use};

impl Shards {
    /// The shards that have `rows`, in order, as many at a time as are loaded at a time.
    pub(in crate::table) fn scan_groups(&self, rows: &Range<u32>) -> Vec<Vec<usize>> {
        let shards = self.placed().iter().enumerate();
        let within =
            shards.filter(|(_, shard)| shard.first_row < rows.end && rows.start < shard.first_row + shard.rows);
        // Most of what lookups use stays.
        let groups = self.groups(within.map(|(number, _)| number), self.cache.room() / 4);
        groups.flat_map(|group| group.chunks(self.at_once).map(<[usize]>::to_vec).collect::<Vec<_>>()).collect()
    }

    /// Loads a group of a scan.
    pub(in crate::table) async fn scan(&self, group: Vec<usize>) -> Result<Scanned, ScoreError> {
        let firsts = group.iter().map(|shard| self.placed()[*shard].first_row).collect();
        Ok(Scanned { held: self.acquire(group, Use::Scan).await?, firsts })
    }
}

/// Shards of a scan that are there.
pub(in crate::table) struct Scanned {
    held: super::Group,
    firsts: Vec<u32>,
}

impl Scanned {
    /// They, on a device.
    pub(in crate::table) fn on_gpu(&self) -> impl Iterator<Item = &GpuShard> {
        self.held.values().iter().map(super::Resident::gpu)
    }

    /// They in host memory, each with its first row in the table.
    pub(in crate::table) fn on_host(&self) -> impl Iterator<Item = (u32, &HostTable)> {
        self.firsts.iter().copied().zip(self.held.values().iter().map(super::Resident::host))
    }
}
