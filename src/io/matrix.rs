//! Rows of a matrix that lies in a file as plain numbers.

use std::io::{Read, Seek, SeekFrom};

use super::{FileError, elements::Element};
use crate::{error::SourceError, source::RowSource, units::Shape};

/// A matrix at an offset of a file: what safetensors and NumPy files come down to.
#[derive(Debug)]
pub(super) struct Matrix<R> {
    pub(super) file: String,
    pub(super) reader: R,
    /// Where the first number lies.
    pub(super) offset: u64,
    pub(super) shape: Shape,
    pub(super) element: Element,
    /// Column after column (Fortran order), not row after row.
    pub(super) by_columns: bool,
}

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 18;

impl<R: Read + Seek> Matrix<R> {
    fn row_major(&mut self, first: u32, out: &mut [f32]) -> Result<(), FileError> {
        let (dim, size) = (self.shape.dim() as usize, self.element.bytes());
        self.seek(u64::from(first) * dim as u64)?;
        let mut bytes = vec![0; CHUNK.min(out.len() * size)];
        for (number, out) in out.chunks_mut(CHUNK / size).enumerate() {
            let bytes = &mut bytes[..out.len() * size];
            self.reader.read_exact(bytes).map_err(FileError::io(&self.file))?;
            self.element.decode(bytes, out, 1).map_err(|large| {
                let index = number * (CHUNK / size) + large.index;
                self.overflow(u64::from(first) + (index / dim) as u64, index % dim, large.value)
            })?;
        }
        Ok(())
    }

    /// Reads the rows' piece of each column and spreads it over `out`.
    fn column_major(&mut self, first: u32, out: &mut [f32]) -> Result<(), FileError> {
        let (dim, size) = (self.shape.dim() as usize, self.element.bytes());
        let rows = out.len() / dim;
        let most = (CHUNK / size).min(rows);
        let mut bytes = vec![0; most * size];
        for column in 0..dim {
            self.seek(column as u64 * u64::from(self.shape.rows()) + u64::from(first))?;
            for (number, out) in out.chunks_mut(most * dim).enumerate() {
                let bytes = &mut bytes[..out.len() / dim * size];
                self.reader.read_exact(bytes).map_err(FileError::io(&self.file))?;
                self.element.decode(bytes, &mut out[column..], dim).map_err(|large| {
                    self.overflow(u64::from(first) + (number * most + large.index) as u64, column, large.value)
                })?;
            }
        }
        Ok(())
    }

    /// Goes to number `index` of the matrix.
    fn seek(&mut self, index: u64) -> Result<(), FileError> {
        let position = self.offset + index * self.element.bytes() as u64;
        self.reader.seek(SeekFrom::Start(position)).map_err(FileError::io(&self.file))?;
        Ok(())
    }

    fn overflow(&self, row: u64, column: usize, value: f64) -> FileError {
        FileError::Overflow { file: self.file.clone(), row, column: u32::try_from(column).unwrap_or(u32::MAX), value }
    }
}

impl<R: Read + Seek> RowSource for Matrix<R> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn read_rows(&mut self, first: u32, out: &mut [f32]) -> Result<(), SourceError> {
        if out.is_empty() {
            return Ok(());
        }
        let read = if self.by_columns { self.column_major(first, out) } else { self.row_major(first, out) };
        Ok(read?)
    }
}
