//! Plain bytes of a file that may be gzip.

use std::io::{self, BufRead, BufReader, Read, Seek};

use flate2::bufread::MultiGzDecoder;

use super::FileError;

/// Bytes read in order: the file's own, or decompressed where it begins as gzip does.
#[derive(Debug)]
pub(super) enum Plain<R> {
    Raw(BufReader<R>),
    Gzip(Box<BufReader<MultiGzDecoder<BufReader<R>>>>),
}

/// Bytes of each buffer.
const BUFFER: usize = 1 << 16;

impl<R: Read + Seek> Plain<R> {
    pub(super) fn new(file: &str, mut reader: R) -> Result<Self, FileError> {
        reader.rewind().map_err(FileError::io(file))?;
        let mut reader = BufReader::with_capacity(BUFFER, reader);
        let gzip = reader.fill_buf().map_err(FileError::io(file))?.starts_with(&[0x1f, 0x8b]);
        Ok(if gzip {
            Self::Gzip(Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(reader))))
        } else {
            Self::Raw(reader)
        })
    }

    pub(super) fn is_gzip(&self) -> bool {
        matches!(self, Self::Gzip(_))
    }

    /// Starts again from the first byte.
    pub(super) fn rewind(self, file: &str) -> Result<Self, FileError> {
        Self::new(file, self.into_inner())
    }

    pub(super) fn into_inner(self) -> R {
        match self {
            Self::Raw(reader) => reader.into_inner(),
            Self::Gzip(reader) => reader.into_inner().into_inner().into_inner(),
        }
    }

    /// Lines from here to the end; the first counts only where it begins here.
    pub(super) fn count_lines(&mut self, file: &str, begins: bool) -> Result<u64, FileError> {
        let (mut newlines, mut open, mut first) = (0, false, !begins);
        loop {
            let bytes = self.fill_buf().map_err(FileError::io(file))?;
            let Some(last) = bytes.last() else { break };
            open = *last != b'\n';
            newlines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            let length = bytes.len();
            self.consume(length);
            if first && newlines > 0 {
                (newlines, first) = (newlines - 1, false);
            }
        }
        Ok(newlines + u64::from(open && !first))
    }
}

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Raw(reader) => reader.read(out),
            Self::Gzip(reader) => reader.read(out),
        }
    }
}

impl<R: Read> BufRead for Plain<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Raw(reader) => reader.fill_buf(),
            Self::Gzip(reader) => reader.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        match self {
            Self::Raw(reader) => reader.consume(amount),
            Self::Gzip(reader) => reader.consume(amount),
        }
    }
}
