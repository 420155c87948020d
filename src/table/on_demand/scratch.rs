//! Rows decoded to scratch, from wherever they are.

use std::ops::Range;

use rayon::prelude::*;

use super::{Shards, plan::Plan};
use crate::{
    error::{GatherError, ShardError},
    gpu::{GatherCall, Gpu, IdBinding, Output, OutputDtype},
    host::HostTable,
    op::IdType,
    scheme::Category,
    store::Use,
    table::rows::OutputBuffer,
};

/// About the bytes of rows that are decoded at a time.
const SCRATCH: u64 = 32 << 20;
/// Rows that one thread decodes at a time on the host.
const TASK_ROWS: usize = 256;

impl Shards {
    pub(super) fn dim(&self) -> u32 {
        self.loader.bands[0].spec.shape().dim()
    }

    /// The most ids of a part of a batch: an even number, so that f16 rows of a part end on a word.
    pub(super) fn part_ids(&self) -> usize {
        let rows = SCRATCH / (u64::from(self.dim()) * 4);
        usize::try_from(rows.max(2) & !1).unwrap_or(usize::MAX)
    }

    /// The plan for ids by the stored rows that they name.
    pub(super) fn plan(&self, rows: &[u32]) -> Plan {
        if self.tiers.is_some() {
            return Plan::of_rows(rows);
        }
        let resident = |shards: &[usize]| self.cache.resident(shards.iter().copied());
        Plan::new(rows, self.placed(), resident)
    }

    /// The shards that have those stored rows.
    pub(in crate::table) fn needed_by(&self, rows: &[u32]) -> Vec<usize> {
        self.plan(rows).needed.iter().map(|needed| needed.shard).collect()
    }

    /// Groups of the shards of a plan, as ranges of [`Plan::needed`].
    fn plan_groups(&self, plan: &Plan) -> Vec<Range<usize>> {
        let mut end = 0;
        let group = |group: Vec<usize>| {
            let range = end..end + group.len();
            end = range.end;
            range
        };
        self.groups(plan.needed.iter().map(|needed| needed.shard), self.cache.room()).map(group).collect()
    }

    async fn acquire_needed(&self, plan: &Plan, group: Range<usize>) -> Result<super::Group, ShardError> {
        self.acquire(plan.needed[group].iter().map(|needed| needed.shard).collect(), Use::Lookup).await
    }

    /// Decodes the rows of a plan on the host: `out: [rows, dim]`.
    pub(super) async fn decode_on_host(&self, plan: &Plan, out: &mut [f32]) -> Result<(), ShardError> {
        if let Some(tiers) = &self.tiers {
            return tiers.decode_on_host(&plan.rows, out).await;
        }
        let dim = self.dim() as usize;
        for group in self.plan_groups(plan) {
            let held = self.acquire_needed(plan, group.clone()).await?;
            let mut needed: Vec<_> = plan.needed[group].iter().zip(held.values()).collect();
            needed.sort_by_key(|(needed, _)| needed.rows.start);
            let (mut rest, mut at) = (&mut *out, 0);
            let mut tasks = Vec::new();
            for (needed, shard) in needed {
                let (_, behind) = rest.split_at_mut((needed.rows.start - at) * dim);
                let (own, behind) = behind.split_at_mut(needed.rows.len() * dim);
                (rest, at) = (behind, needed.rows.end);
                let rows = plan.rows[needed.rows.clone()].chunks(TASK_ROWS);
                tasks.extend(
                    rows.zip(own.chunks_mut(TASK_ROWS * dim))
                        .map(|(rows, out)| (needed.first, shard.host(), rows, out)),
                );
            }
            let run = |(first, shard, rows, out): (u32, &HostTable, &[u32], &mut [f32])| {
                let mut own = [0; TASK_ROWS];
                let own = &mut own[..rows.len()];
                own.iter_mut().zip(rows).for_each(|(own, row)| *own = row - first);
                shard.decode(own, out);
            };
            match tasks.len() {
                0 | 1 => tasks.into_iter().for_each(run),
                _ => tasks.into_par_iter().for_each(run),
            }
        }
        Ok(())
    }

    /// Decodes the rows of a plan on the device, to the beginning of `out`; what is submitted later finds them there.
    pub(super) async fn decode_on_gpu(&self, gpu: &Gpu, plan: &Plan, out: &wgpu::Buffer) -> Result<(), GatherError> {
        if plan.rows.is_empty() {
            return Ok(());
        }
        if let Some(tiers) = &self.tiers {
            let output = OutputBuffer { buffer: out, offset: 0, dtype: OutputDtype::F32 };
            return tiers.gather(&plan.rows, output).await;
        }
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let bytes: &[u8] = bytemuck::cast_slice(&plan.rows);
        let size = bytes.len() as u64;
        let ids = gpu.pooled("gather.ids", Category::Index, usage, size).await?;
        gpu.catch("an upload of ids", size, || gpu.queue.write_buffer(&ids, 0, bytes)).await?;
        for group in self.plan_groups(plan) {
            let held = self.acquire_needed(plan, group.clone()).await?;
            let needed = &plan.needed[group];
            let shards = needed.iter().zip(held.values()).map(|(needed, shard)| shard.gpu().at_row(needed.first));
            let own: Vec<_> = needed.iter().map(|needed| needed.rows.clone()).collect();
            let status = gpu.status([0, u32::MAX])?;
            let call = GatherCall {
                dim: self.dim(),
                rows: plan.total,
                shards: &shards.collect::<Vec<_>>(),
                ids: IdBinding { buffer: &ids, offset: 0, id_type: IdType::U32, wrap: false },
                batch: u32::try_from(plan.rows.len()).unwrap_or(u32::MAX),
                own: Some(&own),
                output: Output { buffer: out, offset: 0, dtype: OutputDtype::F32 },
                status: &status,
            };
            let record = || {
                let descriptor = wgpu::CommandEncoderDescriptor { label: Some("gather") };
                let mut encoder = gpu.device.create_command_encoder(&descriptor);
                let params = gpu.record_gather(&mut encoder, &call)?;
                gpu.queue.submit([encoder.finish()]);
                drop(params);
                Ok::<_, GatherError>(())
            };
            gpu.catch("a gather", 0, record).await??;
        }
        Ok(())
    }
}
