//! Tables whose rows come and go: a row for each id that is used, any number of 64 bits, in room for so many.
//!
//! ```text
//! under a lock:
//!     slots = those of the ids, from a map that the host keeps       # map.rs; new ones take free slots,
//!                                                                    # or those of ids that go: eviction.rs, slots.rs
//!     rows[new slots] = what the initializer gives                   # init.rs, made where the rows are
//!     on a device: its copy of the map takes the buckets that changed
//!     out = rows[slots]                                              # the gather of any other table
//! ```
//! Ids that lie on a device are looked up in the copy there. Ids that it misses have the row that they would be given, which depends
//! on the id alone, and are kept, for [`DynamicTable::settle`] to make their rows.
//!
//! All that changes the map or the rows is submitted under the lock, so that a device does it in the order in which the map
//! changed; what may wait is done before the lock is taken and after it is let go.

mod calls;
mod device;
mod eviction;
mod export;
mod init;
mod map;
mod slots;
mod store;
mod upsert;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use calls::{Missing, Settled};
use device::Missed;
pub use eviction::Eviction;
pub use export::Exported;
pub use init::Initializer;
use slots::Slots;
use store::Store;

use crate::{
    error::DynamicError,
    gpu::{Gpu, OutputDtype, RowKind},
    memory::{Ledger, Need, Reservation},
    scheme::{Category, Scheme, TableSpec},
    units::{Bytes, Shape},
};

/// The most rows that there may be room for: the map has twice as many buckets, whose numbers have 32 bits.
const MOST_ROWS: u64 = (1 << 31) - 1;

/// What a dynamic table is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DynamicOptions {
    /// Rows that there is room for: 1 to 2^31 - 1. Memory for all of them is taken when the table is made.
    pub capacity: u64,
    /// How rows are stored. Rows of f16 have an even number of columns.
    pub dtype: OutputDtype,
    /// What a row is when it is made.
    pub initializer: Initializer,
    /// Which rows go where there is no room.
    pub eviction: Eviction,
    /// Whether ids that went are kept until [`DynamicTable::take_evicted`] asks for them: 8 bytes each.
    pub report_evicted: bool,
}

impl Default for DynamicOptions {
    /// Room for 65,536 rows of f32, made as zeros; the least recently used go, and are reported.
    fn default() -> Self {
        Self {
            capacity: 1 << 16,
            dtype: OutputDtype::F32,
            initializer: Initializer::default(),
            eviction: Eviction::default(),
            report_evicted: true,
        }
    }
}

/// What a dynamic table has, and what has happened to it so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DynamicStats {
    /// Rows that there are.
    pub rows: u64,
    /// Rows that there is room for.
    pub capacity: u64,
    /// Ids from the host that had a row when they were used, each time they were.
    pub hits: u64,
    /// Those that had none.
    pub misses: u64,
    /// Rows that went to make room for others.
    pub evictions: u64,
}

/// A table whose rows come and go: a row for each id that is used, any number of 64 bits. Clones share it; its memory is free when
/// the last one is dropped.
///
/// A row is made when its id is first used, by an [`Initializer`]; it can be written ([`upsert`](Self::upsert)), taken out
/// ([`remove`](Self::remove)), and goes where there is no room, by the rule of [`Eviction`]. An id that went is reported once, by
/// [`take_evicted`](Self::take_evicted). Ids of a batch never go to make room for that batch. An `i64` id is the `u64` of the same bits.
///
/// Beside its rows it takes, of host memory, 40 bytes a row that there is room for, and 8 more to evict the least recently used, or 24
/// by uses or scores; and on a device, 24 bytes for the map of ids. All of that is in the ledger.
///
/// # Examples
/// ```
/// use gatherum::{DynamicOptions, Engine, Initializer};
/// # pollster::block_on(async {
/// let initializer = Initializer::Uniform { seed: 1, low: -0.1, high: 0.1 };
/// let options = DynamicOptions { capacity: 2, initializer, ..DynamicOptions::default() };
/// let table = Engine::host().dynamic_table("users", 4, &options).await?;
///
/// let new = table.gather(&[u64::MAX]).await?; // made now
/// assert!(new.values.iter().all(|value| value.abs() <= 0.1));
/// table.upsert(&[7_u64], &[1.0, 2.0, 3.0, 4.0]).await?; // there is room for two
/// table.gather(&[u64::MAX]).await?;
/// assert_eq!(table.gather(&[1_u64 << 63, u64::MAX]).await?.values[4..], new.values);
/// assert_eq!(table.take_evicted(), [7]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct DynamicTable {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    dim: u32,
    eviction: Eviction,
    kind: RowKind,
    home: Home,
    state: Mutex<State>,
}

/// Where rows are kept.
#[derive(Clone)]
enum Home {
    Host(Ledger),
    Gpu(Arc<Gpu>),
}

/// What changes.
struct State {
    slots: Slots,
    store: Store,
    /// Lookups by ids of the device whose missed ids have no rows yet.
    missed: Vec<Missed>,
    /// What the host knows of ids.
    reserved: Reservation,
}

impl Home {
    fn reserve(&self, needs: Vec<Need>) -> Result<Vec<Reservation>, DynamicError> {
        Ok(match self {
            Self::Host(ledger) => ledger.reserve(needs)?,
            Self::Gpu(gpu) => gpu.reserve(needs)?,
        })
    }

    fn gpu(&self) -> Option<&Arc<Gpu>> {
        match self {
            Self::Gpu(gpu) => Some(gpu),
            Self::Host(_) => None,
        }
    }
}

/// What the ledger gets for what the host knows of ids.
fn ids_need(name: &str, capacity: u32, eviction: Eviction) -> Need {
    Need::one(&format!("table.{name}.ids"), Category::Index, Slots::bytes(capacity, eviction))
}

impl DynamicTable {
    pub(crate) async fn on_gpu(
        name: &str,
        dim: u32,
        options: &DynamicOptions,
        gpu: Arc<Gpu>,
    ) -> Result<Self, DynamicError> {
        gpu.alive()?;
        Self::new(name, dim, options, Home::Gpu(gpu)).await
    }

    pub(crate) async fn on_host(
        name: &str,
        dim: u32,
        options: &DynamicOptions,
        ledger: &Ledger,
    ) -> Result<Self, DynamicError> {
        Self::new(name, dim, options, Home::Host(ledger.clone())).await
    }

    async fn new(name: &str, dim: u32, options: &DynamicOptions, home: Home) -> Result<Self, DynamicError> {
        let table = || name.to_owned();
        let capacity = checked(name, options.capacity)?;
        let spec = spec(dim, options.dtype, capacity)?;
        if options.dtype == OutputDtype::F16 && !dim.is_multiple_of(2) {
            return Err(DynamicError::OddHalves { table: table(), dim });
        }
        let kind = options.initializer.kind(name, dim, options.dtype)?;
        let needed = ids_need(name, capacity, options.eviction);
        let short = || DynamicError::HostMemory { table: table(), needed: Bytes(needed.total()) };
        let (store, reserved) = Store::new(name, spec, kind, options.eviction, &home).await?;
        let copied = home.gpu().is_some();
        let slots = Slots::new(capacity, options.eviction, copied, options.report_evicted).ok_or_else(short)?;
        let mut state = State { slots, store, missed: Vec::new(), reserved };
        state.sync()?;
        let inner = Inner { name: table(), dim, eviction: options.eviction, kind, home, state: Mutex::new(state) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The table's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Columns of a row.
    #[must_use]
    pub fn dim(&self) -> u32 {
        self.inner.dim
    }

    /// How rows are stored.
    #[must_use]
    pub fn dtype(&self) -> OutputDtype {
        self.inner.kind.dtype
    }

    /// Which rows go where there is no room.
    #[must_use]
    pub fn eviction(&self) -> Eviction {
        self.inner.eviction
    }

    /// Rows that there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.lock().slots.len() as u64
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows that there is room for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.lock().slots.capacity() as u64
    }

    /// Whether an id has a row.
    #[must_use]
    pub fn contains(&self, id: u64) -> bool {
        self.lock().slots.map.find(id).is_some()
    }

    /// What there is, and what has happened so far.
    #[must_use]
    pub fn stats(&self) -> DynamicStats {
        let state = self.lock();
        let counts = state.slots.counts;
        DynamicStats {
            rows: state.slots.len() as u64,
            capacity: state.slots.capacity() as u64,
            hits: counts.hits,
            misses: counts.misses,
            evictions: counts.evictions,
        }
    }

    /// Ids whose rows went to make room for others since this was asked last, in the order in which they went: each once for each
    /// time that it went. Whatever became of the call that they made room for, they are here. Ids that were removed are not.
    #[must_use = "ids that went are told once"]
    pub fn take_evicted(&self) -> Vec<u64> {
        self.lock().slots.take_evicted()
    }

    /// The state is whole wherever the lock is let go, and no call waits while it has it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number of rows that there may be room for.
fn checked(name: &str, capacity: u64) -> Result<u32, DynamicError> {
    match u32::try_from(capacity) {
        Ok(rows) if rows > 0 && capacity <= MOST_ROWS => Ok(rows),
        _ => Err(DynamicError::Capacity { table: name.to_owned(), capacity, most: MOST_ROWS }),
    }
}

/// The rows as a table whose ids are slots.
fn spec(dim: u32, dtype: OutputDtype, capacity: u32) -> Result<TableSpec, DynamicError> {
    let shape = Shape::new(capacity.into(), dim.into())?;
    let scheme = match dtype {
        OutputDtype::F32 => "f32",
        OutputDtype::F16 => "f16",
    };
    match scheme.parse::<Scheme>().map(|scheme| scheme.spec(shape)) {
        Ok(Ok(spec)) => Ok(spec),
        _ => unreachable!("plain rows may have any shape"),
    }
}

impl fmt::Debug for DynamicTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicTable")
            .field("name", &self.inner.name)
            .field("dim", &self.inner.dim)
            .field("dtype", &self.inner.kind.dtype)
            .field("eviction", &self.inner.eviction)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
