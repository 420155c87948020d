//! Shards on the device, and the way there.

use std::sync::Arc;

use super::{Gpu, buffer::Tracked, params::ShardParams};
use crate::{
    error::{DeviceError, OverBudget, SourceError},
    memory::{Need, Placement, Shard},
    scheme::{Band, TableSpec},
};

/// Bytes that go to the device at a time. Two of these are the most an upload holds beside the table: the bytes just read,
/// and wgpu's copy of them, which is gone before the next are read.
pub(crate) const CHUNK: u64 = 4 << 20;

/// A shard on the device.
#[derive(Debug)]
pub(crate) struct GpuShard {
    pub(crate) buffer: Tracked,
    pub(crate) rows: u32,
    pub(crate) params: ShardParams,
    /// How its rows are stored: that of the table, or of a band of it.
    pub(crate) spec: Arc<TableSpec>,
}

/// Why shards could not be made or filled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl Gpu {
    /// Makes the buffers of all shards, or none.
    pub(crate) async fn make_shards(
        &self,
        label: &str,
        placement: &Placement,
        bands: &[Band],
    ) -> Result<Vec<GpuShard>, UploadError> {
        let needs =
            placement.shards().iter().map(|shard| Need { label: label.to_owned(), bytes: shard.by_category.clone() });
        let reserved = self.reserve(needs.collect())?;
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let mut made = Vec::new();
        for (shard, reservation) in placement.shards().iter().zip(reserved) {
            let buffer = self.catch(label, shard.bytes.0, || self.buffer(reservation, label, usage)).await?;
            let spec = bands[shard.band].spec.clone();
            made.push(GpuShard { buffer, rows: shard.rows, params: params(shard), spec });
        }
        Ok(made)
    }

    /// Writes one part of one shard, `bytes` of it from `offset` of the buffer on, by chunks that `read` fills in order.
    /// What lies between the end and `until`, where the next part begins, is filled with zeros.
    pub(crate) async fn fill<R: Future<Output = Result<Vec<u8>, SourceError>>>(
        &self,
        buffer: &wgpu::Buffer,
        offset: u64,
        bytes: u64,
        until: u64,
        mut read: impl FnMut(u64, u64, Vec<u8>) -> R,
    ) -> Result<(), UploadError> {
        let mut chunk = Vec::new();
        let mut done = 0;
        while offset + done < until {
            let length = CHUNK.min(bytes.saturating_sub(done));
            let padded = if done + length == bytes { until - offset - done } else { length };
            chunk = read(done, length, chunk).await?;
            chunk.resize(usize::try_from(padded).unwrap_or(usize::MAX), 0);
            self.upload(buffer, offset + done, &chunk).await?;
            done += padded;
        }
        Ok(())
    }

    /// Writes `bytes`, a multiple of 4 of them, to `offset` of the buffer, and waits until they are there.
    pub(crate) async fn upload(&self, buffer: &wgpu::Buffer, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let submission = self
            .catch("an upload", bytes.len() as u64, || {
                self.queue.write_buffer(buffer, offset, bytes);
                self.queue.submit([])
            })
            .await?;
        self.settle_upload(submission).await
    }
}

/// What the shader knows of a shard.
fn params(shard: &Shard) -> ShardParams {
    // Buffers have under 2^32 bytes, as wgpu binds no more.
    let word = |part: usize| shard.offsets.get(part).map_or(0, |offset| u32::try_from(offset / 4).unwrap_or(u32::MAX));
    ShardParams { first_row: shard.first_row, part1: word(1), part2: word(2), part3: word(3) }
}
