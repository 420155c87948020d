//! word2vec's binary format.
//!
//! ```text
//! "<rows> <columns>\n", then for each row:
//! | word | 0x20 | columns x F32, little endian | 0x0a, in some files |
//! ```
//!
//! Read twice, as text is: once for the words, once for the numbers. Nothing is allocated by what the header promises.

use std::io::{self, BufRead, Read, Seek};

use super::{FileError, Vocabulary, compressed::Plain, elements, vocabulary};
use crate::{error::SourceError, source::RowSource, units::Shape};

const F32: elements::Element = elements::Element::little(elements::Kind::F32);

/// Reads the words, and gives the rows.
pub(super) fn open<R: Read + Seek>(
    file: &str,
    plain: Plain<R>,
    rows: u64,
    dim: u64,
) -> Result<(BinaryRows<R>, Vocabulary), FileError> {
    let shape = Shape::new(rows, dim).map_err(|error| FileError::Shape { file: file.to_owned(), error })?;
    let mut records = Records::new(file, plain)?;
    let mut words = Vocabulary::default();
    let mut word = Vec::new();
    for _ in 0..rows {
        records.word(&mut word)?;
        records.skip(u64::from(shape.dim()) * 4)?;
        words.push(&word)?;
        records.next += 1;
    }
    records.end()?;
    Ok((BinaryRows { records: Some(records), shape, restart: true }, words))
}

/// Records, read in order.
#[derive(Debug)]
struct Records<R> {
    file: String,
    plain: Plain<R>,
    /// Number of the record to be read.
    next: u64,
    /// Bytes read, and where the record begins.
    read: u64,
    start: u64,
}

impl<R: Read + Seek> Records<R> {
    /// Begins behind the header line.
    fn new(file: &str, plain: Plain<R>) -> Result<Self, FileError> {
        let mut plain = plain;
        let mut line = Vec::new();
        // A header is two numbers; a file that changed since it was looked at may hold anything here.
        let read = (&mut plain).take(1 << 12).read_until(b'\n', &mut line).map_err(FileError::io(file))?;
        Ok(Self { file: file.to_owned(), plain, next: 0, read: read as u64, start: read as u64 })
    }

    fn rewind(self) -> Result<Self, FileError> {
        Self::new(&self.file, self.plain.rewind(&self.file)?)
    }

    /// Reads the word that begins the record.
    fn word(&mut self, word: &mut Vec<u8>) -> Result<(), FileError> {
        self.start = self.read;
        word.clear();
        let read = (&mut self.plain).take(vocabulary::MOST_WORD).read_until(b' ', word);
        let read = read.map_err(FileError::io(&self.file))? as u64;
        self.read += read;
        if word.pop() != Some(b' ') {
            return Err(self.bad(if read == vocabulary::MOST_WORD {
                vocabulary::too_long()
            } else {
                "the file ends within it".to_owned()
            }));
        }
        // The newline that ends the record before.
        let newlines = word.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        word.drain(..newlines);
        if word.contains(&b'\n') {
            return Err(self.bad(format!("its word holds a newline: {}", super::lines::quoted(word))));
        }
        Ok(())
    }

    fn skip(&mut self, bytes: u64) -> Result<(), FileError> {
        let skipped = io::copy(&mut (&mut self.plain).take(bytes), &mut io::sink());
        let skipped = skipped.map_err(FileError::io(&self.file))?;
        self.read += skipped;
        if skipped < bytes { Err(self.bad("the file ends within it".to_owned())) } else { Ok(()) }
    }

    /// Refuses what follows the last record.
    fn end(&mut self) -> Result<(), FileError> {
        self.start = self.read;
        let mut rest = Vec::new();
        (&mut self.plain).take(16).read_to_end(&mut rest).map_err(FileError::io(&self.file))?;
        if rest.iter().any(|byte| !byte.is_ascii_whitespace()) {
            return Err(self.bad(format!("the header promises {} rows, and more bytes follow", self.next)));
        }
        Ok(())
    }

    fn bad(&self, reason: String) -> FileError {
        FileError::BadRecord { file: self.file.clone(), record: self.next, offset: self.start, reason }
    }
}

/// The rows of a binary file, in its second reading.
#[derive(Debug)]
pub(super) struct BinaryRows<R> {
    /// `None` after a failure to start again.
    records: Option<Records<R>>,
    shape: Shape,
    /// Whether the reader is not at a record's begin.
    restart: bool,
}

impl<R: Read + Seek> BinaryRows<R> {
    fn read(&mut self, first: u32, out: &mut [f32]) -> Result<(), FileError> {
        let dim = self.shape.dim() as usize;
        let Some(mut records) = self.records.take() else {
            return Err(FileError::Unrecognised {
                file: "the file".to_owned(),
                reason: "cannot be read again".to_owned(),
            });
        };
        if self.restart || records.next > u64::from(first) {
            records = records.rewind()?;
        }
        let records = self.records.insert(records);
        self.restart = true;
        let mut word = Vec::new();
        while records.next < u64::from(first) {
            records.word(&mut word)?;
            records.skip(dim as u64 * 4)?;
            records.next += 1;
        }
        let mut bytes = vec![0; dim * 4];
        for out in out.chunks_exact_mut(dim) {
            records.word(&mut word)?;
            records.plain.read_exact(&mut bytes).map_err(FileError::io(&records.file))?;
            // An f32 always fits f32.
            let _ = F32.decode(&bytes, out, 1);
            records.read += bytes.len() as u64;
            records.next += 1;
        }
        self.restart = false;
        Ok(())
    }
}

impl<R: Read + Seek> RowSource for BinaryRows<R> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn read_rows(&mut self, first: u32, out: &mut [f32]) -> Result<(), SourceError> {
        Ok(self.read(first, out)?)
    }
}
