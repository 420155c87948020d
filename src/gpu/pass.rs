//! What the recordings of all operations share: which shards a dispatch binds, how its grid and bindings fit the limits, and
//! the pass that it becomes.

use std::sync::Arc;

use bytemuck::Zeroable;

use super::{
    Gpu, GpuShard, Recorded,
    compose::Bound,
    params::{Params, SHARDS_A_PASS, ShardParams},
    pipeline::{Pipeline, WORKGROUP},
    shard::Spot,
};
use crate::{error::OverBudget, scheme::TableSpec};

const PARAMS_BYTES: usize = size_of::<Params>();

/// The shards bound, in order; the last is repeated.
pub(super) type Places = [usize; SHARDS_A_PASS];

/// One dispatch, before its buffers are bound.
pub(super) struct Step {
    pub(super) params: Params,
    pub(super) shards: Places,
    /// Offset and size, in bytes, of what is bound of the input.
    pub(super) input: (u64, u64),
    /// Offset and size, in bytes, of what is bound of the output.
    pub(super) output: (u64, u64),
    pub(super) grid: (u32, u32, u32),
}

/// The buffers that all dispatches of a call bind parts of.
pub(super) struct Buffers<'a> {
    /// Ids, and what an operation has behind them.
    pub(super) input: &'a wgpu::Buffer,
    /// Where the operation counts bad ids, or writes its second result, if it has either.
    pub(super) status: Option<&'a wgpu::Buffer>,
    pub(super) output: &'a wgpu::Buffer,
    pub(super) shards: &'a [GpuShard],
}

impl Gpu {
    /// Records a pass of `steps`, each with its pipeline; what is returned must live until the commands are submitted.
    pub(super) fn record_steps<'a>(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        label: &str,
        buffers: &Buffers<'_>,
        steps: &[(&'a Pipeline, Step)],
    ) -> Result<Recorded, OverBudget> {
        // Slots of the parameter buffer are as far apart as uniform bindings must be.
        let slot = self.limits.min_uniform_buffer_offset_alignment as usize;
        let slot = PARAMS_BYTES.next_multiple_of(slot.max(16));
        let mut bytes = vec![0; slot * steps.len()];
        for ((_, step), slot) in steps.iter().zip(bytes.chunks_mut(slot)) {
            slot[..PARAMS_BYTES].copy_from_slice(bytemuck::bytes_of(&step.params));
        }
        let params = self.filled("pass.params", wgpu::BufferUsages::UNIFORM, &bytes)?;
        let spots: Vec<Spot> = buffers.shards.iter().map(|shard| shard.buffer.spot()).collect();
        let mut pass =
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some(label), ..Default::default() });
        let mut set: Option<&'a Pipeline> = None;
        for (number, (pipeline, step)) in steps.iter().enumerate() {
            if set.is_none_or(|set| !std::ptr::eq(set, *pipeline)) {
                pass.set_pipeline(&pipeline.pipeline);
                set = Some(pipeline);
            }
            let group = self.bind(label, (buffers, &spots), pipeline, step, (&params, (number * slot) as u64));
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(step.grid.0, step.grid.1, step.grid.2);
        }
        drop(pass);
        Ok(Recorded { _params: params, _spots: spots })
    }

    fn bind(
        &self,
        label: &str,
        (buffers, spots): (&Buffers<'_>, &[Spot]),
        pipeline: &Pipeline,
        step: &Step,
        (params, at): (&wgpu::Buffer, u64),
    ) -> wgpu::BindGroup {
        let part = |buffer, offset, size| {
            wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size: wgpu::BufferSize::new(size) })
        };
        let mut resources = vec![
            (0, part(params, at, PARAMS_BYTES as u64)),
            (1, part(buffers.input, step.input.0, step.input.1)),
            (3, part(buffers.output, step.output.0, step.output.1)),
        ];
        resources.extend(buffers.status.map(|status| (2, status.as_entire_binding())));
        let places = step.shards[..pipeline.bound.places()].iter();
        resources.extend((4..).zip(places.map(|shard| spots[*shard].binding())));
        let entries: Vec<wgpu::BindGroupEntry<'_>> =
            resources.into_iter().map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource }).collect();
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(label),
            layout: &pipeline.layout,
            entries: &entries,
        })
    }

    /// Offsets of storage bindings are multiples of this.
    pub(super) fn storage_align(&self) -> u64 {
        storage_align(&self.limits)
    }

    /// Bytes that a storage binding holds at least, wherever it has to begin.
    pub(super) fn storage_binding(&self) -> u64 {
        self.limits.max_storage_buffer_binding_size.min(u64::from(u32::MAX)) - self.storage_align()
    }

    /// The most threads of a dispatch.
    pub(super) fn most_threads(&self) -> u64 {
        let groups = u64::from(self.limits.max_compute_workgroups_per_dimension);
        (groups * groups * u64::from(WORKGROUP)).min(1 << 31)
    }

    /// The grid for at least so many threads, and the threads in a row of it.
    pub(super) fn grid(&self, threads: u64) -> ((u32, u32, u32), u32) {
        let groups = threads.div_ceil(u64::from(WORKGROUP));
        let width = groups.min(u64::from(self.limits.max_compute_workgroups_per_dimension));
        ((narrow(width), narrow(groups.div_ceil(width)), 1), narrow(width) * WORKGROUP)
    }
}

/// Offsets of storage bindings are multiples of this.
pub(super) fn storage_align(limits: &wgpu::Limits) -> u64 {
    u64::from(limits.min_storage_buffer_offset_alignment).max(256)
}

/// Shards that are bound together.
pub(super) struct Pass<'a> {
    pub(super) shards: Places,
    /// What says which rows those have, and whether it is the first pass.
    pub(super) params: Params,
    /// How their rows are stored.
    pub(super) spec: &'a TableSpec,
    pub(super) bound: Bound,
}

/// The passes over a table, in the order of its rows; those of a pass are stored alike.
pub(super) fn passes(shards: &[GpuShard]) -> Vec<Pass<'_>> {
    let mut passes = Vec::new();
    let mut first = 0;
    for band in shards.chunk_by(|one, other| Arc::ptr_eq(&one.spec, &other.spec)) {
        let all: Vec<usize> = (first..).take(band.len()).collect();
        first += band.len();
        let each = band[0].spec.each();
        if each > 1 && band.len() > SHARDS_A_PASS {
            passes.extend(groups(&all, each).into_iter().map(|some| {
                let bits = some.len().div_ceil(SHARDS_A_PASS / each);
                let mut pass = pass(shards, &some);
                pass.params.shard_rows = band[0].rows;
                pass.params.pass_groups = (1 << bits) - 1;
                Pass { bound: bound(band), ..pass }
            }));
        } else {
            passes.extend(all.chunks(SHARDS_A_PASS).map(|some| Pass { bound: bound(band), ..pass(shards, some) }));
        }
    }
    let last = passes.len().saturating_sub(1);
    for (number, pass) in passes.iter_mut().enumerate() {
        pass.params.answers_bad = u32::from(number == 0);
        pass.params.last_pass = u32::from(number == last);
    }
    passes
}

/// The shards of each pass, where an id reads a row of up to `each` of them: all sets of one to `each` groups, which are of as
/// many neighbours that `each` of them can be bound (see `shaders/join/several.wgsl`).
fn groups(shards: &[usize], each: usize) -> Vec<Vec<usize>> {
    let groups: Vec<&[usize]> = shards.chunks(SHARDS_A_PASS / each).collect();
    // Sets of one group more, by numbers of groups that ascend.
    let mut sets: Vec<Vec<usize>> = (0..groups.len()).map(|group| vec![group]).collect();
    let mut begin = 0;
    for _ in 1..each {
        let larger = sets[begin..].iter().flat_map(|set| {
            let behind = set[set.len() - 1] + 1..groups.len();
            behind.map(|group| [&set[..], &[group]].concat())
        });
        let larger: Vec<_> = larger.collect();
        begin = sets.len();
        sets.extend(larger);
    }
    sets.iter().map(|set| set.iter().flat_map(|group| groups[*group]).copied().collect()).collect()
}

/// A pass that binds these of the shards, which are stored alike.
fn pass<'a>(shards: &'a [GpuShard], some: &[usize]) -> Pass<'a> {
    let places = std::array::from_fn(|place| some[place.min(some.len() - 1)]);
    let bound: Vec<&GpuShard> = some.iter().map(|shard| &shards[*shard]).collect();
    let mut params = Params::zeroed();
    params.pass_first = bound[0].params.first_row;
    params.pass_rows = bound.iter().map(|shard| shard.rows).sum();
    // Places without a shard begin past the last row, so that no row is in them.
    params.shards = [ShardParams { first_row: u32::MAX, ..ShardParams::default() }; SHARDS_A_PASS];
    for (place, shard) in params.shards.iter_mut().zip(&bound) {
        *place = shard.params;
    }
    Pass { shards: places, params, spec: &bound[0].spec, bound: Bound::One }
}

/// Which shards pipelines for those of a band bind.
fn bound(band: &[GpuShard]) -> Bound {
    match u8::try_from(band.len().min(SHARDS_A_PASS)) {
        Ok(1) => Bound::One,
        Ok(shards) => Bound::Several(shards),
        Err(_) => unreachable!("a pass binds few shards"),
    }
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
