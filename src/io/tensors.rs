//! Rows from a tensor of a safetensors file, or of several files with an index.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use safetensors::tensor::{Dtype, TensorInfo};

use super::{
    FileError, Vocabulary,
    elements::{Element, Kind},
    file_name,
    header::Header,
    layout,
    matrix::Matrix,
    open_file,
};
use crate::units::Shape;

/// Types that rows are read from.
const SUPPORTED: &str = "F32, F16, BF16 or F64";
/// Names that a message lists.
const MOST_LISTED: usize = 20;

/// A matrix found in a file, with the words that lie beside it.
#[derive(Debug)]
pub(super) struct Found<R> {
    pub(super) matrix: Matrix<R>,
    pub(super) tensor: String,
    pub(super) words: Option<Vocabulary>,
}

fn element(dtype: Dtype) -> Option<Element> {
    Some(Element::little(match dtype {
        Dtype::F16 => Kind::F16,
        Dtype::BF16 => Kind::BF16,
        Dtype::F32 => Kind::F32,
        Dtype::F64 => Kind::F64,
        _ => return None,
    }))
}

fn is_candidate(info: &TensorInfo) -> bool {
    info.shape.len() == 2 && element(info.dtype).is_some()
}

/// One file: the tensor of that name, or the only one that could be a table.
pub(super) fn open<R: Read + Seek>(file: &str, mut reader: R, tensor: Option<&str>) -> Result<Found<R>, FileError> {
    let header = Header::read(file, &mut reader)?;
    let name = match tensor {
        Some(name) => name.to_owned(),
        None if layout::is_ours(&header) => {
            return Err(FileError::IsTable { file: file.to_owned(), tensors: header.names().join(", ") });
        }
        None => {
            let infos = header.metadata.tensors();
            only(file, infos.iter().map(|(name, info)| (name.as_str(), *info)).collect())?
        }
    };
    take(file, reader, &header, &name)
}

/// The only tensor that could be a table.
fn only(file: &str, tensors: BTreeMap<&str, &TensorInfo>) -> Result<String, FileError> {
    let mut candidates = tensors.iter().filter(|(_, info)| is_candidate(info));
    match (candidates.next(), candidates.next()) {
        (Some((name, _)), None) => Ok((*name).to_owned()),
        (None, _) => Err(FileError::NoTensor {
            file: file.to_owned(),
            wanted: format!("no tensor of 2 dimensions and {SUPPORTED}"),
            present: list(tensors.into_iter()),
        }),
        (Some(_), Some(_)) => Err(FileError::Ambiguous {
            file: file.to_owned(),
            candidates: list(tensors.into_iter().filter(|(_, info)| is_candidate(info))),
        }),
    }
}

fn list<'a>(tensors: impl Iterator<Item = (&'a str, &'a TensorInfo)>) -> String {
    listed(tensors.map(|(name, info)| format!("`{name}` {:?} {:?}", info.dtype, info.shape)))
}

/// The first few, separated by commas, and how many more there are.
pub(super) fn listed(mut tensors: impl Iterator<Item = String>) -> String {
    let first: Vec<String> = tensors.by_ref().take(MOST_LISTED).collect();
    match (first.is_empty(), tensors.count()) {
        (true, _) => "none".to_owned(),
        (false, 0) => first.join(", "),
        (false, more) => format!("{} and {more} more", first.join(", ")),
    }
}

/// Takes the tensor `name` of a file.
fn take<R: Read + Seek>(file: &str, mut reader: R, header: &Header, name: &str) -> Result<Found<R>, FileError> {
    let Some(info) = header.metadata.info(name) else {
        let infos = header.metadata.tensors();
        let tensors: BTreeMap<&str, &TensorInfo> = infos.iter().map(|(name, info)| (name.as_str(), *info)).collect();
        return Err(FileError::NoTensor {
            file: file.to_owned(),
            wanted: format!("no tensor `{name}`"),
            present: list(tensors.into_iter()),
        });
    };
    let tensor = || format!("tensor `{name}`");
    let element = element(info.dtype).ok_or_else(|| FileError::Dtype {
        file: file.to_owned(),
        tensor: tensor(),
        dtype: info.dtype.to_string(),
        supported: SUPPORTED,
    })?;
    let shape = Header::shape(info);
    let &[rows, columns] = &*shape else {
        return Err(FileError::Dimensions { file: file.to_owned(), tensor: tensor(), shape });
    };
    let shape = Shape::new(rows, columns).map_err(|error| FileError::Shape { file: file.to_owned(), error })?;
    let words = words(file, &mut reader, header, shape.rows())?;
    let (offset, _) = header.place(info);
    let matrix = Matrix { file: file.to_owned(), reader, offset, shape, element, by_columns: false };
    Ok(Found { matrix, tensor: name.to_owned(), words })
}

/// The words of a tensor `words`, as tables of this library have it: U8, newlines between the words.
fn words<R: Read + Seek>(
    file: &str,
    reader: &mut R,
    header: &Header,
    rows: u32,
) -> Result<Option<Vocabulary>, FileError> {
    let Some(info) = header.metadata.info(layout::WORDS) else { return Ok(None) };
    if info.dtype != Dtype::U8 || info.shape.len() != 1 {
        return Ok(None);
    }
    let (offset, length) = header.place(info);
    reader.seek(SeekFrom::Start(offset)).map_err(FileError::io(file))?;
    let mut joined = Vec::new();
    reader.take(length).read_to_end(&mut joined).map_err(FileError::io(file))?;
    Vocabulary::from_joined(file, joined, rows).map(Some)
}

/// Which file each tensor of a model is in: `*.safetensors.index.json`.
#[derive(Debug)]
pub(super) struct Index {
    /// Names of tensors by the name of their file.
    files: BTreeMap<String, Vec<String>>,
}

impl Index {
    /// Parses `{"weight_map": {tensor: file}}`.
    pub(super) fn parse(file: &str, json: &[u8]) -> Result<Self, FileError> {
        let bad = |reason: String| FileError::Header { file: file.to_owned(), reason };
        let index: serde_json::Value = serde_json::from_slice(json).map_err(|error| bad(error.to_string()))?;
        let Some(map) = index.get("weight_map").and_then(|map| map.as_object()) else {
            return Err(bad("it has no object `weight_map`".to_owned()));
        };
        let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (tensor, name) in map {
            let name = name.as_str().ok_or_else(|| bad(format!("the file of `{tensor}` is no string")))?;
            // Files lie beside the index: nothing it says leads elsewhere.
            if name.is_empty() || name == ".." || name.contains(['/', '\\', ':', '\0']) {
                return Err(bad(format!("the file of `{tensor}` is no plain file name: {name:?}")));
            }
            files.entry(name.to_owned()).or_default().push(tensor.clone());
        }
        Ok(Self { files })
    }

    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        /// A model of 100,000 tensors has an index of 10 MB.
        const MOST: u64 = 100_000_000;
        let file = file_name(path);
        let mut json = Vec::new();
        open_file(path)?.take(MOST).read_to_end(&mut json).map_err(FileError::io(&file))?;
        Self::parse(&file, &json)
    }

    /// Opens the file that has the tensor of that name, or the only one that could be a table.
    pub(super) fn open(&self, path: &Path, tensor: Option<&str>) -> Result<Found<File>, FileError> {
        let file = file_name(path);
        let beside = |name: &str| path.with_file_name(name);
        let name = match tensor {
            Some(name) => name.to_owned(),
            None => {
                let mut headers = Vec::new();
                for (name, tensors) in &self.files {
                    let path = beside(name);
                    headers.push((Header::read(&file_name(&path), &mut open_file(&path)?)?, tensors));
                }
                let infos = headers.iter().flat_map(|(header, tensors)| {
                    tensors.iter().filter_map(|name| Some((name.as_str(), header.metadata.info(name)?)))
                });
                only(&file, infos.collect())?
            }
        };
        let Some((in_file, _)) = self.files.iter().find(|(_, tensors)| tensors.contains(&name)) else {
            let names: Vec<&str> = self.files.values().flatten().map(String::as_str).take(MOST_LISTED).collect();
            let (wanted, present) = (format!("no tensor `{name}`"), names.join(", "));
            return Err(FileError::NoTensor { file, wanted, present });
        };
        let path = beside(in_file);
        let file = file_name(&path);
        let mut reader = open_file(&path)?;
        let header = Header::read(&file, &mut reader)?;
        take(&file, reader, &header, &name)
    }
}
