//! What the header of a table file says, checked: all but the bytes of the tensors.

use std::collections::HashMap;

use safetensors::tensor::TensorInfo;

use super::{
    FileError,
    block_sums::{self, BlockSums},
    header::{Header, is_safetensors},
    layout::{self, Contents, WORDS},
};
use crate::{
    error::EncodeError,
    scheme::{Scheme, TableSpec},
    units::Shape,
};

/// A tensor of the file.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) name: String,
    /// Where it begins.
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) checksum: String,
}

/// A table file as its header has it.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) spec: TableSpec,
    pub(super) metadata: HashMap<String, String>,
    /// One for each part, in the scheme's order.
    pub(super) parts: Vec<Tensor>,
    pub(super) words: Option<Tensor>,
    pub(super) blocks: Option<BlockSums>,
}

/// Refuses what does not begin as a table does.
pub(super) fn check_start(file: &str, start: &[u8]) -> Result<(), FileError> {
    if start.get(8).is_some_and(|brace| *brace != b'{') && !is_safetensors(start) {
        let reason = "it does not begin as safetensors files do".to_owned();
        return Err(FileError::NotTable { file: file.to_owned(), reason });
    }
    Ok(())
}

impl Described {
    /// Checks everything that a header says, and the checksums of that.
    pub(super) fn new(file: &str, header: &Header) -> Result<Self, FileError> {
        if !layout::is_ours(header) {
            let reason = "its metadata does not say `format: gatherum`".to_owned();
            return Err(FileError::NotTable { file: file.to_owned(), reason });
        }
        let metadata = header.metadata.metadata().clone().unwrap_or_default();
        let spec = spec(file, &metadata)?;
        let mut parts = Vec::new();
        for part in spec.parts() {
            let info = tensor(file, header, part.name())?;
            let found = (info.dtype.to_string(), Header::shape(info));
            if found != (part.dtype().to_string(), part.shape().to_vec()) {
                let (dtype, shape) = found;
                let problem = format!(
                    "is {dtype} {shape:?}; scheme `{}` at {} has {} {:?}",
                    spec.scheme(),
                    spec.shape(),
                    part.dtype(),
                    part.shape()
                );
                return Err(bad_part(file, part.name(), problem));
            }
            parts.push((part.name().to_owned(), header.place(info)));
        }
        let words = words_place(file, header)?.map(|place| (WORDS.to_owned(), place));
        let known = |name: &String| parts.iter().chain(&words).any(|(known, _)| known == name);
        if let Some(other) = header.names().iter().find(|name| !known(name)) {
            return Err(bad_part(file, other, format!("is not one that scheme `{}` has", spec.scheme())));
        }
        let with_sum = |(name, (offset, bytes)): (String, (u64, u64))| {
            let checksum = stored(file, &metadata, &format!("checksum.{name}"))?.clone();
            Ok::<_, FileError>(Tensor { name, offset, bytes, checksum })
        };
        let parts: Vec<Tensor> = parts.into_iter().map(with_sum).collect::<Result<_, _>>()?;
        let words = words.map(with_sum).transpose()?;
        let checksums = parts.iter().chain(&words).map(|tensor| tensor.checksum.clone()).collect();
        let contents =
            Contents { spec: &spec, words: words.as_ref().map(|words| words.bytes), checksums, blocks: None };
        let description = contents.checksum();
        compare(file, "the header's description", stored(file, &metadata, "checksum")?, &description)?;
        let blocks = BlockSums::read(&spec, &metadata);
        let blocks = blocks.map_err(|reason| FileError::Header { file: file.to_owned(), reason })?;
        if let Some(blocks) = &blocks {
            let computed = blocks.checksum(&spec, &description);
            compare(file, "the checksums of blocks", stored(file, &metadata, block_sums::CHECKSUM)?, &computed)?;
        }
        Ok(Self { spec, metadata, parts, words, blocks })
    }
}

/// A checksum of the metadata.
fn stored<'a>(file: &str, metadata: &'a HashMap<String, String>, key: &str) -> Result<&'a String, FileError> {
    let reason = || format!("its metadata has no `{key}`");
    metadata.get(key).ok_or_else(|| FileError::Header { file: file.to_owned(), reason: reason() })
}

/// Refuses a checksum that is not the stored one.
pub(super) fn compare(file: &str, part: &str, stored: &str, computed: &str) -> Result<(), FileError> {
    if stored == computed {
        return Ok(());
    }
    let (stored, computed) = (stored.to_owned(), computed.to_owned());
    Err(FileError::Checksum { file: file.to_owned(), part: part.to_owned(), stored, computed })
}

fn bad_part(file: &str, part: &str, problem: String) -> FileError {
    FileError::Part { file: file.to_owned(), part: part.to_owned(), problem }
}

/// Scheme and shape, by the metadata.
fn spec(file: &str, metadata: &HashMap<String, String>) -> Result<TableSpec, FileError> {
    let bad = |reason: String| FileError::Header { file: file.to_owned(), reason };
    let get = |key: &str| metadata.get(key).ok_or_else(|| bad(format!("its metadata has no `{key}`")));
    let version = get("format_version")?;
    if version != layout::VERSION {
        return Err(FileError::Version { file: file.to_owned(), version: version.clone(), known: layout::VERSION });
    }
    let number = |key: &str| {
        let text = get(key)?;
        text.parse().map_err(|_| bad(format!("`{key}` is no whole number: {text:?}")))
    };
    let (rows, dim): (u64, u64) = (number("rows")?, number("dim")?);
    let scheme: Scheme = get("scheme")?.parse().map_err(|error| FileError::Scheme { file: file.to_owned(), error })?;
    let shape = Shape::new(rows, dim).map_err(|error| FileError::Shape { file: file.to_owned(), error })?;
    scheme.spec(shape).map_err(|error: EncodeError| FileError::Unfit { file: file.to_owned(), error })
}

fn tensor<'a>(file: &str, header: &'a Header, name: &str) -> Result<&'a TensorInfo, FileError> {
    header.metadata.info(name).ok_or_else(|| bad_part(file, name, "is missing".to_owned()))
}

/// Where the words are, if they are there.
fn words_place(file: &str, header: &Header) -> Result<Option<(u64, u64)>, FileError> {
    let Some(info) = header.metadata.info(WORDS) else { return Ok(None) };
    if info.dtype != safetensors::Dtype::U8 || info.shape.len() != 1 {
        return Err(bad_part(file, WORDS, format!("is {} {:?}; words are U8 [bytes]", info.dtype, info.shape)));
    }
    Ok(Some(header.place(info)))
}
