//! Tables in files whose rows are written while they are served.
//!
//! A writable table is two files. The table, `words.safetensors`, is as [`layout`](super::layout) says and is not changed between
//! merges. The journal beside it, `words.safetensors.journal`, has the rows that were written since: it is a file of SQLite 3, of
//! application id `0x47544a4c` and user version 1, with two tables.
//!
//! ```text
//! head  one row, id 0
//!       | scheme, rows, dim | base          | next          | version | records | total          | sum            |
//!       | of the table      | its checksum  | the same of   | of the  | in      | sum of their   | of all before, |
//!       |                   | `xxh3:...`    | a merge's, "" | last    | `rows`  | sums, mod 2^64 | a line each    |
//!       |                   |               | where none is | flush   |         |                |                |
//! rows  key = 2 * row + slot, ascending
//!       | key     | version | parts                              | sum                                     |
//!       | INTEGER | INTEGER | the row's bytes of each part, in   | XXH3 of key and version (8 bytes each,  |
//!       |         |         | the scheme's order, no gap between | little endian) and parts                |
//! ```
//! - The base's checksum is that of the description in its header, which has those of all parts: the journal of one table is
//!   refused beside another. A merge writes `next` before it renames, so that a journal is right beside either table.
//! - A row has two slots. A flush writes the one that readers do not read, in a transaction that SQLite has on the disk when it
//!   returns; the greater version is the row's when the journal is opened. So a row is one or the other, whole.
//! - Opening reads all records and compares all sums, those of `head` and SQLite's own pages among them. A journal of another
//!   format, another table, or with a byte that is not as it was written, is refused and left as it is.
//! - A flush that a kill ended leaves `words.safetensors.journal-journal`, by which SQLite takes it back when the journal is opened:
//!   the three files belong together. Between flushes it is empty.

mod encode;
mod error;
mod head;
mod journal;
mod merge;
mod reader;
mod store;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

pub use error::WritableError;
use journal::{most_bytes, with_rollback, without_rollback};
pub use reader::TableReader;
use reader::{Files, Shared};

use crate::{op::Ids, scheme::TableSpec, source::TableSource, units::Bytes};

/// How a writable table is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writable {
    /// The most of the disk that the table and its journal may take together, with what a merge takes while it runs: the table once
    /// more. `None`: no such cap.
    pub disk: Option<Bytes>,
}

/// What a writable table has where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WritableStatus {
    /// The version that readers read.
    pub version: u64,
    /// Rows that are in memory alone.
    pub staged: usize,
    /// Rows that are on the disk, in a version that is not published.
    pub flushed: usize,
    /// Rows that the journal has in place of the table's.
    pub journaled: usize,
    /// Bytes of the table's file.
    pub table: Bytes,
    /// Bytes of the journal.
    pub journal: Bytes,
}

/// A table in a file whose rows are written while it is served: one writer at a time, any number of readers in its process.
///
/// What is written is staged in memory, where nobody reads it; [`WritableTable::flush`] has it on the disk;
/// [`WritableTable::publish`] has all readers read it, all of it at once. [`WritableTable::merge`] writes the table's file anew.
/// A kill at any moment leaves each row as it was or as it was written, whole, and what a flush had acknowledged is there; when the
/// table is opened again, what was flushed is published.
///
/// Rows are encoded by the table's scheme, each by itself: those of schemes in which they have something in common are refused.
/// The journal's format stands in [`io::writable`](self). The files are locked until the table and its readers are dropped.
///
/// # Examples
/// ```
/// use gatherum::{EncodedTable, Engine, IdPolicy, Tiered, io};
/// # pollster::block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("numbers.safetensors");
/// let values: Vec<f32> = (0..4000).map(|value| value as f32).collect();
/// let (encoded, _) = EncodedTable::encode("numbers", &values, 4, &"f32".parse()?)?;
/// io::save_table(&encoded, None, &path)?;
///
/// let mut table = io::WritableTable::open(&path, &io::Writable::default())?;
/// let served = Engine::host().load_tiered(table.reader(), &Tiered::default()).await?;
/// table.write(&[7_u32, 900], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?;
/// table.flush()?;
/// assert_eq!(served.gather(&[7_u32], IdPolicy::Error).await?.values, [28.0, 29.0, 30.0, 31.0]);
/// table.publish().await?;
/// assert_eq!(served.gather(&[7_u32], IdPolicy::Error).await?.values, [1.0, 2.0, 3.0, 4.0]);
///
/// table.merge().await?;
/// assert_eq!(table.status().journaled, 0);
/// assert_eq!(served.gather(&[900_u32], IdPolicy::Error).await?.values, [5.0, 6.0, 7.0, 8.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct WritableTable {
    files: Files,
    shared: Arc<Shared>,
    disk: Option<Bytes>,
    /// Bytes of the table as a merge writes it.
    merged: u64,
    /// Rows that are in memory alone: the bytes of all parts.
    staged: BTreeMap<u32, Box<[u8]>>,
    /// Rows that were flushed and not published.
    flushed: BTreeSet<u32>,
    /// A merge failed when its table may have been in place already.
    unsettled: bool,
}

impl WritableTable {
    /// Opens a table for writing, and its journal, which is made where there is none. All of the journal is read, and of the table
    /// its header.
    ///
    /// # Errors
    /// [`WritableError::Locked`] where it is open for writing already; [`WritableError::NotWritable`] for a scheme whose rows are
    /// not stored each by itself; [`WritableError::File`] with the errors of [`StoredTable::open`](super::StoredTable::open);
    /// [`WritableError::NotJournal`], [`WritableError::Version`], [`WritableError::OtherTable`] and [`WritableError::Damaged`] for
    /// a journal that is refused and left as it is; [`WritableError::DiskCap`] where the cap does not hold the table twice, which a
    /// merge needs, and a journal; [`WritableError::DiskFull`], [`WritableError::Journal`].
    pub fn open(path: impl AsRef<Path>, options: &Writable) -> Result<Self, WritableError> {
        let files = Files::new(path.as_ref())?;
        let base = files.open()?;
        let merged = merge::bytes(&base)?;
        let spec = base.spec();
        for band in spec.bands() {
            band.spec.rows_alone().map_err(|reason| WritableError::NotWritable {
                file: files.name.clone(),
                scheme: spec.scheme().to_string(),
                reason,
            })?;
        }
        let mut used = base.file_bytes().0 + files.journal_bytes();
        if let Some(cap) = options.disk {
            let most = base.file_bytes().0.saturating_add(merged).saturating_add(with_rollback(files.journal_bytes()));
            if most > cap.0 {
                let needed = Bytes(most - used);
                return Err(WritableError::DiskCap { file: files.name, needed, used: Bytes(used), cap });
            }
            used = base.file_bytes().0 + merged;
        }
        let shared = Shared::open(&files, base)?;
        if let Some(cap) = options.disk {
            shared.journal().limit(without_rollback(cap.0.saturating_sub(used)))?;
        }
        let disk = options.disk;
        let staged = BTreeMap::new();
        Ok(Self { files, shared: Arc::new(shared), disk, merged, staged, flushed: BTreeSet::new(), unsettled: false })
    }

    /// Scheme, shape and parts.
    #[must_use]
    pub fn spec(&self) -> &TableSpec {
        &self.shared.spec
    }

    /// The table's name: that of its file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// A source of the published rows, for [`Engine::load_tiered`](crate::Engine::load_tiered) and
    /// [`Engine::load_on_demand`](crate::Engine::load_on_demand): what those serve changes with each publish. What
    /// [`Engine::load`](crate::Engine::load) loads of it is the version of that moment, and stays so.
    #[must_use]
    pub fn reader(&self) -> TableReader {
        TableReader::new(self.shared.clone())
    }

    /// What is where.
    #[must_use]
    pub fn status(&self) -> WritableStatus {
        let (journaled, table) = self.shared.held();
        WritableStatus {
            version: self.shared.changes.version(),
            staged: self.staged.len(),
            flushed: self.flushed.len(),
            journaled,
            table,
            journal: self.shared.journal().bytes(),
        }
    }

    /// Stages rows, encoded by the table's scheme: `ids: [n]`, `values: [n, dim]`, row-major. Of an id that is there twice the last
    /// row is taken, as of one that was staged before. All is taken, or nothing.
    ///
    /// # Errors
    /// [`WritableError::Length`], [`WritableError::NoRow`] for an id that names no row, negative ones among them,
    /// [`WritableError::Encode`] for a NaN, an infinity, or a value that the scheme cannot hold.
    pub fn write<'a>(&mut self, ids: impl Into<Ids<'a>>, values: &[f32]) -> Result<(), WritableError> {
        let rows = encode::rows(&self.files.name, &self.shared.spec, ids.into(), values)?;
        self.staged.extend(rows);
        Ok(())
    }

    /// Writes what is staged to the disk, and returns when it is there: from now on no kill loses any of it. Nobody reads it yet.
    ///
    /// # Errors
    /// [`WritableError::DiskCap`] before anything is written; [`WritableError::DiskFull`] and [`WritableError::Journal`], after which
    /// the rows are still staged, and may be flushed again.
    pub fn flush(&mut self) -> Result<(), WritableError> {
        self.settle()?;
        if self.staged.is_empty() {
            return Ok(());
        }
        self.room(self.staged.values().map(|row| most_bytes(row.len() as u64)).sum())?;
        let rows = self.staged.iter().map(|(row, parts)| (*row, &**parts));
        self.shared.flush(rows)?;
        self.flushed.extend(self.staged.keys());
        self.staged.clear();
        Ok(())
    }

    /// Flushes, and then has all readers read what was flushed, all of it at once: lookups, bags and scores in flight end first,
    /// and those that begin once this returns read no older row. Gives the version, which is the same as before where nothing was
    /// written.
    ///
    /// Whoever awaits this must not keep a call of a served table waiting, which would keep this waiting. Dropped before it ends,
    /// it has flushed, or not, and published nothing.
    ///
    /// # Errors
    /// As [`WritableTable::flush`].
    pub async fn publish(&mut self) -> Result<u64, WritableError> {
        self.flush()?;
        if self.flushed.is_empty() {
            return Ok(self.shared.changes.version());
        }
        let publishing = self.shared.changes.begin().await;
        let rows: Vec<u32> = std::mem::take(&mut self.flushed).into_iter().collect();
        self.shared.publish(&rows);
        Ok(publishing.publish(&rows, self.shared.journal().version()))
    }

    /// As [`WritableTable::publish`], blocking.
    ///
    /// # Errors
    /// As [`WritableTable::publish`].
    pub fn publish_blocking(&mut self) -> Result<u64, WritableError> {
        pollster::block_on(self.publish())
    }

    /// Publishes, and then writes the table's file anew, with the journal's rows in it: to a temporary file that takes the table's
    /// name when it is on the disk. The journal is empty then. Words and other metadata are kept. Readers go on meanwhile, and read
    /// the same rows before and after. A kill at any moment leaves a table and a journal that have all rows together.
    ///
    /// # Errors
    /// As [`WritableTable::publish`]; [`WritableError::File`] where a block of the table is damaged, or a file cannot be written: the
    /// table and the journal are then as they were.
    pub async fn merge(&mut self) -> Result<(), WritableError> {
        self.publish().await?;
        if self.shared.journal().records() == 0 {
            return Ok(());
        }
        self.room(0)?;
        self.rewrite()
    }

    /// As [`WritableTable::merge`], blocking.
    ///
    /// # Errors
    /// As [`WritableTable::merge`].
    pub fn merge_blocking(&mut self) -> Result<(), WritableError> {
        pollster::block_on(self.merge())
    }

    /// Refuses what may pass the cap: a journal that grows by so many bytes, with the pages that a transaction keeps beside it,
    /// and the table once more, as a merge writes it.
    fn room(&self, grown: u64) -> Result<(), WritableError> {
        let Some(cap) = self.disk else { return Ok(()) };
        let (table, journal) = (self.shared.held().1.0, self.shared.journal().bytes().0);
        let most = table.saturating_add(self.merged).saturating_add(with_rollback(journal.saturating_add(grown)));
        if most <= cap.0 {
            return Ok(());
        }
        let used = Bytes(table + journal);
        Err(WritableError::DiskCap { file: self.files.name.clone(), needed: Bytes(most - used.0), used, cap })
    }
}
