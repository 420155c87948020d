//! Lines of word-vector text: a word, and numbers after it.

use std::io::{BufRead, Read, Seek};

use super::{FileError, compressed::Plain};
use crate::units::MAX_DIM;

/// The longest line that is read: 32 bytes for each number of the widest row.
const MOST_LINE: u64 = 32 * MAX_DIM as u64;

/// Lines of a file, numbered from 1.
#[derive(Debug)]
pub(super) struct Lines<R> {
    file: String,
    plain: Plain<R>,
    /// Number of the line that was read last.
    number: u64,
}

impl<R: Read + Seek> Lines<R> {
    pub(super) fn new(file: &str, plain: Plain<R>) -> Self {
        Self { file: file.to_owned(), plain, number: 0 }
    }

    pub(super) fn file(&self) -> &str {
        &self.file
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn rewind(self) -> Result<Self, FileError> {
        Ok(Self { plain: self.plain.rewind(&self.file)?, number: 0, ..self })
    }

    pub(super) fn into_plain(self) -> Plain<R> {
        self.plain
    }

    /// Appends the next line to `out`, without its ending; false at the end of the file.
    ///
    /// An ending is a newline and any spaces, tabs and carriage returns before it.
    pub(super) fn append(&mut self, out: &mut Vec<u8>) -> Result<bool, FileError> {
        let start = out.len();
        let read = (&mut self.plain).take(MOST_LINE).read_until(b'\n', out).map_err(FileError::io(&self.file))?;
        if read == 0 {
            return Ok(false);
        }
        self.number += 1;
        if read as u64 == MOST_LINE && out.last() != Some(&b'\n') {
            return Err(self.bad(format!("is longer than {MOST_LINE} bytes")));
        }
        if self.number == 1 && out[start..].starts_with(b"\xef\xbb\xbf") {
            out.drain(start..start + 3);
        }
        while out.len() > start && matches!(out.last(), Some(b'\n' | b'\r' | b' ' | b'\t')) {
            out.pop();
        }
        Ok(true)
    }

    /// Reads the next line to `out`, in place of what it held.
    pub(super) fn read(&mut self, out: &mut Vec<u8>) -> Result<bool, FileError> {
        out.clear();
        self.append(out)
    }

    /// As [`Lines::append`], past blank lines at the end of the file; a blank line anywhere else is an error.
    pub(super) fn append_filled(&mut self, out: &mut Vec<u8>) -> Result<bool, FileError> {
        let start = out.len();
        if !self.append(out)? {
            return Ok(false);
        }
        if out.len() > start {
            return Ok(true);
        }
        let number = self.number;
        while self.append(out)? {
            if out.len() > start {
                self.number = number;
                return Err(self.bad("is blank".to_owned()));
            }
        }
        Ok(false)
    }

    /// An error about the line that was read last.
    pub(super) fn bad(&self, reason: String) -> FileError {
        bad_line(&self.file, self.number, reason)
    }
}

pub(super) fn bad_line(file: &str, line: u64, reason: String) -> FileError {
    FileError::BadLine { file: file.to_owned(), line, reason }
}

/// Whether a byte parts fields. Only space and tab do: words hold other blanks, such as U+00A0 and U+0085.
fn parts_fields(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The fields of a line.
pub(super) fn fields(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(|byte| parts_fields(*byte)).filter(|field| !field.is_empty())
}

/// Splits a line before its last `dim` fields: the word, which may hold spaces, and the numbers.
///
/// Where there are fewer fields, the number of those after the first.
pub(super) fn split(line: &[u8], dim: usize) -> Result<(&[u8], &[u8]), usize> {
    let mut end = line.len();
    for found in 0..dim {
        let trimmed = line[..end].iter().rposition(|byte| !parts_fields(*byte)).map_or(0, |last| last + 1);
        match line[..trimmed].iter().rposition(|byte| parts_fields(*byte)) {
            Some(before) => end = before + 1,
            // What is left is one field, or none: the line has no word.
            None => return Err((found + usize::from(trimmed > 0)).saturating_sub(1)),
        }
    }
    Ok((&line[..end - 1], &line[end..]))
}

/// How many numbers a line seems to hold behind its word: the fields at its end that are finite numbers, without the first.
pub(super) fn count_numbers(line: &[u8]) -> usize {
    let all = fields(line).count();
    let numbers = fields(line).rev().take_while(|field| number(field).is_some_and(f32::is_finite)).count();
    numbers.min(all.saturating_sub(1))
}

/// The two whole numbers of a line that holds nothing else: rows and columns.
pub(super) fn header(line: &[u8]) -> Option<(u64, u64)> {
    let mut fields = fields(line).map(|field| std::str::from_utf8(field).ok()?.parse().ok());
    match (fields.next(), fields.next(), fields.next()) {
        (Some(Some(rows)), Some(Some(dim)), None) => Some((rows, dim)),
        _ => None,
    }
}

fn number(field: &[u8]) -> Option<f32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Parses the numbers of a row to `out`, as many as it has places; the reason where one is none.
pub(super) fn parse_numbers(numbers: &[u8], out: &mut [f32]) -> Result<(), String> {
    for (column, (out, field)) in out.iter_mut().zip(fields(numbers)).enumerate() {
        *out = number(field).ok_or_else(|| format!("{} (column {column}) is no number", quoted(field)))?;
        if out.is_infinite() && field.iter().any(u8::is_ascii_digit) {
            return Err(format!("{} (column {column}) does not fit f32", quoted(field)));
        }
    }
    Ok(())
}

/// Bytes for a message, cut where they are long.
pub(super) fn quoted(bytes: &[u8]) -> String {
    const MOST: usize = 40;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST)]);
    format!("{:?}{}", text, if bytes.len() > MOST { "..." } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a14_words_may_hold_spaces_and_odd_bytes() {
        for (line, dim, word, numbers) in [
            (&b"the 1 2"[..], 2, &b"the"[..], &b"1 2"[..]),
            (b". . . 1 2", 2, b". . .", b"1 2"),
            (b"a\xc2\xa0b\xff 1\t 2", 2, b"a\xc2\xa0b\xff", b"1\t 2"),
            (b"1 2 3", 1, b"1 2", b"3"),
            (b" 1 2", 2, b"", b"1 2"),
            (b"  1 2", 2, b" ", b"1 2"),
        ] {
            assert_eq!(split(line, dim), Ok((word, numbers)), "{:?}", quoted(line));
        }
        assert_eq!(split(b"the 1 2", 3), Err(2));
        assert_eq!(split(b"the", 1), Err(0));
        assert_eq!(split(b"", 1), Err(0));
        assert_eq!(split(b"   ", 3), Err(0));
    }

    #[test]
    fn numbers_are_counted_from_the_end() {
        assert_eq!(count_numbers(b"the 1 2e-3 -.5"), 3);
        assert_eq!(count_numbers(b"1 2 3"), 2);
        assert_eq!(count_numbers(b". nan 1 2"), 2);
        assert_eq!(count_numbers(b""), 0);
        assert_eq!(header(b"400000 100"), Some((400_000, 100)));
        assert_eq!(header(b"-1 100"), None);
        assert_eq!(header(b"1 2 3"), None);
    }
}
