//! The journal's file: one of SQLite, whose tables are as `mod.rs` draws them.

use std::{fs::File, path::Path, time::Duration};

use rusqlite::{Connection, ErrorCode, OpenFlags, limits::Limit};

use super::{
    super::{
        FileError, file_name,
        table_writer::{folder, sync_folder},
    },
    WritableError,
    head::Head,
};

/// `GTJL`: tells the journal from SQLite files of others.
const APPLICATION: i64 = 0x4754_4a4c;
pub(super) const VERSION: i64 = 1;
/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;
/// The format's tables, as SQLite keeps their text.
const TABLES: [&str; 2] = [
    "CREATE TABLE head (id INTEGER PRIMARY KEY, scheme TEXT NOT NULL, rows INTEGER NOT NULL, dim INTEGER NOT NULL, \
     base TEXT NOT NULL, next TEXT NOT NULL, version INTEGER NOT NULL, records INTEGER NOT NULL, total INTEGER NOT NULL, \
     sum INTEGER NOT NULL)",
    "CREATE TABLE rows (key INTEGER PRIMARY KEY, version INTEGER NOT NULL, parts BLOB NOT NULL, sum INTEGER NOT NULL)",
];

/// Tells errors of the store apart.
#[derive(Clone, Debug)]
pub(super) struct Errors {
    pub(super) file: String,
}

impl Errors {
    pub(super) fn damaged(&self, what: impl Into<String>) -> WritableError {
        WritableError::Damaged { file: self.file.clone(), what: what.into() }
    }

    fn not_journal(&self, reason: impl Into<String>) -> WritableError {
        WritableError::NotJournal { file: self.file.clone(), reason: reason.into() }
    }

    /// For an error while `doing`.
    pub(super) fn of(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> WritableError + '_ {
        move |error| {
            let (file, reason) = (self.file.clone(), error.to_string());
            match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => WritableError::Locked { file },
                Some(ErrorCode::DiskFull) => WritableError::DiskFull { file, reason },
                Some(ErrorCode::NotADatabase) => WritableError::NotJournal { file, reason },
                // What is none of SQLite's is a value of another type than the format's.
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::TooBig) | None => {
                    WritableError::Damaged { file, what: format!("{doing}: {reason}") }
                }
                Some(_) => WritableError::Journal { file, doing, reason },
            }
        }
    }
}

/// Makes an empty journal at `path`, unless one is there: under another name first, so that no half of one is ever there.
pub(super) fn create(path: &Path, prefix: &str, head: &Head, errors: &Errors) -> Result<(), WritableError> {
    let io = |error| FileError::io(format!("{}: making a journal", errors.file))(error);
    let made = tempfile::Builder::new().prefix(prefix).suffix(".tmp").make_in(folder(path), |path| {
        // Closed at once: locks that this process has of a file go when it closes any handle of it.
        File::create_new(path).map(drop)
    });
    let made = made.map_err(io)?;
    let mut db = connect(made.path(), errors)?;
    let doing = errors.of("making a journal");
    // A kill leaves no half of one with a name, so that nothing has to be taken back.
    set(&db, &[("journal_mode", "MEMORY"), ("page_size", "4096"), ("auto_vacuum", "INCREMENTAL")], errors)?;
    set(&db, &[("synchronous", "FULL"), ("fullfsync", "ON")], errors)?;
    let begun = db.transaction().map_err(&doing)?;
    begun.pragma_update(None, "application_id", APPLICATION).map_err(&doing)?;
    begun.pragma_update(None, "user_version", VERSION).map_err(&doing)?;
    for table in TABLES {
        begun.execute(table, ()).map_err(&doing)?;
    }
    head.write(&begun).map_err(&doing)?;
    begun.commit().map_err(&doing)?;
    drop(doing);
    db.close().map_err(|(_, error)| errors.of("making a journal")(error))?;
    match made.persist_noclobber(path) {
        Ok(_) => {}
        // Another writer was faster: whose it is then says the lock.
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io(error.error).into()),
    }
    Ok(sync_folder(folder(path)).map_err(io)?)
}

/// Opens the journal at `path` for one writer, if it is one that can be believed to be of this format. It is not written to.
pub(super) fn open(path: &Path, row_bytes: u64, errors: &Errors) -> Result<Connection, WritableError> {
    let db = connect(path, errors)?;
    let longest = i32::try_from(row_bytes).unwrap_or(i32::MAX).max(1 << 20);
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, longest).map_err(errors.of("opening"))?;
    let number = |name| {
        let read = db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        read.map_err(errors.of("reading its first page"))
    };
    // Before anything is locked for writing: an empty file would be written to.
    let application = number("application_id")?;
    if application != APPLICATION {
        return Err(errors.not_journal(format!("its application id is {application:#x}, not {APPLICATION:#x}")));
    }
    let version = number("user_version")?;
    if version != VERSION {
        return Err(WritableError::Version { file: errors.file.clone(), version, known: VERSION });
    }
    // SQLite would make a last page whole that is not. Pages behind the last are what a kill leaves.
    let has = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if !has.is_multiple_of(PAGE) {
        return Err(errors.damaged(format!("it has {has} bytes, which are no whole pages of {PAGE}")));
    }
    db.execute_batch("BEGIN EXCLUSIVE; COMMIT").map_err(errors.of("locking"))?;
    durable(&db, errors)?;
    check(&db, errors)?;
    Ok(db)
}

fn connect(path: &Path, errors: &Errors) -> Result<Connection, WritableError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let db = Connection::open_with_flags(path, flags).map_err(errors.of("opening"))?;
    db.busy_timeout(Duration::ZERO).map_err(errors.of("opening"))?;
    // The lock is kept until the journal is closed.
    let safe = [("locking_mode", "EXCLUSIVE"), ("trusted_schema", "OFF"), ("cell_size_check", "ON")];
    set(&db, &safe, errors)?;
    set(&db, &[("temp_store", "MEMORY"), ("mmap_size", "0")], errors)?;
    Ok(db)
}

/// What is committed is on the disk.
fn durable(db: &Connection, errors: &Errors) -> Result<(), WritableError> {
    set(db, &[("journal_mode", "TRUNCATE"), ("synchronous", "EXTRA"), ("fullfsync", "ON")], errors)
}

fn set(db: &Connection, settings: &[(&str, &str)], errors: &Errors) -> Result<(), WritableError> {
    settings.iter().try_for_each(|(name, value)| {
        // Some of them answer.
        db.pragma_update_and_check(None, name, value, |_| Ok(())).or_else(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => Ok(()),
            error => Err(errors.of("opening")(error)),
        })
    })
}

/// Compares all pages with one another, and the tables with those of the format.
fn check(db: &Connection, errors: &Errors) -> Result<(), WritableError> {
    let told: String =
        db.pragma_query_value(None, "quick_check", |row| row.get(0)).map_err(errors.of("checking its pages"))?;
    if told != "ok" {
        return Err(errors.damaged(told));
    }
    let doing = errors.of("reading its schema");
    let mut texts = db.prepare("SELECT sql FROM sqlite_schema ORDER BY rowid").map_err(&doing)?;
    let texts = texts.query_map((), |row| row.get::<_, String>(0)).map_err(&doing)?;
    let texts: Vec<String> = texts.collect::<Result<_, _>>().map_err(&doing)?;
    if texts != TABLES { Err(errors.damaged("its tables are not those of the format")) } else { Ok(()) }
}

/// Bytes of the file, by its pages.
pub(super) fn bytes(db: &Connection, errors: &Errors) -> Result<u64, WritableError> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0).map(i64::cast_unsigned));
    let pages = || Ok(number("page_count")?.saturating_mul(number("page_size")?));
    pages().map_err(errors.of("counting its pages"))
}

/// The file's name, for messages.
pub(super) fn named(path: &Path) -> Errors {
    Errors { file: file_name(path) }
}
