//! Lookups on a device: what is checked before, and how results leave it.

use std::sync::Arc;

use super::{
    gather::Element,
    rows::{GatherStatus, OutputBuffer, RowBuffer},
};
use crate::{
    error::GatherError,
    gpu::{
        GatherCall, Gpu, GpuShard, IdBinding, Output, OutputDtype, POOL_STEP, Pooled, Recorded, STATUS_BYTES,
        read_status,
    },
    op::{BadIds, IdBuffer, IdPolicy, IdSource, IdType, Ids, Resolver},
    scheme::{Category, TableSpec},
    units::round_up,
};

/// A table's device side.
pub(super) struct DeviceTable<'a> {
    pub(super) name: &'a str,
    pub(super) spec: &'a TableSpec,
    pub(super) gpu: &'a Arc<Gpu>,
    pub(super) shards: &'a [GpuShard],
}

/// Bytes of rows that come back to the host at a time.
pub(super) const CHUNK: u64 = 32 << 20;

/// Number of ids.
pub(super) fn count(ids: IdSource<'_>) -> u64 {
    match ids {
        IdSource::Host(ids) => ids.len() as u64,
        IdSource::Device(ids) => u64::from(ids.count),
    }
}

impl DeviceTable<'_> {
    fn resolver(&self, policy: IdPolicy) -> Resolver {
        Resolver::new(self.spec, policy)
    }

    pub(super) fn row_bytes(&self, dtype: OutputDtype) -> u64 {
        u64::from(self.spec.shape().dim()) * dtype.bytes()
    }

    /// Counts bad ids that lie on the host, and refuses them where the policy says so, before anything is computed.
    fn check_host_ids(&self, ids: Ids<'_>, policy: IdPolicy) -> Result<BadIds, GatherError> {
        let resolver = self.resolver(policy);
        let bad = resolver.check(ids);
        resolver.refuse(self.name, bad, |position| usize::try_from(position).ok().and_then(|at| ids.get(at)))
    }

    /// Refuses a caller's buffer that cannot serve.
    fn check_buffer(
        &self,
        role: &'static str,
        buffer: &wgpu::Buffer,
        offset: u64,
        bytes: u64,
    ) -> Result<(), GatherError> {
        let refuse = |problem| Err(GatherError::Buffer { table: self.name.to_owned(), role, problem });
        if !offset.is_multiple_of(4) {
            return refuse(format!("offset is {offset}, which is no multiple of 4"));
        }
        if !buffer.usage().contains(wgpu::BufferUsages::STORAGE) {
            return refuse("lacks the usage STORAGE".to_owned());
        }
        let end = offset.checked_add(bytes);
        if end.is_none_or(|end| end > buffer.size()) {
            return refuse(format!("has {} bytes, {bytes} are needed from {offset} on", buffer.size()));
        }
        Ok(())
    }

    pub(super) fn check_id_buffer(&self, ids: IdBuffer<'_>) -> Result<(), GatherError> {
        self.check_buffer("id", ids.buffer, ids.offset, u64::from(ids.count) * u64::from(ids.id_type.words()) * 4)
    }

    /// Records one lookup, with errors of the device caught.
    pub(super) fn encode(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        ids: IdBuffer<'_>,
        policy: IdPolicy,
        output: OutputBuffer<'_>,
    ) -> Result<GatherStatus, GatherError> {
        let record = || self.encode_uncaught(encoder, ids, policy, output);
        let (status, recorded) = self.gpu.catch_now("a gather", 0, record)??;
        if let Some(recorded) = recorded {
            self.gpu.hold(encoder, recorded, status.status.clone());
        }
        Ok(status)
    }

    /// The same, where the caller catches those, and keeps what is returned until it has submitted the commands.
    pub(super) fn encode_uncaught(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        ids: IdBuffer<'_>,
        policy: IdPolicy,
        output: OutputBuffer<'_>,
    ) -> Result<(GatherStatus, Option<Recorded>), GatherError> {
        self.gpu.alive()?;
        self.check_id_buffer(ids)?;
        let bytes = round_up(u64::from(ids.count) * self.row_bytes(output.dtype), 4);
        self.check_buffer("output", output.buffer, output.offset, bytes)?;
        if ids.buffer == output.buffer {
            let problem = "is that of the ids too, and no kernel may read and write one buffer".to_owned();
            return Err(GatherError::Buffer { table: self.name.to_owned(), role: "output", problem });
        }
        let mut status = self.gpu.status([0, u32::MAX])?;
        let mut recorded = None;
        if ids.count > 0 && self.shards.is_empty() {
            // No rows: every id is bad, and no kernel is needed to say so.
            if !output.buffer.usage().contains(wgpu::BufferUsages::COPY_DST) {
                let problem = "lacks the usage COPY_DST, by which it is cleared for a table of 0 rows".to_owned();
                return Err(GatherError::Buffer { table: self.name.to_owned(), role: "output", problem });
            }
            encoder.clear_buffer(output.buffer, output.offset, Some(bytes));
            status = self.gpu.status([ids.count, 0])?;
        } else if ids.count > 0 {
            let call = GatherCall {
                dim: self.spec.shape().dim(),
                rows: self.spec.shape().rows(),
                shards: self.shards,
                ids: IdBinding {
                    buffer: ids.buffer,
                    offset: ids.offset,
                    id_type: ids.id_type,
                    wrap: policy == IdPolicy::Wrap && ids.id_type == IdType::I64,
                },
                batch: ids.count,
                own: None,
                output: Output { buffer: output.buffer, offset: output.offset, dtype: output.dtype },
                status: &status,
            };
            recorded = Some(self.gpu.record_gather(encoder, &call)?);
        }
        let (gpu, status, table) = (self.gpu.clone(), Arc::new(status), self.name.to_owned());
        Ok((GatherStatus { gpu, status, table, resolver: self.resolver(policy) }, recorded))
    }

    /// The most bytes that a pooled buffer can have.
    pub(super) fn largest_buffer(&self) -> u64 {
        self.gpu.limits.max_buffer_size / POOL_STEP * POOL_STEP
    }

    /// A buffer for rows.
    pub(super) async fn output(&self, bytes: u64) -> Result<Pooled, GatherError> {
        let limit = self.largest_buffer();
        if bytes > limit {
            let problem = format!("of {bytes} bytes is over the device's limit of {limit} for one buffer");
            return Err(GatherError::Buffer { table: self.name.to_owned(), role: "output", problem });
        }
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        Ok(self.gpu.pooled("gather.output", Category::Output, usage, bytes.max(4)).await?)
    }

    /// The ids as a buffer of the device.
    async fn place_ids<'b>(&self, ids: IdSource<'b>) -> Result<PlacedIds<'b>, GatherError> {
        let ids = match ids {
            IdSource::Device(ids) => return Ok(PlacedIds::Callers(ids)),
            IdSource::Host(ids) => ids,
        };
        let (bytes, id_type) = ids.raw();
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let size = bytes.len().max(4) as u64;
        let buffer = self.gpu.pooled("gather.ids", Category::Index, usage, size).await?;
        self.gpu.catch("an upload of ids", size, || self.gpu.queue.write_buffer(&buffer, 0, bytes)).await?;
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        Ok(PlacedIds::Uploaded { buffer, count, id_type })
    }

    /// Records one lookup into an encoder of its own, with errors of the device caught.
    async fn record(
        &self,
        ids: &PlacedIds<'_>,
        policy: IdPolicy,
        output: OutputBuffer<'_>,
    ) -> Result<(wgpu::CommandEncoder, (GatherStatus, Option<Recorded>)), GatherError> {
        self.gpu
            .catch("a gather", 0, || {
                let descriptor = wgpu::CommandEncoderDescriptor { label: Some("gather") };
                let mut encoder = self.gpu.device.create_command_encoder(&descriptor);
                let recorded = self.encode_uncaught(&mut encoder, ids.binding(), policy, output)?;
                Ok((encoder, recorded))
            })
            .await?
    }

    /// Looks rows up into a pooled buffer.
    pub(super) async fn to_buffer(
        &self,
        ids: IdSource<'_>,
        policy: IdPolicy,
        dtype: OutputDtype,
    ) -> Result<RowBuffer, GatherError> {
        let total = count(ids);
        let Ok(rows) = u32::try_from(total) else {
            let problem = format!("of {total} rows is over the limit for one buffer");
            return Err(GatherError::Buffer { table: self.name.to_owned(), role: "output", problem });
        };
        let known = match ids {
            IdSource::Host(ids) => Some(self.check_host_ids(ids, policy)?),
            IdSource::Device(_) => None,
        };
        let buffer = self.output(round_up(u64::from(rows) * self.row_bytes(dtype), 4)).await?;
        let bad = match (ids, known) {
            (IdSource::Host(ids), Some(bad)) => {
                // Ids may take more bytes than their rows do. An even number of f16 rows ends on a word.
                let most = at_least_one(self.largest_buffer() / id_bytes(ids.into())) & !1;
                for first in (0..ids.len()).step_by(most) {
                    let ids = ids.slice(first..ids.len().min(first + most));
                    let offset = first as u64 * self.row_bytes(dtype);
                    drop(self.submit(ids.into(), policy, OutputBuffer { buffer: &buffer, offset, dtype }).await?);
                }
                bad
            }
            _ => {
                let status = self.submit(ids, policy, OutputBuffer { buffer: &buffer, offset: 0, dtype }).await?;
                self.judge(ids, policy, self.gpu.read_status(&status.status).await?).await?
            }
        };
        Ok(RowBuffer { buffer, rows, dim: self.spec.shape().dim(), dtype, bad })
    }

    pub(super) async fn submit(
        &self,
        ids: IdSource<'_>,
        policy: IdPolicy,
        output: OutputBuffer<'_>,
    ) -> Result<GatherStatus, GatherError> {
        let placed = self.place_ids(ids).await?;
        let (encoder, (status, _recorded)) = self.record(&placed, policy, output).await?;
        self.submit_commands(encoder).await?;
        Ok(status)
    }

    pub(super) async fn submit_commands(&self, encoder: wgpu::CommandEncoder) -> Result<(), GatherError> {
        self.gpu.catch("a submission", 0, || self.gpu.queue.submit([encoder.finish()])).await?;
        Ok(())
    }

    /// Looks rows up to host memory, by chunks. `out` has the right length.
    pub(super) async fn to_host<T: Element>(
        &self,
        ids: IdSource<'_>,
        policy: IdPolicy,
        out: &mut [T],
    ) -> Result<BadIds, GatherError> {
        match ids {
            IdSource::Host(host) => {
                let bad = self.check_host_ids(host, policy)?;
                self.chunks(ids, policy, out).await?;
                Ok(bad)
            }
            // Whether all ids are good is known only at the end: until then `out` stays as it was.
            IdSource::Device(_) if policy == IdPolicy::Error => {
                let mut rows = vec![T::zeroed(); out.len()];
                let bad = self.chunks(ids, policy, &mut rows).await?;
                self.judge(ids, policy, bad).await?;
                out.copy_from_slice(&rows);
                Ok(bad)
            }
            IdSource::Device(_) => self.chunks(ids, policy, out).await,
        }
    }

    async fn chunks<T: Element>(
        &self,
        ids: IdSource<'_>,
        policy: IdPolicy,
        out: &mut [T],
    ) -> Result<BadIds, GatherError> {
        let dim = self.spec.shape().dim() as usize;
        // The staging buffer has the status behind the rows.
        let bytes = CHUNK.min(self.largest_buffer() - POOL_STEP);
        let chunk = at_least_one(bytes / self.row_bytes(T::DTYPE).max(id_bytes(ids)));
        let mut sum = BadIds::default();
        for (number, out) in out.chunks_mut(chunk.saturating_mul(dim)).enumerate() {
            let (first, length) = (number * chunk, out.len() / dim);
            let bad = self.chunk(part(ids, first, length), policy, out).await?;
            sum.merge(first as u64, bad);
        }
        Ok(sum)
    }

    async fn chunk<T: Element>(
        &self,
        ids: IdSource<'_>,
        policy: IdPolicy,
        out: &mut [T],
    ) -> Result<BadIds, GatherError> {
        let bytes = round_up(size_of_val(out) as u64, 4);
        let buffer = self.output(bytes).await?;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = self.gpu.pooled("gather.staging", Category::Staging, usage, bytes + STATUS_BYTES).await?;
        let placed = self.place_ids(ids).await?;
        let output = OutputBuffer { buffer: &buffer, offset: 0, dtype: T::DTYPE };
        let (mut encoder, (status, _recorded)) = self.record(&placed, policy, output).await?;
        encoder.copy_buffer_to_buffer(&buffer, 0, &staging, 0, bytes);
        encoder.copy_buffer_to_buffer(&status.status, 0, &staging, bytes, STATUS_BYTES);
        let read = |back: &[u8]| {
            let (rows, status) = back.split_at(back.len() - size_of::<[u32; 2]>());
            let out: &mut [u8] = bytemuck::cast_slice_mut(out);
            let length = out.len();
            out.copy_from_slice(&rows[..length]);
            read_status(status)
        };
        Ok(self.gpu.submit_and_read(encoder, &staging, bytes + STATUS_BYTES, read).await?)
    }

    /// The error for bad ids of the device, with the value of the first where it can be had.
    async fn judge(&self, ids: IdSource<'_>, policy: IdPolicy, bad: BadIds) -> Result<BadIds, GatherError> {
        let mut id = None;
        if let (IdPolicy::Error, IdSource::Device(ids), Some(first)) = (policy, ids, bad.first)
            && ids.buffer.usage().contains(wgpu::BufferUsages::COPY_SRC)
        {
            let bytes = u64::from(ids.id_type.words()) * 4;
            id = Some(
                self.gpu.read_small(ids.buffer, ids.offset + first * bytes, bytes, |raw| ids.id_type.read(raw)).await?,
            );
        }
        self.resolver(policy).refuse(self.name, bad, |_| id)
    }
}

/// Bytes of an id.
fn id_bytes(ids: IdSource<'_>) -> u64 {
    let id_type = match ids {
        IdSource::Host(ids) => ids.raw().1,
        IdSource::Device(ids) => ids.id_type,
    };
    u64::from(id_type.words()) * 4
}

pub(super) fn at_least_one(count: u64) -> usize {
    usize::try_from(count.max(1)).unwrap_or(usize::MAX)
}

/// Ids where kernels can read them.
enum PlacedIds<'a> {
    Uploaded { buffer: Pooled, count: u32, id_type: IdType },
    Callers(IdBuffer<'a>),
}

impl PlacedIds<'_> {
    fn binding(&self) -> IdBuffer<'_> {
        match self {
            Self::Uploaded { buffer, count, id_type } => {
                IdBuffer { buffer, offset: 0, count: *count, id_type: *id_type }
            }
            Self::Callers(ids) => *ids,
        }
    }
}

/// `length` ids from `first` on.
fn part(ids: IdSource<'_>, first: usize, length: usize) -> IdSource<'_> {
    match ids {
        IdSource::Host(ids) => IdSource::Host(ids.slice(first..first + length)),
        IdSource::Device(ids) => IdSource::Device(IdBuffer {
            offset: ids.offset + first as u64 * u64::from(ids.id_type.words()) * 4,
            count: u32::try_from(length).unwrap_or(u32::MAX),
            ..ids
        }),
    }
}
