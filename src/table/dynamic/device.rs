//! Lookups on a device.

use std::sync::Arc;

use super::{
    DynamicTable, State,
    calls::{Missing, Use},
    store::{Device, Store},
};
use crate::{
    error::{DynamicError, GatherError},
    gpu::{FindCall, Gpu, OutputDtype, POOL_STEP, Pooled, STORED, missed_bytes},
    op::{BadIds, IdBuffer, IdPolicy, IdSource, IdType},
    scheme::Category,
    table::{
        device::{self, DeviceTable},
        rows::{GatherStatus, OutputBuffer, RowBuffer},
    },
    units::round_up,
};

/// Ids of a lookup that had no rows: how many, then which, in a buffer of the device.
pub(super) struct Missed {
    pub(super) buffer: Pooled,
}

/// Lookups whose missed ids are kept; the next one makes their rows first.
const KEPT: usize = 16;

impl Device {
    fn table<'a>(&'a self, name: &'a str) -> DeviceTable<'a> {
        DeviceTable { name, spec: &self.spec, gpu: &self.gpu, shards: &self.shards }
    }

    /// Submits a gather by slots that are on the device, or will be.
    fn gather(
        &self,
        name: &str,
        slots: &wgpu::Buffer,
        count: u32,
        output: OutputBuffer<'_>,
    ) -> Result<GatherStatus, GatherError> {
        let ids = IdBuffer { buffer: slots, offset: 0, count, id_type: IdType::U32 };
        let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let (status, _recorded) = self.table(name).encode_uncaught(&mut encoder, ids, IdPolicy::Zero, output)?;
        self.gpu.queue.submit([encoder.finish()]);
        Ok(status)
    }
}

impl State {
    /// The rows, which are on a device.
    fn device(&self) -> &Device {
        match &self.store {
            Store::Device(device) => device,
            Store::Host { .. } => unreachable!("the caller has a device"),
        }
    }
}

impl DynamicTable {
    /// Looks rows up into a pooled buffer.
    pub(super) async fn to_buffer(
        &self,
        gpu: &Arc<Gpu>,
        ids: IdSource<'_>,
        purpose: Use,
        dtype: OutputDtype,
    ) -> Result<RowBuffer, DynamicError> {
        gpu.alive()?;
        let (total, row_bytes) = (device::count(ids), u64::from(self.dim()) * dtype.bytes());
        let limit = gpu.limits.max_buffer_size / POOL_STEP * POOL_STEP;
        let bytes = total.saturating_mul(row_bytes);
        let (Ok(count), true) = (u32::try_from(total), bytes <= limit) else {
            let problem = format!("of {bytes} bytes is over the device's limit of {limit} for one buffer");
            return Err(self.refuse_buffer("output", problem));
        };
        let output = gpu
            .pooled("gather.output", Category::Output, STORED, round_up(bytes, 4).max(4))
            .await
            .map_err(GatherError::from)?;
        let mut rows = RowBuffer { buffer: output, rows: count, dim: self.dim(), dtype, bad: BadIds::default() };
        if count == 0 {
            return Ok(rows);
        }
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let slots = gpu.pooled("gather.ids", Category::Index, usage, 4 * total).await.map_err(GatherError::from)?;
        rows.bad = match ids {
            IdSource::Host(ids) => {
                let ids = super::calls::words(ids);
                let mut state = self.lock();
                let (found, bad) = state.resolve(self.name(), &ids, purpose)?;
                let output = OutputBuffer { buffer: &rows.buffer, offset: 0, dtype };
                let done = gpu.catch_now("a gather", 0, || {
                    gpu.queue.write_buffer(&slots, 0, bytemuck::cast_slice(&found));
                    state.device().gather(self.name(), &slots, count, output).map(drop)
                });
                done??;
                bad
            }
            IdSource::Device(ids) => self.by_device_ids(gpu, ids, purpose, &slots, &rows).await?,
        };
        Ok(rows)
    }

    fn refuse_buffer(&self, role: &'static str, problem: String) -> DynamicError {
        GatherError::Buffer { table: self.name().to_owned(), role, problem }.into()
    }

    async fn by_device_ids(
        &self,
        gpu: &Arc<Gpu>,
        ids: IdBuffer<'_>,
        purpose: Use,
        slots: &wgpu::Buffer,
        rows: &RowBuffer,
    ) -> Result<BadIds, DynamicError> {
        let limit = gpu.limits.max_storage_buffer_binding_size.min(gpu.limits.max_buffer_size) / POOL_STEP * POOL_STEP;
        if missed_bytes(ids.count) > limit - POOL_STEP {
            let problem = format!("has {} ids, more than the device binds at a time", ids.count);
            return Err(self.refuse_buffer("id", problem));
        }
        let keep = purpose == Use::Make;
        if keep && self.lock().missed.len() >= KEPT {
            self.settle().await?;
        }
        let bytes = missed_bytes(if keep { ids.count } else { 1 });
        let missed = gpu.pooled("dynamic.missed", Category::Index, STORED, bytes).await.map_err(GatherError::from)?;
        let status = {
            let mut state = self.lock();
            let output = OutputBuffer { buffer: &rows.buffer, offset: 0, dtype: rows.dtype };
            let device = state.device();
            device.table(self.name()).check_id_buffer(ids)?;
            let done = gpu.catch_now("a gather", 0, || {
                let map = device.map(&state.slots.map);
                device.kernels.find(gpu, &FindCall { ids, map, slots, missed: &missed, keep });
                let status = device.gather(self.name(), slots, ids.count, output)?;
                if keep {
                    device.kernels.fill(gpu, ids, slots, &rows.buffer, rows.dtype);
                }
                Ok::<_, GatherError>(status)
            });
            let status = done??;
            if keep {
                state.missed.push(Missed { buffer: missed });
                return Ok(BadIds::default());
            }
            status
        };
        let bad = gpu.read_status(&status.status).await?;
        if purpose == Use::Find(Missing::Error)
            && let Some(position) = bad.first
        {
            let mut id = None;
            if ids.buffer.usage().contains(wgpu::BufferUsages::COPY_SRC) {
                let bytes = u64::from(ids.id_type.words()) * 4;
                let offset = ids.offset + position * bytes;
                id = Some(gpu.read_small(ids.buffer, offset, bytes, |raw| IdType::U64.read(raw)).await?);
            }
            return Err(DynamicError::Missing { table: self.name().to_owned(), position, id, count: bad.count });
        }
        Ok(bad)
    }
}
