//! Rows to compress by one scheme after another: those built in, or those of a file.

use std::path::{Path, PathBuf};

use gatherum::{
    EncodeReport, EncodedTable, Encoder, RowSource, Scheme, Shape, SliceSource,
    io::{OpenOptions, Vocabulary},
};

use crate::{
    failure::{Exit, Failure, Outcome},
    input::{self, ChoiceArgs, about},
};

/// The first 10,000 rows of GloVe, 100 columns: see data/README.md.
const ROWS: &[u8] = include_bytes!("../../../data/glove-100d-10k.npy");
const WORDS: &str = include_str!("../../../data/glove-100d-10k.words.txt");
const DIM: usize = 100;
/// Of the `.npy` header before the numbers; a test reads the file by its header.
const HEADER: usize = 128;

/// A table to compress, again and again.
#[derive(Debug)]
pub(crate) enum Data {
    BuiltIn { values: Vec<f32>, shape: Shape, words: Vocabulary },
    File { path: PathBuf, options: OpenOptions, shape: Shape, words: Option<Vocabulary> },
}

impl Data {
    /// Those of `table`, or what is built in. A table of no rows is refused.
    pub(crate) fn open(table: Option<&Path>, choice: &ChoiceArgs) -> Outcome<Self> {
        let options = choice.options();
        let Some(path) = table else { return Self::built_in() };
        let input = input::open_rows(path, &options)?;
        if input.rows.shape().rows() == 0 {
            let what = format!("{}: a table of 0 rows has nothing to show", path.display());
            return Err(Failure::new(Exit::Input, what, "give a table with rows"));
        }
        Ok(Self::File { path: path.to_owned(), options, shape: input.rows.shape(), words: input.words })
    }

    fn built_in() -> Outcome<Self> {
        let (numbers, _) = ROWS[HEADER..].as_chunks();
        let values: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let shape = SliceSource::new(&values, DIM)?.shape();
        let words = Vocabulary::from_words(WORDS.lines())?;
        Ok(Self::BuiltIn { values, shape, words })
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::BuiltIn { .. } => "GloVe, its first words".to_owned(),
            Self::File { path, .. } => path.display().to_string(),
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        match self {
            Self::BuiltIn { shape, .. } | Self::File { shape, .. } => *shape,
        }
    }

    pub(crate) fn words(&self) -> Option<&Vocabulary> {
        match self {
            Self::BuiltIn { words, .. } => Some(words),
            Self::File { words, .. } => words.as_ref(),
        }
    }

    pub(crate) fn encode(&self, scheme: &Scheme) -> Outcome<(EncodedTable, EncodeReport)> {
        match self {
            Self::BuiltIn { values, .. } => Ok(EncodedTable::encode("glove", values, DIM, scheme)?),
            Self::File { path, options, .. } => {
                let mut input = input::open_rows(path, options)?;
                Encoder::new(scheme).table("table", &mut *input.rows).map_err(about(path))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_is_what_its_file_says() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
        let path = PathBuf::from(folder).join("glove-100d-10k.npy");
        let options = OpenOptions { words: Some(path.with_extension("words.txt")), ..OpenOptions::default() };
        let mut input = gatherum::io::open_rows(&path, &options).unwrap();
        let Data::BuiltIn { values, shape, words } = Data::built_in().unwrap() else { panic!("built in") };
        assert_eq!((shape.rows(), shape.dim()), (10_000, 100));
        assert_eq!(input.rows.shape(), shape);
        assert_eq!(input.words.as_ref(), Some(&words));
        let mut read = vec![0.0; values.len()];
        input.rows.read_rows(0, &mut read).unwrap();
        assert_eq!(read, values);
    }
}
