//! Recording a gather: one dispatch for each part of the batch that the limits take, and each set of shards bound.

use bytemuck::Zeroable;

use super::{
    Gpu, GpuShard, Tracked,
    compose::{Bound, Sink},
    params::{Params, SHARDS_A_PASS, ShardParams},
    pipeline::{Key, Pipeline, WORKGROUP},
};
use crate::{error::GatherError, op::BadIds, scheme::TableSpec, units::round_up};

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
    /// 1 for u32, 2 for u64 and i64.
    pub(crate) words: u32,
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
    pub(crate) spec: &'a TableSpec,
    pub(crate) shards: &'a [GpuShard],
    pub(crate) ids: IdBinding<'a>,
    pub(crate) batch: u32,
    pub(crate) output: Output<'a>,
    /// Two words: bad ids, and the position of the first.
    pub(crate) status: &'a wgpu::Buffer,
}

/// Bytes of the status words.
pub(crate) const STATUS_BYTES: u64 = 8;

/// Status words as they lie in a buffer.
pub(crate) fn read_status(bytes: &[u8]) -> BadIds {
    let word = |at: usize| u64::from(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    let count = word(0);
    BadIds { count, first: (count > 0).then(|| word(4)) }
}

/// Slots of the parameter buffer are as far apart as uniform bindings must be.
pub(super) const PARAMS_BYTES: usize = size_of::<Params>();

/// One dispatch, before its buffers are bound.
struct Step {
    params: Params,
    /// The shards bound, in order; the last is repeated.
    shards: std::ops::Range<usize>,
    ids: (u64, u64),
    output: (u64, u64),
    grid: (u32, u32),
}

impl Gpu {
    /// Status words: `[0, u32::MAX]` before a call.
    pub(crate) fn status(&self, words: [u32; 2]) -> Result<Tracked, GatherError> {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
        Ok(self.filled("gather.status", usage, bytemuck::bytes_of(&words))?)
    }

    /// Waits for what was submitted so far and reads status words.
    pub(crate) async fn read_status(&self, status: &wgpu::Buffer) -> Result<BadIds, GatherError> {
        self.read_small(status, 0, STATUS_BYTES, read_status).await
    }

    /// Records `call`; the returned buffer must live until the commands have run.
    pub(crate) fn record_gather(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        call: &GatherCall<'_>,
    ) -> Result<Tracked, GatherError> {
        let dim = call.spec.shape().dim();
        let sink = match call.output.dtype {
            OutputDtype::F32 => Sink::f32(dim, call.output.offset),
            OutputDtype::F16 => Sink::f16(dim, call.output.offset),
        };
        let bound = match u8::try_from(call.shards.len().min(SHARDS_A_PASS)) {
            Ok(1) => Bound::One,
            Ok(shards) => Bound::Several(shards),
            Err(_) => unreachable!("a pass binds few shards"),
        };
        let key = Key {
            scheme: call.spec.scheme().to_string(),
            dim,
            bound,
            sink,
            id_words: call.ids.words,
            wrap: call.ids.wrap,
        };
        let pipeline = self.pipeline(call.spec, key);
        let steps = self.steps(call, &pipeline);
        let slot = self.limits.min_uniform_buffer_offset_alignment as usize;
        let slot = PARAMS_BYTES.next_multiple_of(slot.max(16));
        let mut bytes = vec![0; slot * steps.len()];
        for (step, slot) in steps.iter().zip(bytes.chunks_mut(slot)) {
            slot[..PARAMS_BYTES].copy_from_slice(bytemuck::bytes_of(&step.params));
        }
        let params = self.filled("gather.params", wgpu::BufferUsages::UNIFORM, &bytes)?;
        let mut pass =
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("gather"), ..Default::default() });
        pass.set_pipeline(&pipeline.pipeline);
        for (number, step) in steps.iter().enumerate() {
            let group = self.bind(call, &pipeline, bound, step, (&params, (number * slot) as u64));
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(step.grid.0, step.grid.1, 1);
        }
        drop(pass);
        Ok(params)
    }

    /// Splits a call into dispatches.
    fn steps(&self, call: &GatherCall<'_>, pipeline: &Pipeline) -> Vec<Step> {
        let dim = call.spec.shape().dim();
        let align = u64::from(self.limits.min_storage_buffer_offset_alignment).max(256);
        let binding = self.limits.max_storage_buffer_binding_size.min(u64::from(u32::MAX)) - align;
        let row_bytes = u64::from(dim) * call.output.dtype.bytes();
        let id_bytes = u64::from(call.ids.words) * 4;
        // Threads times one row; a thread of `gather_halves` makes two elements.
        let row_threads = match pipeline.sink {
            Sink::F16x1 => u64::from(dim).div_ceil(2),
            _ => u64::from(dim.div_ceil(16).div_ceil(self.granularity.span(call.spec))),
        };
        let group_limit = u64::from(self.limits.max_compute_workgroups_per_dimension);
        let threads = (group_limit * group_limit * u64::from(WORKGROUP)).min(1 << 31);
        // Even, so that f16 rows of odd length begin on a word.
        let most = (binding / row_bytes).min(binding / id_bytes).min(threads / row_threads).max(2) & !1;
        let mut steps = Vec::new();
        let mut first = 0u64;
        while first < u64::from(call.batch) {
            let rows = most.min(u64::from(call.batch) - first);
            let (ids_from, ids_skip) = split(call.ids.offset + first * id_bytes, align);
            let (out_from, out_skip) = split(call.output.offset + first * row_bytes, align);
            let groups = if pipeline.sink == Sink::F16x1 {
                (rows * u64::from(dim)).div_ceil(2).div_ceil(u64::from(WORKGROUP))
            } else {
                (rows * row_threads).div_ceil(u64::from(WORKGROUP))
            };
            let width = groups.min(group_limit);
            for pass in 0..call.shards.len().div_ceil(SHARDS_A_PASS) {
                let shards = pass * SHARDS_A_PASS..call.shards.len().min((pass + 1) * SHARDS_A_PASS);
                let params = Params {
                    rows: call.spec.shape().rows(),
                    batch: narrow(rows),
                    grid_width: narrow(width) * WORKGROUP,
                    position: narrow(first),
                    ids_start: narrow(ids_skip / 4),
                    out_start: narrow(out_skip / 4),
                    answers_bad: u32::from(pass == 0),
                    ..pass_params(&call.shards[shards.clone()])
                };
                steps.push(Step {
                    params,
                    shards,
                    ids: (ids_from, ids_skip + rows * id_bytes),
                    output: (out_from, round_up(out_skip + rows * row_bytes, 4)),
                    grid: (narrow(width), narrow(groups.div_ceil(width))),
                });
            }
            first += rows;
        }
        steps
    }

    fn bind(
        &self,
        call: &GatherCall<'_>,
        pipeline: &Pipeline,
        bound: Bound,
        step: &Step,
        (params, at): (&wgpu::Buffer, u64),
    ) -> wgpu::BindGroup {
        let part = |buffer, offset, size| {
            wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size: wgpu::BufferSize::new(size) })
        };
        let mut resources = vec![
            part(params, at, PARAMS_BYTES as u64),
            part(call.ids.buffer, step.ids.0, step.ids.1),
            call.status.as_entire_binding(),
            part(call.output.buffer, step.output.0, step.output.1),
        ];
        let places = if bound == Bound::One { 1 } else { SHARDS_A_PASS };
        let last = step.shards.end - 1;
        resources.extend(
            (0..places).map(|place| call.shards[last.min(step.shards.start + place)].buffer.as_entire_binding()),
        );
        let entries: Vec<wgpu::BindGroupEntry<'_>> =
            (0..).zip(resources).map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource }).collect();
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("gather"),
            layout: &pipeline.layout,
            entries: &entries,
        })
    }
}

/// The part of the parameters that says which rows are bound.
pub(super) fn pass_params(shards: &[GpuShard]) -> Params {
    let mut params = Params::zeroed();
    params.pass_first = shards[0].params.first_row;
    params.pass_rows = shards.iter().map(|shard| shard.rows).sum();
    // Places without a shard, in the last pass, begin past the last row, so that no row is in them.
    params.shards = [ShardParams { first_row: u32::MAX, ..ShardParams::default() }; SHARDS_A_PASS];
    for (place, shard) in params.shards.iter_mut().zip(shards) {
        *place = shard.params;
    }
    params
}

/// An offset as the multiple of `align` below it, and the rest.
pub(super) fn split(offset: u64, align: u64) -> (u64, u64) {
    (offset - offset % align, offset % align)
}

/// A number that limits keep under 2^32.
#[expect(clippy::cast_possible_truncation, reason = "bindings, grids and batches are under 2^32")]
pub(super) fn narrow(value: u64) -> u32 {
    debug_assert!(u32::try_from(value).is_ok(), "{value} passed a limit");
    value as u32
}
