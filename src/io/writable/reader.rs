//! The published rows: those of the journal, over those of the table.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use futures_util::FutureExt;

use super::{
    super::{FileError, StoredTable, file_name, table_writer::folder},
    WritableError,
    head::Identity,
    journal::{Index, Journal},
};
use crate::{
    error::SourceError,
    scheme::{Band, TableSpec},
    source::{Changes, TableSource},
    store::{FileSource, Retry},
    units::Bytes,
};

/// Where the files of a table are.
#[derive(Debug)]
pub(super) struct Files {
    /// The table, as the caller named it.
    pub(super) name: String,
    pub(super) path: PathBuf,
    journal: PathBuf,
    /// How names of temporary files begin.
    pub(super) prefix: String,
}

impl Files {
    pub(super) fn new(path: &Path) -> Result<Self, WritableError> {
        let name = file_name(path);
        // A link stays one: what it leads to is written anew.
        let path = fs::canonicalize(path).map_err(FileError::io(format!("opening {name}")))?;
        let mut journal = path.clone().into_os_string();
        journal.push(".journal");
        let own = path.file_name().map_or_else(String::new, |own| own.to_string_lossy().into_owned());
        Ok(Self { name, path, journal: journal.into(), prefix: format!(".{own}.") })
    }

    /// Opens the table.
    pub(super) fn open(&self) -> Result<StoredTable<FileSource>, WritableError> {
        let source = FileSource::open(&self.path)?;
        // A file that cannot be read now is not read either a little later.
        let once = Retry { attempts: 1, ..Retry::default() };
        Ok(pollster::block_on(StoredTable::open_with(source, once))?)
    }

    /// Bytes of the journal, before it is opened.
    pub(super) fn journal_bytes(&self) -> u64 {
        fs::metadata(&self.journal).map_or(0, |metadata| metadata.len())
    }

    /// Removes temporary files that a kill has left. The journal is locked: nobody has them open.
    pub(super) fn clean(&self) {
        let Ok(entries) = fs::read_dir(folder(&self.path)) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let own = name.to_str().and_then(|name| name.strip_prefix(&self.prefix)?.strip_suffix(".tmp"));
            if own.is_some_and(|own| own.len() == 6 && own.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
                let removed = fs::remove_file(entry.path());
                tracing::debug!(file = ?entry.path(), ?removed, "a temporary file that was left");
            }
        }
    }
}

/// What the identity of a table file is.
pub(super) fn identity(table: &StoredTable<FileSource>) -> Identity {
    Identity::new(table.spec(), table.metadata("checksum").unwrap_or_default())
}

/// What a writer and its readers have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) spec: TableSpec,
    bands: Vec<Band>,
    pub(super) changes: Changes,
    held: RwLock<Held>,
    /// Locked after `held`, where both are.
    journal: Mutex<Journal>,
}

/// The table and what the journal has in place of its rows: they change together.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) base: StoredTable<FileSource>,
    pub(super) index: Index,
}

impl Shared {
    /// Opens the journal of `base`.
    pub(super) fn open(files: &Files, base: StoredTable<FileSource>) -> Result<Self, WritableError> {
        let (name, spec) = (TableSource::name(&base).to_owned(), base.spec().clone());
        let bands = spec.bands();
        let row_bytes = |row| band_of(&bands, row).map(|band| band.spec.row_bytes());
        let (journal, index) = Journal::open(&files.journal, &files.prefix, &identity(&base), row_bytes)?;
        files.clean();
        let changes = Changes::new(journal.version());
        let held = RwLock::new(Held { base, index });
        Ok(Self { name, spec, bands, changes, held, journal: Mutex::new(journal) })
    }

    pub(super) fn journal(&self) -> MutexGuard<'_, Journal> {
        // A journal that a panic left amid a transaction takes it back.
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn reading(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn writing(&self) -> RwLockWriteGuard<'_, Held> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rows that are in the journal, and bytes of the table.
    pub(super) fn held(&self) -> (usize, Bytes) {
        let held = self.reading();
        (held.index.len(), held.base.file_bytes())
    }

    /// Writes rows to the disk.
    pub(super) fn flush<'a>(&self, rows: impl Iterator<Item = (u32, &'a [u8])>) -> Result<(), WritableError> {
        // There is one writer: nobody changes the index meanwhile.
        let held = self.reading();
        let slots = self.journal().flush(rows, &held.index, self.changes.version() + 1)?;
        drop(held);
        let mut held = self.writing();
        slots.into_iter().for_each(|(row, slot)| held.index.entry(row).or_default().flushed = Some(slot));
        Ok(())
    }

    /// Has readers read those rows as they were flushed.
    pub(super) fn publish(&self, rows: &[u32]) {
        let mut held = self.writing();
        for row in rows {
            let slots = held.index.entry(*row).or_default();
            slots.current = slots.flushed.take().or(slots.current);
        }
    }

    /// Copies the published bytes of a part from `offset` on.
    fn read(&self, part: usize, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let held = self.reading();
        // A local file is read at once.
        let read = held.base.read_part(part, offset, out).now_or_never();
        read.unwrap_or_else(|| Err(SourceError::Invalid(format!("{}: a file that is not read at once", self.name))))?;
        let Some(band) = self.bands.iter().find(|band| band.parts.contains(&part)) else { return Ok(()) };
        let parts = band.spec.parts();
        let within = part - band.parts.start;
        let length = parts[within].row_bytes();
        if out.is_empty() || length == 0 {
            return Ok(());
        }
        let before: u64 = parts[..within].iter().map(crate::scheme::Part::row_bytes).sum();
        let row = |at: u64| band.first_row + u32::try_from(at / length).unwrap_or(u32::MAX);
        let end = offset + out.len() as u64;
        for (row, slots) in held.index.range(row(offset)..=row(end - 1)) {
            let Some(slot) = slots.current else { continue };
            let first = u64::from(row - band.first_row) * length;
            // The bytes of the row that were asked for.
            let (begin, until) = (first.max(offset), (first + length).min(end));
            let copy = |bytes: &[u8]| {
                let own = &bytes[index(before + begin - first)..index(before + until - first)];
                out[index(begin - offset)..index(until - offset)].copy_from_slice(own);
            };
            let read = self.journal().read(*row, slot, copy);
            read.map_err(|error| SourceError::Invalid(error.to_string()))?;
        }
        Ok(())
    }
}

fn band_of(bands: &[Band], row: u32) -> Option<&Band> {
    bands.iter().find(|band| (band.first_row..band.first_row + band.spec.shape().rows()).contains(&row))
}

/// A number of bytes that are in memory.
fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The published rows of a [`WritableTable`](super::WritableTable), as a source. Clones share it.
///
/// It reads the table's file as [`StoredTable`] does, and rows that were written from the journal, each compared with its checksum.
/// See [`WritableTable::reader`](super::WritableTable::reader).
#[derive(Clone, Debug)]
pub struct TableReader(Arc<Shared>);

impl TableReader {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// The version that lookups read which begin now.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.changes.version()
    }
}

impl TableSource for TableReader {
    fn spec(&self) -> &TableSpec {
        &self.0.spec
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    fn changes(&self) -> Option<&Changes> {
        Some(&self.0.changes)
    }

    async fn read_part(&self, part: usize, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        self.0.read(part, offset, out)
    }
}
