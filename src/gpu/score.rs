//! Recording a score: one dispatch for some rows of one shard, and all queries of a panel.

use super::{
    Gpu, GpuShard, Tracked,
    compose::{Bound, Sink},
    gather::{PARAMS_BYTES, narrow, pass_params},
    params::Params,
    pipeline::{Key, WORKGROUP},
};
use crate::{
    error::OverBudget,
    op::{LANES, Panel},
    scheme::TableSpec,
};

/// Queries that a thread of the kernel takes; a single one is taken alone.
const TILE: usize = 4;

/// Rows of one shard and queries, and the buffers that hold their sums: `scores: [spans, queries, rows]` and `squares:
/// [spans, rows]`, which has one element where no squares are asked for. Sizes have been checked: under 2^32 elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScoreCall<'a> {
    pub(crate) spec: &'a TableSpec,
    pub(crate) shard: &'a GpuShard,
    /// The first row in the table, which is in the shard, as all are.
    pub(crate) first_row: u32,
    pub(crate) rows: u32,
    /// Made by [`ScoreCall::tiled`].
    pub(crate) queries: &'a wgpu::Buffer,
    pub(crate) count: usize,
    /// Spans of a row.
    pub(crate) spans: usize,
    pub(crate) with_squares: bool,
    pub(crate) squares: &'a wgpu::Buffer,
    pub(crate) scores: &'a wgpu::Buffer,
}

impl ScoreCall<'_> {
    fn tile(count: usize) -> usize {
        if count == 1 { 1 } else { TILE }
    }

    /// The queries in the order in which threads read them: tile by tile, by 16 columns, by 4, query by query.
    pub(crate) fn tiled(panel: &Panel<'_>) -> Vec<f32> {
        let tile = Self::tile(panel.count());
        let groups = panel.dim.div_ceil(LANES);
        let mut tiled = vec![0f32; panel.count().next_multiple_of(tile) * groups * LANES];
        for (number, query) in panel.values.chunks_exact(panel.dim).enumerate() {
            let first = number / tile * tile * groups * LANES + number % tile * 4;
            for (quarter, values) in query.chunks(4).enumerate() {
                tiled[first + quarter * 4 * tile..][..values.len()].copy_from_slice(values);
            }
        }
        tiled
    }
}

impl Gpu {
    /// Records `call`; the returned buffer must live until the commands have run.
    pub(crate) fn record_score(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        call: &ScoreCall<'_>,
    ) -> Result<Tracked, OverBudget> {
        let dim = call.spec.shape().dim();
        let tile = ScoreCall::tile(call.count);
        let sink = Sink::Scores { tile: if tile == 1 { 1 } else { 4 }, squares: call.with_squares };
        let key =
            Key { scheme: call.spec.scheme().to_string(), dim, bound: Bound::One, sink, id_words: 0, wrap: false };
        let pipeline = self.pipeline(call.spec, key);
        let groups = call.rows.div_ceil(WORKGROUP);
        let width = groups.min(self.limits.max_compute_workgroups_per_dimension);
        // Panels are far smaller than what the third dimension takes.
        let depth = narrow((call.count.div_ceil(tile) * call.spans) as u64);
        let params = Params {
            rows: call.spec.shape().rows(),
            batch: narrow(call.count as u64),
            grid_width: width * WORKGROUP,
            pass_first: call.first_row,
            pass_rows: call.rows,
            ..pass_params(std::slice::from_ref(call.shard))
        };
        let params = self.filled("score.params", wgpu::BufferUsages::UNIFORM, bytemuck::bytes_of(&params))?;
        debug_assert_eq!(params.size(), PARAMS_BYTES as u64, "one block");
        let buffers: [&wgpu::Buffer; 5] = [&params, call.queries, call.squares, call.scores, &call.shard.buffer];
        let entries: Vec<wgpu::BindGroupEntry<'_>> = (0..)
            .zip(buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("score"),
            layout: &pipeline.layout,
            entries: &entries,
        });
        let mut pass =
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("score"), ..Default::default() });
        pass.set_pipeline(&pipeline.pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(width, groups.div_ceil(width), depth);
        drop(pass);
        Ok(params)
    }
}
