//! Words of a table's rows.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    io::{BufRead, Read, Seek},
    path::Path,
    sync::OnceLock,
};

use super::{FileError, compressed::Plain, file_name, open_file};

/// The words of a table's rows, in row order. A word is any bytes without a newline.
///
/// Memory: the words' bytes, 8 bytes a word, and after the first [`Vocabulary::find`] up to 16 more.
///
/// # Examples
/// ```
/// use gatherum::io::Vocabulary;
/// let words = Vocabulary::from_words(["the", "of", "and"])?;
/// assert_eq!(words.find("of"), Some(1));
/// assert_eq!(words.get(2), b"and");
/// # Ok::<(), gatherum::io::FileError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// The words with a newline between each two.
    joined: Vec<u8>,
    /// Where each word ends.
    ends: Vec<usize>,
    index: OnceLock<Index>,
}

impl Vocabulary {
    /// Takes `words` as those of rows 0, 1, ...
    ///
    /// # Errors
    /// [`FileError::Word`] where one holds a newline.
    pub fn from_words<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Result<Self, FileError> {
        let mut vocabulary = Self::default();
        words.into_iter().try_for_each(|word| vocabulary.push(word.as_ref()))?;
        Ok(vocabulary)
    }

    /// Reads a text file of one word a line, plain or gzip. A carriage return before the newline is no part of the word.
    ///
    /// # Errors
    /// [`FileError::WordCount`] where it has not `rows` lines, [`FileError::Io`] where it cannot be read.
    pub fn read(path: impl AsRef<Path>, rows: u32) -> Result<Self, FileError> {
        let path = path.as_ref();
        Self::read_lines(&file_name(path), open_file(path)?, rows)
    }

    pub(super) fn read_lines<R: Read + Seek>(file: &str, reader: R, rows: u32) -> Result<Self, FileError> {
        let mut plain = Plain::new(file, reader)?;
        let mut vocabulary = Self::default();
        let mut joined = Vec::new();
        // Read no further than one line past the rows: the rest is only counted.
        loop {
            let start = joined.len();
            let read = (&mut plain).take(MOST_WORD).read_until(b'\n', &mut joined).map_err(FileError::io(file))?;
            if read == 0 {
                break;
            }
            if vocabulary.ends.len() == rows as usize {
                return Err(word_count(
                    file,
                    u64::from(rows) + 1 + plain.count_lines(file, joined.ends_with(b"\n"))?,
                    rows,
                ));
            }
            if joined.last() == Some(&b'\n') {
                joined.pop();
            } else if read as u64 == MOST_WORD {
                let line = vocabulary.ends.len() as u64 + 1;
                return Err(FileError::BadLine { file: file.to_owned(), line, reason: too_long() });
            }
            if joined.len() > start && joined.last() == Some(&b'\r') {
                joined.pop();
            }
            vocabulary.ends.push(joined.len());
            joined.push(b'\n');
        }
        if vocabulary.ends.len() != rows as usize {
            return Err(word_count(file, vocabulary.ends.len() as u64, rows));
        }
        joined.pop();
        Ok(Self { joined, ..vocabulary })
    }

    /// Takes the bytes of a table's `words` part: `rows` words with a newline between each two.
    pub(super) fn from_joined(file: &str, joined: Vec<u8>, rows: u32) -> Result<Self, FileError> {
        let newlines = joined.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
        let mut ends: Vec<usize> = newlines.collect();
        if rows > 0 || !joined.is_empty() {
            ends.push(joined.len());
        }
        if ends.len() != rows as usize {
            return Err(word_count(file, ends.len() as u64, rows));
        }
        Ok(Self { joined, ends, index: OnceLock::new() })
    }

    pub(super) fn joined(&self) -> &[u8] {
        &self.joined
    }

    /// Adds the word of the next row.
    pub(super) fn push(&mut self, word: &[u8]) -> Result<(), FileError> {
        if word.contains(&b'\n') {
            let problem = format!("holds a newline: {:?}", String::from_utf8_lossy(word));
            return Err(FileError::Word { row: self.ends.len() as u64, problem });
        }
        if !self.ends.is_empty() {
            self.joined.push(b'\n');
        }
        self.joined.extend_from_slice(word);
        self.ends.push(self.joined.len());
        self.index = OnceLock::new();
        Ok(())
    }

    /// Number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The word of `row`.
    ///
    /// # Panics
    /// Where there is no such row, as slices do.
    #[must_use]
    pub fn get(&self, row: u32) -> &[u8] {
        let row = row as usize;
        let start = if row == 0 { 0 } else { self.ends[row - 1] + 1 };
        &self.joined[start..self.ends[row]]
    }

    /// The words in row order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.joined[std::mem::replace(&mut start, end + 1)..end])
    }

    /// The first row of `word`, byte for byte. The first call builds an index.
    #[must_use]
    pub fn find(&self, word: impl AsRef<[u8]>) -> Option<u32> {
        let word = word.as_ref();
        let index = self.index.get_or_init(|| Index::new(self));
        index.slots(word).map_while(|slot| index.slots[slot].checked_sub(1)).find(|row| self.get(*row) == word)
    }
}

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.ends == other.ends && self.joined == other.joined
    }
}

impl Eq for Vocabulary {}

/// The longest word that is read, in bytes, with its newline.
pub(super) const MOST_WORD: u64 = 1 << 16;

pub(super) fn too_long() -> String {
    format!("a word of more than {MOST_WORD} bytes")
}

fn word_count(file: &str, words: u64, rows: u32) -> FileError {
    FileError::WordCount { file: file.to_owned(), words, rows: u64::from(rows) }
}

/// Rows by the hash of their word: open addressing, at most half full. The hash is keyed at random, so that no file
/// can be made to collide.
#[derive(Clone, Debug)]
struct Index {
    hasher: RandomState,
    /// Row number plus 1; 0 where free. The length is a power of two.
    slots: Vec<u32>,
}

impl Index {
    fn new(words: &Vocabulary) -> Self {
        let mut index =
            Self { hasher: RandomState::new(), slots: vec![0; (words.len() * 2).next_power_of_two().max(2)] };
        for (row, word) in (0u32..).zip(words.iter()) {
            // The first row of a word wins: later ones find it and leave.
            let free = index.slots(word).find_map(|slot| match index.slots[slot].checked_sub(1) {
                None => Some(Some(slot)),
                Some(other) if words.get(other) == word => Some(None),
                Some(_) => None,
            });
            if let Some(Some(slot)) = free {
                index.slots[slot] = row + 1;
            }
        }
        index
    }

    /// Slots in the order in which `word` may lie there.
    fn slots(&self, word: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len() - 1;
        #[expect(clippy::cast_possible_truncation, reason = "any bits of a hash will do")]
        let start = self.hasher.hash_one(word) as usize;
        (0..=mask).map(move |step| start.wrapping_add(step) & mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_by_their_first_row() {
        let words: Vec<String> = (0..1000).map(|number| format!("w{}", number % 700)).collect();
        let vocabulary = Vocabulary::from_words(&words).unwrap();
        for (row, word) in (0u32..).zip(&words) {
            assert_eq!(vocabulary.get(row), word.as_bytes());
            assert_eq!(vocabulary.find(word), Some(row % 700));
        }
        assert_eq!(vocabulary.find("w700"), None);
        assert_eq!(Vocabulary::default().find("the"), None);
    }

    #[test]
    fn joined_words_have_one_reading() {
        for words in [&[][..], &[""], &["", ""], &["a", "", "b"], &["", "a"]] {
            let vocabulary = Vocabulary::from_words(words).unwrap();
            let rows = u32::try_from(words.len()).unwrap();
            let again = Vocabulary::from_joined("x", vocabulary.joined().to_vec(), rows).unwrap();
            assert_eq!(again, vocabulary);
            assert!(again.iter().eq(words.iter().map(|word| word.as_bytes())));
            assert!(Vocabulary::from_joined("x", vocabulary.joined().to_vec(), rows + 2).is_err());
        }
        assert!(Vocabulary::from_words(["a\nb"]).is_err());
    }
}
