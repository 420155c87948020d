//! How a table is kept on demand, and what of it is there.

use std::ops::Range;

use super::Retry;
use crate::units::Bytes;

/// How a table is kept whose shards are loaded when they are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnDemand {
    /// About the size of a shard: what is read at a time, and let go. Small ones read less for a lookup of few rows, large
    /// ones take fewer requests. At least one row, with what all rows share, is in each.
    pub shard: Bytes,
    /// The most that shards may take together where the table is; `None`: all of them may be there. The least recently used
    /// go first. An engine's own budget holds beside it.
    pub budget: Option<Bytes>,
    /// Shards that are loaded at a time.
    pub at_once: usize,
    /// What is done about a source that fails.
    pub retry: Retry,
}

impl Default for OnDemand {
    /// Shards of 1 MiB, no budget, 8 of them loaded at a time.
    fn default() -> Self {
        Self { shard: Bytes(1 << 20), budget: None, at_once: 8, retry: Retry::default() }
    }
}

/// What of a table is where lookups read it, and what that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Residency {
    /// Shards of the table.
    pub shards: usize,
    /// Those that are there.
    pub resident_shards: usize,
    /// Bytes of all shards.
    pub bytes: Bytes,
    /// Bytes of those that are there.
    pub resident_bytes: Bytes,
    /// Bytes read from the source: where it does not count them, those of the shards that were loaded.
    pub read: Bytes,
    /// Shards that lookups needed and found.
    pub hits: u64,
    /// Shards that lookups needed and had loaded.
    pub misses: u64,
    /// Shards that lookups needed while others had them loaded.
    pub joined: u64,
    /// Loads that failed.
    pub failures: u64,
    /// Shards let go.
    pub evictions: u64,
}

/// Neighbouring rows that are loaded and let go together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardRows {
    /// The stored rows that it has.
    pub rows: Range<u32>,
    /// Whether it is where lookups read it.
    pub resident: bool,
}

impl Residency {
    /// Resident bytes over all: 1 for a table of no rows.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share of a few digits")]
    pub fn share(&self) -> f64 {
        if self.bytes.0 == 0 { 1.0 } else { self.resident_bytes.0 as f64 / self.bytes.0 as f64 }
    }
}
