//! Rows of quantised blocks, as ggml stores them.
//!
//! ```text
//! a block is 32 columns     byte 0   2                  18           34
//! Q8_0                           |d  | q0 | q1 | ... | q31            |   x = q * d         d: F16, q: I8
//! Q4_0                           |d  | q0..15 low, q16..31 high |         x = (q - 8) * d   q: 4 bits, unsigned
//! Q4_1                           |d  |m  | as Q4_0                  |     x = q * d + m     m: F16
//! ```
//!
//! A byte of Q4_0 has column `j` in its low half and column `j + 16` in its high one.

use std::io::{Read, Seek, SeekFrom};

use half::f16;

use super::FileError;
use crate::{error::SourceError, source::RowSource, units::Shape};

/// Columns of a block.
const COLUMNS: usize = 32;
/// Blocks that are read at a time: 32 KiB of the largest.
const AT_ONCE: usize = 1 << 10;

/// A kind of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocks {
    Q4_0,
    Q4_1,
    Q8_0,
}

impl Blocks {
    const fn bytes(self) -> usize {
        match self {
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q8_0 => 34,
        }
    }

    /// Bytes of a row; `None` where its columns are no whole blocks.
    pub(super) fn row_bytes(self, dim: u32) -> Option<u64> {
        let (dim, columns) = (u64::from(dim), COLUMNS as u64);
        dim.is_multiple_of(columns).then(|| dim / columns * self.bytes() as u64)
    }

    fn decode(self, block: &[u8], out: &mut [f32]) {
        let number = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
        let scale = number(0);
        match self {
            Self::Q8_0 => {
                for (out, code) in out.iter_mut().zip(&block[2..]) {
                    *out = f32::from(code.cast_signed()) * scale;
                }
            }
            Self::Q4_0 => nibbles(&block[2..], out, |code| (code - 8.0) * scale),
            Self::Q4_1 => {
                let least = number(2);
                nibbles(&block[4..], out, |code| code * scale + least);
            }
        }
    }
}

/// Values of the codes in 16 bytes: the low halves first, then the high ones.
fn nibbles(bytes: &[u8], out: &mut [f32], value: impl Fn(f32) -> f32) {
    let (low, high) = out.split_at_mut(COLUMNS / 2);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(bytes) {
        *low = value(f32::from(byte & 15));
        *high = value(f32::from(byte >> 4));
    }
}

/// A matrix of blocks at an offset of a file. A row has whole blocks.
#[derive(Debug)]
pub(super) struct BlockRows<R> {
    pub(super) file: String,
    pub(super) reader: R,
    pub(super) offset: u64,
    pub(super) shape: Shape,
    pub(super) blocks: Blocks,
}

impl<R: Read + Seek> RowSource for BlockRows<R> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn read_rows(&mut self, first: u32, out: &mut [f32]) -> Result<(), SourceError> {
        let size = self.blocks.bytes();
        let before = u64::from(first) * u64::from(self.shape.dim()) / COLUMNS as u64;
        let position = SeekFrom::Start(self.offset + before * size as u64);
        self.reader.seek(position).map_err(FileError::io(&self.file))?;
        let mut bytes = vec![0; AT_ONCE.min(out.len() / COLUMNS) * size];
        for out in out.chunks_mut(AT_ONCE * COLUMNS) {
            let bytes = &mut bytes[..out.len() / COLUMNS * size];
            self.reader.read_exact(bytes).map_err(FileError::io(&self.file))?;
            for (block, out) in bytes.chunks_exact(size).zip(out.chunks_exact_mut(COLUMNS)) {
                self.blocks.decode(block, out);
            }
        }
        Ok(())
    }
}
