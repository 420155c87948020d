//! Blocks of a stored table that a local disk keeps. A browser has none.

#[cfg(not(target_arch = "wasm32"))]
use xxhash_rust::xxh3::xxh3_64;

#[cfg(not(target_arch = "wasm32"))]
use crate::store::{BlockKey, DiskCache};

/// The words of a table stand behind its parts, as one block.
#[cfg(not(target_arch = "wasm32"))]
const WORDS: usize = u32::MAX as usize;

/// Where blocks of one table are kept, if they are.
#[derive(Debug)]
pub(super) struct Kept {
    #[cfg(not(target_arch = "wasm32"))]
    identity: u128,
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) cache: Option<DiskCache>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Kept {
    pub(super) fn new(identity: u128) -> Self {
        Self { identity, cache: None }
    }

    fn key(&self, part: usize, block: u64) -> BlockKey {
        BlockKey { table: self.identity, part: u32::try_from(part).unwrap_or(u32::MAX), block }
    }

    /// A block of so many bytes and that checksum.
    pub(super) fn block(&self, part: usize, number: u64, bytes: usize, sum: u64) -> Option<Vec<u8>> {
        self.cache.as_ref()?.get(self.key(part, number), bytes, |bytes| xxh3_64(bytes) == sum)
    }

    pub(super) fn has(&self, part: usize, number: u64) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.has(self.key(part, number)))
    }

    pub(super) fn keep(&self, part: usize, number: u64, bytes: &[u8]) {
        if let Some(cache) = &self.cache {
            cache.put(self.key(part, number), bytes);
        }
    }

    /// All words, joined, if they are `right`.
    pub(super) fn words(&self, bytes: u64, right: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        self.cache.as_ref()?.get(self.key(WORDS, 0), usize::try_from(bytes).ok()?, right)
    }

    pub(super) fn keep_words(&self, joined: &[u8]) {
        self.keep(WORDS, 0, joined);
    }
}

#[cfg(target_arch = "wasm32")]
impl Kept {
    pub(super) fn new(_identity: u128) -> Self {
        Self {}
    }

    pub(super) fn block(&self, _part: usize, _number: u64, _bytes: usize, _sum: u64) -> Option<Vec<u8>> {
        None
    }

    pub(super) fn has(&self, _part: usize, _number: u64) -> bool {
        false
    }

    pub(super) fn keep(&self, _part: usize, _number: u64, _bytes: &[u8]) {}

    pub(super) fn words(&self, _bytes: u64, _right: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        None
    }

    pub(super) fn keep_words(&self, _joined: &[u8]) {}
}
