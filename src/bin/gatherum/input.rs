//! The table that a command works on: a table file, or any file of rows, which is then held as f32.

use std::path::{Path, PathBuf};

use gatherum::{
    Bytes, EncodedTable, Encoder, Engine, OverBudget, Scheme, SourceError, Table,
    io::{self, FileError, Input, OpenOptions, StoredTable, TableFile, Vocabulary},
    store::{ByteSource, DiskCache, FileSource, ObjectSource, OnDemand},
};

use crate::{
    backend::parse_bytes,
    failure::{Exit, Failure, Outcome},
    output,
};

#[derive(Debug, clap::Args)]
pub(crate) struct TableArgs {
    /// A table file that `compress` has made, or its URL (https, http, s3), of which only what is needed is read; or any file
    /// that `compress` reads, which is then held in memory as f32
    pub(crate) table: PathBuf,

    /// Keep what is read of a table's URL in this folder, and take it from there the next time
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,

    /// The most that the folder may have
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "1GiB", requires = "cache")]
    pub(crate) cache_size: Bytes,

    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
}

/// What is read from a file that leaves a choice.
#[derive(Debug, clap::Args)]
pub(crate) struct ChoiceArgs {
    /// The tensor of a safetensors or GGUF file that has several
    #[arg(long, value_name = "NAME")]
    pub(crate) tensor: Option<String>,

    /// A text file with the words of the rows, one a line, in place of those the table may have
    #[arg(long, value_name = "FILE")]
    pub(crate) words: Option<PathBuf>,
}

impl ChoiceArgs {
    pub(crate) fn options(&self) -> OpenOptions {
        OpenOptions { tensor: self.tensor.clone(), words: self.words.clone() }
    }
}

/// A file as it lies on the disk, or elsewhere.
pub(crate) enum Opened {
    Table { file: TableFile, words: Option<Vocabulary> },
    Rows(Input),
    Remote(StoredTable<ObjectSource>),
}

/// What a command reads of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// A few rows: they are loaded when they are looked up.
    Few,
    /// All of them.
    All,
}

impl TableArgs {
    /// Opens the file, and verifies it where it is a table. Naming a tensor asks for plain rows.
    pub(crate) fn open(&self) -> Outcome<Opened> {
        if let Some(url) = self.url() {
            let stored = pollster::block_on(StoredTable::open(ObjectSource::open(url)?))?;
            return Ok(Opened::Remote(match self.disk_cache()? {
                Some(cache) => stored.kept_in(&cache),
                None => stored,
            }));
        }
        if self.choice.tensor.is_some() || !io::is_table(&self.table)? {
            return Ok(Opened::Rows(open_rows(&self.table, &self.choice.options())?));
        }
        let file = TableFile::open(&self.table)?;
        let words = match &self.choice.words {
            Some(words) => {
                let rows = gatherum::TableSource::spec(&file).shape().rows();
                Some(Vocabulary::read(words, rows)?)
            }
            None => file.words()?,
        };
        Ok(Opened::Table { file, words })
    }

    /// The folder that blocks are kept in, unless another process has it.
    fn disk_cache(&self) -> Outcome<Option<DiskCache>> {
        let Some(folder) = &self.cache else { return Ok(None) };
        match DiskCache::open(folder, self.cache_size) {
            Ok(cache) => Ok(Some(cache)),
            Err(SourceError::Io { what, error }) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                tracing::warn!("{what}: {error}; this command goes on without it");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The table's URL, if that is what it is named by.
    fn url(&self) -> Option<&str> {
        self.table.to_str().filter(|text| text.contains("://"))
    }

    /// A table file on this disk, where reading few rows of it is less than reading it whole.
    fn on_demand(&self) -> Outcome<Option<StoredTable<FileSource>>> {
        if self.choice.tensor.is_some() || !io::is_table(&self.table)? {
            return Ok(None);
        }
        match pollster::block_on(StoredTable::open(FileSource::open(&self.table)?)) {
            Ok(stored) => Ok(Some(stored)),
            Err(FileError::NoBlocks { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a table whose shards are loaded when they are needed.
    fn take<S: ByteSource + 'static>(&self, stored: StoredTable<S>, engine: &Engine) -> Outcome<Loaded> {
        let words = match &self.choice.words {
            Some(words) => Some(Vocabulary::read(words, gatherum::TableSource::spec(&stored).shape().rows())?),
            None => pollster::block_on(stored.words())?,
        };
        let table = engine.load_on_demand(stored, &OnDemand::default()).map_err(about(&self.table))?;
        Ok(Loaded { table, words, path: self.table.clone() })
    }

    /// Opens the file and places it on `engine`, or has it there on demand.
    pub(crate) fn load(&self, engine: &Engine, reads: Reads) -> Outcome<Loaded> {
        if reads == Reads::Few
            && self.url().is_none()
            && let Some(stored) = self.on_demand()?
        {
            return self.take(stored, engine);
        }
        let (table, words) = match self.open()? {
            Opened::Remote(stored) => return self.take(stored, engine),
            Opened::Table { file, words } => (engine.load_blocking(&file).map_err(about(&self.table))?, words),
            Opened::Rows(input) => {
                let (table, words) = self.encode(input, engine)?;
                (engine.load_blocking(&table).map_err(about(&self.table))?, words)
            }
        };
        Ok(Loaded { table, words, path: self.table.clone() })
    }

    /// Reads plain rows as f32.
    fn encode(&self, mut input: Input, engine: &Engine) -> Outcome<(EncodedTable, Option<Vocabulary>)> {
        let scheme = parse_scheme("f32")?;
        let needed = scheme.spec(input.rows.shape()).map_err(about(&self.table))?.bytes();
        // Refused before it is read, not after.
        if let Some(budget) = engine.memory().budget.filter(|budget| *budget < needed) {
            return Err(OverBudget { needed, budget, live: Bytes(0), largest: needed }.into());
        }
        let bar = output::progress("reading", u64::from(input.rows.shape().rows()));
        let name = self.table.file_stem().map_or_else(|| "table".into(), |stem| stem.to_string_lossy());
        let (table, _) = Encoder::new(&scheme)
            .on_progress(|progress| bar.set_position(progress.done.into()))
            .table(&name, &mut *input.rows)
            .map_err(about(&self.table))?;
        bar.finish_and_clear();
        Ok((table, input.words))
    }
}

/// A table on an engine, with its words.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) table: Table,
    pub(crate) words: Option<Vocabulary>,
    path: PathBuf,
}

impl Loaded {
    pub(crate) fn rows(&self) -> u32 {
        self.table.spec().shape().rows()
    }

    /// The row of a word, compared byte for byte.
    pub(crate) fn find(&self, word: &std::ffi::OsStr) -> Outcome<u32> {
        let (file, shown) = (self.path.display(), word.to_string_lossy());
        let Some(words) = &self.words else {
            let next = "look rows up by id, or name a file with the words by --words FILE";
            return Err(Failure::new(Exit::NotThere, format!("{file}: word `{shown}`: the table has no words"), next));
        };
        words.find(word.as_encoded_bytes()).ok_or_else(|| {
            let lower = shown.to_lowercase();
            let next = match words.find(&lower) {
                Some(_) if lower != *shown => format!("words are compared byte for byte; there is `{lower}`"),
                _ => "words are compared byte for byte: check case and spelling".to_owned(),
            };
            let what = format!("{file}: word `{shown}` is not among the table's {} words", words.len());
            Failure::new(Exit::NotThere, what, next)
        })
    }
}

/// What `--scheme` says.
pub(crate) fn parse_scheme(text: &str) -> Outcome<Scheme> {
    text.parse().map_err(|error| {
        let next = "see the schemes that `gatherum compress --help` lists";
        Failure::new(Exit::Usage, format!("--scheme {text}: {error}"), next)
    })
}

/// The examples of all schemes, or those that are asked for.
pub(crate) fn parse_schemes(asked: &[String]) -> Outcome<Vec<Scheme>> {
    let all: Vec<&str> = if asked.is_empty() {
        Scheme::all().iter().flat_map(|info| info.examples).copied().collect()
    } else {
        asked.iter().map(String::as_str).collect()
    };
    all.into_iter().map(parse_scheme).collect()
}

/// Reads a file that is all text.
pub(crate) fn read_text(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|error| {
        let next = "check the path, and that it is a text file";
        Failure::new(Exit::Input, format!("{}: cannot be read: {error}", path.display()), next)
    })
}

/// Reads one number a line.
pub(crate) fn read_frequencies(path: &Path) -> Outcome<Vec<f32>> {
    let text = read_text(path)?;
    let number = |(line, text): (usize, &str)| {
        text.trim().parse().map_err(|_| {
            let what = format!("{}: line {}: `{}` is no number", path.display(), line + 1, text.trim());
            Failure::new(Exit::Input, what, "give one number a line, as many as the table has rows")
        })
    };
    text.lines().enumerate().map(number).collect()
}

/// Opens a file of rows; text files are read once for that.
pub(crate) fn open_rows(path: &Path, options: &OpenOptions) -> Outcome<Input> {
    let spinner = output::spinner(format!("reading {}", path.display()));
    let input = io::open_rows(path, options);
    spinner.finish_and_clear();
    Ok(input?)
}

/// Names the file in an error that does not.
pub(crate) fn about<E: Into<Failure>>(path: &Path) -> impl Fn(E) -> Failure {
    move |error| error.into().about(path)
}
