//! SciPy's sparse matrices, as `save_npz` writes them: a zip archive of arrays in NumPy's format.
//!
//! ```text
//! format.npy  b"csr", b"csc" or b"coo"       csr, csc:  indptr.npy   where rows (columns) begin
//! shape.npy   rows, columns                             indices.npy  the column (row) of each value
//! data.npy    the values                     coo:       row.npy, col.npy
//! ```
//!
//! As in SciPy, values may come in any order within a row, and those for one place are added.

use std::io::{Cursor, Read, Seek};

use zip::{ZipArchive, result::ZipError};

use super::{FileError, npy, npy_header::Header};
use crate::{
    source::{Duplicates, SparseRows},
    units::{Bytes, Shape},
};

/// How zip archives begin; an empty one begins otherwise.
pub(super) const MAGIC: &[u8; 4] = b"PK\x03\x04";

/// No format of compression that is read makes more of a byte.
const MOST_GROWTH: u64 = 1100;

/// How a matrix finds its values.
enum Form {
    Rows,
    Columns,
    Coordinates,
}

/// SciPy's names for those that are read.
const FORMS: [(&str, Form); 3] = [("csr", Form::Rows), ("csc", Form::Columns), ("coo", Form::Coordinates)];

/// Reads a matrix to memory.
pub(super) fn open<R: Read + Seek>(file: &str, reader: R) -> Result<SparseRows, FileError> {
    let mut archive = Archive::open(file, reader)?;
    let format = archive.text("format.npy")?;
    let shape = archive.whole("shape.npy")?;
    let &[rows, columns] = &*shape else {
        return Err(FileError::Dimensions { file: file.to_owned(), tensor: "the matrix".to_owned(), shape });
    };
    let shape = Shape::new(rows, columns).map_err(|error| FileError::Shape { file: file.to_owned(), error })?;
    let Some((_, form)) = FORMS.iter().find(|(name, _)| *name == format) else {
        let reason = format!("is a sparse matrix of format {format:?}: save it as csr, csc or coo");
        return Err(FileError::Unrecognised { file: file.to_owned(), reason });
    };
    let (rows, columns) = match form {
        Form::Rows => {
            let columns = archive.whole("indices.npy")?;
            (archive.expand(rows, columns.len() as u64, "row")?, columns)
        }
        Form::Columns => {
            let rows = archive.whole("indices.npy")?;
            let columns = archive.expand(columns, rows.len() as u64, "column")?;
            (rows, columns)
        }
        Form::Coordinates => (archive.whole("row.npy")?, archive.whole("col.npy")?),
    };
    let values = archive.values("data.npy")?;
    // A number over 32 bits is over any shape too.
    let narrow = |numbers: Vec<u64>| -> Vec<u32> {
        numbers.into_iter().map(|number| u32::try_from(number).unwrap_or(u32::MAX)).collect()
    };
    SparseRows::from_triples(shape, &narrow(rows), &narrow(columns), &values, Duplicates::Sum)
        .map_err(|error| FileError::Sparse { file: file.to_owned(), error })
}

struct Archive<R> {
    file: String,
    zip: ZipArchive<R>,
}

impl<R: Read + Seek> Archive<R> {
    fn open(file: &str, reader: R) -> Result<Self, FileError> {
        let zip = ZipArchive::new(reader).map_err(|error| damaged(file, error))?;
        let archive = Self { file: file.to_owned(), zip };
        if archive.zip.index_for_name("format.npy").is_none() {
            let names: Vec<_> = archive.zip.file_names().take(8).filter_map(Result::ok).collect();
            let reason = format!(
                "is a zip archive (.npz, .pt and .keras are) and no sparse matrix of SciPy's `save_npz`; it holds {}: save \
                 its table as .npy or .safetensors",
                names.join(", ")
            );
            return Err(FileError::Unrecognised { file: file.to_owned(), reason });
        }
        Ok(archive)
    }

    /// An array: its type, its dimensions and the bytes of its elements, which are as many as the dimensions ask for, of
    /// `width` bytes each.
    fn array(&mut self, name: &str, width: impl Fn(&str) -> Option<u64>) -> Result<Array, FileError> {
        let file = format!("{}, {name}", self.file);
        let mut entry = self.zip.by_name(name).map_err(|error| damaged(&file, error))?;
        let (size, packed) = (entry.size(), entry.compressed_size());
        if size > packed.saturating_mul(MOST_GROWTH).saturating_add(1 << 16) {
            let reason = format!("{} from {} bytes is more than can be", Bytes(size), packed);
            return Err(FileError::Header { file, reason });
        }
        let mut bytes = Vec::new();
        let length = entry.by_ref().take(size).read_to_end(&mut bytes).map_err(FileError::io(&file))?;
        drop(entry);
        let header = Header::read(&file, &mut Cursor::new(&bytes))?;
        let Some(width) = width(&header.descr) else {
            let supported = "whole numbers and f2, f4 or f8, little endian";
            return Err(FileError::Dtype { file, tensor: "the array".to_owned(), dtype: header.descr, supported });
        };
        let items = header.sizes.iter().try_fold(1u64, |items, size| items.checked_mul(*size));
        let needed = items.and_then(|items| items.checked_mul(width)?.checked_add(header.offset));
        if needed != Some(length as u64) {
            let needed = Bytes(needed.unwrap_or(u64::MAX));
            return Err(FileError::Length { file, needed, has: Bytes(length as u64) });
        }
        bytes.drain(..usize::try_from(header.offset).unwrap_or(usize::MAX).min(length));
        Ok(Array { file, descr: header.descr, sizes: header.sizes, bytes })
    }

    /// A text, of ASCII or of UTF-32 as `str` arrays are.
    fn text(&mut self, name: &str) -> Result<String, FileError> {
        let width = |descr: &str| {
            let letters = descr.get(2..)?.parse::<u64>().ok()?;
            match descr.get(..2)? {
                "|S" => Some(letters),
                "<U" => letters.checked_mul(4),
                _ => None,
            }
        };
        let array = self.array(name, width)?;
        Ok(array.bytes.iter().filter(|byte| **byte != 0).map(|byte| char::from(*byte)).collect())
    }

    /// An array of one dimension, of whole numbers from 0 up.
    fn whole(&mut self, name: &str) -> Result<Vec<u64>, FileError> {
        let array = self.array(name, |descr| Whole::of(descr).map(|whole| whole.bytes))?.flat()?;
        let whole = Whole::of(&array.descr).unwrap_or_default();
        let numbers = array.bytes.chunks_exact(usize::try_from(whole.bytes).unwrap_or(1)).enumerate();
        numbers
            .map(|(index, bytes)| {
                let number = whole.read(bytes);
                u64::try_from(number).map_err(|_| FileError::Header {
                    file: array.file.clone(),
                    reason: format!("item {index} is {number}"),
                })
            })
            .collect()
    }

    /// An array of one dimension, of any numbers, as f32 rounded to nearest.
    fn values(&mut self, name: &str) -> Result<Vec<f32>, FileError> {
        let width = |descr: &str| {
            let floats = npy::element(descr).map(|element| element.bytes() as u64);
            floats.or_else(|| Whole::of(descr).map(|whole| whole.bytes))
        };
        let array = self.array(name, width)?.flat()?;
        if let Some(element) = npy::element(&array.descr) {
            let mut values = vec![0f32; array.bytes.len() / element.bytes()];
            element.decode(&array.bytes, &mut values, 1).map_err(|large| FileError::Header {
                file: array.file.clone(),
                reason: format!("item {} is {:e}, which does not fit f32", large.index, large.value),
            })?;
            return Ok(values);
        }
        let whole = Whole::of(&array.descr).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "rounding is what is wanted")]
        let value = |bytes: &[u8]| whole.read(bytes) as f32;
        Ok(array.bytes.chunks_exact(usize::try_from(whole.bytes).unwrap_or(1)).map(value).collect())
    }

    /// The row of each value by where rows begin, or the same of columns.
    fn expand(&mut self, count: u64, values: u64, what: &str) -> Result<Vec<u64>, FileError> {
        let starts = self.whole("indptr.npy")?;
        let bad = |reason: String| FileError::Header { file: format!("{}, indptr.npy", self.file), reason };
        if starts.len() as u64 != count + 1 {
            return Err(bad(format!("it has {} items, not {}", starts.len(), count + 1)));
        }
        if starts[0] != 0 {
            return Err(bad(format!("it begins with {}, not 0", starts[0])));
        }
        let mut expanded = Vec::new();
        for (number, ends) in (0u64..).zip(starts.windows(2)) {
            if ends[0] > ends[1] || ends[1] > values {
                let (begin, end) = (ends[0], ends[1]);
                return Err(bad(format!("{what} {number}: its values begin at {begin} and end at {end}, of {values}")));
            }
            expanded.extend(std::iter::repeat_n(number, usize::try_from(ends[1] - ends[0]).unwrap_or(usize::MAX)));
        }
        if expanded.len() as u64 != values {
            return Err(bad(format!("it ends with {}, and there are {values} values", expanded.len())));
        }
        Ok(expanded)
    }
}

/// An array that has been read.
struct Array {
    file: String,
    descr: String,
    sizes: Vec<u64>,
    bytes: Vec<u8>,
}

impl Array {
    /// The same, if it has one dimension.
    fn flat(self) -> Result<Self, FileError> {
        match *self.sizes {
            [_] => Ok(self),
            _ => {
                let reason = format!("it has shape {:?}, and one dimension is wanted", self.sizes);
                Err(FileError::Header { file: self.file, reason })
            }
        }
    }
}

/// A type of whole numbers, little endian.
#[derive(Clone, Copy, Default)]
struct Whole {
    signed: bool,
    bytes: u64,
}

impl Whole {
    fn of(descr: &str) -> Option<Self> {
        let (signed, bytes) = match descr {
            "|b1" | "|u1" => (false, 1),
            "|i1" => (true, 1),
            "<u2" => (false, 2),
            "<i2" => (true, 2),
            "<u4" => (false, 4),
            "<i4" => (true, 4),
            "<u8" => (false, 8),
            "<i8" => (true, 8),
            _ => return None,
        };
        Some(Self { signed, bytes })
    }

    fn read(self, bytes: &[u8]) -> i128 {
        let number = bytes.iter().rev().fold(0i128, |number, byte| number << 8 | i128::from(*byte));
        let negative = self.signed && bytes.last().is_some_and(|byte| byte >> 7 == 1);
        if negative { number - (1 << (8 * self.bytes)) } else { number }
    }
}

fn damaged(file: &str, error: ZipError) -> FileError {
    match error {
        ZipError::Io(error) => FileError::io(file)(error),
        error => FileError::Header { file: file.to_owned(), reason: format!("damaged zip archive: {error}") },
    }
}
