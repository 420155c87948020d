//! What the header of a table file says, checked before a byte of its tensors is read.

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

/// Scheme, shape, and where each tensor lies.
#[derive(Debug)]
pub(super) struct TableHeader {
    pub(super) spec: TableSpec,
    pub(super) metadata: HashMap<String, String>,
    /// The parts in the scheme's order, and the words behind them where the file has any.
    pub(super) tensors: Vec<TensorPlace>,
    /// Checksums of the blocks of each part, where the file has them.
    pub(super) blocks: Option<BlockSums>,
}

/// A tensor of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TensorPlace {
    pub(super) name: String,
    /// Where it begins in the file.
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// As the metadata has it.
    pub(super) checksum: String,
}

/// Refuses what does not begin as a table does.
pub(super) fn check_start(file: &str, start: &[u8]) -> Result<(), FileError> {
    if start.get(8).is_some_and(|brace| *brace != b'{') && !is_safetensors(start) {
        let reason = "it does not begin as safetensors files do".to_owned();
        return Err(FileError::NotTable { file: file.to_owned(), reason });
    }
    Ok(())
}

impl TableHeader {
    /// Takes a header whose tensors fill the file, and compares the checksum of the description.
    pub(super) fn new(file: &str, header: &Header) -> Result<Self, FileError> {
        if !layout::is_ours(header) {
            let reason = "its metadata does not say `format: gatherum`".to_owned();
            return Err(FileError::NotTable { file: file.to_owned(), reason });
        }
        let metadata = header.metadata.metadata().clone().unwrap_or_default();
        let spec = spec(file, &metadata)?;
        let mut places = Vec::new();
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
            places.push((part.name(), header.place(info)));
        }
        let words = words_place(file, header)?;
        places.extend(words.map(|place| (WORDS, place)));
        if let Some(other) = header.names().iter().find(|name| !places.iter().any(|(known, _)| known == name)) {
            return Err(bad_part(file, other, format!("is not one that scheme `{}` has", spec.scheme())));
        }
        let stored = |key: &str| {
            let reason = || format!("its metadata has no `{key}`");
            metadata.get(key).cloned().ok_or_else(|| FileError::Header { file: file.to_owned(), reason: reason() })
        };
        let checksums: Vec<String> =
            places.iter().map(|(name, _)| stored(&format!("checksum.{name}"))).collect::<Result<_, _>>()?;
        let tensors = places.iter().zip(&checksums).map(|((name, (offset, bytes)), checksum)| TensorPlace {
            name: (*name).to_owned(),
            offset: *offset,
            bytes: *bytes,
            checksum: checksum.clone(),
        });
        let tensors = tensors.collect();
        let contents = Contents { spec: &spec, words: words.map(|(_, bytes)| bytes), checksums, blocks: None };
        let description = contents.checksum();
        compare(file, "the header's description", &stored("checksum")?, description.clone())?;
        let blocks = BlockSums::read(&spec, &metadata);
        let blocks = blocks.map_err(|reason| FileError::Header { file: file.to_owned(), reason })?;
        if let Some(blocks) = &blocks {
            let computed = blocks.checksum(&spec, &description);
            compare(file, "the checksums of blocks", &stored(block_sums::CHECKSUM)?, computed)?;
        }
        Ok(Self { spec, metadata, tensors, blocks })
    }

    /// The words' tensor, where the file has one.
    pub(super) fn words(&self) -> Option<&TensorPlace> {
        self.tensors.get(self.spec.parts().len())
    }
}

impl TensorPlace {
    /// Compares the checksum of all its bytes.
    pub(super) fn compare(&self, file: &str, digest: u64) -> Result<(), FileError> {
        compare(file, &format!("part `{}`", self.name), &self.checksum, layout::written(digest))
    }
}

fn compare(file: &str, part: &str, stored: &str, computed: String) -> Result<(), FileError> {
    if stored == computed {
        return Ok(());
    }
    Err(FileError::Checksum { file: file.to_owned(), part: part.to_owned(), stored: stored.to_owned(), computed })
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
