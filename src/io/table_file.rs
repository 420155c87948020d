//! A table file, read part by part.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    sync::{Mutex, PoisonError},
};

use safetensors::tensor::TensorInfo;

use super::{
    FileError, Vocabulary, file_name,
    header::{Header, is_safetensors},
    layout::{self, Contents, WORDS},
    open_file,
};
use crate::{
    error::{EncodeError, SourceError},
    scheme::{Scheme, TableSpec},
    source::TableSource,
    units::Shape,
};

/// A table file, checked from end to end when it is opened: a source for an engine to load.
///
/// The format stands in [`io::layout`](super::layout). Bytes are read where they are asked for; memory is the header.
#[derive(Debug)]
pub struct TableFile<R = File> {
    name: String,
    file: String,
    spec: TableSpec,
    metadata: HashMap<String, String>,
    /// Where each part begins.
    offsets: Vec<u64>,
    /// Where the words begin, and how many bytes they have.
    words: Option<(u64, u64)>,
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
        if start.get(8).is_some_and(|brace| *brace != b'{') && !is_safetensors(&start) {
            let reason = "it does not begin as safetensors files do".to_owned();
            return Err(FileError::NotTable { file: file.to_owned(), reason });
        }
        let header = Header::read(file, &mut reader)?;
        if !layout::is_ours(&header) {
            let reason = "its metadata does not say `format: gatherum`".to_owned();
            return Err(FileError::NotTable { file: file.to_owned(), reason });
        }
        let metadata = header.metadata.metadata().clone().unwrap_or_default();
        let spec = spec(file, &metadata)?;
        let mut tensors = Vec::new();
        for part in spec.parts() {
            let info = tensor(file, &header, part.name())?;
            let found = (info.dtype.to_string(), Header::shape(info));
            if found != (part.dtype().to_string(), part.shape().to_vec()) {
                let (dtype, shape) = found;
                let problem = format!(
                    "is {dtype} {shape:?}; scheme `{}` at {} has {} {:?}",
                    spec.scheme(),
                    spec.shape(),
                    part.dtype(),
                    part.shape()
                );
                return Err(bad_part(file, part.name(), problem));
            }
            tensors.push((part.name(), header.place(info)));
        }
        let words = words_place(file, &header)?;
        tensors.extend(words.map(|place| (WORDS, place)));
        if let Some(other) = header.names().iter().find(|name| !tensors.iter().any(|(known, _)| known == name)) {
            return Err(bad_part(file, other, format!("is not one that scheme `{}` has", spec.scheme())));
        }
        verify(file, &spec, &metadata, &mut reader, &tensors, words)?;
        let offsets = tensors.iter().take(spec.parts().len()).map(|(_, (offset, _))| *offset).collect();
        let (name, file) = (name.to_owned(), file.to_owned());
        Ok(Self { name, file, spec, metadata, offsets, words, reader: Mutex::new(reader) })
    }

    /// The words of the rows, where the file has them.
    ///
    /// # Errors
    /// [`FileError::WordCount`] where they are not as many as the rows, [`FileError::Io`].
    pub fn words(&self) -> Result<Option<Vocabulary>, FileError> {
        let Some((offset, length)) = self.words else { return Ok(None) };
        let mut joined = Vec::new();
        {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            reader.seek(SeekFrom::Start(offset)).map_err(FileError::io(&self.file))?;
            reader.by_ref().take(length).read_to_end(&mut joined).map_err(FileError::io(&self.file))?;
        }
        Vocabulary::from_joined(&self.file, joined, self.spec.shape().rows()).map(Some)
    }

    /// Whether the file has words.
    #[must_use]
    pub fn has_words(&self) -> bool {
        self.words.is_some()
    }

    /// The text that the file's metadata has under `key`.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }
}

impl<R: Read + Seek + Send> TableSource for TableFile<R> {
    fn spec(&self) -> &TableSpec {
        &self.spec
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn read_part(&self, part: usize, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let (bytes, name) = (self.spec.parts()[part].bytes().0, self.spec.parts()[part].name());
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > bytes) {
            let length = out.len();
            let file = &self.file;
            return Err(SourceError::Invalid(format!("{file}: part `{name}` has no {length} bytes from {offset} on")));
        }
        let io = |error| SourceError::Io { what: format!("{}: part `{name}`", self.file), error };
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.seek(SeekFrom::Start(self.offsets[part] + offset)).map_err(io)?;
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

fn bad_part(file: &str, part: &str, problem: String) -> FileError {
    FileError::Part { file: file.to_owned(), part: part.to_owned(), problem }
}

/// Scheme and shape, by the metadata.
fn spec(file: &str, metadata: &HashMap<String, String>) -> Result<TableSpec, FileError> {
    let bad = |reason: String| FileError::Header { file: file.to_owned(), reason };
    let get = |key: &str| metadata.get(key).ok_or_else(|| bad(format!("its metadata has no `{key}`")));
    let version = get("format_version")?;
    if version != layout::VERSION {
        return Err(FileError::Version { file: file.to_owned(), version: version.clone(), known: layout::VERSION });
    }
    let number = |key: &str| {
        let text = get(key)?;
        text.parse().map_err(|_| bad(format!("`{key}` is no whole number: {text:?}")))
    };
    let (rows, dim): (u64, u64) = (number("rows")?, number("dim")?);
    let scheme: Scheme = get("scheme")?.parse().map_err(|error| FileError::Scheme { file: file.to_owned(), error })?;
    let shape = Shape::new(rows, dim).map_err(|error| FileError::Shape { file: file.to_owned(), error })?;
    scheme.spec(shape).map_err(|error: EncodeError| FileError::Unfit { file: file.to_owned(), error })
}

fn tensor<'a>(file: &str, header: &'a Header, name: &str) -> Result<&'a TensorInfo, FileError> {
    header.metadata.info(name).ok_or_else(|| bad_part(file, name, "is missing".to_owned()))
}

/// Where the words are, if they are there.
fn words_place(file: &str, header: &Header) -> Result<Option<(u64, u64)>, FileError> {
    let Some(info) = header.metadata.info(WORDS) else { return Ok(None) };
    if info.dtype != safetensors::Dtype::U8 || info.shape.len() != 1 {
        return Err(bad_part(file, WORDS, format!("is {} {:?}; words are U8 [bytes]", info.dtype, info.shape)));
    }
    Ok(Some(header.place(info)))
}

/// Compares the checksums of the description and of each tensor.
fn verify<R: Read + Seek>(
    file: &str,
    spec: &TableSpec,
    metadata: &HashMap<String, String>,
    reader: &mut R,
    tensors: &[(&str, (u64, u64))],
    words: Option<(u64, u64)>,
) -> Result<(), FileError> {
    let stored = |key: &str| {
        let reason = || format!("its metadata has no `{key}`");
        metadata.get(key).cloned().ok_or_else(|| FileError::Header { file: file.to_owned(), reason: reason() })
    };
    let compare = |part: &str, stored: String, computed: String| match stored == computed {
        true => Ok(()),
        false => Err(FileError::Checksum { file: file.to_owned(), part: part.to_owned(), stored, computed }),
    };
    let checksums: Vec<String> =
        tensors.iter().map(|(name, _)| stored(&format!("checksum.{name}"))).collect::<Result<_, _>>()?;
    let contents = Contents { spec, words: words.map(|(_, bytes)| bytes), checksums };
    compare("the header's description", stored("checksum")?, contents.checksum())?;
    for ((name, (offset, length)), stored) in tensors.iter().zip(contents.checksums) {
        let mut hasher = layout::hasher();
        reader.seek(SeekFrom::Start(*offset)).map_err(FileError::io(file))?;
        let mut rest = reader.by_ref().take(*length);
        let mut bytes = vec![0; usize::try_from((*length).clamp(1, 1 << 20)).unwrap_or(1 << 20)];
        loop {
            match rest.read(&mut bytes) {
                Ok(0) => break,
                Ok(read) => hasher.update(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::io(file)(error)),
            }
        }
        compare(&format!("part `{name}`"), stored, layout::written(hasher.digest()))?;
    }
    Ok(())
}
