//! Lookups: the rows of a part of the batch are decoded once each, and then go to all of their ids.

use std::sync::Arc;

use super::{Shards, decoded::Decoded, plan::Plan};
use crate::{
    error::GatherError,
    gpu::{Gpu, OutputDtype, POOL_STEP, Pooled},
    op::{BadIds, IdBuffer, IdPolicy, IdSource, IdType, Ids, Resolver},
    scheme::{Category, NO_ROW},
    table::{
        gather::Element,
        rows::{OutputBuffer, RowBuffer},
    },
    units::round_up,
};

/// Ids in host memory that came from wherever the caller had them.
pub(in crate::table) enum HostIds<'a> {
    Given(Ids<'a>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
}

impl HostIds<'_> {
    pub(in crate::table) fn ids(&self) -> Ids<'_> {
        match self {
            Self::Given(ids) => *ids,
            Self::U32(ids) => ids.into(),
            Self::U64(ids) => ids.into(),
            Self::I64(ids) => ids.into(),
        }
    }
}

impl Shards {
    /// The ids where the shards that they need can be told from them.
    pub(in crate::table) async fn host_ids<'a>(
        &self,
        table: &str,
        ids: IdSource<'a>,
    ) -> Result<HostIds<'a>, GatherError> {
        let (ids, gpu) = match (ids, self.gpu()) {
            (IdSource::Host(ids), _) => return Ok(HostIds::Given(ids)),
            (IdSource::Device(ids), Some(gpu)) => (ids, gpu),
            (IdSource::Device(_), None) => return Err(GatherError::NoDevice { table: table.to_owned() }),
        };
        if ids.count == 0 {
            return Ok(HostIds::U32(Vec::new()));
        }
        let bytes = u64::from(ids.count) * u64::from(ids.id_type.words()) * 4;
        let refuse = |problem: String| GatherError::Buffer { table: table.to_owned(), role: "id", problem };
        if !ids.buffer.usage().contains(wgpu::BufferUsages::COPY_SRC) {
            let problem = "lacks the usage COPY_SRC, by which its ids are read to tell the shards that they need";
            return Err(refuse(problem.to_owned()));
        }
        if !ids.offset.is_multiple_of(4) {
            return Err(refuse(format!("offset is {}, which is no multiple of 4", ids.offset)));
        }
        if ids.offset.checked_add(bytes).is_none_or(|end| end > ids.buffer.size()) {
            let (has, from) = (ids.buffer.size(), ids.offset);
            return Err(refuse(format!("has {has} bytes, {bytes} are needed from {from} on")));
        }
        read_ids(gpu, ids, bytes).await
    }

    /// Looks rows up to host memory. `out` has the right length, and bad ids have been refused where they are to be.
    pub(in crate::table) async fn to_host<T: Element>(
        &self,
        ids: Ids<'_>,
        resolver: Resolver,
        out: &mut [T],
    ) -> Result<BadIds, GatherError> {
        let dim = self.dim() as usize;
        let part = self.part_ids();
        if let Some(tiers) = &self.tiers
            && tiers.gathers(T::DTYPE)
        {
            return tiers.to_host(ids, resolver, part, out).await;
        }
        let mut sum = BadIds::default();
        for (number, out) in out.chunks_mut(part.saturating_mul(dim)).enumerate() {
            let first = number * part;
            let (plan, bad) = self.resolve(ids.slice(first..first + out.len() / dim), resolver);
            sum.merge(first as u64, bad);
            match self.gpu() {
                None => {
                    let mut rows = vec![0f32; plan.rows.len() * dim];
                    self.decode_on_host(&plan, &mut rows).await?;
                    spread(&plan.places, &rows, dim, out);
                }
                Some(gpu) => {
                    let bytes = (plan.rows.len() * dim * size_of::<f32>()).max(4) as u64;
                    let rows = scratch(gpu, bytes).await?;
                    self.decode_on_gpu(gpu, &plan, &rows).await?;
                    let back = |bytes: &[u8]| match bytemuck::try_cast_slice(bytes) {
                        Ok(rows) => spread(&plan.places, rows, dim, out),
                        // A mapping that begins at an odd address.
                        Err(_) => spread(&plan.places, &bytemuck::pod_collect_to_vec::<u8, f32>(bytes), dim, out),
                    };
                    gpu.read_small(&rows, 0, bytes, back).await?;
                }
            }
        }
        Ok(sum)
    }

    /// Looks rows up into a pooled buffer.
    pub(in crate::table) async fn to_buffer(
        &self,
        table: &str,
        ids: Ids<'_>,
        resolver: Resolver,
        dtype: OutputDtype,
    ) -> Result<RowBuffer, GatherError> {
        let Some(gpu) = self.gpu() else { return Err(GatherError::NoDevice { table: table.to_owned() }) };
        let refuse = |problem: String| GatherError::Buffer { table: table.to_owned(), role: "output", problem };
        let Ok(count) = u32::try_from(ids.len()) else {
            return Err(refuse(format!("of {} rows is over the limit for one buffer", ids.len())));
        };
        let row_bytes = u64::from(self.dim()) * dtype.bytes();
        let bytes = round_up(u64::from(count) * row_bytes, 4);
        let limit = gpu.limits.max_buffer_size / POOL_STEP * POOL_STEP;
        if bytes > limit {
            return Err(refuse(format!("of {bytes} bytes is over the device's limit of {limit} for one buffer")));
        }
        let buffer = scratch(gpu, bytes.max(4)).await?;
        let mut sum = BadIds::default();
        let part = self.part_ids();
        if let Some(tiers) = &self.tiers
            && tiers.gathers(dtype)
        {
            let output = OutputBuffer { buffer: &buffer, offset: 0, dtype };
            let bad = tiers.to_buffer(ids, resolver, part, output).await?;
            return Ok(RowBuffer { buffer, rows: count, dim: self.dim(), dtype, bad });
        }
        for first in (0..ids.len()).step_by(part) {
            let (plan, bad) = self.resolve(ids.slice(first..ids.len().min(first + part)), resolver);
            sum.merge(first as u64, bad);
            let decoded = Decoded::on_gpu(self, gpu, table, &plan).await?;
            let output = OutputBuffer { buffer: &buffer, offset: first as u64 * row_bytes, dtype };
            let mut places = plan.places;
            decoded.rows(&mut places);
            drop(decoded.device(table, gpu).submit((&places).into(), IdPolicy::Zero, output).await?);
        }
        Ok(RowBuffer { buffer, rows: count, dim: self.dim(), dtype, bad: sum })
    }

    fn resolve(&self, ids: Ids<'_>, resolver: Resolver) -> (Plan, BadIds) {
        let mut rows = vec![0; ids.len()];
        let bad = resolver.resolve(ids, &mut rows);
        (self.plan(&rows), bad)
    }
}

/// A pooled buffer for rows.
pub(super) async fn scratch(gpu: &Gpu, bytes: u64) -> Result<Pooled, GatherError> {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    Ok(gpu.pooled("gather.output", Category::Output, usage, bytes).await?)
}

async fn read_ids(gpu: &Arc<Gpu>, ids: IdBuffer<'_>, bytes: u64) -> Result<HostIds<'static>, GatherError> {
    let read = |raw: &[u8]| match ids.id_type {
        IdType::U32 => HostIds::U32(bytemuck::pod_collect_to_vec(raw)),
        IdType::U64 => HostIds::U64(bytemuck::pod_collect_to_vec(raw)),
        IdType::I64 => HostIds::I64(bytemuck::pod_collect_to_vec(raw)),
    };
    gpu.read_small(ids.buffer, ids.offset, bytes, read).await
}

/// Gives each place its row of `rows: [n, dim]`, zeros where it has none.
fn spread<T: Element>(places: &[u32], rows: &[f32], dim: usize, out: &mut [T]) {
    for (place, out) in places.iter().zip(out.chunks_exact_mut(dim)) {
        if *place == NO_ROW {
            out.fill(T::zeroed());
        } else {
            T::round(&rows[*place as usize * dim..][..dim], out);
        }
    }
}
