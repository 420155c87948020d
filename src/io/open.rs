//! From a file of any known format to rows and words.

use std::{
    fmt,
    io::{Read, Seek},
    path::{Path, PathBuf},
};

use super::{
    FileError, Vocabulary,
    compressed::Plain,
    file_name, gguf,
    header::is_safetensors,
    npy, npy_header, npz, open_file,
    tensors::{self, Found},
    text::{self, Layout},
    word2vec,
};
use crate::source::RowSource;

/// What to read from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// The tensor of a safetensors or GGUF file. `None`: the only one of 2 dimensions and a type that is read; of a GGUF
    /// file `token_embd.weight`, where it has that.
    pub tensor: Option<String>,
    /// A text file of one word a line, in row order, in place of the words that the input may have.
    pub words: Option<PathBuf>,
}

/// A format that rows are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// A safetensors file, or one that an index names.
    Safetensors,
    /// GGUF, as ggml's models have it.
    Gguf,
    /// NumPy's `.npy`.
    Npy,
    /// A sparse matrix as SciPy's `save_npz` writes it.
    Npz,
    /// Text without a header, as GloVe has it.
    Glove,
    /// Text with a header, as word2vec and fastText have it.
    Word2VecText,
    /// word2vec's binary format.
    Word2VecBinary,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Safetensors => "safetensors",
            Self::Gguf => "GGUF",
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Glove => "GloVe text",
            Self::Word2VecText => "word2vec text",
            Self::Word2VecBinary => "word2vec binary",
        })
    }
}

/// Rows of a file, ready to be encoded, and their words.
#[non_exhaustive]
pub struct Input {
    /// The rows. They are read from the file as they are asked for.
    pub rows: Box<dyn RowSource + Send>,
    /// The words of the rows, where there are any.
    pub words: Option<Vocabulary>,
    /// What the file is.
    pub format: Format,
    /// Whether it is compressed.
    pub gzip: bool,
    /// The tensor that is read, where the file has several.
    pub tensor: Option<String>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("shape", &self.rows.shape())
            .field("words", &self.words.as_ref().map(Vocabulary::len))
            .field("format", &self.format)
            .field("gzip", &self.gzip)
            .field("tensor", &self.tensor)
            .finish()
    }
}

/// Opens a file of rows: safetensors (also by the index of several files), GGUF, `.npy`, a sparse matrix of SciPy's
/// `save_npz`, or word vectors of GloVe, word2vec or fastText, which may be gzip.
///
/// The format is told by the content; the name's ending decides where that leaves a doubt. Text and word2vec files are read
/// once here, for their words. Memory is the words, and the values of a sparse matrix; other rows are read when they are asked
/// for. NaN and infinities are passed
/// on: the encoder refuses them.
///
/// # Errors
/// [`FileError`]: it names the file, the place in it and what is wrong.
pub fn open_rows(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Input, FileError> {
    let path = path.as_ref();
    let file = file_name(path);
    let tensor = options.tensor.as_deref();
    let mut input = if file.ends_with(".index.json") {
        safetensors(tensors::Index::read(path)?.open(path, tensor)?)
    } else if path.is_dir() {
        return Err(FileError::Unrecognised { file, reason: "is a folder; name a file in it".to_owned() });
    } else {
        open_reader(&file, open_file(path)?, tensor)?
    };
    if let Some(words) = &options.words {
        input.words = Some(Vocabulary::read(words, input.rows.shape().rows())?);
    }
    Ok(input)
}

/// [`open_rows`] for anything that can be read; `file` is its name.
pub(super) fn open_reader<R>(file: &str, mut reader: R, tensor: Option<&str>) -> Result<Input, FileError>
where
    R: Read + Seek + Send + 'static,
{
    let mut start = Vec::new();
    reader.rewind().map_err(FileError::io(file))?;
    reader.by_ref().take(9).read_to_end(&mut start).map_err(FileError::io(file))?;
    if is_safetensors(&start) || file.ends_with(".safetensors") {
        return Ok(safetensors(tensors::open(file, reader, tensor)?));
    }
    if start.starts_with(gguf::MAGIC) {
        let gguf::Found { rows, tensor, words } = gguf::open(file, reader, tensor)?;
        return Ok(Input { rows, words, format: Format::Gguf, gzip: false, tensor: Some(tensor) });
    }
    let unrecognised = |reason: String| FileError::Unrecognised { file: file.to_owned(), reason };
    if let Some(tensor) = tensor {
        return Err(unrecognised(format!("is neither safetensors nor GGUF: there is no tensor `{tensor}` to choose")));
    }
    if let Some(reason) = foreign(&start) {
        return Err(unrecognised(reason.to_owned()));
    }
    if start.starts_with(npz::MAGIC) {
        let rows = Box::new(npz::open(file, reader)?);
        return Ok(Input { rows, words: None, format: Format::Npz, gzip: false, tensor: None });
    }
    if start.starts_with(npy_header::MAGIC) {
        let rows = Box::new(npy::open(file, reader)?);
        return Ok(Input { rows, words: None, format: Format::Npy, gzip: false, tensor: None });
    }
    word_vectors(file, reader)
}

fn word_vectors<R: Read + Seek + Send + 'static>(file: &str, reader: R) -> Result<Input, FileError> {
    let plain = Plain::new(file, reader)?;
    let gzip = plain.is_gzip();
    let name = file.to_ascii_lowercase();
    let (layout, plain) = text::sniff(file, plain, name.trim_end_matches(".gz").ends_with(".bin"))?;
    let (rows, words, format): (Box<dyn RowSource + Send>, _, _) = match layout {
        Layout::Binary { rows, dim } => {
            let (rows, words) = word2vec::open(file, plain, rows, dim)?;
            (Box::new(rows), words, Format::Word2VecBinary)
        }
        layout => {
            let (rows, words) = text::open(file, plain, layout)?;
            let headed = matches!(layout, Layout::Text { .. });
            (Box::new(rows), words, if headed { Format::Word2VecText } else { Format::Glove })
        }
    };
    Ok(Input { rows, words: Some(words), format, gzip, tensor: None })
}

fn safetensors<R: Read + Seek + Send + 'static>(found: Found<R>) -> Input {
    Input {
        rows: Box::new(found.matrix),
        words: found.words,
        format: Format::Safetensors,
        gzip: false,
        tensor: Some(found.tensor),
    }
}

/// What to do about a file of a known format that is not read.
fn foreign(start: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 3] = [
        (b"\x80\x02", "is a Python pickle: save its table as .npy or .safetensors"),
        (b"\x80\x04", "is a Python pickle: save its table as .npy or .safetensors"),
        (b"\xba\x16\x4f\x2f", "is a fastText model: export its vectors as .vec"),
    ];
    known.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, reason)| *reason)
}
