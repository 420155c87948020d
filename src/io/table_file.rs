//! A table file, read part by part.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    sync::{Mutex, PoisonError},
};

use super::{
    FileError, Vocabulary, file_name,
    header::{Header, is_safetensors},
    layout, open_file,
    table_header::{TableHeader, TensorPlace, check_start},
};
use crate::{error::SourceError, scheme::TableSpec, source::TableSource};

/// A table file, checked from end to end when it is opened: a source for an engine to load.
///
/// The format stands in [`io::layout`](super::layout). Bytes are read where they are asked for; memory is the header.
#[derive(Debug)]
pub struct TableFile<R = File> {
    name: String,
    file: String,
    header: TableHeader,
    /// One position for all readers: each goes to its own under the lock.
    reader: Mutex<R>,
}

impl TableFile {
    /// Opens a table file and compares each checksum.
    ///
    /// # Errors
    /// [`FileError::NotTable`] where it is another kind of file, [`FileError::Version`] and [`FileError::Scheme`] for what
    /// this version does not know, [`FileError::Checksum`], [`FileError::Length`], [`FileError::Header`],
    /// [`FileError::HeaderTooLarge`] and [`FileError::Part`] for a damaged file, [`FileError::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let name = path.file_stem().map_or_else(|| "table".into(), |stem| stem.to_string_lossy());
        Self::load(&name, &file_name(path), open_file(path)?)
    }
}

impl<R: Read + Seek> TableFile<R> {
    /// The same for bytes that lie anywhere. `name` is the table's name, and the file's in messages.
    ///
    /// # Errors
    /// As [`TableFile::open`].
    pub fn from_reader(name: &str, reader: R) -> Result<Self, FileError> {
        Self::load(name, name, reader)
    }

    fn load(name: &str, file: &str, mut reader: R) -> Result<Self, FileError> {
        let mut start = Vec::new();
        reader.rewind().map_err(FileError::io(file))?;
        reader.by_ref().take(9).read_to_end(&mut start).map_err(FileError::io(file))?;
        check_start(file, &start)?;
        let header = TableHeader::new(file, &Header::read(file, &mut reader)?)?;
        for tensor in &header.tensors {
            verify(file, tensor, &mut reader)?;
        }
        Ok(Self { name: name.to_owned(), file: file.to_owned(), header, reader: Mutex::new(reader) })
    }

    /// The words of the rows, where the file has them.
    ///
    /// # Errors
    /// [`FileError::WordCount`] where they are not as many as the rows, [`FileError::Io`].
    pub fn words(&self) -> Result<Option<Vocabulary>, FileError> {
        let Some(words) = self.header.words() else { return Ok(None) };
        let mut joined = Vec::new();
        {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            reader.seek(SeekFrom::Start(words.offset)).map_err(FileError::io(&self.file))?;
            reader.by_ref().take(words.bytes).read_to_end(&mut joined).map_err(FileError::io(&self.file))?;
        }
        Vocabulary::from_joined(&self.file, joined, self.header.spec.shape().rows()).map(Some)
    }

    /// Whether the file has words.
    #[must_use]
    pub fn has_words(&self) -> bool {
        self.header.words().is_some()
    }

    /// The text that the file's metadata has under `key`.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.header.metadata.get(key).map(String::as_str)
    }
}

impl<R: Read + Seek + Send> TableSource for TableFile<R> {
    fn spec(&self) -> &TableSpec {
        &self.header.spec
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn read_part(&self, part: usize, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let TensorPlace { name, bytes, offset: begin, .. } = &self.header.tensors[part];
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > *bytes) {
            let length = out.len();
            let file = &self.file;
            return Err(SourceError::Invalid(format!("{file}: part `{name}` has no {length} bytes from {offset} on")));
        }
        let io = |error| SourceError::Io { what: format!("{}: part `{name}`", self.file), error };
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.seek(SeekFrom::Start(begin + offset)).map_err(io)?;
        reader.read_exact(out).map_err(io)
    }
}

/// Whether the file is a table of this library, of any version and in whatever state.
///
/// # Errors
/// [`FileError::Io`] where it cannot be read. A file of any other kind is just none.
pub fn is_table(path: impl AsRef<Path>) -> Result<bool, FileError> {
    let path = path.as_ref();
    let file = file_name(path);
    let mut reader = open_file(path)?;
    let mut start = Vec::new();
    reader.by_ref().take(9).read_to_end(&mut start).map_err(FileError::io(&file))?;
    if !is_safetensors(&start) {
        return Ok(false);
    }
    match Header::read(&file, &mut reader) {
        Ok(header) => Ok(layout::is_ours(&header)),
        Err(error @ FileError::Io { .. }) => Err(error),
        Err(_) => Ok(false),
    }
}

/// Reads a tensor and compares its checksum.
fn verify<R: Read + Seek>(file: &str, tensor: &TensorPlace, reader: &mut R) -> Result<(), FileError> {
    let mut hasher = layout::hasher();
    reader.seek(SeekFrom::Start(tensor.offset)).map_err(FileError::io(file))?;
    let mut rest = reader.by_ref().take(tensor.bytes);
    let mut bytes = vec![0; usize::try_from(tensor.bytes.clamp(1, 1 << 20)).unwrap_or(1 << 20)];
    loop {
        match rest.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => hasher.update(&bytes[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FileError::io(file)(error)),
        }
    }
    tensor.compare(file, hasher.digest())
}
