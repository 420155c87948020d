//! Files: own tables, and the formats that rows come in.
//!
//! [`open_rows`] reads what others wrote: safetensors, GGUF, `.npy`, SciPy's sparse `.npz`, and word vectors of GloVe, word2vec
//! and fastText. [`TableWriter`] and [`TableFile`] write and read tables, in the format of [`layout`]; [`TableStream`] takes one
//! as its bytes come. [`write_npy`] gives rows to others.
//!
//! [`StoredTable`] reads a table on demand, from wherever its bytes lie: a file, a web server, an object store.
//!
//! `WritableTable` (feature `journal`, module `writable`) takes rows while the table is served, in a journal beside its file.
//!
//! No reader trusts a number in a file: what is allocated follows from bytes that are there.

mod block_sums;
mod blocks;
mod compressed;
mod elements;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod gguf;
mod header;
mod kept;
pub mod layout;
mod lines;
mod matrix;
mod npy;
mod npy_header;
mod npz;
mod open;
mod python;
mod stored;
mod table_file;
mod table_header;
mod table_stream;
mod table_writer;
mod tensors;
mod text;
mod vocabulary;
mod word2vec;
#[cfg(all(feature = "journal", not(target_arch = "wasm32")))]
pub mod writable;

use std::{fs::File, path::Path};

pub use error::{FileError, StreamError};
pub use npy::write_npy;
pub use open::{Format, Input, OpenOptions, open_rows};
pub use stored::StoredTable;
pub use table_file::{TableFile, is_table};
pub use table_stream::TableStream;
pub use table_writer::{TableWriter, save_table};
pub use vocabulary::Vocabulary;
#[cfg(all(feature = "journal", not(target_arch = "wasm32")))]
pub use writable::{TableReader, Writable, WritableError, WritableStatus, WritableTable};

/// A path for messages.
fn file_name(path: &Path) -> String {
    path.display().to_string()
}

fn open_file(path: &Path) -> Result<File, FileError> {
    File::open(path).map_err(FileError::io(format!("opening {}", file_name(path))))
}
