//! What went wrong, what to do next, and the exit code for scripts.

use std::{
    fmt,
    io::{self, ErrorKind, Write},
    path::Path,
    process::ExitCode,
};

use gatherum::{
    DeviceError, EncodeError, EngineError, GatherError, OverBudget, ScoreError, ShardCause, ShardError, SourceError,
    TableError, io::FileError,
};

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Told by `--help`, and in the README.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the output could not be written, or another failure
  2  the command line is wrong
  3  an input file is missing, damaged, of no known format, or holds values that cannot be stored
  4  the memory budget would be passed, or memory ran out
  5  no adapter is as asked for, or the device failed
  6  an id or a word is not in the table

Environment:
  GATHERUM_BACKEND  what --backend takes, where that is not given
  RUST_LOG          what is logged, where -v is not enough";

/// What a script can tell failures apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The reader of standard output has gone: nothing is wrong, and nothing is said.
    PipeClosed = 0,
    Other = 1,
    Usage = 2,
    Input = 3,
    Memory = 4,
    Device = 5,
    NotThere = 6,
}

/// A failure: one line of what, where and value, and one of what to do next.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    what: String,
    next: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { exit, what: what.into(), next: next.into() }
    }

    /// The same, opened by the name of the file that it is about, where it does not say so already.
    pub(crate) fn about(mut self, path: &Path) -> Self {
        let name = path.display().to_string();
        if !self.what.contains(&name) {
            self.what = format!("{name}: {}", self.what);
        }
        self
    }

    /// The system's refusal to write a file.
    pub(crate) fn writing(path: &Path, error: &io::Error) -> Self {
        let next = "check that the folder is there, takes new files, and has room";
        Self::new(Exit::Other, format!("{}: cannot be written: {error}", path.display()), next)
    }

    /// Says it on standard error.
    pub(crate) fn tell(&self) -> ExitCode {
        if self.exit != Exit::PipeClosed {
            // With standard error gone too, the code is all that is left to say.
            let _ = writeln!(io::stderr(), "error: {self}\nnext step: {}", self.next);
        }
        ExitCode::from(self.exit as u8)
    }
}

/// What went wrong, without the next step.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.what))
    }
}

/// Messages of drivers may have several lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Of standard output: files say themselves what they are.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let exit = if error.kind() == ErrorKind::BrokenPipe { Exit::PipeClosed } else { Exit::Other };
        Self::new(exit, format!("writing to standard output: {error}"), "check where the output goes, and its room")
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        const DAMAGED: &str = "the file is damaged: copy it again, or make it again with `gatherum compress`";
        let next = match &error {
            FileError::Io { error, .. } if error.kind() == ErrorKind::NotFound => "check the path",
            FileError::Io { .. } => "check that it is a file which can be read",
            FileError::Unrecognised { .. } => {
                "give a .safetensors, .gguf or .npy file, a sparse .npz, or word vectors of GloVe, word2vec or fastText"
            }
            FileError::NotTable { .. } => "compress it first: gatherum compress FILE --scheme int8 -o TABLE",
            FileError::IsTable { .. } => {
                "give the file it was made of; `gatherum inspect` and `gatherum lookup` take this one"
            }
            FileError::Source(_) => "check the address and the connection, and try again",
            FileError::NoBlocks { .. } => "write it again with `gatherum compress`, or copy it here and read it whole",
            FileError::Version { .. } => "a later gatherum has written it: update this one",
            FileError::Scheme { .. } => "a later gatherum may have written it: update this one, or make the file again",
            FileError::HeaderTooLarge { .. }
            | FileError::Header { .. }
            | FileError::Length { .. }
            | FileError::Part { .. }
            | FileError::Checksum { .. } => DAMAGED,
            FileError::BadLine { .. } | FileError::BadRecord { .. } | FileError::RowCount { .. } => {
                "mend or leave out what is named, or copy the file again if it was cut short"
            }
            FileError::Dtype { .. } => "save the tensor as F32, F16 or BF16",
            FileError::Dimensions { .. } => "choose or save a tensor of 2 dimensions, [rows, columns]",
            FileError::Ambiguous { .. } | FileError::NoTensor { .. } => "choose one that is there by --tensor NAME",
            FileError::Overflow { .. } => "scale the table so that its values fit f32",
            FileError::WordCount { .. } => "give a file with one word a line, as many as the table has rows",
            _ => "check the file; `gatherum compress --help` lists what is read",
        };
        Self::new(Exit::Input, error.to_string(), next)
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self::new(Exit::Input, error.to_string(), "check that the file is whole and can be read")
    }
}

impl From<EncodeError> for Failure {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::Source(error) => error.into(),
            EncodeError::NotFinite { .. } => {
                Self::new(Exit::Input, error.to_string(), "replace the value, or leave the row out, and try again")
            }
            EncodeError::Precision { .. } | EncodeError::Unfit { .. } => {
                Self::new(Exit::Input, error.to_string(), "choose another scheme: `--scheme f32` takes any table")
            }
            EncodeError::Frequencies { .. } | EncodeError::Frequency { .. } | EncodeError::NoTraffic { .. } => {
                Self::new(Exit::Input, error.to_string(), "give one number a line, as many as the table has rows")
            }
            _ => Self::new(Exit::Input, error.to_string(), "check the table's shape"),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let next = "`gatherum adapters` lists what is there; `--backend host` needs none";
        match error {
            EngineError::Device(error) => error.into(),
            error => Self::new(Exit::Device, error.to_string(), next),
        }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::OutOfMemory { .. } => {
                Self::new(Exit::Memory, error.to_string(), "take a smaller scheme, or `--backend host`")
            }
            error => Self::new(Exit::Device, error.to_string(), "try again, or take `--backend host`"),
        }
    }
}

impl From<OverBudget> for Failure {
    fn from(error: OverBudget) -> Self {
        Self::new(Exit::Memory, error.to_string(), "raise --memory-budget, or compress the table by a smaller scheme")
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        match error {
            TableError::OverBudget(error) => error.into(),
            TableError::Source(error) => error.into(),
            TableError::Device(error) => error.into(),
            error => Self::new(Exit::Memory, error.to_string(), "take a smaller scheme, or `--backend host`"),
        }
    }
}

impl From<ShardError> for Failure {
    fn from(error: ShardError) -> Self {
        match &*error.cause {
            ShardCause::OverBudget(budget) => Self { what: error.to_string(), ..(*budget).into() },
            ShardCause::Device(device) => Self { what: error.to_string(), ..device.clone().into() },
            _ => {
                let next =
                    "check that the file is whole and can be read; `gatherum inspect` verifies all of one on this disk";
                Self::new(Exit::Input, error.to_string(), next)
            }
        }
    }
}

impl From<GatherError> for Failure {
    fn from(error: GatherError) -> Self {
        match error {
            GatherError::BadId { rows, .. } => {
                let next = match rows.checked_sub(1) {
                    Some(last) => format!("ids go from 0 to {last}; `--policy zero` and `--policy wrap` take others"),
                    None => "the table has no rows; `--policy zero` answers with zeros".to_owned(),
                };
                Self::new(Exit::NotThere, error.to_string(), next)
            }
            GatherError::Shard(error) => error.into(),
            GatherError::OverBudget(error) => error.into(),
            GatherError::Device(error) => error.into(),
            error => Self::new(Exit::Memory, error.to_string(), "ask for fewer rows at a time"),
        }
    }
}

impl From<ScoreError> for Failure {
    fn from(error: ScoreError) -> Self {
        match error {
            ScoreError::Shard(error) => error.into(),
            ScoreError::OverBudget(error) => error.into(),
            ScoreError::Device(error) => error.into(),
            error => Self::new(Exit::Memory, error.to_string(), "ask for fewer rows at a time"),
        }
    }
}
