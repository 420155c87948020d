//! NumPy's `.npy`, read and written.
//!
//! ```text
//! | 0x93 "NUMPY" | major | minor | header length: U16 (version 1) or U32 (2, 3), little endian |
//! | header: {'descr': '<f4', 'fortran_order': False, 'shape': (rows, columns), } |
//! | rows x columns numbers |
//! ```

use std::io::{self, Read, Seek, Write};

use super::{
    FileError,
    elements::{Element, Kind},
    matrix::Matrix,
    npy_header::{Header, MAGIC},
};
use crate::units::{Bytes, Shape};

const SUPPORTED: &str = "f2, f4 or f8";

/// Reads the header of an array of 2 dimensions.
pub(super) fn open<R: Read + Seek>(file: &str, mut reader: R) -> Result<Matrix<R>, FileError> {
    let Header { descr, by_columns, sizes, offset, has } = Header::read(file, &mut reader)?;
    let array = || "the array".to_owned();
    let element = element(&descr).ok_or_else(|| FileError::Dtype {
        file: file.to_owned(),
        tensor: array(),
        dtype: descr,
        supported: SUPPORTED,
    })?;
    let &[rows, columns] = &*sizes else {
        return Err(FileError::Dimensions { file: file.to_owned(), tensor: array(), shape: sizes });
    };
    let shape = Shape::new(rows, columns).map_err(|error| FileError::Shape { file: file.to_owned(), error })?;
    let needed = u64::from(shape.rows()) * u64::from(shape.dim()) * element.bytes() as u64 + offset;
    if needed != has {
        return Err(FileError::Length { file: file.to_owned(), needed: Bytes(needed), has: Bytes(has) });
    }
    Ok(Matrix { file: file.to_owned(), reader, offset, shape, element, by_columns })
}

/// The type of floating-point numbers.
pub(super) fn element(descr: &str) -> Option<Element> {
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
