//! Tables whose shards are loaded when they are needed.
//!
//! ```text
//! for each part of a batch:
//!     rows, places = the rows that its ids name, each once, and where each id finds its own     # plan.rs, on the host
//!     for each group of the shards that have them, as many as the budget takes:
//!         load those that are not there                                                         # load.rs
//!         scratch[rows] = decode(rows)                # a pass binds five of them, and gets the rows of these alone
//!     out = scratch[places]                           # or a bag over them
//! ```
//! Of a table in tiers (see `tiers`), rows are decoded from those, and most lookups need no scratch.
//!
//! Scratch holds f32 by the decoders that resident tables have, so that the bits are theirs, whatever is loaded when, and a
//! bag's rows are added in the order of its ids (and of its bands), however many shards they are in.

mod bag;
mod decoded;
mod gather;
mod load;
pub(super) mod plan;
mod scan;
mod scratch;

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
};

use load::{Home, Loader, Resident};

use super::{Lease, tiers::Tiers};
use crate::{
    error::{GatherError, ShardCause, ShardError, TableError},
    gpu::{Gpu, GpuShard},
    memory::{Ledger, Placement, Shard},
    scheme::{Part, RowSpan, TableSpec},
    source::{Changes, Follower, TableSource},
    store::{Cache, Held, OnDemand, Residency, ShardRows, SharedSource, TierReport, Tiered, Use},
    units::Bytes,
};

/// The shards of a table, of which some are there.
pub(super) struct Shards {
    loader: Arc<Loader>,
    cache: Arc<Cache<Resident>>,
    /// As many are loaded ahead of a scan.
    at_once: usize,
    /// Where lookups find rows instead, of a table in tiers: shards are then for scans.
    tiers: Option<Tiers>,
}

/// The most bytes of a shard in host memory.
const HOST_LIMIT: Bytes = Bytes(1 << 40);
/// What shards for scans may take beside tiers, unless one takes more.
const SCAN: Bytes = Bytes(16 << 20);

/// Some shards that are there.
type Group = Held<Resident>;

impl Shards {
    /// None of them yet, on a device.
    pub(super) fn on_gpu(source: SharedSource, gpu: Arc<Gpu>, options: &OnDemand) -> Result<Self, TableError> {
        gpu.alive()?;
        let limit = super::resident::most_bound(&gpu);
        Self::new(source, Home::Gpu(gpu), limit, options, false)
    }

    /// None of them yet, in host memory.
    pub(super) fn on_host(source: SharedSource, ledger: &Ledger, options: &OnDemand) -> Result<Self, TableError> {
        Self::new(source, Home::Host(ledger.clone()), HOST_LIMIT, options, false)
    }

    /// Rows in tiers, and shards that scans load beside them.
    pub(super) async fn tiered(
        source: SharedSource,
        gpu: Option<&Arc<Gpu>>,
        ledger: &Ledger,
        options: &Tiered,
    ) -> Result<Self, TableError> {
        let (home, limit) = match gpu {
            Some(gpu) => {
                gpu.alive()?;
                (Home::Gpu(gpu.clone()), super::resident::most_bound(gpu))
            }
            None => (Home::Host(ledger.clone()), HOST_LIMIT),
        };
        if source.spec().bands().len() > 1 {
            let (table, scheme) = (source.name().to_owned(), source.spec().scheme().to_string());
            return Err(TableError::NotOnDemand { table, scheme, reason: "its bands are stored each in its own way" });
        }
        let (at_once, retry) = (options.at_once, options.retry);
        let scans = OnDemand { budget: Some(SCAN), at_once, retry, ..OnDemand::default() };
        let shards = Self::new(source.clone(), home, limit, &scans, true)?;
        Ok(Self { tiers: Some(Tiers::new(source, gpu, ledger, options).await?), ..shards })
    }

    fn new(
        source: SharedSource,
        home: Home,
        limit: Bytes,
        options: &OnDemand,
        scans: bool,
    ) -> Result<Self, TableError> {
        let name = source.name().to_owned();
        if let Some(reason) = dependent(source.spec()) {
            return Err(TableError::NotOnDemand { table: name, scheme: source.spec().scheme().to_string(), reason });
        }
        let spec = source.spec().stored();
        let shard = options.shard.0.max(least_shard(&spec)).min(limit.0);
        let placement = Placement::plan(&spec, Bytes(shard)).map_err(|error| TableError::RowTooLarge {
            table: name.clone(),
            row: error.row,
            binding: error.binding,
        })?;
        let ledger = home.ledger().clone();
        let loader = Loader::new(source, &spec, placement, home, options.retry);
        let budget = options.budget.unwrap_or(Bytes(u64::MAX));
        let bytes: Vec<u64> = loader.shards.iter().map(|shard| loader.home.need(&name, shard).total()).collect();
        let largest = Bytes(bytes.iter().copied().max().unwrap_or(0));
        // Whatever a scan needs at least, it gets.
        let budget = if scans { budget.max(largest) } else { budget };
        if largest > budget {
            return Err(TableError::ShardBudget { table: name, shard: largest, budget });
        }
        let cache = Arc::new(Cache::new(bytes.into_iter(), budget.0, options.at_once));
        ledger.reclaim_from(&cache);
        Ok(Self { loader: Arc::new(loader), cache, at_once: options.at_once.max(1), tiers: None })
    }

    /// Where each row is.
    pub(super) fn placed(&self) -> &[Shard] {
        &self.loader.shards
    }

    /// The device that they are on.
    pub(super) fn gpu(&self) -> Option<&Arc<Gpu>> {
        match &self.loader.home {
            Home::Gpu(gpu) => Some(gpu),
            Home::Host(_) => None,
        }
    }

    /// All shards of a device, as those of a table of `spec`; the number of those that are there where not all are.
    pub(super) fn all(&self, spec: &TableSpec) -> Result<Vec<GpuShard>, usize> {
        let Some(all) = self.cache.all() else { return Err(self.cache.residency().resident_shards) };
        let bands = spec.bands();
        let shards = all.iter().zip(self.placed());
        // Their own spec is that of the stored rows.
        let shards = shards.map(|(one, shard)| GpuShard { spec: bands[shard.band].spec.clone(), ..one.gpu().clone() });
        Ok(shards.collect())
    }

    /// What is there.
    pub(super) fn residency(&self) -> Residency {
        if let Some(tiers) = &self.tiers {
            return tiers.residency();
        }
        let counts = self.cache.residency();
        let read = self.loader.source.bytes_read().map_or(counts.read, Bytes);
        Residency { read, ..counts }
    }

    /// Which shards are there; none are told of a table in tiers, which keeps rows.
    pub(super) fn shard_rows(&self) -> Vec<ShardRows> {
        if self.tiers.is_some() {
            return Vec::new();
        }
        let resident = self.cache.resident(0..self.placed().len());
        let one = |(shard, resident): (&Shard, bool)| ShardRows {
            rows: shard.first_row..shard.first_row + shard.rows,
            resident,
        };
        self.placed().iter().zip(resident).map(one).collect()
    }

    /// Loads `shards` where they are not there, and says how many of them are: the first, as many as the budget takes.
    async fn fetch(&self, shards: impl Iterator<Item = usize>) -> Result<usize, ShardError> {
        let group = self.groups(shards, self.cache.room()).next().unwrap_or_default();
        let count = group.len();
        self.acquire(group, Use::Lookup).await?;
        Ok(count)
    }

    /// Loads all, or as many as there is room for, from row 0 on.
    pub(super) async fn warm(&self) -> Result<(), GatherError> {
        match &self.tiers {
            Some(tiers) => tiers.warm().await?,
            None => drop(self.fetch(0..self.placed().len()).await?),
        }
        Ok(())
    }

    /// Loads what has the stored `rows`, or as much of that as there is room for.
    pub(super) async fn prefetch(&self, rows: &[u32]) -> Result<(), GatherError> {
        match &self.tiers {
            Some(tiers) => tiers.fetch(rows).await?,
            None => drop(self.fetch(self.needed_by(rows).into_iter()).await?),
        }
        Ok(())
    }

    /// Holds what has the stored `rows` where lookups find it.
    pub(super) async fn lease(&self, rows: &[u32]) -> Result<Lease, GatherError> {
        if let Some(tiers) = &self.tiers {
            return tiers.lease(rows).await;
        }
        match self.acquire(self.needed_by(rows), Use::Lease).await {
            Ok(held) => Ok(Lease::new(held.without_values())),
            Err(ShardError { table, cause, .. }) if matches!(*cause, ShardCause::Leased { .. }) => {
                Err(GatherError::CacheBusy { table, pages: self.placed().len() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What tiers did so far.
    pub(super) fn tiers(&self) -> Option<TierReport> {
        self.tiers.as_ref().map(Tiers::report)
    }

    /// Lets go of those that have `rows`, unless a lookup uses them.
    pub(super) fn evict(&self, rows: &std::ops::Range<u32>) -> Bytes {
        let tiers = self.tiers.as_ref().map_or(0, |tiers| tiers.evict(rows).0);
        let with_rows = |shard: &Shard| shard.first_row < rows.end && rows.start < shard.first_row + shard.rows;
        let shards = self.placed().iter().enumerate().filter(|(_, shard)| with_rows(shard));
        Bytes(tiers + self.cache.evict(shards.map(|(number, _)| number)))
    }

    /// Tells of rows that change, from now on.
    pub(super) fn follow(self: &Arc<Self>) {
        if let Some(changes) = self.changes() {
            let own: Weak<Self> = Arc::downgrade(self);
            changes.follow(own);
        }
    }

    /// The versions of the source, where its rows change.
    pub(super) fn changes(&self) -> Option<&Changes> {
        self.loader.source.changes()
    }

    async fn acquire(&self, shards: Vec<usize>, purpose: Use) -> Result<Group, ShardError> {
        let first = shards.first().copied().unwrap_or_default();
        let busy = |leased, budget| self.loader.error(first, ShardCause::Leased { leased, budget });
        self.cache.acquire(shards, purpose, |shard| self.loader.load(&self.cache, shard), busy).await
    }

    /// Cuts `shards` into groups of at most `most` bytes, or one shard.
    fn groups(&self, shards: impl Iterator<Item = usize>, most: u64) -> impl Iterator<Item = Vec<usize>> {
        let mut shards = shards.peekable();
        let bytes = |shard: usize| self.loader.home.bytes(&self.loader.shards[shard]);
        std::iter::from_fn(move || {
            let mut group = vec![shards.next()?];
            let mut sum = bytes(group[0]);
            while let Some(next) = shards.next_if(|next| sum.saturating_add(bytes(*next)) <= most) {
                sum += bytes(next);
                group.push(next);
            }
            Some(group)
        })
    }
}

impl Follower for Shards {
    fn changed(&self, rows: &[u32]) {
        let placed = self.placed();
        let number = |row: &u32| placed.partition_point(|shard| shard.first_row <= *row).checked_sub(1);
        let shards: BTreeSet<usize> = rows.iter().filter_map(number).collect();
        self.cache.change(shards.into_iter());
        if let Some(tiers) = &self.tiers {
            tiers.changed(rows);
        }
    }
}

/// What of a table needs more than one shard at a time.
fn dependent(spec: &TableSpec) -> Option<&'static str> {
    if spec.each() > 1 {
        return Some("each id reads rows of several shards");
    }
    let counts = spec.bands().iter().any(|band| band.spec.parts().iter().any(Part::counts_values));
    counts.then_some("where its rows begin is told by all rows")
}

/// A shard worth its name: what all rows share, and as much again.
fn least_shard(spec: &TableSpec) -> u64 {
    let band = |spec: &TableSpec| {
        let shared: u64 =
            spec.parts().iter().map(|part| part.span(&RowSpan::default())).map(|bytes| bytes.end - bytes.start).sum();
        2 * shared + spec.row_bytes() + 128
    };
    spec.bands().iter().map(|one| band(&one.spec)).max().unwrap_or(0)
}
