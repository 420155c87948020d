//! Rows in a journal: written in transactions, read one by one, each compared with its checksum.

use std::{collections::BTreeMap, path::Path};

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{
    WritableError,
    head::{Head, Identity, record_sum},
    store::{self, Errors, PAGE},
};
use crate::units::Bytes;

/// Where the versions of a row are: it has two slots, of which a flush writes the one that nobody reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slots {
    /// The slot that readers read; `None` for the base's row.
    pub(super) current: Option<u8>,
    /// The slot that a flush wrote and that is not published yet.
    pub(super) flushed: Option<u8>,
}

impl Slots {
    /// The slot that the next flush writes.
    fn next(self) -> u8 {
        self.flushed.unwrap_or(self.current.map_or(0, |slot| 1 - slot))
    }
}

/// The rows of a journal.
pub(super) type Index = BTreeMap<u32, Slots>;

/// About the most that a journal of no rows takes: five pages, and what grows beside them.
pub(super) const EMPTY: u64 = 16 * PAGE;

/// The most that a journal of so many bytes takes while it is written: a transaction keeps the pages that it changes beside it, and
/// 8 bytes for each.
pub(super) fn with_rollback(bytes: u64) -> u64 {
    let bytes = bytes.max(EMPTY);
    bytes.saturating_mul(2).saturating_add(bytes / 256).saturating_add(2 * PAGE)
}

/// The bytes of a journal that takes at most so many while it is written.
pub(super) fn without_rollback(bytes: u64) -> u64 {
    bytes.saturating_sub(2 * PAGE) / 513 * 256
}

/// The journal of one table, locked for one writer.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) errors: Errors,
    db: Connection,
    head: Head,
    /// Bytes of the file.
    bytes: u64,
    /// A transaction failed, and may have left another head.
    doubt: bool,
}

fn key(row: u32, slot: u8) -> u64 {
    u64::from(row) << 1 | u64::from(slot)
}

/// The most that a row of so many bytes takes in the file: half-filled pages, or pages of its own, and its share of those above.
pub(super) fn most_bytes(row: u64) -> u64 {
    let cell = row + 48;
    2 * cell + if cell > 1000 { 2 * PAGE } else { 0 } + 16
}

impl Journal {
    /// Opens the journal at `path`, or makes one of `base`, compares all that is in it with its checksums, and gives its rows.
    /// Nothing is written to one that is refused.
    pub(super) fn open(
        path: &Path,
        prefix: &str,
        base: &Identity,
        row_bytes: impl Fn(u32) -> Option<u64>,
    ) -> Result<(Self, Index), WritableError> {
        let errors = store::named(path);
        if !path.exists() {
            store::create(path, prefix, &Head::new(base.clone(), 0), &errors)?;
        }
        let longest = row_bytes(0).unwrap_or(0).max(base.rows.checked_sub(1).and_then(&row_bytes).unwrap_or(0));
        let db = store::open(path, longest, &errors)?;
        let head = Head::read(&db).map_err(errors.of("reading its head"))?;
        let head = head.ok_or_else(|| errors.damaged("its head has another checksum"))?;
        let bytes = store::bytes(&db, &errors)?;
        let mut journal = Self { errors, db, head, bytes, doubt: false };
        if journal.head.base != *base && !journal.expects(base) {
            return Err(journal.other(base));
        }
        let index = load(&journal.db, &journal.head, &journal.errors, row_bytes)?;
        // A merge was ended between its last two steps: all rows are in the table.
        let index = if journal.head.base == *base { index } else { journal.clear(base)? };
        Ok((journal, index))
    }

    /// The version that the last flush made.
    pub(super) fn version(&self) -> u64 {
        self.head.version
    }

    /// Records that it has.
    pub(super) fn records(&self) -> u64 {
        self.head.records
    }

    /// Bytes of its file.
    pub(super) fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }

    /// Never takes more than so many bytes.
    pub(super) fn limit(&self, bytes: u64) -> Result<(), WritableError> {
        let pages = (bytes / PAGE).clamp(1, u64::from(u32::MAX - 1));
        let set = self.db.pragma_update_and_check(None, "max_page_count", pages.cast_signed(), |_| Ok(()));
        set.map_err(self.errors.of("limiting its pages"))
    }

    /// Writes the rows, each to the slot that nobody reads, and waits until they are on the disk. Gives the slots.
    pub(super) fn flush<'a>(
        &mut self,
        rows: impl Iterator<Item = (u32, &'a [u8])>,
        index: &Index,
        version: u64,
    ) -> Result<Vec<(u32, u8)>, WritableError> {
        let mut slots = Vec::new();
        self.change(|begun, head| {
            let mut old = begun.prepare_cached("SELECT sum FROM rows WHERE key = ?1")?;
            let mut put = begun.prepare_cached("REPLACE INTO rows VALUES (?1, ?2, ?3, ?4)")?;
            for (row, parts) in rows {
                let slot = index.get(&row).copied().unwrap_or_default().next();
                let key = key(row, slot);
                let replaced: Option<i64> = old.query_row([key.cast_signed()], |row| row.get(0)).optional()?;
                let sum = record_sum(key, version, parts);
                put.execute(params![key.cast_signed(), version.cast_signed(), parts, sum.cast_signed()])?;
                head.records += u64::from(replaced.is_none());
                head.total = head.total.wrapping_sub(replaced.unwrap_or(0).cast_unsigned()).wrapping_add(sum);
                slots.push((row, slot));
            }
            head.version = version;
            // No merge is under way.
            head.next.clear();
            Ok(())
        })?;
        Ok(slots)
    }

    /// Notes the table that a merge is about to put in the place of the one that is there.
    pub(super) fn expect(&mut self, checksum: &str) -> Result<(), WritableError> {
        self.change(|_, head| {
            checksum.clone_into(&mut head.next);
            Ok(())
        })
    }

    /// Whether a merge was about to put `table` in the place of the one that is there.
    pub(super) fn expects(&self, table: &Identity) -> bool {
        !self.head.next.is_empty() && *table == Identity { checksum: self.head.next.clone(), ..self.head.base.clone() }
    }

    /// That it is of another table than `table`.
    pub(super) fn other(&self, table: &Identity) -> WritableError {
        let (journal, table) = (self.head.base.to_string(), table.to_string());
        WritableError::OtherTable { file: self.errors.file.clone(), journal, table }
    }

    /// Takes all rows out, once they are in `base`.
    pub(super) fn clear(&mut self, base: &Identity) -> Result<Index, WritableError> {
        self.change(|begun, head| {
            begun.execute("DELETE FROM rows", ())?;
            *head = Head::new(base.clone(), head.version);
            Ok(())
        })?;
        // Pages that are free are given back; if not now, then next time.
        let freed = self.db.execute_batch("PRAGMA incremental_vacuum");
        if let Err(error) = freed {
            tracing::debug!(journal = self.errors.file, %error, "pages not given back");
        }
        self.bytes = store::bytes(&self.db, &self.errors)?;
        Ok(Index::new())
    }

    /// Changes rows and head in one transaction, which is on the disk when this returns.
    fn change(
        &mut self,
        with: impl FnOnce(&Transaction<'_>, &mut Head) -> rusqlite::Result<()>,
    ) -> Result<(), WritableError> {
        if self.doubt {
            let head = Head::read(&self.db).map_err(self.errors.of("reading its head again"))?;
            if head.as_ref() != Some(&self.head) {
                return Err(self.errors.damaged("a write that failed has left another head; open it again"));
            }
        }
        let mut head = self.head.clone();
        self.doubt = true;
        let change = || {
            let begun = self.db.transaction()?;
            with(&begun, &mut head)?;
            head.write(&begun)?;
            begun.commit()
        };
        change().map_err(self.errors.of("writing"))?;
        (self.head, self.doubt) = (head, false);
        self.bytes = store::bytes(&self.db, &self.errors)?;
        Ok(())
    }

    /// The bytes of a row, all parts one behind the other.
    pub(super) fn read(&self, row: u32, slot: u8, out: impl FnOnce(&[u8])) -> Result<(), WritableError> {
        let doing = self.errors.of("reading a row");
        let key = key(row, slot);
        let mut get = self.db.prepare_cached("SELECT version, parts, sum FROM rows WHERE key = ?1").map_err(&doing)?;
        let mut found = get.query([key.cast_signed()]).map_err(&doing)?;
        let Some(record) = found.next().map_err(&doing)? else {
            return Err(self.errors.damaged(format!("row {row} is missing")));
        };
        let version: i64 = record.get(0).map_err(&doing)?;
        let sum: i64 = record.get(2).map_err(&doing)?;
        let parts = record.get_ref(1).map_err(&doing)?;
        let parts = parts.as_blob().map_err(|error| doing(error.into()))?;
        if record_sum(key, version.cast_unsigned(), parts) != sum.cast_unsigned() {
            return Err(self.errors.damaged(format!("row {row}: its checksum is another")));
        }
        out(parts);
        Ok(())
    }
}

/// Goes through all records, compares their checksums and their number and sum, and says where each row's last version is.
fn load(
    db: &Connection,
    head: &Head,
    errors: &Errors,
    row_bytes: impl Fn(u32) -> Option<u64>,
) -> Result<Index, WritableError> {
    let doing = errors.of("reading its rows");
    let mut get = db.prepare("SELECT key, version, parts, sum FROM rows ORDER BY key").map_err(&doing)?;
    let mut found = get.query(()).map_err(&doing)?;
    let mut index = Index::new();
    let (mut records, mut total) = (0u64, 0u64);
    let mut before: Option<(u32, u64)> = None;
    while let Some(record) = found.next().map_err(&doing)? {
        let number = |at| record.get::<_, i64>(at).map(i64::cast_unsigned).map_err(&doing);
        let (key, version, sum) = (number(0)?, number(1)?, number(3)?);
        let parts = record.get_ref(2).map_err(&doing)?;
        let parts = parts.as_blob().map_err(|error| doing(error.into()))?;
        let row = u32::try_from(key >> 1).ok().filter(|row| row_bytes(*row) == Some(parts.len() as u64));
        let Some(row) = row.filter(|_| record_sum(key, version, parts) == sum) else {
            return Err(errors.damaged(format!("record {key} (row {}): its checksum is another", key >> 1)));
        };
        let slot = u8::from(key & 1 == 1);
        if version > head.version {
            return Err(errors.damaged(format!("row {row} is of version {version}, its head of {}", head.version)));
        }
        if before.is_none_or(|(other, newest)| other != row || newest < version) {
            index.insert(row, Slots { current: Some(slot), flushed: None });
            before = Some((row, version));
        }
        (records, total) = (records + 1, total.wrapping_add(sum));
    }
    if (records, total) == (head.records, head.total) {
        return Ok(index);
    }
    Err(errors.damaged(format!(
        "it has {records} records of sum {total:016x}; its head says {} of {:016x}",
        head.records, head.total
    )))
}
