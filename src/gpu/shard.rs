//! Shards on the device, and the way there.

use std::sync::Arc;

use super::{Gpu, Pooled, Tracked, buffer::Owned, params::ShardParams};
use crate::{
    error::{DeviceError, OverBudget, SourceError},
    memory::{Movable, Need, Placement, Reservation, Shard, Space},
    scheme::{Band, TableSpec},
    source::TableSource,
};

/// Bytes that go to the device at a time. Two of these are the most an upload holds beside the table: the bytes just read,
/// and wgpu's copy of them, which is gone before the next are read.
pub(crate) const CHUNK: u64 = 4 << 20;

/// A shard on the device. Clones share its buffer.
#[derive(Clone, Debug)]
pub(crate) struct GpuShard {
    pub(crate) buffer: ShardBuffer,
    pub(crate) rows: u32,
    pub(crate) params: ShardParams,
    /// How its rows are stored: that of the table, or of a band of it.
    pub(crate) spec: Arc<TableSpec>,
}

/// Where the bytes of a shard are.
#[derive(Clone, Debug)]
pub(crate) enum ShardBuffer {
    /// In a buffer of its own.
    Own(Arc<Tracked>),
    /// In a block, beside shards of other tables.
    Shared(Arc<Movable<Owned>>),
    /// In as many bytes of scratch, as long as a call needs it.
    Scratch(Arc<Pooled>, wgpu::BufferSize),
}

/// Where a shard is, and stays while this lives.
#[derive(Clone, Debug)]
pub(crate) enum Spot {
    Own(Arc<Tracked>),
    Shared(Arc<Space<Owned>>),
    Scratch(Arc<Pooled>, wgpu::BufferSize),
}

impl ShardBuffer {
    /// Where it is now.
    pub(crate) fn spot(&self) -> Spot {
        match self {
            Self::Own(buffer) => Spot::Own(buffer.clone()),
            Self::Shared(movable) => Spot::Shared(movable.now()),
            Self::Scratch(buffer, bytes) => Spot::Scratch(buffer.clone(), *bytes),
        }
    }
}

impl Spot {
    /// The buffer it is in.
    pub(crate) fn buffer(&self) -> &wgpu::Buffer {
        match self {
            Self::Own(buffer) => buffer,
            Self::Shared(space) => space.value(),
            Self::Scratch(buffer, _) => buffer,
        }
    }

    /// Where its byte number `offset` is there.
    pub(crate) fn at(&self, offset: u64) -> u64 {
        match self {
            Self::Shared(space) => space.offset() + offset,
            _ => offset,
        }
    }

    /// All bytes of the shard.
    pub(super) fn binding(&self) -> wgpu::BindingResource<'_> {
        let size = match self {
            Self::Own(_) => None,
            // What serves others too may be larger than a binding can be.
            Self::Shared(space) => wgpu::BufferSize::new(space.bytes()),
            Self::Scratch(_, bytes) => Some(*bytes),
        };
        wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer: self.buffer(), offset: self.at(0), size })
    }
}

impl GpuShard {
    /// A shard of rows that are in scratch.
    pub(crate) fn scratch(shard: &Shard, band: &Band, buffer: Pooled) -> Self {
        let bytes = wgpu::BufferSize::new(shard.bytes.0).unwrap_or(wgpu::BufferSize::MIN);
        let buffer = ShardBuffer::Scratch(Arc::new(buffer), bytes);
        Self { buffer, rows: shard.rows, params: params(shard), spec: band.spec.clone() }
    }

    /// The same of a table in which its first row is that one.
    pub(crate) fn at_row(&self, first_row: u32) -> Self {
        Self { params: ShardParams { first_row, ..self.params }, ..self.clone() }
    }
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
        let needs = placement.shards().iter().map(|shard| need(label, shard));
        let reserved = self.reserve(needs.collect())?;
        let mut made = Vec::new();
        for (shard, reservation) in placement.shards().iter().zip(reserved) {
            made.push(self.make_shard(label, shard, &bands[shard.band], reservation).await?);
        }
        Ok(made)
    }

    /// Finds room for all shards, or none: beside those of other tables where they are small. See [`Gpu::settle_shards`].
    pub(crate) async fn place_shards(
        &self,
        label: &str,
        placement: &Placement,
        bands: &[Band],
    ) -> Result<Vec<GpuShard>, UploadError> {
        if !placement.shards().iter().all(|shard| self.blocks.takes(shard.bytes.0)) {
            return self.make_shards(label, placement, bands).await;
        }
        let mut placed = Vec::new();
        for shard in placement.shards() {
            match self.space(&need(label, shard)).await? {
                Some(space) => placed.push(ShardBuffer::Shared(Arc::new(Movable::new(space)))),
                // No room for a block: what is there is just enough, or too little.
                None => {
                    drop(placed);
                    return self.make_shards(label, placement, bands).await;
                }
            }
        }
        let placed = placement.shards().iter().zip(placed);
        let placed = placed.map(|(shard, buffer)| GpuShard {
            buffer,
            rows: shard.rows,
            params: params(shard),
            spec: bands[shard.band].spec.clone(),
        });
        Ok(placed.collect())
    }

    /// Has shards of [`Gpu::place_shards`] be moved from then on where that gives memory back: they are written no more.
    pub(crate) fn settle_shards(&self, shards: &[GpuShard]) {
        for shard in shards {
            if let ShardBuffer::Shared(movable) = &shard.buffer {
                self.blocks.settle(movable);
            }
        }
    }

    /// Makes the buffer of one shard, whose bytes are reserved.
    pub(crate) async fn make_shard(
        &self,
        label: &str,
        shard: &Shard,
        band: &Band,
        reserved: Reservation,
    ) -> Result<GpuShard, DeviceError> {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let buffer = self.catch(label, shard.bytes.0, || self.buffer(reserved, label, usage)).await?;
        let buffer = ShardBuffer::Own(Arc::new(buffer));
        Ok(GpuShard { buffer, rows: shard.rows, params: params(shard), spec: band.spec.clone() })
    }

    /// Fills the buffer of one shard, all bytes of it, with its rows and what all rows share.
    pub(crate) async fn fill_shard(
        &self,
        source: &impl TableSource,
        shard: &Shard,
        band: &Band,
        made: &GpuShard,
    ) -> Result<(), UploadError> {
        for (number, part) in band.spec.parts().iter().enumerate() {
            let until = shard.offsets.get(number + 1).copied().unwrap_or(shard.bytes.0);
            let range = shard.part_range(part);
            let read = |done, length: u64, mut chunk: Vec<u8>| async move {
                chunk.resize(usize::try_from(length).unwrap_or(usize::MAX), 0);
                source.read_part(band.parts.start + number, range.start + done, &mut chunk).await?;
                Ok(chunk)
            };
            self.fill(&made.buffer, shard.offsets[number], range.end - range.start, until, read).await?;
        }
        Ok(())
    }

    /// Writes one part of one shard, `bytes` of it from `offset` of the buffer on, by chunks that `read` fills in order.
    /// What lies between the end and `until`, where the next part begins, is filled with zeros.
    async fn fill<R: Future<Output = Result<Vec<u8>, SourceError>>>(
        &self,
        buffer: &ShardBuffer,
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

    /// Writes `bytes`, a multiple of 4 of them, to `offset` of a shard, and waits until they are there.
    pub(crate) async fn upload(&self, to: &ShardBuffer, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let spot = to.spot();
        let submission = self
            .catch("an upload", bytes.len() as u64, || {
                self.queue.write_buffer(spot.buffer(), spot.at(offset), bytes);
                self.queue.submit([])
            })
            .await?;
        self.settle_upload(submission).await
    }
}

/// What the ledger gets for a shard.
pub(crate) fn need(label: &str, shard: &Shard) -> Need {
    Need { label: label.to_owned(), bytes: shard.by_category.clone() }
}

/// What the shader knows of a shard.
fn params(shard: &Shard) -> ShardParams {
    // Buffers have under 2^32 bytes, as wgpu binds no more.
    let word = |part: usize| shard.offsets.get(part).map_or(0, |offset| u32::try_from(offset / 4).unwrap_or(u32::MAX));
    ShardParams { first_row: shard.first_row, part1: word(1), part2: word(2), part3: word(3) }
}
