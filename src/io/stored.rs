//! A table file that is read piece by piece, from wherever it is.

use std::{
    ops::{Range, RangeInclusive},
    sync::atomic::{AtomicU64, Ordering},
};

use xxhash_rust::xxh3::xxh3_64;

use super::{
    FileError, Vocabulary,
    block_sums::BlockSums,
    header::Header,
    table_header::{TableHeader, TensorPlace, check_start},
};
use crate::{
    error::SourceError,
    scheme::TableSpec,
    source::TableSource,
    store::{ByteSource, Retry},
    units::Bytes,
};

/// About the most bytes that are asked for at a time.
const AT_ONCE: u64 = 4 << 20;

/// A table file of which only the header was read: a source for [`Engine::load_on_demand`](crate::Engine::load_on_demand).
///
/// Pieces are read as they are asked for, by whole blocks, and each block is compared with its checksum, which the header has. Of
/// a source that reads alike ([`ByteSource::reads_alike`]) that is done once a block.
///
/// # Examples
/// ```
/// use gatherum::{EncodedTable, Engine, IdPolicy, OnDemand, io, store::FileSource};
/// # pollster::block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("numbers.safetensors");
/// let values: Vec<f32> = (0..1_000_000).map(|value| value as f32).collect();
/// let (encoded, _) = EncodedTable::encode("numbers", &values, 4, &"f32".parse()?)?;
/// io::save_table(&encoded, None, &path)?;
///
/// let stored = io::StoredTable::open(FileSource::open(&path)?).await?;
/// let table = Engine::host().load_on_demand(stored, &OnDemand::default())?;
/// let row = table.gather(&[200_000_u32], IdPolicy::Error).await?;
/// assert_eq!(row.values[0], 800_000.0);
/// assert!(table.residency().read.0 < 1_300_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct StoredTable<S> {
    name: String,
    header: TableHeader,
    blocks: BlockSums,
    seen: Seen,
    source: S,
    file_bytes: u64,
    read: AtomicU64,
}

impl<S: ByteSource> StoredTable<S> {
    /// Reads the header of a table: its first bytes, and as many as those say. A source that fails is asked again, as
    /// [`Retry::default`] says.
    ///
    /// # Errors
    /// [`FileError::NoBlocks`] for a table that cannot be believed in pieces; [`FileError::NotTable`],
    /// [`FileError::Version`], [`FileError::Scheme`], [`FileError::Checksum`], [`FileError::Length`], [`FileError::Header`],
    /// [`FileError::HeaderTooLarge`] and [`FileError::Part`] as with [`TableFile`](super::TableFile);
    /// [`FileError::Source`] where the source fails.
    pub async fn open(source: S) -> Result<Self, FileError> {
        Self::open_with(source, Retry::default()).await
    }

    /// The same, with another say in what is done about a source that fails.
    ///
    /// # Errors
    /// As [`StoredTable::open`].
    pub async fn open_with(source: S, retry: Retry) -> Result<Self, FileError> {
        let read = AtomicU64::new(0);
        let header = retry.run(|| header(&source, &read), |error| matches!(error, FileError::Source(_))).await;
        let file = source.name().to_owned();
        let late = || {
            let what = format!("{file}: its header");
            FileError::Source(SourceError::Io { what, error: std::io::ErrorKind::TimedOut.into() })
        };
        let (header, file_bytes) = header.map_err(|tried| tried.last.unwrap_or_else(late))?;
        let mut header = TableHeader::new(&file, &header)?;
        let Some(blocks) = header.blocks.take() else { return Err(FileError::NoBlocks { file }) };
        let seen = Seen::new(&blocks, source.reads_alike());
        Ok(Self { name: stem(&file).to_owned(), header, seen, blocks, source, file_bytes, read })
    }

    /// The words of the rows, where the table has them: they are read whole.
    ///
    /// # Errors
    /// [`FileError::WordCount`] where they are not as many as the rows, [`FileError::Checksum`], [`FileError::Source`].
    pub async fn words(&self) -> Result<Option<Vocabulary>, FileError> {
        let Some(words) = self.header.words() else { return Ok(None) };
        let joined = read(&self.source, &self.read, words.offset..words.offset + words.bytes).await?;
        let file = self.source.name();
        words.compare(file, xxh3_64(&joined))?;
        Vocabulary::from_joined(file, joined, self.header.spec.shape().rows()).map(Some)
    }

    /// Whether the table has words.
    #[must_use]
    pub fn has_words(&self) -> bool {
        self.header.words().is_some()
    }

    /// The text that the metadata has under `key`.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.header.metadata.get(key).map(String::as_str)
    }

    /// All that the metadata says.
    #[cfg(all(feature = "journal", not(target_arch = "wasm32")))]
    pub(super) fn all_metadata(&self) -> &std::collections::HashMap<String, String> {
        &self.header.metadata
    }

    /// Bytes of the words, where the table has them.
    #[cfg(all(feature = "journal", not(target_arch = "wasm32")))]
    pub(super) fn words_bytes(&self) -> Option<u64> {
        self.header.words().map(|words| words.bytes)
    }

    /// Bytes of the file.
    #[must_use]
    pub fn file_bytes(&self) -> Bytes {
        Bytes(self.file_bytes)
    }

    /// Bytes read so far, those of the header among them.
    #[must_use]
    pub fn read_so_far(&self) -> Bytes {
        Bytes(self.read.load(Ordering::Relaxed))
    }
}

impl<S: ByteSource> TableSource for StoredTable<S> {
    fn spec(&self) -> &TableSpec {
        &self.header.spec
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn bytes_read(&self) -> Option<u64> {
        Some(self.read_so_far().0)
    }

    async fn read_part(&self, part: usize, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let TensorPlace { name, offset: begin, bytes, .. } = &self.header.tensors[part];
        let (length, file) = (out.len() as u64, self.source.name());
        if offset.checked_add(length).is_none_or(|end| end > *bytes) {
            return Err(SourceError::Invalid(format!("{file}: part `{name}` has no {length} bytes from {offset} on")));
        }
        let block = self.blocks.block;
        if !out.is_empty() && self.seen.all(part, offset / block..=(offset + length - 1) / block) {
            let bytes = read(&self.source, &self.read, begin + offset..begin + offset + length).await?;
            out.copy_from_slice(&bytes);
            return Ok(());
        }
        let step = AT_ONCE.max(block);
        let (mut at, mut out) = (offset, out);
        while !out.is_empty() {
            // Whole blocks, up to a multiple of the step.
            let first = at / block * block;
            let end = (first + step).min((at + out.len() as u64).next_multiple_of(block)).min(*bytes);
            let blocks = read(&self.source, &self.read, begin + first..begin + end).await?;
            let sums = &self.blocks.parts[part][index(first / block)..];
            for (number, (bytes, stored)) in blocks.chunks(index(block)).zip(sums).enumerate() {
                if xxh3_64(bytes) != *stored {
                    let number = first / block + number as u64;
                    return Err(SourceError::Invalid(format!(
                        "{file}: block {number} of part `{name}`, {} bytes from {} on, is damaged: its checksum is another",
                        bytes.len(),
                        begin + number * block,
                    )));
                }
                self.seen.note(part, first / block + number as u64);
            }
            let skip = index(at - first);
            let length = (blocks.len() - skip).min(out.len());
            let (head, rest) = out.split_at_mut(length);
            head.copy_from_slice(&blocks[skip..][..length]);
            (out, at) = (rest, at + length as u64);
        }
        Ok(())
    }
}

/// Blocks that were compared with their checksums: a bit for each, part by part, of a source that reads alike.
#[derive(Debug)]
struct Seen(Vec<Vec<AtomicU64>>);

impl Seen {
    fn new(blocks: &BlockSums, reads_alike: bool) -> Self {
        let words = |sums: &Vec<u64>| (0..sums.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self(if reads_alike { blocks.parts.iter().map(words).collect() } else { Vec::new() })
    }

    fn note(&self, part: usize, block: u64) {
        if let Some(part) = self.0.get(part) {
            part[index(block / 64)].fetch_or(1 << (block % 64), Ordering::Relaxed);
        }
    }

    fn all(&self, part: usize, mut blocks: RangeInclusive<u64>) -> bool {
        let seen = |part: &Vec<AtomicU64>, block: u64| {
            part[index(block / 64)].load(Ordering::Relaxed) >> (block % 64) & 1 == 1
        };
        self.0.get(part).is_some_and(|part| blocks.all(|block| seen(part, block)))
    }
}

/// A number of bytes that are in memory.
fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Reads the header alone, and says how many bytes the file has.
async fn header(source: &impl ByteSource, count: &AtomicU64) -> Result<(Header, u64), FileError> {
    let (file, has) = (source.name(), source.size().await?);
    let start = read(source, count, 0..has.min(9)).await?;
    check_start(file, &start)?;
    let length = |needed| FileError::Length { file: file.to_owned(), needed: Bytes(needed), has: Bytes(has) };
    let Some(first) = start.first_chunk() else { return Err(length(8)) };
    let claimed = Header::json_bytes(file, *first)?;
    if 8 + claimed > has {
        return Err(length(8 + claimed));
    }
    let json = read(source, count, 8..8 + claimed).await?;
    let header = Header::parse(file, &json)?;
    if header.file_bytes() == has { Ok((header, has)) } else { Err(length(header.file_bytes())) }
}

/// Reads a range, all of it and no more.
async fn read(source: &impl ByteSource, count: &AtomicU64, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
    if range.is_empty() {
        return Ok(Vec::new());
    }
    let (name, wanted) = (source.name(), range.end - range.start);
    let bytes = source.read(range.clone()).await?;
    count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    if bytes.len() as u64 != wanted {
        let got = bytes.len();
        return Err(SourceError::Invalid(format!("{name}: {got} bytes came for the {wanted} from {} on", range.start)));
    }
    Ok(bytes)
}

/// The name of a table by that of its file, or its URL.
fn stem(file: &str) -> &str {
    let path = file.split(['?', '#']).next().unwrap_or(file);
    let last = path.rsplit(['/', '\\']).next().unwrap_or(path);
    match last.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ if last.is_empty() => "table",
        _ => last,
    }
}
