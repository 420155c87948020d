//! Where rows and parts come from, and where parts go.

mod changes;
mod sparse;

pub use changes::{Changes, Publishing};
pub(crate) use changes::{Follower, Reading};
pub use sparse::{Duplicates, SparseRows};

use crate::{
    error::{EncodeError, SourceError},
    scheme::TableSpec,
    units::Shape,
};

/// Plain rows, read in order: what the encoder takes.
pub trait RowSource {
    /// Rows and columns.
    fn shape(&self) -> Shape;

    /// Fills `out: [n, dim]` with rows `first..first + n`, as f32.
    ///
    /// The encoder asks for ascending, adjoining ranges, from row 0 to the last, and begins again at row 0 for schemes that
    /// learn of the rows before they store them.
    ///
    /// # Errors
    /// [`SourceError`] that names the file, the place in it and the reason.
    fn read_rows(&mut self, first: u32, out: &mut [f32]) -> Result<(), SourceError>;
}

/// Rows that lie in memory: `[rows, dim]`, row-major.
#[derive(Debug)]
pub struct SliceSource<'a> {
    shape: Shape,
    values: &'a [f32],
}

impl<'a> SliceSource<'a> {
    /// Takes `values` as a table of `dim` columns.
    ///
    /// # Errors
    /// [`EncodeError::Shape`] where the shape cannot be, [`EncodeError::Length`] where `values` are no whole rows.
    pub fn new(values: &'a [f32], dim: usize) -> Result<Self, EncodeError> {
        let rows = values.len().checked_div(dim).unwrap_or(0) as u64;
        let shape = Shape::new(rows, dim as u64)?;
        if !values.len().is_multiple_of(dim) {
            return Err(EncodeError::Length { values: values.len() as u64, rows, dim: dim as u64 });
        }
        Ok(Self { shape, values })
    }
}

impl RowSource for SliceSource<'_> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn read_rows(&mut self, first: u32, out: &mut [f32]) -> Result<(), SourceError> {
        let start = first as usize * self.shape.dim() as usize;
        out.copy_from_slice(&self.values[start..][..out.len()]);
        Ok(())
    }
}

/// A stored table, read part by part: what an engine loads.
pub trait TableSource {
    /// Scheme, shape and parts.
    fn spec(&self) -> &TableSpec;

    /// A name for messages and labels: a file's, or a word of the caller's.
    fn name(&self) -> &str;

    /// Fills `out` with the bytes of part number `part` (as in [`TableSpec::parts`]) from `offset` on.
    fn read_part(
        &self,
        part: usize,
        offset: u64,
        out: &mut [u8],
    ) -> impl Future<Output = Result<(), SourceError>> + wgpu::WasmNotSend;

    /// The versions of a source whose rows change; `None` where they never do.
    fn changes(&self) -> Option<&Changes> {
        None
    }

    /// Bytes that it has read so far, from wherever they lie; `None` where it does not count them.
    fn bytes_read(&self) -> Option<u64> {
        None
    }
}

/// What takes the parts of a table while it is encoded.
pub trait PartSink {
    /// Takes the bytes of part number `part` from `offset` on. Each part comes in order and without a gap.
    ///
    /// # Errors
    /// [`SourceError`] where they cannot be kept.
    fn write_part(&mut self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), SourceError>;
}
