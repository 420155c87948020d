//! A table file, written while it is encoded.

use std::{
    collections::HashMap,
    fs::File,
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{
    FileError, Vocabulary,
    block_sums::{self, BlockHasher, BlockSums},
    file_name,
    layout::{self, Contents},
};
use crate::{
    error::SourceError,
    scheme::TableSpec,
    source::{PartSink, TableSource},
    table::EncodedTable,
    units::Bytes,
};

/// Writes a table file, part by part: a sink for [`Encoder::run`](crate::Encoder::run).
///
/// The bytes go to a temporary file in the target's folder. Only [`TableWriter::finish`] gives it the target's name, in one
/// step and after it is on the disk; until then, and if anything fails, a file that was there before stays as it was, and
/// the temporary one goes with the writer.
///
/// # Examples
/// ```
/// use gatherum::{Encoder, SliceSource, RowSource, Scheme, TableSource, io};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("table.safetensors");
/// let mut rows = SliceSource::new(&[0.5, -1.0, 0.25, 1.0, 0.0, 0.125], 3)?;
/// let scheme: Scheme = "int8".parse()?;
/// let words = io::Vocabulary::from_words(["one", "two"])?;
/// let mut writer = io::TableWriter::create(&path, &scheme.spec(rows.shape())?, Some(&words))?;
/// Encoder::new(&scheme).run(&mut rows, &mut writer)?;
/// writer.finish()?;
///
/// let table = io::TableFile::open(&path)?;
/// assert_eq!(table.spec().scheme(), &scheme);
/// assert_eq!(table.words()?.unwrap().find("two"), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TableWriter {
    file: NamedTempFile,
    path: PathBuf,
    spec: TableSpec,
    parts: Vec<WrittenPart>,
    /// Bytes of the words, and their checksum.
    words: Option<(u64, u64)>,
    /// What the metadata says beside what tables say.
    metadata: HashMap<String, String>,
}

/// A file that is whole and on the disk, but for its name.
pub(super) struct Sealed {
    pub(super) file: NamedTempFile,
    path: PathBuf,
    /// The checksum of the description, as the file has it.
    #[cfg_attr(
        any(not(feature = "journal"), target_arch = "wasm32"),
        expect(dead_code, reason = "it is for a journal to note")
    )]
    pub(super) checksum: String,
}

#[derive(Debug)]
struct WrittenPart {
    /// Where it begins in the file.
    offset: u64,
    /// Bytes written so far.
    written: u64,
    checksum: Box<HasherDebug>,
    blocks: Box<BlockHasher>,
}

/// [`Xxh3`] has no `Debug`.
struct HasherDebug(Xxh3);

impl std::fmt::Debug for HasherDebug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Xxh3")
    }
}

impl TableWriter {
    /// Begins the file of a table of `spec`, with the words of its rows where there are any.
    ///
    /// # Errors
    /// [`FileError::WordCount`] where there are not as many words as rows, [`FileError::Io`] where the folder takes no file.
    pub fn create(path: impl AsRef<Path>, spec: &TableSpec, words: Option<&Vocabulary>) -> Result<Self, FileError> {
        Self::begin(path.as_ref(), spec, words, HashMap::new(), ".gatherum-")
    }

    /// The same with more metadata, in a temporary file whose name begins with `prefix`.
    pub(super) fn begin(
        path: &Path,
        spec: &TableSpec,
        words: Option<&Vocabulary>,
        metadata: HashMap<String, String>,
        prefix: &str,
    ) -> Result<Self, FileError> {
        let name = file_name(path);
        if let Some(words) = words
            && words.len() != spec.shape().rows() as usize
        {
            let rows = u64::from(spec.shape().rows());
            return Err(FileError::WordCount { file: name, words: words.len() as u64, rows });
        }
        let made = temporary(folder(path), prefix);
        let mut file = made.map_err(FileError::io(format!("{name}: making a temporary file")))?;
        let mut end = header_bytes(spec, words.map(|words| words.joined().len() as u64), &metadata);
        let mut offsets = vec![0; spec.parts().len()];
        for number in layout::order(spec) {
            offsets[number] = end;
            end += spec.parts()[number].bytes().0;
        }
        if let Some(words) = words {
            write_at(&mut file, end, words.joined()).map_err(FileError::io(&name))?;
        }
        let block = block_sums::block_bytes(spec);
        let parts = offsets.into_iter().map(|offset| WrittenPart {
            offset,
            written: 0,
            checksum: Box::new(HasherDebug(layout::hasher())),
            blocks: Box::new(BlockHasher::new(block)),
        });
        Ok(Self {
            file,
            path: path.to_owned(),
            spec: spec.clone(),
            parts: parts.collect(),
            words: words.map(|words| (words.joined().len() as u64, xxh3_64(words.joined()))),
            metadata,
        })
    }

    /// Writes the header, waits until all is on the disk, and gives the file its name.
    ///
    /// # Errors
    /// [`FileError::Unfinished`] where a part is not complete, [`FileError::Io`] where writing or renaming fails. Nothing is
    /// left behind then, and a file that had the name still has it.
    pub fn finish(self) -> Result<(), FileError> {
        self.seal()?.persist()
    }

    /// Writes the header, and waits until all is on the disk.
    pub(super) fn seal(mut self) -> Result<Sealed, FileError> {
        let name = file_name(&self.path);
        for (part, done) in self.spec.parts().iter().zip(&self.parts) {
            if done.written != part.bytes().0 {
                return Err(FileError::Unfinished {
                    file: name,
                    part: part.name().to_owned(),
                    written: Bytes(done.written),
                    needed: part.bytes(),
                });
            }
        }
        let sums = self.parts.iter().map(|part| part.checksum.0.digest()).chain(self.words.map(|(_, sum)| sum));
        let checksums = sums.map(layout::written).collect();
        let blocks = BlockSums {
            block: block_sums::block_bytes(&self.spec),
            parts: self.parts.into_iter().map(|part| part.blocks.finish()).collect(),
        };
        let contents =
            Contents { spec: &self.spec, words: self.words.map(|(bytes, _)| bytes), checksums, blocks: Some(&blocks) };
        let header = contents.header(&self.metadata);
        write_at(&mut self.file, 0, &header).map_err(FileError::io(&name))?;
        self.file.as_file().sync_all().map_err(FileError::io(format!("{name}: writing to the disk")))?;
        Ok(Sealed { file: self.file, path: self.path, checksum: contents.checksum() })
    }
}

impl Sealed {
    /// Gives the file its name, and waits until that is on the disk.
    pub(super) fn persist(self) -> Result<(), FileError> {
        let name = file_name(&self.path);
        self.file.persist(&self.path).map_err(|error| FileError::io(format!("{name}: renaming"))(error.error))?;
        sync_folder(folder(&self.path)).map_err(FileError::io(format!("{name}: writing its folder to the disk")))
    }
}

impl PartSink for TableWriter {
    fn write_part(&mut self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), SourceError> {
        let name = file_name(&self.path);
        let done = &mut self.parts[part];
        let (length, needed) = (bytes.len() as u64, self.spec.parts()[part].bytes().0);
        if offset != done.written || needed - offset < length {
            let (part, at) = (self.spec.parts()[part].name(), done.written);
            let problem = format!("{length} bytes for {offset}, where {at} of {needed} are written");
            return Err(SourceError::Invalid(format!("{name}: part `{part}`: {problem}")));
        }
        write_at(&mut self.file, done.offset + offset, bytes).map_err(FileError::io(name))?;
        done.checksum.0.update(bytes);
        done.blocks.update(bytes);
        done.written += length;
        Ok(())
    }
}

/// Saves a table that is in host memory, as [`TableWriter`] does.
///
/// # Errors
/// As [`TableWriter::create`] and [`TableWriter::finish`].
pub fn save_table(table: &EncodedTable, words: Option<&Vocabulary>, path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    let mut writer = TableWriter::create(path, table.spec(), words)?;
    for (number, part) in table.parts().enumerate() {
        writer.write_part(number, 0, part).map_err(|error| match error {
            SourceError::Io { what, error } => FileError::Io { what, error },
            SourceError::Invalid(what) => FileError::Io { what, error: std::io::ErrorKind::InvalidInput.into() },
        })?;
    }
    writer.finish()
}

/// Bytes before the first tensor of a table, whatever its checksums are.
pub(super) fn header_bytes(spec: &TableSpec, words: Option<u64>, metadata: &HashMap<String, String>) -> u64 {
    let blank = vec![layout::written(0); spec.parts().len() + usize::from(words.is_some())];
    let blocks = BlockSums::blank(spec);
    let contents = Contents { spec, words, checksums: blank, blocks: Some(&blocks) };
    contents.header(metadata).len() as u64
}

pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file that the umask gives its permissions, as any new one: a temporary file is otherwise its owner's alone.
fn temporary(folder: &Path, prefix: &str) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

fn write_at(file: &mut NamedTempFile, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)
}

/// The new name is in the folder, so that is what has to reach the disk. Elsewhere than on Unix a folder is no file.
pub(super) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
