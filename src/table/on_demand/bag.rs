//! Bags: over a small table of the rows that some bags need, decoded.

use std::ops::Range;

use super::{
    Shards,
    decoded::{self, Decoded},
    gather::scratch,
    plan::LEFT_OUT,
};
use crate::{
    error::GatherError,
    gpu::{OutputDtype, POOL_STEP},
    op::{BadIds, CheckedBags, IdPolicy, Resolver},
    table::rows::RowBuffer,
};

impl Shards {
    /// Runs of bags of about as many ids as a part of a batch; at least one bag.
    fn bag_parts(&self, bags: &CheckedBags<'_>) -> Vec<Range<usize>> {
        let most = self.part_ids();
        let mut parts = Vec::new();
        let mut first = 0;
        while first < bags.len() {
            let begin = bags.range(first).start;
            let mut end = first + 1;
            // The rows of the answer take memory as well.
            while end < bags.len() && bags.range(end).end - begin <= most && end - first < most {
                end += 1;
            }
            parts.push(first..end);
            first = end;
        }
        parts
    }

    /// The stored rows that the ids of some bags name.
    fn bagged_rows(bags: &CheckedBags<'_>, part: &Range<usize>, resolver: Resolver) -> Vec<u32> {
        let ids = bags.range(part.start).start..bags.range(part.end - 1).end;
        let mut rows = vec![0; ids.len()];
        bags.each_block(ids.clone(), |first, ids_of_block, keep| {
            let rows = &mut rows[first - ids.start..][..ids_of_block.len()];
            resolver.resolve(ids_of_block, rows);
            if let Some(keep) = keep {
                rows.iter_mut().zip(keep).filter(|(_, keep)| !**keep).for_each(|(row, _)| *row = LEFT_OUT);
            }
        });
        rows
    }

    /// Makes the rows of all bags in host memory. `out` has the right length.
    pub(in crate::table) async fn bags_to_host(
        &self,
        table: &str,
        bags: &CheckedBags<'_>,
        resolver: Resolver,
        out: &mut [f32],
    ) -> Result<(), GatherError> {
        let dim = self.dim() as usize;
        for part in self.bag_parts(bags) {
            let out = &mut out[part.start * dim..part.end * dim];
            let plan = self.plan(&Self::bagged_rows(bags, &part, resolver));
            let mut places = plan.places.clone();
            if let Some(gpu) = self.gpu() {
                let decoded = Decoded::on_gpu(self, gpu, table, &plan).await?;
                decoded.rows(&mut places);
                let bags = bags.of_rows(part, &places, LEFT_OUT);
                decoded.device(table, gpu).bags_to_host(&bags, IdPolicy::Zero, out).await?;
            } else {
                let decoded = decoded::on_host(self, table, &plan, &mut places).await?;
                let bags = bags.of_rows(part, &places, LEFT_OUT);
                decoded.bag(&bags, Resolver::new(decoded.spec(), IdPolicy::Zero), out);
            }
        }
        Ok(())
    }

    /// Makes the rows of all bags in a pooled buffer.
    pub(in crate::table) async fn bags_to_buffer(
        &self,
        table: &str,
        bags: &CheckedBags<'_>,
        resolver: Resolver,
        bad: BadIds,
    ) -> Result<RowBuffer, GatherError> {
        let Some(gpu) = self.gpu() else { return Err(GatherError::NoDevice { table: table.to_owned() }) };
        let row_bytes = u64::from(self.dim()) * 4;
        let bytes = bags.len() as u64 * row_bytes;
        let limit = gpu.limits.max_buffer_size / POOL_STEP * POOL_STEP;
        if bytes > limit {
            let problem = format!("of {bytes} bytes is over the device's limit of {limit} for one buffer");
            return Err(GatherError::Buffer { table: table.to_owned(), role: "output", problem });
        }
        let buffer = scratch(gpu, bytes.max(4)).await?;
        for part in self.bag_parts(bags) {
            let offset = part.start as u64 * row_bytes;
            let plan = self.plan(&Self::bagged_rows(bags, &part, resolver));
            let decoded = Decoded::on_gpu(self, gpu, table, &plan).await?;
            let mut places = plan.places;
            decoded.rows(&mut places);
            let bags = bags.of_rows(part, &places, LEFT_OUT);
            let rows = decoded.device(table, gpu).bags_to_buffer(&bags, IdPolicy::Zero, BadIds::default()).await?;
            let copy = || {
                let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                encoder.copy_buffer_to_buffer(rows.buffer(), 0, &buffer, offset, rows.bytes());
                gpu.queue.submit([encoder.finish()]);
            };
            gpu.catch("a copy of rows", rows.bytes(), copy).await?;
        }
        let rows = u32::try_from(bags.len()).unwrap_or(u32::MAX);
        Ok(RowBuffer { buffer, rows, dim: self.dim(), dtype: OutputDtype::F32, bad })
    }
}
