//! Sources whose rows change: versions, and who is told of the next.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use async_lock::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The versions of a source whose rows change, for [`TableSource::changes`](super::TableSource::changes): each call reads one
/// whole version of it, and none reads an older one than the last that was published before it began. Clones share them.
///
/// Lookups, bags and scores of tables in tiers and on demand, and loading a table whole, hold the version that they read. The
/// source publishes the next one by [`Changes::begin`], which waits for the calls in flight, and [`Publishing::publish`], by which
/// all tables forget the rows that changed.
///
/// # Examples
/// A source with values of its own:
/// ```
/// use std::sync::{Arc, Mutex};
/// use gatherum::{Engine, IdPolicy, SourceError, TableSource, TableSpec, Tiered, store::Changes};
///
/// #[derive(Clone)]
/// struct Counters { spec: TableSpec, values: Arc<Mutex<Vec<f32>>>, changes: Changes }
///
/// impl TableSource for Counters {
///     fn spec(&self) -> &TableSpec { &self.spec }
///     fn name(&self) -> &str { "counters" }
///     fn changes(&self) -> Option<&Changes> { Some(&self.changes) }
///     async fn read_part(&self, _part: usize, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
///         let values = self.values.lock().unwrap();
///         let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
///         out.copy_from_slice(&bytes[offset as usize..][..out.len()]);
///         Ok(())
///     }
/// }
/// # pollster::block_on(async {
/// let spec = "f32".parse::<gatherum::Scheme>()?.spec(gatherum::Shape::new(3, 1)?)?;
/// let counters = Counters { spec, values: Arc::new(Mutex::new(vec![0.0; 3])), changes: Changes::new(0) };
/// let table = Engine::host().load_tiered(counters.clone(), &Tiered::default()).await?;
/// assert_eq!(table.gather(&[1_u32], IdPolicy::Error).await?.values, [0.0]);
///
/// let publishing = counters.changes.begin().await;
/// counters.values.lock().unwrap()[1] = 7.0;
/// assert_eq!(publishing.publish(&[1], 1), 1);
/// assert_eq!(table.gather(&[1_u32], IdPolicy::Error).await?.values, [7.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Changes(Arc<Inner>);

struct Inner {
    /// Held by calls together, by whoever publishes alone.
    calls: RwLock<()>,
    version: AtomicU64,
    followers: Mutex<Vec<Weak<dyn Follower>>>,
}

/// What has rows of a source, and must not have those that changed.
pub(crate) trait Follower: wgpu::WasmNotSendSync {
    /// Forgets the stored `rows`, or sees that they are read anew before they are used. No call is in flight.
    fn changed(&self, rows: &[u32]);
}

/// The right of one call to read the version that is there.
#[must_use = "the version is let go when this is dropped"]
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    _calls: Option<RwLockReadGuard<'a, ()>>,
}

/// The right to put another version in the place of the one that is there: no call is in flight, and none begins.
///
/// Dropping it without [`Publishing::publish`] lets calls go on, and nothing may have changed then.
#[must_use = "a version is published by `publish`"]
#[derive(Debug)]
pub struct Publishing<'a> {
    changes: &'a Changes,
    _calls: RwLockWriteGuard<'a, ()>,
}

impl Changes {
    /// Those of a source that is at `version`.
    #[must_use]
    pub fn new(version: u64) -> Self {
        Self(Arc::new(Inner {
            calls: RwLock::new(()),
            version: AtomicU64::new(version),
            followers: Mutex::new(Vec::new()),
        }))
    }

    /// The version that calls read which begin now.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Waits until no call reads the source: those that begin later wait until the answer is dropped. Calls that were begun must
    /// be polled meanwhile, or this waits for ever.
    pub async fn begin(&self) -> Publishing<'_> {
        Publishing { changes: self, _calls: self.0.calls.write().await }
    }

    /// The version that a call of a source with those changes reads. A call must ask once: whoever waits to publish goes before a
    /// second asking.
    pub(crate) async fn read(changes: Option<&Self>) -> Reading<'_> {
        Reading {
            _calls: match changes {
                Some(changes) => Some(changes.0.calls.read().await),
                None => None,
            },
        }
    }

    /// Tells `follower` of all changes from now on, while it is there.
    pub(crate) fn follow(&self, follower: Weak<dyn Follower>) {
        let mut followers = self.0.followers.lock().unwrap_or_else(PoisonError::into_inner);
        followers.retain(|other| other.strong_count() > 0);
        followers.push(follower);
    }
}

impl Publishing<'_> {
    /// Publishes `version`, in which the stored `rows` are other than in the one before: tables forget them, and calls that begin
    /// from now on read the new ones. The source has them already. Gives the version.
    pub fn publish(self, rows: &[u32], version: u64) -> u64 {
        let inner = &self.changes.0;
        let mut followers = inner.followers.lock().unwrap_or_else(PoisonError::into_inner);
        followers.retain(|follower| follower.strong_count() > 0);
        followers.iter().filter_map(Weak::upgrade).for_each(|follower| follower.changed(rows));
        inner.version.store(version, Ordering::Release);
        version
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("version", &self.version()).finish_non_exhaustive()
    }
}
