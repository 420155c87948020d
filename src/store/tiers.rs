//! How a table is kept in tiers, and what each of them did.

use std::time::Duration;

use super::Retry;
use crate::units::Bytes;

/// How a table is kept whose rows are on the device, over host memory, over wherever the table is stored.
///
/// Each tier has a budget. What is read stays in the tiers that have room for it, and takes the place of what was not used
/// for long. An engine on the host has no tier on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiered {
    /// The most that rows may take on the device, padding included. At most what one pass binds is used of it: five bindings.
    pub device: Bytes,
    /// The most that rows may take in host memory; 0 for no such tier. The books of both tiers come on top: 4 bytes for each
    /// stored row of the table, and 24 for each that a tier has room for.
    pub host: Bytes,
    /// Requests to the source at a time.
    pub at_once: usize,
    /// What is done about a source that fails.
    pub retry: Retry,
}

impl Default for Tiered {
    /// 256 MiB on the device, 512 MiB in host memory, 8 requests at a time.
    fn default() -> Self {
        Self { device: Bytes(256 << 20), host: Bytes(512 << 20), at_once: 8, retry: Retry::default() }
    }
}

/// What one tier did so far. Rows are counted by pages: 1, 2 or 4 neighbours, whose bytes are whole words; each page once a
/// call, however many ids name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierStats {
    /// Bytes that fit.
    pub capacity: Bytes,
    /// Bytes of the pages that are there.
    pub resident: Bytes,
    /// Pages that calls needed and found.
    pub hits: u64,
    /// Pages that calls needed and had brought up from below.
    pub misses: u64,
    /// Pages that made room for others, or were let go.
    pub evictions: u64,
    /// Bytes that came up from below.
    pub moved: Bytes,
}

impl TierStats {
    /// Pages found over pages needed; 1 where none was.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share of a few digits")]
    pub fn hit_rate(&self) -> f64 {
        let all = self.hits + self.misses;
        if all == 0 { 1.0 } else { self.hits as f64 / all as f64 }
    }
}

/// What the tiers of a table did so far. Scans have no part in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierReport {
    /// The tier on the device, where there is one.
    pub device: Option<TierStats>,
    /// The tier in host memory.
    pub host: TierStats,
    /// Requests to the source.
    pub requests: u64,
    /// Bytes of rows that they brought.
    pub read: Bytes,
    /// How long calls waited for the source, summed over calls; zero in a browser.
    pub waited: Duration,
}
