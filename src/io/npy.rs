//! NumPy's `.npy`, read and written.
//!
//! ```text
//! | 0x93 "NUMPY" | major | minor | header length: U16 (version 1) or U32 (2, 3), little endian |
//! | header: {'descr': '<f4', 'fortran_order': False, 'shape': (rows, columns), } |
//! | rows x columns numbers |
//! ```

use std::io::{self, Read, Seek, SeekFrom, Write};

use super::{
    FileError,
    elements::{Element, Kind},
    matrix::Matrix,
    python::{Literal, parse},
};
use crate::units::{Bytes, Shape};

pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The longest header that is read: a matrix needs under 200 bytes.
const MOST_HEADER: u64 = 1 << 16;

const SUPPORTED: &str = "f2, f4 or f8";

/// Reads the header of an array of 2 dimensions.
pub(super) fn open<R: Read + Seek>(file: &str, mut reader: R) -> Result<Matrix<R>, FileError> {
    let bad = |reason: String| FileError::Header { file: file.to_owned(), reason };
    let has = reader.seek(SeekFrom::End(0)).map_err(FileError::io(file))?;
    let cut = |needed| FileError::Length { file: file.to_owned(), needed: Bytes(needed), has: Bytes(has) };
    reader.rewind().map_err(FileError::io(file))?;
    let mut start = Vec::new();
    (&mut reader).take(12).read_to_end(&mut start).map_err(FileError::io(file))?;
    let (length, begins) = match *start {
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _, a, b, ..] => (u64::from(u16::from_le_bytes([a, b])), 10),
        [0x93, b'N', b'U', b'M', b'P', b'Y', 2 | 3, _, a, b, c, d] => (u64::from(u32::from_le_bytes([a, b, c, d])), 12),
        [0x93, b'N', b'U', b'M', b'P', b'Y', version, minor, ..] if !(1..=3).contains(&version) => {
            return Err(bad(format!("version {version}.{minor}; versions 1 to 3 are read")));
        }
        _ if start.starts_with(MAGIC) => return Err(cut(12)),
        _ => return Err(bad("it does not begin as .npy files do".to_owned())),
    };
    if length > MOST_HEADER {
        return Err(FileError::HeaderTooLarge {
            file: file.to_owned(),
            claimed: Bytes(length),
            most: Bytes(MOST_HEADER),
        });
    }
    let offset = begins + length;
    if offset > has {
        return Err(cut(offset));
    }
    reader.seek(SeekFrom::Start(begins)).map_err(FileError::io(file))?;
    let mut header = Vec::new();
    (&mut reader).take(length).read_to_end(&mut header).map_err(FileError::io(file))?;
    let Description { element, by_columns, shape } = describe(file, &header)?;
    let needed = u64::from(shape.rows()) * u64::from(shape.dim()) * element.bytes() as u64 + offset;
    if needed != has {
        return Err(cut(needed));
    }
    Ok(Matrix { file: file.to_owned(), reader, offset, shape, element, by_columns })
}

struct Description {
    element: Element,
    by_columns: bool,
    shape: Shape,
}

fn describe(file: &str, header: &[u8]) -> Result<Description, FileError> {
    let bad = |reason: String| FileError::Header { file: file.to_owned(), reason };
    let array = || "the array".to_owned();
    let Literal::Dict(entries) = parse(header).map_err(|at| bad(format!("no Python literal (at byte {at} of it)")))?
    else {
        return Err(bad("it is no dictionary".to_owned()));
    };
    let get = |key: &str| {
        let found = entries.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value).ok_or_else(|| bad(format!("it has no `{key}`")))
    };
    let element = match get("descr")? {
        Literal::Text(descr) => element(descr).ok_or(descr.clone()),
        _ => Err("a structure".to_owned()),
    };
    let element = element.map_err(|dtype| FileError::Dtype {
        file: file.to_owned(),
        tensor: array(),
        dtype,
        supported: SUPPORTED,
    })?;
    let Literal::Bool(by_columns) = *get("fortran_order")? else {
        return Err(bad("`fortran_order` is neither True nor False".to_owned()));
    };
    let Literal::Tuple(sizes) = get("shape")? else { return Err(bad("`shape` is no tuple".to_owned())) };
    let sizes = sizes.iter().map(|size| match size {
        Literal::Number(size) => Ok(*size),
        _ => Err(bad("`shape` holds something other than sizes".to_owned())),
    });
    let sizes: Vec<u64> = sizes.collect::<Result<_, _>>()?;
    let &[rows, columns] = &*sizes else {
        return Err(FileError::Dimensions { file: file.to_owned(), tensor: array(), shape: sizes });
    };
    let shape = Shape::new(rows, columns).map_err(|error| FileError::Shape { file: file.to_owned(), error })?;
    Ok(Description { element, by_columns, shape })
}

fn element(descr: &str) -> Option<Element> {
    let (order, kind) = descr.split_at_checked(1)?;
    let kind = match kind {
        "f2" => Kind::F16,
        "f4" => Kind::F32,
        "f8" => Kind::F64,
        _ => return None,
    };
    match order {
        "<" => Some(Element { kind, big_endian: false }),
        ">" => Some(Element { kind, big_endian: true }),
        _ => None,
    }
}

/// Writes `values: [rows, dim]`, row-major, as a `.npy` of `<f4`, version 1.
///
/// # Errors
/// Those of `out`; `InvalidInput` where `values` are no whole rows of `dim` columns.
///
/// # Examples
/// ```
/// let mut file = Vec::new();
/// gatherum::io::write_npy(&mut file, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3)?;
/// assert_eq!(file.len(), 128 + 6 * 4);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_npy(out: &mut dyn Write, values: &[f32], dim: usize) -> io::Result<()> {
    if dim == 0 || !values.len().is_multiple_of(dim) {
        let message = format!("{} values are no rows of {dim} columns", values.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let rows = values.len() / dim;
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
    // Padded so that the numbers begin at a multiple of 64, as NumPy does: 128 for any shape there is.
    header.push_str(&" ".repeat(117usize.saturating_sub(header.len())));
    header.push('\n');
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&u16::try_from(header.len()).unwrap_or(u16::MAX).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    let mut bytes = Vec::with_capacity(4 * values.len().min(1 << 14));
    for values in values.chunks(1 << 14) {
        bytes.clear();
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        out.write_all(&bytes)?;
    }
    Ok(())
}
