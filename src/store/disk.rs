//! Blocks of tables on a local disk, for those that lie further away.
//!
//! ```text
//! FOLDER/lock                 held by the process that uses the folder
//! FOLDER/TABLE/PART.BLOCK     the bytes of a block, as they are in the table's file
//! FOLDER/TABLE/.new-*         a block that is being written; left over, it goes when the folder is opened
//! ```
//! `TABLE` is XXH3-128 of the table's header, which has the checksums of all blocks: a table that changes is another one. What is
//! read is compared with its checksum, so that a damaged file is one that is not there.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use crate::{error::SourceError, units::Bytes};

/// Files take whole pages of a disk.
const PAGE: u64 = 4096;

/// Begins the names of files that are being written.
const NEW: &str = ".new-";

/// A folder that keeps blocks of stored tables, at most so many bytes of them; what was not used for longest goes first. Clones
/// share it, and so may tables.
///
/// It is a tier below host memory: see [`StoredTable::kept_in`](crate::io::StoredTable::kept_in). One process uses a folder at a
/// time. What is there stays for the next one. Blocks that cannot be written, on a disk that is full, are read from afar again.
#[derive(Clone, Debug)]
pub struct DiskCache {
    inner: Arc<Inner>,
}

/// What a [`DiskCache`] has, and did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskStats {
    /// The most that blocks may take.
    pub capacity: Bytes,
    /// Bytes that blocks take, by whole pages of 4096.
    pub used: Bytes,
    /// Blocks that were needed and there.
    pub hits: u64,
    /// Blocks that were needed and read from afar.
    pub misses: u64,
    /// Blocks that made room for others.
    pub evictions: u64,
    /// Blocks that were there and damaged.
    pub damaged: u64,
}

/// A block of a part of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    pub(crate) table: u128,
    pub(crate) part: u32,
    pub(crate) block: u64,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    state: Mutex<State>,
    /// Locked until it is closed.
    _lock: File,
}

#[derive(Debug, Default)]
struct State {
    /// Of each block its bytes, and when it was used last.
    blocks: HashMap<BlockKey, (u64, u64)>,
    /// The first to go first.
    ages: BTreeMap<u64, BlockKey>,
    now: u64,
    stats: DiskStats,
}

impl DiskCache {
    /// Opens a folder, which is made where it is not there, for at most `capacity` bytes of blocks. Files of others in it are left
    /// as they are, and not counted.
    ///
    /// # Errors
    /// [`SourceError::Io`] where the system refuses; of the kind [`ResourceBusy`](io::ErrorKind::ResourceBusy) where another process
    /// uses the folder.
    pub fn open(folder: impl AsRef<Path>, capacity: Bytes) -> Result<Self, SourceError> {
        let folder = folder.as_ref().to_path_buf();
        let what = format!("the disk cache {}", folder.display());
        let failed = |error| SourceError::Io { what: what.clone(), error };
        fs::create_dir_all(&folder).map_err(failed)?;
        let lock =
            File::options().create(true).truncate(false).write(true).open(folder.join("lock")).map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => failed(io::Error::new(io::ErrorKind::ResourceBusy, "another process uses it")),
            TryLockError::Error(error) => failed(error),
        })?;
        let mut state = State::default();
        state.stats.capacity = capacity;
        for (_, key, bytes) in found(&folder).map_err(failed)? {
            state.insert(key, bytes);
        }
        let inner = Inner { folder, state: Mutex::new(state), _lock: lock };
        inner.make_room(&mut inner.lock(), 0).map_err(failed)?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What it has, and did so far.
    #[must_use]
    pub fn stats(&self) -> DiskStats {
        self.inner.lock().stats
    }

    /// A block of `length` bytes, if it is there and `right`.
    pub(crate) fn get(&self, key: BlockKey, length: usize, right: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let there = self.inner.lock().touch(key);
        let bytes = there.then(|| read(&self.inner.path(key), length)).and_then(Result::ok);
        let found = bytes.filter(|bytes| right(bytes));
        let mut state = self.inner.lock();
        state.stats.hits += u64::from(found.is_some());
        if there && found.is_none() && state.remove(key) {
            state.stats.damaged += 1;
            let _ = fs::remove_file(self.inner.path(key));
        }
        found
    }

    /// Whether a block is there, as far as is known without reading it.
    pub(crate) fn has(&self, key: BlockKey) -> bool {
        self.inner.lock().blocks.contains_key(&key)
    }

    /// Keeps a block that was read from afar, if there is room for it.
    pub(crate) fn put(&self, key: BlockKey, bytes: &[u8]) {
        self.inner.lock().stats.misses += 1;
        if let Err(error) = self.inner.put(key, bytes) {
            tracing::warn!(folder = %self.inner.folder.display(), %error, "a block was not kept");
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The books are whole after each method.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, key: BlockKey) -> PathBuf {
        self.folder.join(format!("{:032x}", key.table)).join(format!("{}.{}", key.part, key.block))
    }

    /// Lets go of blocks until `bytes` more are within the capacity.
    fn make_room(&self, state: &mut State, bytes: u64) -> io::Result<()> {
        while state.stats.used.0 + bytes > state.stats.capacity.0 {
            let Some(oldest) = state.ages.first_entry().map(|entry| *entry.get()) else { break };
            match fs::remove_file(self.path(oldest)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            state.remove(oldest);
            state.stats.evictions += 1;
        }
        Ok(())
    }

    fn put(&self, key: BlockKey, bytes: &[u8]) -> io::Result<()> {
        let size = (bytes.len() as u64).next_multiple_of(PAGE);
        {
            let mut state = self.lock();
            if size > state.stats.capacity.0 || state.blocks.contains_key(&key) {
                return Ok(());
            }
            self.make_room(&mut state, size)?;
            // Counted before it is written, so that nobody else takes the room.
            state.stats.used.0 += size;
        }
        let path = self.path(key);
        let folder = path.parent().unwrap_or(&self.folder);
        let write = || {
            fs::create_dir_all(folder)?;
            let mut file = tempfile::Builder::new().prefix(NEW).tempfile_in(folder)?;
            file.write_all(bytes)?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        let written = write();
        let mut state = self.lock();
        state.stats.used.0 -= size;
        // Somebody else may have written the same meanwhile.
        if written.is_ok() && !state.blocks.contains_key(&key) {
            state.insert(key, size);
        }
        written
    }
}

impl State {
    fn insert(&mut self, key: BlockKey, bytes: u64) {
        self.now += 1;
        self.blocks.insert(key, (bytes, self.now));
        self.ages.insert(self.now, key);
        self.stats.used.0 += bytes;
    }

    fn remove(&mut self, key: BlockKey) -> bool {
        let Some((bytes, age)) = self.blocks.remove(&key) else { return false };
        self.ages.remove(&age);
        self.stats.used.0 -= bytes;
        true
    }

    /// Notes that a block is used, if it is there.
    fn touch(&mut self, key: BlockKey) -> bool {
        let Some((_, age)) = self.blocks.get_mut(&key) else { return false };
        self.now += 1;
        self.ages.remove(age);
        *age = self.now;
        self.ages.insert(self.now, key);
        true
    }
}

/// A file of exactly so many bytes.
fn read(path: &Path, length: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() != length as u64 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The blocks in a folder, those written first before others, with the bytes that they take.
fn found(folder: &Path) -> io::Result<Vec<(SystemTime, BlockKey, u64)>> {
    let mut found = Vec::new();
    for table in fs::read_dir(folder)? {
        let table = table?;
        let name = table.file_name();
        let number = name.to_str().filter(|name| name.len() == 32).and_then(|name| u128::from_str_radix(name, 16).ok());
        let Some(number) = number.filter(|_| table.file_type().is_ok_and(|kind| kind.is_dir())) else { continue };
        for block in fs::read_dir(table.path())? {
            let block = block?;
            let name = block.file_name();
            let name = name.to_str().unwrap_or_default();
            if name.starts_with(NEW) {
                fs::remove_file(block.path())?;
            }
            let Some((part, place)) = name.split_once('.') else { continue };
            let (Ok(part), Ok(place)) = (part.parse(), place.parse()) else { continue };
            let about = block.metadata()?;
            let key = BlockKey { table: number, part, block: place };
            let written = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            found.push((written, key, about.len().next_multiple_of(PAGE)));
        }
    }
    found.sort_by_key(|(written, key, _)| (*written, key.part, key.block));
    Ok(found)
}
