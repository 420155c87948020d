//! What an array in NumPy's format says of itself.

use std::io::{Read, Seek, SeekFrom};

use super::{
    FileError,
    python::{Literal, parse},
};
use crate::units::Bytes;

pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The longest header that is read: an array of numbers needs under 200 bytes.
const MOST_HEADER: u64 = 1 << 16;

/// The header of an array.
#[derive(Debug)]
pub(super) struct Header {
    /// The type of its elements, as `<f4`.
    pub(super) descr: String,
    /// Column after column (Fortran order), not row after row.
    pub(super) by_columns: bool,
    /// Its dimensions.
    pub(super) sizes: Vec<u64>,
    /// Where its elements begin.
    pub(super) offset: u64,
    /// Bytes of the file.
    pub(super) has: u64,
}

impl Header {
    pub(super) fn read<R: Read + Seek>(file: &str, reader: &mut R) -> Result<Self, FileError> {
        let bad = |reason: String| FileError::Header { file: file.to_owned(), reason };
        let has = reader.seek(SeekFrom::End(0)).map_err(FileError::io(file))?;
        let cut = |needed| FileError::Length { file: file.to_owned(), needed: Bytes(needed), has: Bytes(has) };
        reader.rewind().map_err(FileError::io(file))?;
        let mut start = Vec::new();
        reader.take(12).read_to_end(&mut start).map_err(FileError::io(file))?;
        let (length, begins) = match *start {
            [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _, a, b, ..] => (u64::from(u16::from_le_bytes([a, b])), 10),
            [0x93, b'N', b'U', b'M', b'P', b'Y', 2 | 3, _, a, b, c, d] => {
                (u64::from(u32::from_le_bytes([a, b, c, d])), 12)
            }
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
        reader.take(length).read_to_end(&mut header).map_err(FileError::io(file))?;
        let (descr, by_columns, sizes) = describe(&header).map_err(bad)?;
        Ok(Self { descr, by_columns, sizes, offset, has })
    }
}

/// Type, order and dimensions.
fn describe(header: &[u8]) -> Result<(String, bool, Vec<u64>), String> {
    let Literal::Dict(entries) = parse(header).map_err(|at| format!("no Python literal (at byte {at} of it)"))? else {
        return Err("it is no dictionary".to_owned());
    };
    let get = |key: &str| {
        let found = entries.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value).ok_or_else(|| format!("it has no `{key}`"))
    };
    let descr = match get("descr")? {
        Literal::Text(descr) => descr.clone(),
        _ => "a structure".to_owned(),
    };
    let Literal::Bool(by_columns) = *get("fortran_order")? else {
        return Err("`fortran_order` is neither True nor False".to_owned());
    };
    let Literal::Tuple(sizes) = get("shape")? else { return Err("`shape` is no tuple".to_owned()) };
    let sizes = sizes.iter().map(|size| match size {
        Literal::Number(size) => Ok(*size),
        _ => Err("`shape` holds something other than sizes".to_owned()),
    });
    Ok((descr, by_columns, sizes.collect::<Result<_, _>>()?))
}
