//! Recording a gather: one dispatch for each part of the batch that the limits take, and each set of shards bound.

use std::ops::Range;

use super::{
    Gpu, GpuShard, Pooled, Recorded,
    compose::{Bound, Op, Sink},
    params::Params,
    pass::{Buffers, Pass, Step, narrow, passes, split},
    pipeline::{IdKind, Key},
};
use crate::{
    error::GatherError,
    op::{BadIds, IdType},
    units::round_up,
};

/// Type of the output's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputDtype {
    /// IEEE binary32.
    F32,
    /// IEEE binary16, rounded to nearest, ties to even.
    F16,
}

impl OutputDtype {
    /// Bytes of an element.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }
}

/// Ids in a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdBinding<'a> {
    pub(crate) buffer: &'a wgpu::Buffer,
    /// In bytes, a multiple of 4.
    pub(crate) offset: u64,
    pub(crate) id_type: IdType,
    /// Whether -1 to -rows count from the end.
    pub(crate) wrap: bool,
}

/// Where rows go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output<'a> {
    pub(crate) buffer: &'a wgpu::Buffer,
    /// In bytes, a multiple of 4.
    pub(crate) offset: u64,
    pub(crate) dtype: OutputDtype,
}

/// A whole batch. Its buffers have been checked: they hold the ids and the rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatherCall<'a> {
    /// Columns.
    pub(crate) dim: u32,
    /// What ids are compared with.
    pub(crate) rows: u32,
    pub(crate) shards: &'a [GpuShard],
    pub(crate) ids: IdBinding<'a>,
    pub(crate) batch: u32,
    /// The positions of each shard's ids, where they are known; else each id may be of any shard.
    pub(crate) own: Option<&'a [Range<usize>]>,
    pub(crate) output: Output<'a>,
    /// Two words: bad ids, and the position of the first.
    pub(crate) status: &'a wgpu::Buffer,
}

impl GatherCall<'_> {
    /// How many shards the pipeline of a pass binds. Where shards come and go, as many or one: any number of them would make
    /// a pipeline for each.
    fn bound(&self, pass: &Pass<'_>) -> Bound {
        match (self.own, pass.bound) {
            (Some(_), Bound::Several(_)) => Bound::MOST,
            (_, bound) => bound,
        }
    }

    /// The positions of the ids that a pass looks at.
    fn positions(&self, pass: &Pass<'_>) -> Vec<Range<u64>> {
        let Some(own) = self.own else { return std::iter::once(0..self.batch.into()).collect() };
        let mut ranges: Vec<Range<u64>> = Vec::new();
        // The last of the places is repeated where fewer shards are bound.
        let mut shards = pass.shards.to_vec();
        shards.dedup();
        for own in shards.into_iter().map(|shard| &own[shard]) {
            match ranges.last_mut() {
                Some(last) if last.end == own.start as u64 => last.end = own.end as u64,
                _ => ranges.push(own.start as u64..own.end as u64),
            }
        }
        ranges
    }
}

/// Bytes of the status words.
pub(crate) const STATUS_BYTES: u64 = 8;

/// Status words as they lie in a buffer.
pub(crate) fn read_status(bytes: &[u8]) -> BadIds {
    let word = |at: usize| u64::from(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    let count = word(0);
    BadIds { count, first: (count > 0).then(|| word(4)) }
}

impl Gpu {
    /// Status words: `[0, u32::MAX]` before a call. The scope that is open catches the device's errors.
    pub(crate) fn status(&self, words: [u32; 2]) -> Result<Pooled, GatherError> {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
        Ok(self.filled("gather.status", usage, bytemuck::bytes_of(&words))?)
    }

    /// Waits for what was submitted so far and reads status words.
    pub(crate) async fn read_status(&self, status: &wgpu::Buffer) -> Result<BadIds, GatherError> {
        self.read_small(status, 0, STATUS_BYTES, read_status).await
    }

    /// Records `call`; what is returned must live until the commands are submitted.
    pub(crate) fn record_gather(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        call: &GatherCall<'_>,
    ) -> Result<Recorded, GatherError> {
        let dim = call.dim;
        let sink = match call.output.dtype {
            OutputDtype::F32 => Sink::f32(dim, call.output.offset),
            OutputDtype::F16 => Sink::f16(dim, call.output.offset),
        };
        let op = if sink == Sink::F16x1 { Op::GatherHalves } else { Op::Gather };
        let passes = passes(call.shards);
        let pipeline = |pass: &Pass<'_>| {
            let key = Key {
                scheme: pass.spec.scheme().to_string(),
                dim,
                bound: call.bound(pass),
                op,
                sink,
                ids: IdKind::new(pass.spec, call.ids.id_type, call.ids.wrap),
            };
            self.pipeline(pass.spec, key)
        };
        let pipelines: Vec<_> = passes.iter().map(pipeline).collect();
        let steps: Vec<_> =
            self.steps(call, op, &passes).into_iter().map(|(pass, step)| (&pipelines[pass], step)).collect();
        let buffers = Buffers {
            input: call.ids.buffer,
            status: Some(call.status),
            output: call.output.buffer,
            shards: call.shards,
        };
        Ok(self.record_steps(encoder, "gather", &buffers, &steps)?)
    }

    /// Splits a call into dispatches, each with the number of its pass.
    fn steps(&self, call: &GatherCall<'_>, op: Op, passes: &[Pass<'_>]) -> Vec<(usize, Step)> {
        let (align, binding) = (self.storage_align(), self.storage_binding());
        let row_bytes = u64::from(call.dim) * call.output.dtype.bytes();
        let id_bytes = u64::from(call.ids.id_type.words()) * 4;
        let most_threads = passes.iter().map(|pass| self.threads(op, pass, 1)).max().unwrap_or(1);
        // Even, so that f16 rows of odd length begin on a word.
        let most = (binding / row_bytes).min(binding / id_bytes).min(self.most_threads() / most_threads).max(2) & !1;
        let mut steps = Vec::new();
        for (number, pass) in passes.iter().enumerate() {
            for positions in call.positions(pass) {
                let mut first = positions.start;
                while first < positions.end {
                    let rows = most.min(positions.end - first);
                    let (ids_from, ids_skip) = split(call.ids.offset + first * id_bytes, align);
                    let (out_from, out_skip) = split(call.output.offset + first * row_bytes, align);
                    let (grid, grid_width) = self.grid(self.threads(op, pass, rows));
                    let params = Params {
                        rows: call.rows,
                        batch: narrow(rows),
                        grid_width,
                        position: narrow(first),
                        ids_start: narrow(ids_skip / 4),
                        out_start: narrow(out_skip / 4),
                        ..pass.params
                    };
                    let step = Step {
                        params,
                        shards: pass.shards,
                        input: (ids_from, ids_skip + rows * id_bytes),
                        output: (out_from, round_up(out_skip + rows * row_bytes, 4)),
                        grid,
                    };
                    steps.push((number, step));
                    first += rows;
                }
            }
        }
        steps
    }

    /// Threads for a number of rows; a thread of `gather_halves` makes two elements.
    fn threads(&self, op: Op, pass: &Pass<'_>, rows: u64) -> u64 {
        let dim = pass.spec.shape().dim();
        let row_threads = u64::from(dim.div_ceil(16).div_ceil(self.granularity.span(pass.spec)));
        match op {
            Op::GatherHalves => (rows * u64::from(dim)).div_ceil(2),
            _ => rows * row_threads,
        }
    }
}
