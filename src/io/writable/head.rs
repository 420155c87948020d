//! What a journal says of itself, and the checksums in it.

use std::fmt;

use rusqlite::{Connection, OptionalExtension, params};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::scheme::TableSpec;

/// Scheme, shape and content of a table file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) scheme: String,
    pub(super) rows: u32,
    pub(super) dim: u32,
    /// The checksum of the description in the file's header, which has those of all parts.
    pub(super) checksum: String,
}

impl Identity {
    pub(super) fn new(spec: &TableSpec, checksum: &str) -> Self {
        let (scheme, shape) = (spec.scheme().to_string(), spec.shape());
        Self { scheme, rows: shape.rows(), dim: shape.dim(), checksum: checksum.to_owned() }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {} x {}, {}", self.scheme, self.rows, self.dim, self.checksum)
    }
}

/// The one row of table `head`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The table whose rows the journal replaces.
    pub(super) base: Identity,
    /// The checksum of the table that a merge is about to put in its place; empty where none is.
    pub(super) next: String,
    /// The version that the last flush made.
    pub(super) version: u64,
    /// Records in table `rows`.
    pub(super) records: u64,
    /// The sum of their checksums, modulo 2^64: no record can be lost or come back unseen.
    pub(super) total: u64,
}

impl Head {
    /// That of an empty journal.
    pub(super) fn new(base: Identity, version: u64) -> Self {
        Self { base, next: String::new(), version, records: 0, total: 0 }
    }

    fn sum(&self) -> u64 {
        let Self { base: Identity { scheme, rows, dim, checksum }, next, version, records, total } = self;
        let text = format!("{scheme}\n{rows}\n{dim}\n{checksum}\n{next}\n{version}\n{records}\n{total}\n");
        xxh3_64(text.as_bytes())
    }

    /// Puts it in place of the one that is there.
    pub(super) fn write(&self, db: &Connection) -> rusqlite::Result<()> {
        let Self { base: Identity { scheme, rows, dim, checksum }, next, version, records, total } = self;
        let numbers = [*version, *records, *total, self.sum()].map(u64::cast_signed);
        let mut put = db.prepare_cached("REPLACE INTO head VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
        let [version, records, total, sum] = numbers;
        put.execute(params![scheme, rows, dim, checksum, next, version, records, total, sum]).map(|_| ())
    }

    /// Reads it; `None` where there is none, or its checksum is another.
    pub(super) fn read(db: &Connection) -> rusqlite::Result<Option<Self>> {
        let mut get = db.prepare_cached(
            "SELECT scheme, rows, dim, base, next, version, records, total, sum FROM head WHERE id = 0 \
             AND (SELECT count(*) FROM head) = 1",
        )?;
        let read = get.query_row((), |row| {
            let number = |index| row.get::<_, i64>(index).map(i64::cast_unsigned);
            let (scheme, rows, dim, checksum) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            let base = Identity { scheme, rows, dim, checksum };
            let head = Self { base, next: row.get(4)?, version: number(5)?, records: number(6)?, total: number(7)? };
            Ok((head, number(8)?))
        });
        Ok(read.optional()?.and_then(|(head, sum)| (head.sum() == sum).then_some(head)))
    }
}

/// The checksum of a record.
pub(super) fn record_sum(key: u64, version: u64, parts: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&key.to_le_bytes());
    hasher.update(&version.to_le_bytes());
    hasher.update(parts);
    hasher.digest()
}
