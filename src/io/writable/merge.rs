//! The table's file, written anew with the journal's rows in it.
//!
//! ```text
//! write a temporary file, and have it on the disk
//! journal: next = its checksum                       a kill from here on: the table's checksum says which of both is there
//! rename it to the table's name
//! journal: no rows, base = its checksum, next = ""   in one transaction
//! ```

use std::{collections::HashMap, fs};

use super::{
    super::{
        FileError, StoredTable,
        table_writer::{Sealed, TableWriter, header_bytes},
    },
    WritableError, WritableTable,
    reader::identity,
};
use crate::{
    source::{PartSink, TableSource},
    store::FileSource,
};

/// Bytes that are copied at a time.
const CHUNK: u64 = 1 << 20;

/// Bytes of the file that a merge of `table` writes.
pub(super) fn bytes(table: &StoredTable<FileSource>) -> Result<u64, WritableError> {
    let words = table.words_bytes();
    let header = header_bytes(table.spec(), words, table.all_metadata());
    Ok(header + table.spec().bytes().0 + words.unwrap_or(0))
}

impl WritableTable {
    /// Writes the table with all published rows, and has readers read it.
    pub(super) fn rewrite(&mut self) -> Result<(), WritableError> {
        let sealed = self.sealed()?;
        self.unsettled = true;
        self.shared.journal().expect(&sealed.checksum)?;
        sealed.persist()?;
        self.settle()
    }

    /// A temporary file with all published rows, which is on the disk.
    pub(super) fn sealed(&self) -> Result<Sealed, WritableError> {
        let name = &self.files.name;
        let (words, metadata): (_, HashMap<String, String>) = {
            let held = self.shared.reading();
            (pollster::block_on(held.base.words())?, held.base.all_metadata().clone())
        };
        let spec = &self.shared.spec;
        let mut writer = TableWriter::begin(&self.files.path, spec, words.as_ref(), metadata, &self.files.prefix)?;
        drop(words);
        let reader = self.reader();
        let mut chunk = Vec::new();
        for (number, part) in spec.parts().iter().enumerate() {
            for at in (0..part.bytes().0).step_by(1 << 20) {
                let length = (part.bytes().0 - at).min(CHUNK);
                chunk.resize(usize::try_from(length).unwrap_or(usize::MAX), 0);
                pollster::block_on(reader.read_part(number, at, &mut chunk))?;
                writer.write_part(number, at, &chunk)?;
            }
        }
        let sealed = writer.seal()?;
        let permissions = fs::metadata(&self.files.path).map(|metadata| metadata.permissions());
        let kept = permissions.and_then(|permissions| sealed.file.as_file().set_permissions(permissions));
        kept.map_err(FileError::io(format!("{name}: keeping its permissions")))?;
        Ok(sealed)
    }

    /// Ends a merge: where its table is in place, readers read that, and the journal has no rows.
    pub(super) fn settle(&mut self) -> Result<(), WritableError> {
        if !self.unsettled {
            return Ok(());
        }
        let table = self.files.open()?;
        let found = identity(&table);
        let mut held = self.shared.writing();
        if found != identity(&held.base) {
            let mut journal = self.shared.journal();
            if !journal.expects(&found) {
                return Err(journal.other(&found));
            }
            held.index = journal.clear(&found)?;
            held.base = table;
        }
        drop(held);
        self.unsettled = false;
        Ok(())
    }
}
