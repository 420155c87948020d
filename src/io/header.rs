//! The header of a safetensors file: a length, and JSON of that length.

use std::io::{Read, Seek, SeekFrom};

use safetensors::tensor::Metadata;

use super::FileError;
use crate::units::Bytes;

/// The longest header that is read, as in the safetensors library.
const MOST: u64 = 100_000_000;

/// A header whose tensors follow each other without gap or overlap and end with the file.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) metadata: Metadata,
    /// Where the tensors' bytes begin.
    pub(super) data: u64,
}

/// Whether a file that begins so may be safetensors: a header length that can be, and an opening brace.
pub(super) fn is_safetensors(start: &[u8]) -> bool {
    let Some((length, rest)) = start.split_first_chunk() else { return false };
    u64::from_le_bytes(*length) <= MOST && rest.first() == Some(&b'{')
}

impl Header {
    /// Reads the header and compares it with the length of the file.
    pub(super) fn read<R: Read + Seek>(file: &str, reader: &mut R) -> Result<Self, FileError> {
        let has = reader.seek(SeekFrom::End(0)).map_err(FileError::io(file))?;
        reader.rewind().map_err(FileError::io(file))?;
        if has < 8 {
            return Err(FileError::Length { file: file.to_owned(), needed: Bytes(8), has: Bytes(has) });
        }
        let mut claimed = [0; 8];
        reader.read_exact(&mut claimed).map_err(FileError::io(file))?;
        let data = Self::data(file, claimed, has)?;
        let mut json = Vec::new();
        reader.take(data - 8).read_to_end(&mut json).map_err(FileError::io(file))?;
        Self::parse(file, &json, has)
    }

    /// Where the tensors of a file of `has` bytes begin, by its first eight.
    pub(super) fn data(file: &str, start: [u8; 8], has: u64) -> Result<u64, FileError> {
        let claimed = u64::from_le_bytes(start);
        if claimed > MOST {
            return Err(FileError::HeaderTooLarge {
                file: file.to_owned(),
                claimed: Bytes(claimed),
                most: Bytes(MOST),
            });
        }
        let data = 8 + claimed;
        if data > has {
            return Err(FileError::Length { file: file.to_owned(), needed: Bytes(data), has: Bytes(has) });
        }
        Ok(data)
    }

    /// Takes the JSON of a file of `has` bytes.
    pub(super) fn parse(file: &str, json: &[u8], has: u64) -> Result<Self, FileError> {
        let data = 8 + json.len() as u64;
        let bad = |reason: String| FileError::Header { file: file.to_owned(), reason };
        if json.first() != Some(&b'{') {
            return Err(bad("it does not begin with `{`".to_owned()));
        }
        // Checks shapes against offsets, and that each tensor begins where the one before ends.
        let metadata: Metadata = serde_json::from_slice(json).map_err(|error| bad(error.to_string()))?;
        let needed = data.saturating_add(metadata.data_len() as u64);
        if needed == has {
            return Ok(Self { metadata, data });
        }
        Err(FileError::Length { file: file.to_owned(), needed: Bytes(needed), has: Bytes(has) })
    }

    /// A tensor's dimensions.
    pub(super) fn shape(info: &safetensors::tensor::TensorInfo) -> Vec<u64> {
        info.shape.iter().map(|size| *size as u64).collect()
    }

    /// Where a tensor's bytes lie in the file, and how many they are.
    pub(super) fn place(&self, info: &safetensors::tensor::TensorInfo) -> (u64, u64) {
        let (start, end) = info.data_offsets;
        (self.data + start as u64, (end - start) as u64)
    }

    /// Names of the tensors in alphabetical order.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = self.metadata.offset_keys();
        names.sort();
        names
    }
}
