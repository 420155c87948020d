//! A table placed on an engine.

use std::{fmt, sync::Arc};

use super::on_demand::Shards;
use crate::{
    error::TableError,
    gpu::{Gpu, GpuShard, UploadError},
    host::HostTable,
    memory::{Ledger, Need, Placement, Reservation},
    scheme::TableSpec,
    source::{Changes, Reading, TableSource},
    store::{OnDemand, SharedSource, Tiered},
    units::Bytes,
};

/// A table that rows can be looked up in. Clones share it; its memory is free when the last one is dropped.
///
/// See [`Table::gather`] for an example.
#[derive(Clone)]
pub struct Table {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) name: String,
    pub(super) spec: TableSpec,
    pub(super) place: Place,
    bytes: Bytes,
}

/// Where the rows are.
pub(super) enum Place {
    Host {
        table: HostTable,
        _reserved: Reservation,
    },
    Gpu {
        gpu: Arc<Gpu>,
        shards: Vec<GpuShard>,
    },
    /// Where they are needed, when they are.
    OnDemand(Arc<Shards>),
}

impl Table {
    /// Places `source` in host memory.
    pub(crate) async fn on_host(source: &impl TableSource, ledger: &Ledger) -> Result<Self, TableError> {
        let _reading = Changes::read(source.changes()).await;
        let reserved = reserve_host(source.name(), source.spec(), ledger)?;
        let mut table = HostTable::empty(source.name(), source.spec())?;
        table.read(source).await?;
        let bytes = source.spec().bytes();
        Ok(Self::new(source.name(), source.spec(), bytes, Place::Host { table, _reserved: reserved }))
    }

    /// Places `source` on a device. Nothing is left there where it fails.
    pub(crate) async fn on_gpu(source: &impl TableSource, gpu: Arc<Gpu>) -> Result<Self, TableError> {
        gpu.alive()?;
        let _reading = Changes::read(source.changes()).await;
        let bands = source.spec().bands();
        let placement = Placement::read(source, most_bound(&gpu)).await?;
        let shards = gpu.place_shards(&label(source.name()), &placement, &bands).await?;
        for (shard, made) in placement.shards().iter().zip(&shards) {
            gpu.fill_shard(source, shard, &bands[shard.band], made).await?;
        }
        gpu.settle_shards(&shards);
        tracing::debug!(
            table = source.name(),
            scheme = %source.spec().scheme(),
            shape = %source.spec().shape(),
            shards = shards.len(),
            bytes = placement.bytes().0,
            "table placed"
        );
        Ok(Self::new(source.name(), source.spec(), placement.bytes(), Place::Gpu { gpu, shards }))
    }

    pub(super) fn new(name: &str, spec: &TableSpec, bytes: Bytes, place: Place) -> Self {
        Self { inner: Arc::new(Inner { name: name.to_owned(), spec: spec.clone(), place, bytes }) }
    }

    /// Takes a table whose shards are loaded when they are needed.
    pub(crate) fn on_demand(
        source: &SharedSource,
        gpu: Option<&Arc<Gpu>>,
        ledger: &Ledger,
        options: &OnDemand,
    ) -> Result<Self, TableError> {
        let shards = match gpu {
            Some(gpu) => Shards::on_gpu(source.clone(), gpu.clone(), options)?,
            None => Shards::on_host(source.clone(), ledger, options)?,
        };
        Ok(Self::of_shards(source, shards))
    }

    fn of_shards(source: &SharedSource, shards: Shards) -> Self {
        let shards = Arc::new(shards);
        shards.follow();
        Self::new(source.name(), source.spec(), shards.residency().bytes, Place::OnDemand(shards))
    }

    /// The version of its source that a call reads, to be held while the call reads it. A call asks once.
    pub(super) async fn reading(&self) -> Reading<'_> {
        let changes = match &self.inner.place {
            Place::OnDemand(shards) => shards.changes(),
            // What is there whole stays as it was loaded.
            Place::Host { .. } | Place::Gpu { .. } => None,
        };
        Changes::read(changes).await
    }

    /// Takes a table whose rows are kept in tiers.
    pub(crate) async fn tiered(
        source: &SharedSource,
        gpu: Option<&Arc<Gpu>>,
        ledger: &Ledger,
        options: &Tiered,
    ) -> Result<Self, TableError> {
        let shards = Shards::tiered(source.clone(), gpu, ledger, options).await?;
        Ok(Self::of_shards(source, shards))
    }

    /// The table's name: that of its source.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Scheme, shape and parts.
    #[must_use]
    pub fn spec(&self) -> &TableSpec {
        &self.inner.spec
    }

    /// Bytes it takes where it is, padding included; on demand, those that it takes once all of it is there.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.inner.bytes
    }

    /// Buffers it is split over on the device; 1 on the host, unless it is there on demand.
    #[must_use]
    pub fn shards(&self) -> usize {
        match &self.inner.place {
            Place::Host { .. } => 1,
            Place::Gpu { shards, .. } => shards.len(),
            Place::OnDemand(shards) => shards.placed().len(),
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("name", &self.inner.name)
            .field("scheme", self.inner.spec.scheme())
            .field("shape", &self.inner.spec.shape())
            .field("shards", &self.shards())
            .field("bytes", &self.inner.bytes)
            .finish_non_exhaustive()
    }
}

pub(super) fn label(name: &str) -> String {
    format!("table.{name}")
}

/// Enters a table of the host in the ledger.
pub(super) fn reserve_host(name: &str, spec: &TableSpec, ledger: &Ledger) -> Result<Reservation, TableError> {
    let bytes = spec.parts().iter().map(|part| (part.category(), part.bytes().0)).collect();
    Ok(ledger.reserve_one(Need { label: label(name), bytes })?)
}

/// Bytes that a shard may have on a device.
pub(super) fn most_bound(gpu: &Gpu) -> Bytes {
    let limit = gpu.limits.max_storage_buffer_binding_size.min(gpu.limits.max_buffer_size);
    // Addresses in shaders are 32-bit numbers of bytes.
    Bytes(limit.min((1 << 31) - 1))
}

impl From<UploadError> for TableError {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::OverBudget(error) => error.into(),
            UploadError::Device(error) => error.into(),
            UploadError::Source(error) => error.into(),
        }
    }
}
