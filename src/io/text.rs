//! Word vectors as text: GloVe (no header), word2vec and fastText `.vec` (a line `rows columns` first).
//!
//! The file is read twice: once to count its lines, check that each has its fields and collect the words, once for the
//! numbers. Memory is the words and about 1 MiB of lines.

use std::io::{Read, Seek};

use rayon::prelude::*;

use super::{
    FileError, Vocabulary,
    compressed::Plain,
    lines::{self, Lines},
};
use crate::{error::SourceError, source::RowSource, units::Shape};

/// Lines that are looked at to tell what a file is.
const SAMPLE_LINES: usize = 100;
/// Bytes of a word2vec file behind its header that tell text from binary.
const SAMPLE_BYTES: u64 = 1 << 16;
/// Bytes of lines that are kept at a time while rows are read.
const BLOCK_BYTES: usize = 1 << 20;
/// Bytes of lines from which on other threads help.
const PARALLEL_BYTES: usize = 1 << 16;

/// What a file of word vectors is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Lines of a word and `dim` numbers.
    Glove { dim: u64 },
    /// The same behind a header.
    Text { rows: u64, dim: u64 },
    /// Binary records behind a header.
    Binary { rows: u64, dim: u64 },
}

/// Tells what a file is by its first lines. `bin` says that its name speaks for binary.
pub(super) fn sniff<R: Read + Seek>(file: &str, plain: Plain<R>, bin: bool) -> Result<(Layout, Plain<R>), FileError> {
    let unrecognised = |reason: &str| FileError::Unrecognised { file: file.to_owned(), reason: reason.to_owned() };
    let mut lines = Lines::new(file, plain);
    let mut line = Vec::new();
    if !lines.read(&mut line)? {
        return Err(unrecognised("is empty"));
    }
    let header = lines::header(&line);
    if let Some((rows, dim)) = header {
        let mut plain = lines.into_plain();
        let mut sample = Vec::new();
        (&mut plain).take(SAMPLE_BYTES).read_to_end(&mut sample).map_err(FileError::io(file))?;
        if is_binary(&sample, rows, dim, bin) {
            return Ok((Layout::Binary { rows, dim }, plain.rewind(file)?));
        }
        lines = Lines::new(file, plain.rewind(file)?);
        lines.read(&mut line)?;
        if !lines.read(&mut line)? {
            return Ok((Layout::Text { rows, dim }, lines.into_plain().rewind(file)?));
        }
    } else if line.contains(&0) {
        return Err(unrecognised("is of no format that is read"));
    }
    let mut counts: Vec<(usize, u32)> = Vec::new();
    for _ in 0..SAMPLE_LINES {
        let numbers = lines::count_numbers(&line);
        match counts.iter_mut().find(|(other, _)| *other == numbers) {
            Some((_, times)) => *times += 1,
            None => counts.push((numbers, 1)),
        }
        if !lines.read(&mut line)? {
            break;
        }
    }
    // The most frequent; the earliest of equals.
    let (found, _) = counts.into_iter().rev().max_by_key(|(_, times)| *times).unwrap_or_default();
    let plain = lines.into_plain().rewind(file)?;
    match header {
        Some((_, dim)) if dim != found as u64 && found > 0 => {
            let reason = format!("promises {dim} columns; the lines behind it hold {found} numbers");
            Err(lines::bad_line(file, 1, reason))
        }
        Some((rows, dim)) => Ok((Layout::Text { rows, dim }, plain)),
        None if found == 0 => Err(unrecognised("is of no format that is read: its lines are no word and numbers")),
        None => Ok((Layout::Glove { dim: found as u64 }, plain)),
    }
}

/// Whether the bytes behind a word2vec header are binary: no line of text, and full of control characters as numbers are.
fn is_binary(sample: &[u8], rows: u64, dim: u64, bin: bool) -> bool {
    let line = match sample.iter().position(|byte| *byte == b'\n') {
        Some(end) => Some(&sample[..end]),
        None => Some(sample).filter(|sample| (sample.len() as u64) < SAMPLE_BYTES),
    };
    let controls = sample.iter().filter(|byte| **byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r')).count();
    // The bytes of a number may read as text. Where the name says binary, one control character settles it, or a whole file
    // that is the promised records to the byte.
    if bin && (controls > 0 || (sample.len() as u64) < SAMPLE_BYTES && are_records(sample, rows, dim)) {
        return true;
    }
    if line.is_some_and(|line| lines::count_numbers(line) as u64 == dim) {
        return false;
    }
    controls * 50 > sample.len() || bin && line.is_some()
}

/// Whether these bytes are just so many binary records: a word, a blank, four bytes a number, perhaps a line's end.
fn are_records(mut bytes: &[u8], rows: u64, dim: u64) -> bool {
    for _ in 0..rows {
        let Some(word) = bytes.iter().position(|byte| *byte == b' ') else { return false };
        let Some(rest) = usize::try_from(dim).ok().and_then(|dim| bytes[word + 1..].get(dim.checked_mul(4)?..)) else {
            return false;
        };
        bytes = rest.strip_prefix(b"\n").unwrap_or(rest);
    }
    bytes.is_empty()
}

/// Reads the words, and gives the rows.
pub(super) fn open<R: Read + Seek>(
    file: &str,
    plain: Plain<R>,
    layout: Layout,
) -> Result<(TextRows<R>, Vocabulary), FileError> {
    let (promised, columns, skip) = match layout {
        Layout::Glove { dim } => (None, dim, 0),
        Layout::Text { rows, dim } | Layout::Binary { rows, dim } => (Some(rows), dim, 1),
    };
    let shape = |rows| Shape::new(rows, columns).map_err(|error| FileError::Shape { file: file.to_owned(), error });
    let dim = shape(promised.unwrap_or(0))?.dim() as usize;
    let mut lines = Lines::new(file, plain);
    let mut line = Vec::new();
    let mut words = Vocabulary::default();
    for _ in 0..skip {
        lines.read(&mut line)?;
    }
    loop {
        line.clear();
        if !lines.append_filled(&mut line)? {
            break;
        }
        let (word, _) = lines::split(&line, dim).map_err(|has| lines.bad(too_few(has, dim)))?;
        if word.len() as u64 > super::vocabulary::MOST_WORD {
            return Err(lines.bad(super::vocabulary::too_long()));
        }
        words.push(word)?;
    }
    let has = words.len() as u64;
    if promised.is_some_and(|promised| promised != has) {
        return Err(FileError::RowCount { file: file.to_owned(), promised: promised.unwrap_or(0), has });
    }
    let rows = TextRows { lines: Some(lines), shape: shape(has)?, skip, next: u32::MAX };
    Ok((rows, words))
}

fn too_few(has: usize, dim: usize) -> String {
    format!("holds {has} numbers behind its word; {dim} are expected")
}

/// The rows of a text file, in its second reading.
#[derive(Debug)]
pub(super) struct TextRows<R> {
    /// `None` after a failure to start again.
    lines: Option<Lines<R>>,
    shape: Shape,
    /// Lines before the first row.
    skip: u32,
    /// The row of the next line; past the last where the file has to be started again.
    next: u32,
}

impl<R: Read + Seek> TextRows<R> {
    /// Goes to the line of row `first`.
    fn seek(&mut self, first: u32) -> Result<&mut Lines<R>, FileError> {
        let mut lines = self.lines.take().ok_or_else(|| changed("the file"))?;
        let mut skip = 0;
        if self.next > first {
            lines = lines.rewind()?;
            self.next = 0;
            skip = self.skip;
        }
        let mut line = Vec::new();
        for _ in 0..skip + (first - self.next) {
            lines.read(&mut line)?;
        }
        self.next = first;
        Ok(self.lines.insert(lines))
    }

    fn read(&mut self, first: u32, out: &mut [f32]) -> Result<(), FileError> {
        let dim = self.shape.dim() as usize;
        let mut out = out.chunks_exact_mut(dim);
        let mut next = first;
        let lines = self.seek(first)?;
        let mut text = Vec::new();
        while out.len() > 0 {
            text.clear();
            let mut block: Vec<(std::ops::Range<usize>, &mut [f32])> = Vec::new();
            let before = lines.number();
            while text.len() < BLOCK_BYTES
                && let Some(row) = out.next()
            {
                let start = text.len();
                if !lines.append(&mut text)? {
                    return Err(changed(lines.file()));
                }
                block.push((start..text.len(), row));
            }
            next += u32::try_from(block.len()).unwrap_or(u32::MAX);
            let parse = |(index, (range, row)): (usize, (std::ops::Range<usize>, &mut [f32]))| {
                let parsed = match lines::split(&text[range], dim) {
                    Ok((_, numbers)) => lines::parse_numbers(numbers, row),
                    Err(has) => Err(too_few(has, dim)),
                };
                parsed.err().map(|reason| (index, reason))
            };
            // The first bad line is the one that is told, however many threads look for it.
            let bad = match text.len() < PARALLEL_BYTES {
                true => block.into_iter().enumerate().find_map(parse),
                false => block.into_par_iter().enumerate().find_map_first(parse),
            };
            if let Some((index, reason)) = bad {
                return Err(lines::bad_line(lines.file(), before + 1 + index as u64, reason));
            }
        }
        self.next = next;
        Ok(())
    }
}

fn changed(file: &str) -> FileError {
    FileError::Unrecognised { file: file.to_owned(), reason: "changed while it was read".to_owned() }
}

impl<R: Read + Seek> RowSource for TextRows<R> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn read_rows(&mut self, first: u32, out: &mut [f32]) -> Result<(), SourceError> {
        let done = self.read(first, out);
        if done.is_err() {
            // Where the reader stands is not known any more.
            self.next = u32::MAX;
        }
        Ok(done?)
    }
}
