//! What of a table is there, and having more or less of it there.

use std::ops::{Bound, RangeBounds};

use super::{Table, resident::Place};
use crate::{
    error::ShardError,
    op::{IdPolicy, Ids, Resolver},
    scheme::NO_ROW,
    store::Residency,
    units::Bytes,
};

impl Table {
    /// Which share of the table is where lookups read it, and what that took. All of it, unless it is on demand.
    #[must_use]
    pub fn residency(&self) -> Residency {
        match &self.inner.place {
            Place::OnDemand(shards) => shards.residency(),
            _ => Residency {
                shards: self.shards(),
                resident_shards: self.shards(),
                bytes: self.bytes(),
                resident_bytes: self.bytes(),
                ..Residency::default()
            },
        }
    }

    /// Loads all shards of a table on demand, or as many as its budget takes, from row 0 on.
    ///
    /// # Errors
    /// [`ShardError`] for one that cannot be loaded.
    pub async fn warm(&self) -> Result<Residency, ShardError> {
        if let Place::OnDemand(shards) = &self.inner.place {
            shards.fetch(0..shards.placed().len()).await?;
        }
        Ok(self.residency())
    }

    /// Loads the shards that a lookup of `ids` needs, or the first of them that the budget of a table on demand takes.
    /// Ids that name no row are passed over.
    ///
    /// # Errors
    /// [`ShardError`] for one that cannot be loaded.
    pub async fn prefetch<'a>(&self, ids: impl Into<Ids<'a>>) -> Result<Residency, ShardError> {
        if let Place::OnDemand(shards) = &self.inner.place {
            let ids = ids.into();
            let mut rows = vec![NO_ROW; ids.len()];
            Resolver::new(self.spec(), IdPolicy::Wrap).resolve(ids, &mut rows);
            shards.fetch(shards.needed_by(&rows).into_iter()).await?;
        }
        Ok(self.residency())
    }

    /// Lets go of the shards of a table on demand that have any of the stored `rows`, and says how many bytes those had.
    /// Lookups that use one keep it.
    pub fn evict(&self, rows: impl RangeBounds<u32>) -> Bytes {
        let Place::OnDemand(shards) = &self.inner.place else { return Bytes(0) };
        let start = match rows.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match rows.end_bound() {
            Bound::Included(end) => end.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u32::MAX,
        };
        shards.evict(&(start..end))
    }
}

/// Blocking twins, for callers without an executor.
#[cfg(not(target_arch = "wasm32"))]
impl Table {
    /// As [`Table::warm`], blocking.
    ///
    /// # Errors
    /// As [`Table::warm`].
    pub fn warm_blocking(&self) -> Result<Residency, ShardError> {
        pollster::block_on(self.warm())
    }

    /// As [`Table::prefetch`], blocking.
    ///
    /// # Errors
    /// As [`Table::prefetch`].
    pub fn prefetch_blocking<'a>(&self, ids: impl Into<Ids<'a>>) -> Result<Residency, ShardError> {
        pollster::block_on(self.prefetch(ids))
    }
}
