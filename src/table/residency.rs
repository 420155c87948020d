//! What of a table is there, and having more or less of it there.

use std::ops::{Bound, RangeBounds};

use super::{Lease, Table, resident::Place};
use crate::{
    error::GatherError,
    op::{IdPolicy, Ids, Resolver},
    scheme::NO_ROW,
    store::{Residency, ShardRows, TierReport},
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

    /// The table's shards in the order of their rows, and which of them are where lookups read them: all, unless the table is on
    /// demand. Rows are stored rows, which ids share where the scheme says so. A table in tiers keeps rows, and tells no shards.
    ///
    /// # Examples
    /// ```
    /// use gatherum::{Bytes, EncodedTable, Engine, IdPolicy, OnDemand};
    /// # pollster::block_on(async {
    /// # let values: Vec<f32> = (0..4000).map(|value| value as f32).collect();
    /// # let (encoded, _) = EncodedTable::encode("numbers", &values, 4, &"f32".parse()?)?;
    /// let options = OnDemand { shard: Bytes(4096), ..OnDemand::default() };
    /// let table = Engine::host().load_on_demand(encoded, &options)?;
    /// table.gather(&[300_u32], IdPolicy::Error).await?;
    /// let here: Vec<_> = table.shard_rows().into_iter().filter(|shard| shard.resident).collect();
    /// assert_eq!((here.len(), here[0].rows.clone()), (1, 256..512));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn shard_rows(&self) -> Vec<ShardRows> {
        let resident = |rows| ShardRows { rows, resident: true };
        match &self.inner.place {
            Place::OnDemand(shards) => shards.shard_rows(),
            Place::Host { .. } => vec![resident(0..self.spec().stored_rows())],
            Place::Gpu { shards, .. } => {
                let rows = shards.iter().map(|shard| shard.params.first_row..shard.params.first_row + shard.rows);
                rows.map(resident).collect()
            }
        }
    }

    /// Loads all shards of a table on demand, or as many as its budget takes, from row 0 on.
    ///
    /// # Errors
    /// [`GatherError::Shard`] for what cannot be loaded; [`GatherError::OverBudget`] and [`GatherError::Device`] as with lookups.
    pub async fn warm(&self) -> Result<Residency, GatherError> {
        if let Place::OnDemand(shards) = &self.inner.place {
            let _reading = self.reading().await;
            shards.warm().await?;
        }
        Ok(self.residency())
    }

    /// Loads the shards that a lookup of `ids` needs, or the first of them that the budget of a table on demand takes.
    /// Ids that name no row are passed over.
    ///
    /// # Errors
    /// [`GatherError::Shard`] for what cannot be loaded; [`GatherError::OverBudget`] and [`GatherError::Device`] as with lookups.
    pub async fn prefetch<'a>(&self, ids: impl Into<Ids<'a>>) -> Result<Residency, GatherError> {
        if let Place::OnDemand(shards) = &self.inner.place {
            let _reading = self.reading().await;
            shards.prefetch(&self.named(ids.into())).await?;
        }
        Ok(self.residency())
    }

    /// Loads the rows of `ids`, and keeps them where lookups find them until the lease is dropped: those that a later batch will
    /// need. Of a table on demand whole shards are kept; a table that is there whole keeps all rows anyway.
    ///
    /// # Errors
    /// [`GatherError::CacheBusy`] where other leases leave too little room for all of them; else as [`Table::prefetch`].
    ///
    /// # Examples
    /// ```
    /// use gatherum::{Bytes, EncodedTable, Engine, IdPolicy, Tiered};
    /// # pollster::block_on(async {
    /// # let values: Vec<f32> = (0..4000).map(|value| value as f32).collect();
    /// # let (encoded, _) = EncodedTable::encode("numbers", &values, 4, &"f32".parse()?)?;
    /// let options = Tiered { host: Bytes(1600), ..Tiered::default() };
    /// let table = Engine::host().load_tiered(encoded, &options).await?;
    /// let next = [7_u32, 900, 7];
    /// let lease = table.lease(&next).await?;
    /// // ... other lookups, and then the one that it was for:
    /// let rows = table.gather(&next, IdPolicy::Error).await?;
    /// drop(lease);
    /// assert_eq!(rows.values[4..8], [3600.0, 3601.0, 3602.0, 3603.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn lease<'a>(&self, ids: impl Into<Ids<'a>>) -> Result<Lease, GatherError> {
        match &self.inner.place {
            Place::OnDemand(shards) => {
                let _reading = self.reading().await;
                shards.lease(&self.named(ids.into())).await
            }
            _ => Ok(Lease::nothing()),
        }
    }

    /// What each tier of a table in tiers did so far; `None` for other tables.
    #[must_use]
    pub fn tiers(&self) -> Option<TierReport> {
        match &self.inner.place {
            Place::OnDemand(shards) => shards.tiers(),
            _ => None,
        }
    }

    /// The stored rows that `ids` name.
    fn named(&self, ids: Ids<'_>) -> Vec<u32> {
        let mut rows = vec![NO_ROW; ids.len()];
        Resolver::new(self.spec(), IdPolicy::Wrap).resolve(ids, &mut rows);
        rows
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
    pub fn warm_blocking(&self) -> Result<Residency, GatherError> {
        pollster::block_on(self.warm())
    }

    /// As [`Table::lease`], blocking.
    ///
    /// # Errors
    /// As [`Table::lease`].
    pub fn lease_blocking<'a>(&self, ids: impl Into<Ids<'a>>) -> Result<Lease, GatherError> {
        pollster::block_on(self.lease(ids))
    }

    /// As [`Table::prefetch`], blocking.
    ///
    /// # Errors
    /// As [`Table::prefetch`].
    pub fn prefetch_blocking<'a>(&self, ids: impl Into<Ids<'a>>) -> Result<Residency, GatherError> {
        pollster::block_on(self.prefetch(ids))
    }
}
