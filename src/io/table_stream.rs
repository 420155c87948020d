//! A table file as its bytes come: from a network, or from anything that cannot go back.
//!
//! ```text
//! first 8 bytes -> the header, which says all that follows -> room on the engine
//! each tensor, in the file's order: hash, place, compare its checksum at its end
//! ```

use xxhash_rust::xxh3::Xxh3;

use super::{
    FileError, StreamError, Vocabulary,
    header::Header,
    layout,
    table_header::{TableHeader, TensorPlace, check_start},
};
use crate::{
    engine::Engine,
    scheme::TableSpec,
    table::{Loading, Table},
    units::Bytes,
};

/// A table file whose bytes are pushed as they come, and go to an engine at once.
///
/// Memory is the header, the words, and 1 MiB of each part that is on its way; the table is never in host memory whole, unless
/// the host is where it goes. Room for all of it is made once the header is there: a refusal places nothing. Checksums are
/// compared as parts end, and the table is given out only after the last.
///
/// A table whose rows have different numbers of values (`csr`, `coo`) is held in host memory until all of it is there, and goes
/// to a device then: which shard a row is in follows from all rows.
///
/// # Examples
/// ```
/// use gatherum::{EncodedTable, Engine, IdPolicy, io};
/// # pollster::block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("table.safetensors");
/// # let (table, _) = EncodedTable::encode("t", &[0.5, 1.0, -1.0, 2.0], 2, &"f16".parse()?)?;
/// # io::save_table(&table, None, &path)?;
/// # let response = std::fs::read(&path)?;
/// let engine = Engine::host();
/// let mut stream = io::TableStream::new(&engine, "words");
/// for bytes in response.chunks(100) {
///     stream.push(bytes).await?;
/// }
/// let (table, words) = stream.finish()?;
/// assert_eq!(table.gather(&[1_u32], IdPolicy::Error).await?.values, [-1.0, 2.0]);
/// assert!(words.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct TableStream {
    engine: Engine,
    name: String,
    /// Bytes seen.
    seen: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The header is not there yet: its bytes so far, the length before it included.
    Header(Vec<u8>),
    Tensors(Box<Tensors>),
    Failed,
}

struct Tensors {
    header: TableHeader,
    file_bytes: u64,
    loading: Loading,
    /// Numbers of the tensors in the file's order, the next one last.
    order: Vec<usize>,
    /// Bytes of the current tensor, and the hash of them.
    done: u64,
    hasher: Xxh3,
    words: Vec<u8>,
}

impl std::fmt::Debug for Tensors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tensors").field("spec", &self.header.spec).field("left", &self.order).finish_non_exhaustive()
    }
}

/// Bytes of a header that room is made for before they are there.
const HEADER_ROOM: usize = 4096;

impl TableStream {
    /// Begins the file of a table that will be called `name`, as will the file in messages.
    #[must_use]
    pub fn new(engine: &Engine, name: &str) -> Self {
        let state = State::Header(Vec::with_capacity(HEADER_ROOM));
        Self { engine: engine.clone(), name: name.to_owned(), seen: 0, state }
    }

    /// Takes the next bytes of the file, however many.
    ///
    /// # Errors
    /// [`StreamError::File`] for a file that is damaged or none of ours, [`StreamError::Table`] where the table cannot be
    /// placed. Nothing is left on the engine then, and no more can be pushed.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        let result = self.take(bytes).await;
        if result.is_err() {
            self.state = State::Failed;
        }
        result
    }

    async fn take(&mut self, mut bytes: &[u8]) -> Result<(), StreamError> {
        while !bytes.is_empty() {
            let taken = match &mut self.state {
                State::Header(start) => {
                    let missing = header_end(&self.name, start)? - start.len() as u64;
                    let taken = usize::try_from(missing).unwrap_or(usize::MAX).min(bytes.len());
                    start.extend_from_slice(&bytes[..taken]);
                    if header_end(&self.name, start)? == start.len() as u64 {
                        let header = Header::parse(&self.name, &start[8..])?;
                        self.state = State::Tensors(Box::new(Tensors::new(&self.engine, &self.name, &header).await?));
                    }
                    taken
                }
                State::Tensors(tensors) => tensors.take(&self.name, self.seen, bytes).await?,
                State::Failed => return Err(self.failed().into()),
            };
            self.seen += taken as u64;
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    fn failed(&self) -> FileError {
        FileError::io(self.name.as_str())(std::io::Error::other("an earlier piece of the file was refused"))
    }

    /// Scheme, shape and parts, once the header is there.
    #[must_use]
    pub fn spec(&self) -> Option<&TableSpec> {
        match &self.state {
            State::Header(_) | State::Failed => None,
            State::Tensors(tensors) => Some(&tensors.header.spec),
        }
    }

    /// Bytes of the file, once the header is there.
    #[must_use]
    pub fn file_bytes(&self) -> Option<Bytes> {
        match &self.state {
            State::Header(_) | State::Failed => None,
            State::Tensors(tensors) => Some(Bytes(tensors.file_bytes)),
        }
    }

    /// Gives the table out, and the words of its rows where the file has them.
    ///
    /// # Errors
    /// [`StreamError::File`] where the file is cut short, or its words are not as many as its rows; [`StreamError::Table`]
    /// where the device failed.
    pub fn finish(self) -> Result<(Table, Option<Vocabulary>), StreamError> {
        let cut = |needed| FileError::Length { file: self.name.clone(), needed: Bytes(needed), has: Bytes(self.seen) };
        match self.state {
            State::Header(start) => Err(cut(header_end(&self.name, &start)?).into()),
            State::Tensors(tensors) if tensors.file_bytes != self.seen => Err(cut(tensors.file_bytes).into()),
            State::Tensors(tensors) => {
                let Tensors { header, loading, words, .. } = *tensors;
                let rows = header.spec.shape().rows();
                let words = header.words().map(|_| Vocabulary::from_joined(&self.name, words, rows)).transpose()?;
                Ok((loading.finish()?, words))
            }
            State::Failed => Err(self.failed().into()),
        }
    }
}

/// Bytes up to the first tensor, as far as can be said by those that are there: the first 9 tell.
fn header_end(file: &str, start: &[u8]) -> Result<u64, FileError> {
    let Some(length) = start.first_chunk().filter(|_| start.len() > 8) else { return Ok(9) };
    check_start(file, start)?;
    match Header::json_bytes(file, *length)? {
        // The byte that is there already is none of the header's.
        0 => Header::parse(file, &[]).map(|header| header.data),
        json => Ok(8 + json),
    }
}

impl Tensors {
    async fn new(engine: &Engine, name: &str, header: &Header) -> Result<Self, StreamError> {
        let file_bytes = header.file_bytes();
        let header = TableHeader::new(name, header)?;
        let loading = engine.begin(name, &header.spec).await?;
        let mut order: Vec<usize> = (0..header.tensors.len()).collect();
        // Tensors of no bytes begin where others do; their order among those does not matter.
        order.sort_by_key(|number| std::cmp::Reverse((header.tensors[*number].offset, header.tensors[*number].bytes)));
        let mut tensors =
            Self { header, file_bytes, loading, order, done: 0, hasher: layout::hasher(), words: Vec::new() };
        tensors.next(name)?;
        Ok(tensors)
    }

    /// Compares the checksums of tensors that are complete, and goes to the next.
    fn next(&mut self, file: &str) -> Result<(), FileError> {
        while let Some(tensor) = self.current().filter(|tensor| tensor.bytes == self.done) {
            tensor.compare(file, self.hasher.digest())?;
            self.order.pop();
            self.done = 0;
            self.hasher = layout::hasher();
        }
        Ok(())
    }

    fn current(&self) -> Option<&TensorPlace> {
        self.order.last().map(|number| &self.header.tensors[*number])
    }

    /// Takes the bytes of the current tensor from the front of `bytes`, and says how many those are.
    async fn take(&mut self, file: &str, seen: u64, bytes: &[u8]) -> Result<usize, StreamError> {
        let Some(left) = self.current().map(|tensor| tensor.bytes - self.done) else {
            let has = Bytes(seen + bytes.len() as u64);
            return Err(FileError::Length { file: file.to_owned(), needed: Bytes(self.file_bytes), has }.into());
        };
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let bytes = &bytes[..taken];
        self.hasher.update(bytes);
        match self.order.last() {
            Some(number) if *number < self.header.spec.parts().len() => {
                self.loading.write_part(*number, bytes).await?;
            }
            _ => self.words.extend_from_slice(bytes),
        }
        self.done += taken as u64;
        self.next(file)?;
        Ok(taken)
    }
}
