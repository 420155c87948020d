//! GGUF, the format of ggml's models: its header, and rows of one of its tensors.
//!
//! ```text
//! | "GGUF" | version U32 (2 or 3) | tensors U64 | entries U64 |             all little endian
//! | an entry: key STR | type U32 | value |                                 STR: length U64, bytes
//! | a tensor: name STR | dimensions U32 | sizes U64, columns first | type U32 | offset U64 |
//! | padding to the alignment (entry `general.alignment`, else 32) | the tensors, from their offsets on |
//! ```
//!
//! Numbers of the header say how much of the file is gone over, never what is allocated: each is compared with what is left
//! of the file first.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use super::{
    FileError, Vocabulary,
    blocks::{BlockRows, Blocks},
    elements::{Element, Kind},
    matrix::Matrix,
    tensors::listed,
};
use crate::{
    source::RowSource,
    units::{Bytes, Shape},
};

pub(super) const MAGIC: &[u8; 4] = b"GGUF";

/// The tensor that is meant where none is named: what ggml's models call their table.
const TABLE: &str = "token_embd.weight";
/// The entry with the words of that table.
const TOKENS: &[u8] = b"tokenizer.ggml.tokens";
const SUPPORTED: &str = "F32, F16, BF16, F64, Q8_0, Q4_0 or Q4_1";

/// The longest key or name, the most entries, tensors and dimensions, and the deepest array of arrays that are read: each
/// far over what models have.
const MOST_NAME: u64 = 1 << 12;
const MOST_COUNT: u64 = 1 << 16;
const MOST_DIMENSIONS: u32 = 8;
const MOST_DEPTH: u32 = 4;

/// Rows found in a file.
pub(super) struct Found {
    pub(super) rows: Box<dyn RowSource + Send>,
    pub(super) tensor: String,
    pub(super) words: Option<Vocabulary>,
}

#[derive(Debug)]
struct Tensor {
    name: String,
    /// Columns first.
    sizes: Vec<u64>,
    kind: u32,
    offset: u64,
}

/// How rows are stored.
enum Stored {
    Plain(Kind),
    Blocks(Blocks),
}

impl Tensor {
    fn stored(&self) -> Option<Stored> {
        Some(match self.kind {
            0 => Stored::Plain(Kind::F32),
            1 => Stored::Plain(Kind::F16),
            2 => Stored::Blocks(Blocks::Q4_0),
            3 => Stored::Blocks(Blocks::Q4_1),
            8 => Stored::Blocks(Blocks::Q8_0),
            28 => Stored::Plain(Kind::F64),
            30 => Stored::Plain(Kind::BF16),
            _ => return None,
        })
    }

    /// The name of its type, as far as messages need it.
    fn dtype(&self) -> String {
        const NAMES: [&str; 16] = [
            "F32", "F16", "Q4_0", "Q4_1", "Q4_2", "Q4_3", "Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q2_K", "Q3_K", "Q4_K",
            "Q5_K", "Q6_K", "Q8_K",
        ];
        match (self.kind, NAMES.get(self.kind as usize)) {
            (_, Some(name)) => (*name).to_owned(),
            (28, _) => "F64".to_owned(),
            (30, _) => "BF16".to_owned(),
            (other, _) => format!("ggml's type {other}"),
        }
    }

    fn is_candidate(&self) -> bool {
        self.sizes.len() == 2 && self.stored().is_some()
    }

    /// Its sizes, rows first.
    fn shape(&self) -> Vec<u64> {
        self.sizes.iter().rev().copied().collect()
    }
}

/// Opens the tensor of that name, else the model's table, else the only one that could be a table.
pub(super) fn open<R>(file: &str, mut reader: R, tensor: Option<&str>) -> Result<Found, FileError>
where
    R: Read + Seek + Send + 'static,
{
    let header = Header::read(file, &mut reader)?;
    let tensor = header.choose(file, tensor)?;
    let named = || format!("tensor `{}`", tensor.name);
    let stored = tensor.stored().ok_or_else(|| FileError::Dtype {
        file: file.to_owned(),
        tensor: named(),
        dtype: tensor.dtype(),
        supported: SUPPORTED,
    })?;
    let &[columns, rows] = &*tensor.sizes else {
        return Err(FileError::Dimensions { file: file.to_owned(), tensor: named(), shape: tensor.shape() });
    };
    let shape = Shape::new(rows, columns).map_err(|error| FileError::Shape { file: file.to_owned(), error })?;
    let row_bytes = match stored {
        Stored::Plain(kind) => columns * Element::little(kind).bytes() as u64,
        Stored::Blocks(blocks) => blocks.row_bytes(shape.dim()).ok_or_else(|| FileError::Header {
            file: file.to_owned(),
            reason: format!("{} has {columns} columns; blocks have 32", named()),
        })?,
    };
    // A shape has under 2^52 numbers.
    let offset = header.data.saturating_add(tensor.offset);
    let needed = offset.saturating_add(rows * row_bytes);
    if needed > header.has {
        return Err(FileError::Length { file: file.to_owned(), needed: Bytes(needed), has: Bytes(header.has) });
    }
    let words = header.words(file, &mut reader, shape.rows())?;
    let (file, name) = (file.to_owned(), tensor.name.clone());
    let rows: Box<dyn RowSource + Send> = match stored {
        Stored::Plain(kind) => {
            let element = Element::little(kind);
            Box::new(Matrix { file, reader, offset, shape, element, by_columns: false })
        }
        Stored::Blocks(blocks) => Box::new(BlockRows { file, reader, offset, shape, blocks }),
    };
    Ok(Found { rows, tensor: name, words })
}

/// What the header says.
#[derive(Debug)]
struct Header {
    tensors: Vec<Tensor>,
    /// Where the first word is, and how many there are.
    tokens: Option<(u64, u64)>,
    /// Where the tensors' bytes begin.
    data: u64,
    /// Bytes of the file.
    has: u64,
}

impl Header {
    fn read<R: Read + Seek>(file: &str, reader: &mut R) -> Result<Self, FileError> {
        let mut cursor = Cursor::new(file, reader)?;
        if cursor.bytes::<4>()? != *MAGIC {
            return Err(cursor.bad("it does not begin with `GGUF`"));
        }
        let version = cursor.u32()?;
        if !(2..=3).contains(&version) {
            return Err(cursor.bad(format!("version {version}; versions 2 and 3, little endian, are read")));
        }
        let [tensor_count, entry_count] = [cursor.count("tensors")?, cursor.count("entries")?];
        let (mut alignment, mut tokens) = (32, None);
        for _ in 0..entry_count {
            let key = cursor.text()?;
            match (&*key, cursor.u32()?) {
                (b"general.alignment", 4) => alignment = u64::from(cursor.u32()?),
                (TOKENS, 9) => tokens = cursor.words()?,
                (_, kind) => cursor.skip_value(kind, 0)?,
            }
        }
        if alignment == 0 {
            return Err(cursor.bad("an alignment of 0"));
        }
        let mut tensors = Vec::new();
        for _ in 0..tensor_count {
            let name = String::from_utf8_lossy(&cursor.text()?).into_owned();
            let dimensions = cursor.u32()?;
            if dimensions > MOST_DIMENSIONS {
                return Err(cursor.bad(format!("tensor `{name}` has {dimensions} dimensions")));
            }
            let sizes = (0..dimensions).map(|_| cursor.u64()).collect::<Result<_, _>>()?;
            tensors.push(Tensor { name, sizes, kind: cursor.u32()?, offset: cursor.u64()? });
        }
        let data = cursor.at.div_ceil(alignment).saturating_mul(alignment);
        Ok(Self { tensors, tokens, data, has: cursor.has })
    }

    fn choose(&self, file: &str, name: Option<&str>) -> Result<&Tensor, FileError> {
        let shown = |tensor: &Tensor| format!("`{}` {} {:?}", tensor.name, tensor.dtype(), tensor.shape());
        let of_name = |name: &str| self.tensors.iter().find(|tensor| tensor.name == name);
        let none = |wanted| FileError::NoTensor {
            file: file.to_owned(),
            wanted,
            present: listed(self.tensors.iter().map(shown)),
        };
        if let Some(name) = name {
            return of_name(name).ok_or_else(|| none(format!("no tensor `{name}`")));
        }
        if let Some(table) = of_name(TABLE) {
            return Ok(table);
        }
        let candidates = || self.tensors.iter().filter(|tensor| tensor.is_candidate());
        match (candidates().next(), candidates().nth(1)) {
            (Some(tensor), None) => Ok(tensor),
            (None, _) => Err(none(format!("no tensor of 2 dimensions and {SUPPORTED}"))),
            _ => Err(FileError::Ambiguous { file: file.to_owned(), candidates: listed(candidates().map(shown)) }),
        }
    }

    /// The model's words, where there is one a row, and each can be stored.
    fn words<R: Read + Seek>(&self, file: &str, reader: &mut R, rows: u32) -> Result<Option<Vocabulary>, FileError> {
        let Some((at, count)) = self.tokens.filter(|(_, count)| *count == u64::from(rows)) else { return Ok(None) };
        let mut cursor = Cursor::new(file, reader)?;
        cursor.skip(at)?;
        let mut words = Vocabulary::default();
        for _ in 0..count {
            let word = match cursor.text() {
                // Too long.
                Err(FileError::Header { .. }) => return Ok(None),
                word => word?,
            };
            if words.push(&word).is_err() {
                return Ok(None);
            }
        }
        Ok(Some(words))
    }
}

/// A place in the header, which never passes the end of the file.
struct Cursor<'a, R> {
    file: &'a str,
    reader: BufReader<&'a mut R>,
    at: u64,
    has: u64,
}

impl<'a, R: Read + Seek> Cursor<'a, R> {
    fn new(file: &'a str, reader: &'a mut R) -> Result<Self, FileError> {
        let has = reader.seek(SeekFrom::End(0)).map_err(FileError::io(file))?;
        reader.rewind().map_err(FileError::io(file))?;
        Ok(Self { file, reader: BufReader::new(reader), at: 0, has })
    }

    fn bad(&self, reason: impl Into<String>) -> FileError {
        FileError::Header { file: self.file.to_owned(), reason: reason.into() }
    }

    /// Goes on by `count` bytes, where the file has them.
    fn advance(&mut self, count: u64) -> Result<(), FileError> {
        let needed = self.at.saturating_add(count);
        if needed > self.has {
            return Err(FileError::Length { file: self.file.to_owned(), needed: Bytes(needed), has: Bytes(self.has) });
        }
        self.at = needed;
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Result<(), FileError> {
        self.advance(count)?;
        if count <= self.reader.buffer().len() as u64 {
            self.reader.consume(usize::try_from(count).unwrap_or(usize::MAX));
            return Ok(());
        }
        self.reader.seek(SeekFrom::Start(self.at)).map_err(FileError::io(self.file))?;
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], FileError> {
        self.advance(N as u64)?;
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).map_err(FileError::io(self.file))?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, FileError> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64, FileError> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn count(&mut self, what: &str) -> Result<u64, FileError> {
        let count = self.u64()?;
        if count > MOST_COUNT {
            return Err(self.bad(format!("it claims {count} {what}; at most {MOST_COUNT} are read")));
        }
        Ok(count)
    }

    /// A key, a name or a word.
    fn text(&mut self) -> Result<Vec<u8>, FileError> {
        let length = self.u64()?;
        if length > MOST_NAME {
            return Err(self.bad(format!("a name of {length} bytes; at most {MOST_NAME} are read")));
        }
        self.advance(length)?;
        let mut text = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        self.reader.read_exact(&mut text).map_err(FileError::io(self.file))?;
        Ok(text)
    }

    /// Goes over an array, and tells where its strings are.
    fn words(&mut self) -> Result<Option<(u64, u64)>, FileError> {
        let (kind, count) = (self.u32()?, self.u64()?);
        let at = self.at;
        self.skip_values(kind, count, 1)?;
        Ok((kind == 8).then_some((at, count)))
    }

    /// Goes over a value of a type.
    fn skip_value(&mut self, kind: u32, depth: u32) -> Result<(), FileError> {
        match kind {
            8 => {
                let length = self.u64()?;
                self.skip(length)
            }
            9 if depth < MOST_DEPTH => {
                let (kind, count) = (self.u32()?, self.u64()?);
                self.skip_values(kind, count, depth + 1)
            }
            kind => match size(kind) {
                Some(size) => self.skip(size),
                None => Err(self.bad(format!("an entry of type {kind}, {depth} arrays deep"))),
            },
        }
    }

    /// Goes over `count` values of a type: at once where they have one size, else each takes 8 bytes of the file or more.
    fn skip_values(&mut self, kind: u32, count: u64, depth: u32) -> Result<(), FileError> {
        if let Some(size) = size(kind) {
            return self.skip(size.saturating_mul(count));
        }
        (0..count).try_for_each(|_| self.skip_value(kind, depth))
    }
}

/// Bytes of a value of a type, where all have the same.
fn size(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}
