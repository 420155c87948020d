//! What a lookup gives back.

use std::sync::Arc;

use crate::{
    error::GatherError,
    gpu::{Gpu, OutputDtype, Pooled},
    op::{BadIds, Resolver},
};

/// Rows in host memory.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rows<T> {
    /// `[ids, dim]`, row-major.
    pub values: Vec<T>,
    /// Columns of a row.
    pub dim: u32,
    /// Ids that named no row; their rows are zeros.
    pub bad: BadIds,
}

impl<T> Rows<T> {
    /// Row by row.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, T> {
        self.values.chunks_exact(self.dim as usize)
    }
}

impl<'a, T> IntoIterator for &'a Rows<T> {
    type Item = &'a [T];
    type IntoIter = std::slice::ChunksExact<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Rows in a buffer of the device: `[rows, dim]`, row-major, from byte 0 on. The buffer may be longer.
#[derive(Debug)]
pub struct RowBuffer {
    pub(super) buffer: Pooled,
    pub(super) rows: u32,
    pub(super) dim: u32,
    pub(super) dtype: OutputDtype,
    pub(super) bad: BadIds,
}

impl RowBuffer {
    /// The buffer; its usages are `STORAGE`, `COPY_SRC` and `COPY_DST`.
    #[must_use]
    pub fn buffer(&self) -> &wgpu::Buffer {
        &self.buffer
    }

    /// How many rows there are: as many as ids.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Columns of a row.
    #[must_use]
    pub fn dim(&self) -> u32 {
        self.dim
    }

    /// Type of the elements.
    #[must_use]
    pub fn dtype(&self) -> OutputDtype {
        self.dtype
    }

    /// Bytes of the rows, without what the buffer has behind them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.dim) * self.dtype.bytes()
    }

    /// Ids that named no row; their rows are zeros.
    #[must_use]
    pub fn bad(&self) -> BadIds {
        self.bad
    }
}

/// Where a recorded lookup writes: `[ids, dim]`, row-major, no gap between rows.
///
/// The buffer needs `STORAGE`. It must hold all rows from `offset` on; f16 rows are written by whole words, so an odd
/// number of elements takes 2 bytes more, which become 0.
#[derive(Clone, Copy, Debug)]
pub struct OutputBuffer<'a> {
    /// The buffer.
    pub buffer: &'a wgpu::Buffer,
    /// Where the first row begins, in bytes: a multiple of 4. Multiples of 16 are faster.
    pub offset: u64,
    /// Type of the elements.
    pub dtype: OutputDtype,
}

/// What became of the ids of a recorded lookup, known once its commands have run.
#[derive(Debug)]
#[must_use = "ids that name no row are known by reading it alone"]
pub struct GatherStatus {
    pub(super) gpu: Arc<Gpu>,
    pub(super) status: Arc<Pooled>,
    pub(super) table: String,
    pub(super) resolver: Resolver,
}

impl GatherStatus {
    /// Waits for the commands, which the caller must have submitted, and counts the ids that named no row.
    ///
    /// # Errors
    /// [`GatherError::BadId`] under [`IdPolicy::Error`](crate::IdPolicy::Error), [`GatherError::Device`] where the device failed.
    pub async fn read(self) -> Result<BadIds, GatherError> {
        let bad = self.gpu.read_status(&self.status).await?;
        self.resolver.refuse(&self.table, bad, |_| None)
    }

    /// As [`GatherStatus::read`], blocking.
    ///
    /// # Errors
    /// As [`GatherStatus::read`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read_blocking(self) -> Result<BadIds, GatherError> {
        pollster::block_on(self.read())
    }
}
