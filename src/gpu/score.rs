//! Recording a score: one dispatch for some rows of one shard, or for each set of shards that rows of several stored ones are
//! in, and all queries of a panel.

use super::{
    Gpu, GpuShard, Recorded,
    compose::{Op, Sink},
    params::Params,
    pass::{Buffers, Pass, Step, narrow, passes},
    pipeline::{IdKind, Key},
};
use crate::{
    error::OverBudget,
    op::{LANES, Panel},
};

/// Queries that a thread of the kernel takes; a single one is taken alone.
const TILE: usize = 4;

/// Rows and queries, and the buffers that hold their sums: `scores: [spans, queries, rows]` and `squares:
/// [spans, rows]`, which has one element where no squares are asked for. Sizes have been checked: under 2^32 elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScoreCall<'a> {
    /// One that has all the rows; all of the table, where each row is of several stored ones.
    pub(crate) shards: &'a [GpuShard],
    /// The first row in the table.
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
    /// Records `call`; what is returned must live until the commands are submitted.
    pub(crate) fn record_score(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        call: &ScoreCall<'_>,
    ) -> Result<Recorded, OverBudget> {
        let tile = ScoreCall::tile(call.count);
        let op = Op::Score { tile: if tile == 1 { 1 } else { 4 }, squares: call.with_squares };
        let passes = passes(call.shards);
        let pipeline = |pass: &Pass<'_>| {
            let (scheme, dim) = (pass.spec.scheme().to_string(), pass.spec.shape().dim());
            let key = Key { scheme, dim, bound: pass.bound, sink: Sink::Own, op, ids: IdKind::default() };
            self.pipeline(pass.spec, key)
        };
        let pipelines: Vec<_> = passes.iter().map(pipeline).collect();
        let ((width, height, _), grid_width) = self.grid(call.rows.into());
        // Panels are made so that the third dimension takes them.
        let depth = narrow((call.count.div_ceil(tile) * call.spans) as u64);
        let step = |pass: &Pass<'_>| Step {
            params: Params {
                rows: pass.spec.shape().rows(),
                batch: narrow(call.count as u64),
                grid_width,
                pass_first: call.first_row,
                pass_rows: call.rows,
                ..pass.params
            },
            shards: pass.shards,
            input: (0, call.queries.size()),
            output: (0, call.scores.size()),
            grid: (width, height, depth),
        };
        let steps: Vec<_> = pipelines.iter().zip(passes.iter().map(step)).collect();
        let shards = call.shards;
        let buffers = Buffers { input: call.queries, status: Some(call.squares), output: call.scores, shards };
        self.record_steps(encoder, "score", &buffers, &steps)
    }
}
