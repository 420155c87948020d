//! Bags on a device: how they are cut, and how results leave it.

use std::ops::Range;

use super::{
    device::{CHUNK, DeviceTable, at_least_one},
    rows::RowBuffer,
};
use crate::{
    error::GatherError,
    gpu::{BagCall, OutputDtype, POOL_STEP, Pooled, Recorded},
    op::{BadIds, CheckedBags, IdPolicy},
    scheme::Category,
};

/// What commands that are not submitted yet use.
struct Held {
    _input: Pooled,
    _recorded: Vec<Recorded>,
}

impl DeviceTable<'_> {
    /// Makes the rows of all bags in a pooled buffer.
    pub(super) async fn bags_to_buffer(
        &self,
        bags: &CheckedBags<'_>,
        policy: IdPolicy,
        bad: BadIds,
    ) -> Result<RowBuffer, GatherError> {
        let bytes = bags.len() as u64 * self.row_bytes(OutputDtype::F32);
        let buffer = self.output(bytes).await?;
        let (encoder, held) = self.bags(bags, 0..bags.len(), policy, &buffer).await?;
        self.submit_commands(encoder).await?;
        drop(held);
        // A buffer holds under 2^32 bytes, and as many bags of no columns there are not.
        let rows = u32::try_from(bags.len()).unwrap_or(u32::MAX);
        Ok(RowBuffer { buffer, rows, dim: self.spec.shape().dim(), dtype: OutputDtype::F32, bad })
    }

    /// Makes the rows of all bags in host memory, by parts. `out` has the right length.
    pub(super) async fn bags_to_host(
        &self,
        bags: &CheckedBags<'_>,
        policy: IdPolicy,
        out: &mut [f32],
    ) -> Result<(), GatherError> {
        let dim = self.spec.shape().dim() as usize;
        let bytes = CHUNK.min(self.largest_buffer() - POOL_STEP);
        let part = at_least_one(bytes / self.row_bytes(OutputDtype::F32));
        for (number, out) in out.chunks_mut(part.saturating_mul(dim)).enumerate() {
            let first = number * part;
            let bytes = size_of_val(out) as u64;
            let buffer = self.output(bytes).await?;
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            let staging = self.gpu.pooled("gather.staging", Category::Staging, usage, bytes).await?;
            let (mut encoder, held) = self.bags(bags, first..first + out.len() / dim, policy, &buffer).await?;
            encoder.copy_buffer_to_buffer(&buffer, 0, &staging, 0, bytes);
            let read = |back: &[u8]| bytemuck::cast_slice_mut(out).copy_from_slice(back);
            self.gpu.submit_and_read(encoder, &staging, bytes, read).await?;
            drop(held);
        }
        Ok(())
    }

    /// Records `part` of the bags, whose rows go to `output` from byte 0 on. What one encoder does not take is submitted
    /// before.
    async fn bags(
        &self,
        bags: &CheckedBags<'_>,
        part: Range<usize>,
        policy: IdPolicy,
        output: &wgpu::Buffer,
    ) -> Result<(wgpu::CommandEncoder, Option<Held>), GatherError> {
        self.gpu.alive()?;
        let descriptor = wgpu::CommandEncoderDescriptor { label: Some("bag") };
        if part.is_empty() || self.shards.is_empty() {
            // No rows: every id is a bad one, and no kernel is needed for zeros.
            let clear = || {
                let mut encoder = self.gpu.device.create_command_encoder(&descriptor);
                encoder.clear_buffer(output, 0, None);
                encoder
            };
            return Ok((self.gpu.catch("bags", 0, clear).await?, None));
        }
        let call = BagCall { spec: self.spec, shards: self.shards, policy, bags, output, first: part.start };
        let mut chunks = self.gpu.bag_chunks(bags, part.clone(), self.spec).peekable();
        loop {
            let Some(chunk) = chunks.next() else { unreachable!("the last chunk returns") };
            let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
            let bytes: &[u8] = bytemuck::cast_slice(&chunk.words);
            let size = bytes.len() as u64;
            let input = self.gpu.pooled("bag.input", Category::Index, usage, size).await?;
            self.gpu.catch("an upload of ids", size, || self.gpu.queue.write_buffer(&input, 0, bytes)).await?;
            let last = chunks.peek().is_none();
            let record = || {
                let mut encoder = self.gpu.device.create_command_encoder(&descriptor);
                let mut recorded = vec![self.gpu.record_bags(&mut encoder, &call, &chunk, &input)?];
                if last && bags.normalised {
                    recorded.push(self.gpu.record_norms(&mut encoder, &call, part.clone(), &chunk, &input)?);
                }
                Ok::<_, GatherError>((encoder, recorded))
            };
            let (encoder, recorded) = self.gpu.catch("bags", 0, record).await??;
            let held = Held { _input: input, _recorded: recorded };
            if last {
                return Ok((encoder, Some(held)));
            }
            self.submit_commands(encoder).await?;
            drop(held);
        }
    }
}
