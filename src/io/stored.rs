//! A table file that is read piece by piece, from wherever it is.

use std::{
    ops::{Range, RangeInclusive},
    sync::atomic::{AtomicU64, Ordering},
};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::{
    FileError, Vocabulary,
    block_sums::BlockSums,
    header::Header,
    kept::Kept,
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
    kept: Kept,
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
        let (header, identity, file_bytes) = header.map_err(|tried| tried.last.unwrap_or_else(late))?;
        let mut header = TableHeader::new(&file, &header)?;
        let Some(blocks) = header.blocks.take() else { return Err(FileError::NoBlocks { file }) };
        let seen = Seen::new(&blocks, source.reads_alike());
        let (name, kept) = (stem(&file).to_owned(), Kept::new(identity));
        Ok(Self { name, header, seen, kept, blocks, source, file_bytes, read })
    }

    /// Keeps the blocks that are read in a folder of a local disk, and takes them from there: for a table that is far away. What a
    /// local file has is not kept a second time, where its source [reads alike](ByteSource::reads_alike).
    ///
    /// # Examples
    /// ```
    /// use gatherum::{Bytes, EncodedTable, io::StoredTable, store::{DiskCache, MemorySource}};
    /// # pollster::block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let (encoded, _) = EncodedTable::encode("t", &[0.5; 4000], 4, &"f32".parse()?)?;
    /// # gatherum::io::save_table(&encoded, None, folder.path().join("t"))?;
    /// # let source = MemorySource::new("t", std::fs::read(folder.path().join("t"))?);
    /// let cache = DiskCache::open(folder.path().join("blocks"), Bytes(256 << 20))?;
    /// // A source that is far away, such as `store::ObjectSource`.
    /// let stored = StoredTable::open(source).await?.kept_in(&cache);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn kept_in(mut self, cache: &crate::store::DiskCache) -> Self {
        self.kept.cache = Some(cache.clone());
        self
    }

    /// The words of the rows, where the table has them: they are read whole.
    ///
    /// # Errors
    /// [`FileError::WordCount`] where they are not as many as the rows, [`FileError::Checksum`], [`FileError::Source`].
    pub async fn words(&self) -> Result<Option<Vocabulary>, FileError> {
        let Some(words) = self.header.words() else { return Ok(None) };
        let file = self.source.name();
        let joined = match self.kept.words(words.bytes, |joined| words.compare(file, xxh3_64(joined)).is_ok()) {
            Some(joined) => joined,
            None => {
                let joined = read(&self.source, &self.read, words.offset..words.offset + words.bytes).await?;
                words.compare(file, xxh3_64(&joined))?;
                self.kept.keep_words(&joined);
                joined
            }
        };
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
            let blocks = self.whole_blocks(part, first / block..end.div_ceil(block)).await?;
            let skip = index(at - first);
            let length = (blocks.len() - skip).min(out.len());
            let (head, rest) = out.split_at_mut(length);
            head.copy_from_slice(&blocks[skip..][..length]);
            (out, at) = (rest, at + length as u64);
        }
        Ok(())
    }
}

impl<S: ByteSource> StoredTable<S> {
    /// Blocks of a part, compared with their checksums: from where they are kept, or from the source, neighbours by one request.
    async fn whole_blocks(&self, part: usize, numbers: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let mut blocks = Vec::new();
        let mut next = numbers.start;
        while next < numbers.end {
            if let Some(kept) =
                self.kept.block(part, next, self.block_bytes(part, next), self.blocks.parts[part][index(next)])
            {
                blocks.extend(kept);
                next += 1;
                continue;
            }
            let end = (next + 1..numbers.end).find(|number| self.kept.has(part, *number)).unwrap_or(numbers.end);
            let read = self.read_blocks(part, next..end).await?;
            if blocks.is_empty() && end == numbers.end {
                return Ok(read);
            }
            blocks.extend(read);
            next = end;
        }
        Ok(blocks)
    }

    /// Bytes of a block; the last of a part may have fewer.
    fn block_bytes(&self, part: usize, number: u64) -> usize {
        let (block, bytes) = (self.blocks.block, self.header.tensors[part].bytes);
        index(block.min(bytes - number * block))
    }

    async fn read_blocks(&self, part: usize, numbers: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let TensorPlace { name, offset, bytes, .. } = &self.header.tensors[part];
        let (file, block) = (self.source.name(), self.blocks.block);
        let range = numbers.start * block..(numbers.end * block).min(*bytes);
        let blocks = read(&self.source, &self.read, offset + range.start..offset + range.end).await?;
        let sums = &self.blocks.parts[part][index(numbers.start)..];
        for ((number, bytes), stored) in numbers.zip(blocks.chunks(index(block))).zip(sums) {
            if xxh3_64(bytes) != *stored {
                return Err(SourceError::Invalid(format!(
                    "{file}: block {number} of part `{name}`, {} bytes from {} on, is damaged: its checksum is another",
                    bytes.len(),
                    offset + number * block,
                )));
            }
            self.seen.note(part, number);
            self.kept.keep(part, number, bytes);
        }
        Ok(blocks)
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

/// Reads the header alone, and says what it is told by, and how many bytes the file has.
async fn header(source: &impl ByteSource, count: &AtomicU64) -> Result<(Header, u128, u64), FileError> {
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
    if header.file_bytes() == has { Ok((header, xxh3_128(&json), has)) } else { Err(length(header.file_bytes())) }
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
