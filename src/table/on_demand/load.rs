//! From the source to where a shard is used.

use std::sync::Arc;

use crate::{
    error::{ShardCause, ShardError, SourceError},
    gpu::{Gpu, GpuShard, UploadError, need},
    host::HostTable,
    memory::{Ledger, Need, Placement, Reservation, Shard},
    scheme::{Band, Category, TableSpec},
    source::TableSource,
    store::{Boxed, Cache, Retry, SharedSource, Tried},
};

/// Where shards go.
pub(super) enum Home {
    Gpu(Arc<Gpu>),
    Host(Ledger),
}

/// A shard that is there.
#[derive(Clone)]
pub(super) enum Resident {
    Gpu(GpuShard),
    Host(Arc<HostShard>),
}

/// A shard in host memory: a table whose rows count from 0.
pub(super) struct HostShard {
    pub(super) table: HostTable,
    _reserved: Reservation,
}

impl Resident {
    /// As it is where shards are on a device.
    pub(super) fn gpu(&self) -> &GpuShard {
        match self {
            Self::Gpu(shard) => shard,
            Self::Host(_) => unreachable!("all shards of a table have one home"),
        }
    }

    /// As it is where shards are in host memory.
    pub(super) fn host(&self) -> &HostTable {
        match self {
            Self::Host(shard) => &shard.table,
            Self::Gpu(_) => unreachable!("all shards of a table have one home"),
        }
    }
}

/// What it takes to load a shard.
pub(super) struct Loader {
    pub(super) source: SharedSource,
    pub(super) bands: Vec<Band>,
    pub(super) shards: Vec<Shard>,
    pub(super) home: Home,
    retry: Retry,
    label: String,
}

impl Home {
    pub(super) fn ledger(&self) -> &Ledger {
        match self {
            Self::Gpu(gpu) => &gpu.ledger,
            Self::Host(ledger) => ledger,
        }
    }

    /// What the ledger gets for a shard; host memory needs no padding.
    pub(super) fn need(&self, label: &str, shard: &Shard) -> Need {
        let mut need = need(label, shard);
        if let Self::Host(_) = self {
            need.bytes.retain(|(category, _)| *category != Category::Padding);
        }
        need
    }

    pub(super) fn bytes(&self, shard: &Shard) -> u64 {
        self.need("", shard).total()
    }
}

impl Loader {
    pub(super) fn new(source: SharedSource, spec: &TableSpec, placement: Placement, home: Home, retry: Retry) -> Self {
        let label = format!("table.{}", source.name());
        Self { source, bands: spec.bands(), shards: placement.into_shards(), home, retry, label }
    }

    /// Loads shard `number`, once there is a place among the loads that run.
    pub(super) fn load(
        self: &Arc<Self>,
        cache: &Arc<Cache<Resident>>,
        number: usize,
    ) -> Boxed<'static, Result<Resident, ShardError>> {
        let (loader, cache) = (self.clone(), cache.clone());
        Box::pin(async move {
            let _running = cache.running().await;
            // Another attempt helps where the source failed, and nowhere else.
            let again = |error: &UploadError| matches!(error, UploadError::Source(_));
            let loaded = loader.retry.run(|| loader.attempt(number), again).await;
            loaded.map_err(|tried| loader.failed(number, tried))
        })
    }

    async fn attempt(&self, number: usize) -> Result<Resident, UploadError> {
        let shard = &self.shards[number];
        let band = &self.bands[shard.band];
        let need = self.home.need(&self.label, shard);
        match &self.home {
            Home::Gpu(gpu) => {
                gpu.alive()?;
                let reserved = gpu.reserve(vec![need])?.swap_remove(0);
                let made = gpu.make_shard(&self.label, shard, band, reserved).await?;
                gpu.fill_shard(&self.source, shard, band, &made).await?;
                Ok(Resident::Gpu(made))
            }
            Home::Host(ledger) => {
                let reserved = ledger.reserve_one(need)?;
                let table = HostTable::read_shard(&self.source, shard, band).await?;
                Ok(Resident::Host(Arc::new(HostShard { table, _reserved: reserved })))
            }
        }
    }

    fn failed(&self, number: usize, tried: Tried<UploadError>) -> ShardError {
        let Tried { attempts, last, late } = tried;
        let cause = match last {
            Some(UploadError::OverBudget(error)) => error.into(),
            Some(UploadError::Device(error)) => error.into(),
            Some(UploadError::Source(error)) if !late => ShardCause::Source { attempts, error },
            last => {
                let last = match last {
                    Some(UploadError::Source(error)) => Some(error),
                    _ => None::<SourceError>,
                };
                ShardCause::Deadline { deadline: self.retry.deadline, attempts, last }
            }
        };
        tracing::debug!(table = self.source.name(), shard = number, %cause, "shard not loaded");
        self.error(number, cause)
    }

    /// The error for a shard.
    pub(super) fn error(&self, number: usize, cause: ShardCause) -> ShardError {
        let shard = &self.shards[number];
        ShardError {
            table: self.source.name().to_owned(),
            shard: Some(number),
            rows: shard.first_row..shard.first_row + shard.rows,
            cause: Arc::new(cause),
        }
    }
}
