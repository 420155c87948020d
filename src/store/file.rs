//! A local file, read where it is asked.

use std::{fs::File, io, ops::Range, path::Path};

use super::ByteSource;
use crate::error::SourceError;

/// A local file.
///
/// It is read by position and not mapped: what is read goes to a buffer anyway, the system keeps the pages either way, and a
/// file that is cut short, or a disk that fails, is an error here, where it would end the process that had mapped it.
#[derive(Debug)]
pub struct FileSource {
    name: String,
    file: File,
}

impl FileSource {
    /// Opens `path`.
    ///
    /// # Errors
    /// [`SourceError::Io`] where the system refuses.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Ok(Self { name, file }),
            Err(error) => Err(SourceError::Io { what: format!("opening {name}"), error }),
        }
    }
}

impl ByteSource for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    async fn size(&self) -> Result<u64, SourceError> {
        let size = self.file.metadata().map(|metadata| metadata.len());
        size.map_err(|error| SourceError::Io { what: self.name.clone(), error })
    }

    fn reads_alike(&self) -> bool {
        true
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let mut bytes = vec![0; usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)];
        match read_at(&self.file, &mut bytes, range.start) {
            Ok(()) => Ok(bytes),
            Err(error) => {
                let what = format!("{}: bytes {}..{}", self.name, range.start, range.end);
                Err(SourceError::Io { what, error })
            }
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(windows)]
fn read_at(file: &File, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !out.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, out, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                out = &mut out[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}
