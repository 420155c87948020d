//! Checksums of the blocks of each part, by which a piece of a table can be believed without the rest.

use std::{collections::HashMap, fmt::Write as _};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::layout::written;
use crate::scheme::TableSpec;

/// The least bytes of a block, which readers take.
const LEAST: u64 = 4 << 10;
/// Blocks are so large, unless there would be too many.
const USUAL: u64 = 64 << 10;
/// Of smaller blocks a table has no more than these: a shard is read with few bytes of its neighbours, and their checksums, 64 KiB
/// of digits, come with the first bytes of the file.
const FEW_BLOCKS: u64 = 4 << 10;
/// The most bytes of one that are believed; blocks are read whole.
const MOST: u64 = 1 << 30;
/// About the most blocks of a table, so that the header stays within what readers take.
const MOST_BLOCKS: u64 = 1 << 20;

/// Key of the bytes of a block.
pub(super) const BLOCK_BYTES: &str = "block_bytes";
/// Key of the checksum of what is said of blocks.
pub(super) const CHECKSUM: &str = "checksum.blocks";

/// The checksums of all blocks of all parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockSums {
    /// Bytes of a block, a power of two; the last of a part may have fewer.
    pub(super) block: u64,
    /// Of each part in the scheme's order.
    pub(super) parts: Vec<Vec<u64>>,
}

/// Key of the blocks of a part.
pub(super) fn key(part: &str) -> String {
    format!("blocks.{part}")
}

/// Bytes of a block, for a table of so many.
pub(super) fn block_bytes(spec: &TableSpec) -> u64 {
    let bytes = spec.bytes().0;
    let mut block = LEAST;
    while bytes.div_ceil(block) > if block < USUAL { FEW_BLOCKS } else { MOST_BLOCKS } {
        block *= 2;
    }
    block
}

impl BlockSums {
    /// Zeros, of which there are as many as there will be checksums.
    pub(super) fn blank(spec: &TableSpec) -> Self {
        let block = block_bytes(spec);
        let blocks = |bytes: u64| usize::try_from(bytes.div_ceil(block)).unwrap_or(usize::MAX);
        Self { block, parts: spec.parts().iter().map(|part| vec![0; blocks(part.bytes().0)]).collect() }
    }

    /// The blocks of a part as they are written: 16 digits each.
    pub(super) fn digits(&self, part: usize) -> String {
        let mut text = String::with_capacity(self.parts[part].len() * 16);
        for sum in &self.parts[part] {
            // Writing to a String does not fail.
            let _ = write!(text, "{sum:016x}");
        }
        text
    }

    /// The checksum of all this, and of the `description` of the table that it is of.
    pub(super) fn checksum(&self, spec: &TableSpec, description: &str) -> String {
        let mut text = format!("description {description}\n{BLOCK_BYTES} {}\n", self.block);
        for (number, part) in spec.parts().iter().enumerate() {
            let _ = writeln!(text, "blocks {} {}", part.name(), self.digits(number));
        }
        written(xxh3_64(text.as_bytes()))
    }

    /// Reads them from the metadata of a table; `None` where it has none, and the reason where they cannot be.
    pub(super) fn read(spec: &TableSpec, metadata: &HashMap<String, String>) -> Result<Option<Self>, String> {
        let Some(text) = metadata.get(BLOCK_BYTES) else {
            let says = |name: &&String| *name == CHECKSUM || name.starts_with(&key(""));
            return match metadata.keys().find(says) {
                None => Ok(None),
                Some(other) => Err(format!("its metadata has `{other}` and no `{BLOCK_BYTES}`")),
            };
        };
        let block = text.parse::<u64>().ok().filter(|block| block.is_power_of_two() && (LEAST..=MOST).contains(block));
        let block =
            block.ok_or_else(|| format!("`{BLOCK_BYTES}` is no power of two from {LEAST} to {MOST}: {text:?}"))?;
        let parts = spec.parts().iter().map(|part| {
            let key = key(part.name());
            let text = metadata.get(&key).ok_or_else(|| format!("its metadata has no `{key}`"))?;
            let blocks = part.bytes().0.div_ceil(block);
            if text.len() as u64 != blocks * 16 {
                return Err(format!("`{key}` has {} digits; {blocks} blocks have 16 each", text.len()));
            }
            let sum = |digits: &[u8; 16]| {
                // Of what stands in the file there is one spelling, so that no bit of it can flip unseen.
                let digits = std::str::from_utf8(digits).ok()?;
                let lower = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
                u64::from_str_radix(digits, 16).ok().filter(|_| lower)
            };
            let sums: Option<Vec<u64>> = text.as_bytes().as_chunks().0.iter().map(sum).collect();
            sums.ok_or_else(|| format!("`{key}` is not lower-case hexadecimal"))
        });
        Ok(Some(Self { block, parts: parts.collect::<Result<_, _>>()? }))
    }
}

/// Takes a part's bytes as they pass, and makes the checksums of its blocks.
pub(super) struct BlockHasher {
    block: u64,
    /// Bytes of the block that is under way.
    taken: u64,
    hasher: Xxh3,
    sums: Vec<u64>,
}

impl std::fmt::Debug for BlockHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockHasher").field("blocks", &self.sums.len()).finish_non_exhaustive()
    }
}

impl BlockHasher {
    pub(super) fn new(block: u64) -> Self {
        Self { block, taken: 0, hasher: Xxh3::new(), sums: Vec::new() }
    }

    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let length = usize::try_from(self.block - self.taken).unwrap_or(usize::MAX).min(bytes.len());
            let (head, rest) = bytes.split_at(length);
            self.hasher.update(head);
            self.taken += length as u64;
            if self.taken == self.block {
                self.end();
            }
            bytes = rest;
        }
    }

    fn end(&mut self) {
        self.sums.push(self.hasher.digest());
        self.hasher.reset();
        self.taken = 0;
    }

    /// The checksums, the last of which may be of fewer bytes.
    pub(super) fn finish(mut self) -> Vec<u64> {
        if self.taken > 0 {
            self.end();
        }
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scheme, Shape};

    #[test]
    fn blocks_are_hashed_however_the_bytes_come() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| at.wrapping_mul(0x9e37_79b1).to_le_bytes()[3]).collect();
        let want: Vec<u64> = bytes.chunks(65_536).map(xxh3_64).collect();
        for step in [1_000, 65_535, 65_536, 65_537, 200_000] {
            let mut hasher = BlockHasher::new(65_536);
            bytes.chunks(step).for_each(|bytes| hasher.update(bytes));
            assert_eq!(hasher.finish(), want, "{step}");
        }
        assert!(BlockHasher::new(65_536).finish().is_empty());
    }

    #[test]
    fn large_tables_have_large_blocks() {
        let spec = |rows| "f32".parse::<Scheme>().unwrap().spec(Shape::new(rows, 1024).unwrap()).unwrap();
        for (rows, block) in [(1, 4 << 10), (4096, 4 << 10), (4097, 8 << 10), (50_000, 64 << 10), (1_000_000, 64 << 10)]
        {
            assert_eq!(block_bytes(&spec(rows)), block, "{rows} rows");
        }
        assert_eq!(block_bytes(&spec(4_000_000_000)), 16 << 20);
    }
}
