//! The engine: a device or the host, a ledger, and the tables placed there.

mod builder;
mod info;

use std::sync::Arc;

pub use builder::{BackendChoice, EngineBuilder};
pub use info::{AdapterReport, BackendInfo};

use crate::{
    error::{DeviceError, DynamicError, EngineError, TableError},
    gpu::{self, Gpu, Tuning},
    memory::{Compaction, Ledger, MemoryReport, PoolReport},
    source::TableSource,
    store::{OnDemand, SharedSource, Tiered},
    table::{DynamicOptions, DynamicTable, Table},
};

/// Where tables live and lookups run. Clones share it.
///
/// # Examples
/// ```
/// use gatherum::{EncodedTable, Engine, IdPolicy};
/// # pollster::block_on(async {
/// let engine = Engine::new().await?;
/// let (table, _) = EncodedTable::encode("t", &[0.5, 1.0, -1.0, 2.0], 2, &"int8".parse()?)?;
/// let table = engine.load(&table).await?;
/// let rows = table.gather(&[1_u32], IdPolicy::Error).await?;
/// assert!((rows.values[1] - 2.0).abs() < 0.01);
/// println!("{}\n{}", engine.backend(), engine.memory());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// None on the host backend.
    gpu: Option<Arc<Gpu>>,
    backend: BackendInfo,
    ledger: Ledger,
    /// How to make it again; None where the device was lent.
    builder: Option<EngineBuilder>,
}

impl Engine {
    /// The best there is: a discrete, integrated or virtual GPU, else the host.
    ///
    /// The environment variable `GATHERUM_BACKEND` overrides the choice, as [`BackendChoice::parse`] reads it. Where there
    /// is no adapter at all, the host backend serves, and a warning says so once.
    ///
    /// # Errors
    /// [`EngineError::NoAdapter`] where `GATHERUM_BACKEND` names an adapter that is not there.
    pub async fn new() -> Result<Self, EngineError> {
        Self::builder().build().await
    }

    /// As [`Engine::new`], blocking.
    ///
    /// # Errors
    /// As [`Engine::new`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new_blocking() -> Result<Self, EngineError> {
        Self::builder().build_blocking()
    }

    /// An engine with a choice of backend, budget and kernels.
    #[must_use]
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// The host backend: SIMD and threads, no device.
    #[must_use]
    pub fn host() -> Self {
        Self::on_host(EngineBuilder::default().backend(BackendChoice::Host))
    }

    fn on_host(builder: EngineBuilder) -> Self {
        let ledger = Ledger::new(builder.budget);
        Self { inner: Arc::new(Inner { gpu: None, backend: BackendInfo::host(), ledger, builder: Some(builder) }) }
    }

    /// An engine on a device of the caller's, with clones of its handles.
    ///
    /// Works on default limits and without features. Nothing of the device is changed: no handler is installed, error
    /// scopes are balanced, and nothing but what the caller asks for is submitted. [`required_limits`](Self::required_limits)
    /// says what to ask an adapter for to hold larger tables in fewer buffers.
    ///
    /// # Errors
    /// [`EngineError::Limit`] where the device's limits are below what the kernels need.
    pub fn with_device(device: wgpu::Device, queue: wgpu::Queue) -> Result<Self, EngineError> {
        Self::builder().with_device(device, queue)
    }

    /// Limits to ask `adapter` for when making a device to lend: the defaults, with buffers as large as it has them.
    #[must_use]
    pub fn required_limits(adapter: &wgpu::Adapter) -> wgpu::Limits {
        gpu::needed_limits(&adapter.limits())
    }

    /// Features that the kernels need: none.
    #[must_use]
    pub fn required_features() -> wgpu::Features {
        wgpu::Features::empty()
    }

    /// Every adapter, in the order of preference, and whether an engine would take it.
    pub async fn adapters() -> Vec<AdapterReport> {
        gpu::find(wgpu::PowerPreference::None).await.iter().map(AdapterReport::new).collect()
    }

    /// As [`Engine::adapters`], blocking.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn adapters_blocking() -> Vec<AdapterReport> {
        pollster::block_on(Self::adapters())
    }

    /// What it runs on.
    #[must_use]
    pub fn backend(&self) -> &BackendInfo {
        &self.inner.backend
    }

    /// The device, `None` on the host backend. Rows in buffers can be used by other work on it.
    #[must_use]
    pub fn device(&self) -> Option<&wgpu::Device> {
        self.inner.gpu.as_ref().map(|gpu| &gpu.device)
    }

    /// The device's queue, `None` on the host backend.
    #[must_use]
    pub fn queue(&self) -> Option<&wgpu::Queue> {
        self.inner.gpu.as_ref().map(|gpu| &gpu.queue)
    }

    pub(crate) fn gpu(&self) -> Option<&Gpu> {
        self.inner.gpu.as_deref()
    }

    /// Places a table: on the device as shards of at most the size it binds, on the host in memory.
    ///
    /// Parts are read and uploaded by chunks of at most 4 MiB; the table is never in host memory whole, unless the host is
    /// where it goes. All its memory is reserved first: a refusal allocates nothing.
    ///
    /// # Errors
    /// [`TableError::OverBudget`], [`TableError::RowTooLarge`], [`TableError::Source`] where reading fails,
    /// [`TableError::Device`] where the device does.
    pub async fn load(&self, source: &impl TableSource) -> Result<Table, TableError> {
        match &self.inner.gpu {
            Some(gpu) => Table::on_gpu(source, gpu.clone()).await,
            None => Table::on_host(source, &self.inner.ledger).await,
        }
    }

    /// Makes room for a table whose parts come one after the other. All its memory is reserved first.
    #[cfg(feature = "files")]
    pub(crate) async fn begin(&self, name: &str, spec: &crate::TableSpec) -> Result<crate::table::Loading, TableError> {
        use crate::table::Loading;
        match &self.inner.gpu {
            Some(gpu) => Loading::on_gpu(name, spec, gpu.clone()).await,
            None => Loading::on_host(name, spec, &self.inner.ledger),
        }
    }

    /// Takes a table whose shards are loaded when lookups need them: nothing is read here but what `source` has read.
    ///
    /// Lookups, bags and scores give the bits that they give of a table that is loaded whole. Ids on the device are read back
    /// to tell their shards. See [`Table::residency`], [`Table::warm`], [`Table::prefetch`] and [`Table::evict`].
    ///
    /// # Errors
    /// [`TableError::NotOnDemand`] for sparse rows, and where ids read several rows; [`TableError::RowTooLarge`];
    /// [`TableError::ShardBudget`] where the budget holds no shard; [`TableError::Device`] where
    /// the device is lost.
    ///
    /// # Examples
    /// ```
    /// use gatherum::{Bytes, EncodedTable, Engine, IdPolicy, OnDemand};
    /// # pollster::block_on(async {
    /// let values: Vec<f32> = (0..4000).map(|value| value as f32).collect();
    /// let (encoded, _) = EncodedTable::encode("numbers", &values, 4, &"f32".parse()?)?;
    /// let options = OnDemand { shard: Bytes(4096), budget: Some(Bytes(8192)), ..OnDemand::default() };
    /// let table = Engine::host().load_on_demand(encoded, &options)?;
    /// assert_eq!(table.residency().resident_shards, 0);
    /// let rows = table.gather(&[999_u32, 1], IdPolicy::Error).await?;
    /// assert_eq!(rows.values, [3996.0, 3997.0, 3998.0, 3999.0, 4.0, 5.0, 6.0, 7.0]);
    /// assert_eq!((table.residency().resident_shards, table.residency().shards), (2, 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn load_on_demand(
        &self,
        source: impl TableSource + wgpu::WasmNotSendSync + 'static,
        options: &OnDemand,
    ) -> Result<Table, TableError> {
        Table::on_demand(&SharedSource::new(source), self.inner.gpu.as_ref(), &self.inner.ledger, options)
    }

    /// Takes a table whose rows are kept in tiers: on the device, over host memory, over `source`, each within its budget.
    ///
    /// Lookups, bags and scores give the bits that they give of a table that is loaded whole, whatever is where. Nothing is read
    /// here but what all rows share; room for the tiers is made. See [`Table::tiers`] for what they did, [`Table::prefetch`] and
    /// [`Table::lease`] for bringing rows up before they are needed.
    ///
    /// # Errors
    /// [`TableError::NotOnDemand`] for sparse rows, bands, and where ids read several rows; [`TableError::ShardBudget`] where a
    /// budget holds no row; [`TableError::OverBudget`] where the engine's does not hold the tiers; [`TableError::Source`] and
    /// [`TableError::Device`] where those fail.
    ///
    /// # Examples
    /// ```
    /// use gatherum::{Bytes, EncodedTable, Engine, IdPolicy, Tiered};
    /// # pollster::block_on(async {
    /// let values: Vec<f32> = (0..4000).map(|value| value as f32).collect();
    /// let (encoded, _) = EncodedTable::encode("numbers", &values, 4, &"f32".parse()?)?;
    /// // A tenth of the table fits.
    /// let options = Tiered { host: Bytes(1600), ..Tiered::default() };
    /// let table = Engine::host().load_tiered(encoded, &options).await?;
    /// let rows = table.gather(&[999_u32, 1], IdPolicy::Error).await?;
    /// assert_eq!(rows.values, [3996.0, 3997.0, 3998.0, 3999.0, 4.0, 5.0, 6.0, 7.0]);
    /// let host = table.tiers().ok_or("a table in tiers")?.host;
    /// assert_eq!((host.misses, host.resident.0), (2, 32));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn load_tiered(
        &self,
        source: impl TableSource + wgpu::WasmNotSendSync + 'static,
        options: &Tiered,
    ) -> Result<Table, TableError> {
        Table::tiered(&SharedSource::new(source), self.inner.gpu.as_ref(), &self.inner.ledger, options).await
    }

    /// As [`Engine::load_tiered`], blocking.
    ///
    /// # Errors
    /// As [`Engine::load_tiered`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn load_tiered_blocking(
        &self,
        source: impl TableSource + wgpu::WasmNotSendSync + 'static,
        options: &Tiered,
    ) -> Result<Table, TableError> {
        pollster::block_on(self.load_tiered(source, options))
    }

    /// Makes a table of rows that come and go, for ids of any 64 bits, of `dim` columns: none at first. All its memory is reserved
    /// before anything is made. See [`DynamicTable`] for an example.
    ///
    /// # Errors
    /// [`DynamicError::Capacity`], [`DynamicError::OddHalves`], [`DynamicError::Initializer`] for options that cannot be;
    /// [`DynamicError::Gather`] with [`GatherError::OverBudget`](crate::GatherError::OverBudget) beyond the budget;
    /// [`DynamicError::MapTooLarge`], [`DynamicError::Table`] and [`DynamicError::HostMemory`] for what there is no room for.
    pub async fn dynamic_table(
        &self,
        name: &str,
        dim: u32,
        options: &DynamicOptions,
    ) -> Result<DynamicTable, DynamicError> {
        match &self.inner.gpu {
            Some(gpu) => DynamicTable::on_gpu(name, dim, options, gpu.clone()).await,
            None => DynamicTable::on_host(name, dim, options, &self.inner.ledger).await,
        }
    }

    /// As [`Engine::dynamic_table`], blocking.
    ///
    /// # Errors
    /// As [`Engine::dynamic_table`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn dynamic_table_blocking(
        &self,
        name: &str,
        dim: u32,
        options: &DynamicOptions,
    ) -> Result<DynamicTable, DynamicError> {
        pollster::block_on(self.dynamic_table(name, dim, options))
    }

    /// As [`Engine::load`], blocking.
    ///
    /// # Errors
    /// As [`Engine::load`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn load_blocking(&self, source: &impl TableSource) -> Result<Table, TableError> {
        pollster::block_on(self.load(source))
    }

    /// The ledger: every byte of every buffer and host table of this engine, by label and category.
    #[must_use]
    pub fn memory(&self) -> MemoryReport {
        self.inner.ledger.report()
    }

    /// The blocks that small tables share on a device: how many, and how well they are filled. None on the host.
    #[must_use]
    pub fn pool(&self) -> PoolReport {
        self.inner.gpu.as_ref().map(|gpu| gpu.pool()).unwrap_or_default()
    }

    /// Moves tables that share blocks of memory, by copies on the device, so that the blocks are fewer or smaller. Lookups go on
    /// meanwhile, and give the same rows. The engine does the first by itself before it refuses anything for its budget.
    ///
    /// # Errors
    /// [`DeviceError`] where the device fails; the tables are then as they were.
    ///
    /// # Examples
    /// ```
    /// use gatherum::{EncodedTable, Engine, IdPolicy};
    /// # pollster::block_on(async {
    /// let engine = Engine::new().await?;
    /// let mut tables = Vec::new();
    /// for number in 0..8 {
    ///     let (encoded, _) = EncodedTable::encode("t", &vec![number as f32; 32_000], 32, &"f32".parse()?)?;
    ///     tables.push(engine.load(&encoded).await?);
    /// }
    /// // Seven tables go, and with them most of what they shared.
    /// tables.drain(1..);
    /// let compaction = engine.compact().await?;
    /// println!("{} B moved, {} B given back: {:?}", compaction.moved, compaction.freed, engine.pool());
    /// assert_eq!(tables[0].gather(&[999_u32], IdPolicy::Error).await?.values, [0.0; 32]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn compact(&self) -> Result<Compaction, DeviceError> {
        match &self.inner.gpu {
            Some(gpu) => gpu.compact().await,
            None => Ok(Compaction::default()),
        }
    }

    /// As [`Engine::compact`], blocking.
    ///
    /// # Errors
    /// As [`Engine::compact`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn compact_blocking(&self) -> Result<Compaction, DeviceError> {
        pollster::block_on(self.compact())
    }

    /// Gives back the memory of output and staging buffers, and of pipelines, that are kept for the next call.
    pub fn trim(&self) {
        if let Some(gpu) = &self.inner.gpu {
            gpu.trim();
        }
    }

    /// Whether the device is known to be lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.inner.gpu.as_ref().is_some_and(|gpu| gpu.alive().is_err())
    }

    /// A new engine made as this one was, after its device was lost. Tables are loaded to it again from their sources.
    ///
    /// # Errors
    /// As [`EngineBuilder::build`]; [`EngineError::NoDevice`] where the device was lent, as only its owner can make another.
    pub async fn rebuild(&self) -> Result<Self, EngineError> {
        match &self.inner.builder {
            Some(builder) => builder.clone().build().await,
            None => Err(EngineError::NoDevice {
                adapter: self.inner.backend.name.clone(),
                reason: "the device was lent to the engine; lend it another with Engine::with_device".to_owned(),
            }),
        }
    }
}

impl Inner {
    fn on_device(device: wgpu::Device, queue: wgpu::Queue, builder: &EngineBuilder, lent: bool) -> Self {
        let ledger = Ledger::new(builder.budget);
        let tuning = Tuning { granularity: builder.granularity, checked: builder.checked };
        let backend = BackendInfo::of(&device);
        let mut gpu = Gpu::new(device, queue, ledger.clone(), tuning);
        if !lent {
            gpu.own();
        }
        let gpu = Arc::new(gpu);
        ledger.reclaim_from(&gpu);
        Self { gpu: Some(gpu), backend, ledger, builder: (!lent).then(|| builder.clone()) }
    }
}
