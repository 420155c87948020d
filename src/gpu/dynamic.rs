//! The kernels of tables whose rows come and go: `shaders/dynamic/`.

use std::sync::OnceLock;

use super::{
    Gpu, GpuShard, OutputDtype, Tracked,
    compose::ComposedShader,
    params::Params,
    pass::{narrow, split},
    pipeline::WORKGROUP,
};
use crate::{
    error::DeviceError,
    memory::{Need, Reservation},
    op::{IdBuffer, IdType},
    scheme::Category,
    units::round_up,
};

/// What rows are made of, as constants of kernels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RowKind {
    pub(crate) dim: u32,
    pub(crate) dtype: OutputDtype,
    /// 0: zeros, 1: uniform, 2: normal.
    pub(crate) kind: u32,
    /// Low word, high word.
    pub(crate) seed: [u32; 2],
    pub(crate) low: f32,
    pub(crate) high: f32,
    pub(crate) step: f32,
}

/// One of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kernel {
    Put,
    Make,
    Find { id_words: u32 },
    Fill { id_words: u32, dtype: OutputDtype },
}

/// How a kernel uses a buffer.
#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
}

impl Kernel {
    /// All of them, in the order of [`Kernel::place`].
    const ALL: [Self; 8] = [
        Self::Put,
        Self::Make,
        Self::Find { id_words: 1 },
        Self::Find { id_words: 2 },
        Self::Fill { id_words: 1, dtype: OutputDtype::F32 },
        Self::Fill { id_words: 1, dtype: OutputDtype::F16 },
        Self::Fill { id_words: 2, dtype: OutputDtype::F32 },
        Self::Fill { id_words: 2, dtype: OutputDtype::F16 },
    ];

    fn place(self) -> usize {
        Self::ALL.iter().position(|other| *other == self).unwrap_or(0)
    }

    /// The entry point, which is the stem of the kernel's file.
    fn entry(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Make => "make",
            Self::Find { .. } => "find",
            Self::Fill { .. } => "fill",
        }
    }

    fn source(self) -> String {
        const MURMUR3: &str = include_str!("../../shaders/index/murmur3.wgsl");
        const INITIAL: &str = include_str!("../../shaders/dynamic/initial.wgsl");
        const HALF: &str = include_str!("../../shaders/out/half.wgsl");
        let own: &[&str] = match self {
            Self::Put => &[include_str!("../../shaders/dynamic/put.wgsl")],
            Self::Make => &[MURMUR3, INITIAL, HALF, include_str!("../../shaders/dynamic/make.wgsl")],
            Self::Find { .. } => &[MURMUR3, include_str!("../../shaders/dynamic/find.wgsl")],
            Self::Fill { .. } => &[MURMUR3, INITIAL, HALF, include_str!("../../shaders/dynamic/fill.wgsl")],
        };
        [&[include_str!("../../shaders/contract.wgsl")], own].concat().join("\n")
    }

    fn constants(self, rows: &RowKind) -> Vec<(&'static str, f64)> {
        let flag = |is| f64::from(u8::from(is));
        let mut constants = vec![("DIM", f64::from(rows.dim)), ("WORKGROUP", f64::from(WORKGROUP))];
        if matches!(self, Self::Make | Self::Fill { .. }) {
            constants.extend([
                ("KIND", f64::from(rows.kind)),
                ("SEED_LOW", f64::from(rows.seed[0])),
                ("SEED_HIGH", f64::from(rows.seed[1])),
                ("LOW", f64::from(rows.low)),
                ("HIGH", f64::from(rows.high)),
                ("STEP", f64::from(rows.step)),
                ("HALVES", flag(rows.dtype == OutputDtype::F16)),
            ]);
        }
        if let Self::Find { id_words } | Self::Fill { id_words, .. } = self {
            constants.push(("ID_WORDS", f64::from(id_words)));
        }
        if let Self::Fill { dtype, .. } = self {
            constants.push(("OUT_HALVES", flag(dtype == OutputDtype::F16)));
        }
        constants
    }

    /// The storage buffers that it binds.
    fn bindings(self) -> &'static [(u32, Access)] {
        match self {
            Self::Put | Self::Make => &[(1, Access::Read), (3, Access::Write)],
            Self::Find { .. } => &[(1, Access::Read), (2, Access::Write), (3, Access::Write), (4, Access::Read)],
            Self::Fill { .. } => &[(1, Access::Read), (2, Access::Write), (3, Access::Write)],
        }
    }
}

/// For the shader gates.
pub(super) fn composed_shaders() -> Vec<ComposedShader> {
    let rows = |dim, dtype, kind| RowKind { dim, dtype, kind, seed: [7, u32::MAX], low: -0.5, high: 0.5, step: 0.01 };
    let rows = [rows(13, OutputDtype::F32, 1), rows(16, OutputDtype::F16, 2)];
    let each = |rows: RowKind| {
        Kernel::ALL.map(|kernel| ComposedShader {
            label: format!("{} dynamic {kernel:?} {rows:?}", kernel.entry()),
            source: kernel.source(),
            entry: kernel.entry(),
            constants: kernel.constants(&rows),
        })
    };
    rows.into_iter().flat_map(each).collect()
}

#[derive(Debug)]
struct Pipeline {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

/// What a dynamic table has on a device beside its rows.
#[derive(Debug)]
pub(crate) struct Kernels {
    rows: RowKind,
    made: [OnceLock<Pipeline>; Kernel::ALL.len()],
    /// Records on their way.
    records: Tracked,
    params: Tracked,
}

/// The map of ids as kernels search it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapBinding<'a> {
    pub(crate) buffer: &'a wgpu::Buffer,
    pub(crate) buckets: u32,
    pub(crate) seed: u32,
    /// Buckets that an id may be in.
    pub(crate) turns: u32,
}

/// A lookup by ids of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FindCall<'a> {
    pub(crate) ids: IdBuffer<'a>,
    pub(crate) map: MapBinding<'a>,
    /// `[ids]`.
    pub(crate) slots: &'a wgpu::Buffer,
    /// How many are missed, then those, where they are kept: 1 + 2 words each.
    pub(crate) missed: &'a wgpu::Buffer,
    pub(crate) keep: bool,
}

/// Bytes that missed ids take.
pub(crate) const fn missed_bytes(ids: u32) -> u64 {
    4 + 8 * ids as u64
}

/// How a dynamic table's own buffers are used.
pub(crate) const STORED: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_DST).union(wgpu::BufferUsages::COPY_SRC);

impl Kernels {
    /// Bytes for records on their way: those of all rows, or a chunk of them.
    fn record_bytes(rows: &RowKind, capacity: u32) -> u64 {
        let row = u64::from(rows.dim) * rows.dtype.bytes() + 4;
        (u64::from(capacity) * row.max(16)).min(1 << 20).max(row.max(16))
    }

    /// What the ledger gets for a table's kernels.
    pub(crate) fn needs(label: &str, rows: &RowKind, capacity: u32) -> [Need; 2] {
        [Self::record_bytes(rows, capacity), size_of::<Params>() as u64]
            .map(|bytes| Need::one(label, Category::Staging, round_up(bytes, 16)))
    }

    /// Makes the buffers, whose bytes are reserved.
    pub(crate) fn new(gpu: &Gpu, label: &str, rows: RowKind, [records, params]: [Reservation; 2]) -> Self {
        let records = gpu.buffer(records, label, STORED);
        let params = gpu.buffer(params, label, wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST);
        Self { rows, made: Default::default(), records, params }
    }

    fn pipeline(&self, gpu: &Gpu, kernel: Kernel) -> &Pipeline {
        self.made[kernel.place()].get_or_init(|| make_pipeline(gpu, kernel, &self.rows))
    }

    /// Submits one dispatch.
    fn dispatch(&self, gpu: &Gpu, kernel: Kernel, params: Params, threads: u64, bound: &[wgpu::BufferBinding<'_>]) {
        let pipeline = self.pipeline(gpu, kernel);
        let (grid, grid_width) = gpu.grid(threads);
        gpu.queue.write_buffer(&self.params, 0, bytemuck::bytes_of(&Params { grid_width, ..params }));
        let mut entries = vec![wgpu::BindGroupEntry { binding: 0, resource: self.params.as_entire_binding() }];
        entries.extend(kernel.bindings().iter().zip(bound).map(|((binding, _), bound)| wgpu::BindGroupEntry {
            binding: *binding,
            resource: wgpu::BindingResource::Buffer(bound.clone()),
        }));
        let group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(kernel.entry()),
            layout: &pipeline.layout,
            entries: &entries,
        });
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let descriptor = wgpu::ComputePassDescriptor { label: Some(kernel.entry()), ..Default::default() };
        let mut pass = encoder.begin_compute_pass(&descriptor);
        pass.set_pipeline(&pipeline.pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(grid.0, grid.1, grid.2);
        drop(pass);
        gpu.queue.submit([encoder.finish()]);
    }

    /// Records that take `record` bytes on their way, and `words` threads each, which are moved at a time.
    fn at_a_time(&self, gpu: &Gpu, record: u64, words: u64) -> usize {
        let records = (self.records.size() / record).min(gpu.most_threads() / words);
        usize::try_from(records.max(1)).unwrap_or(usize::MAX)
    }

    /// Writes records of `words` words to where they belong in `to`: `fill` appends the words of one.
    pub(crate) fn put<R: Copy>(
        &self,
        gpu: &Gpu,
        to: &wgpu::Buffer,
        words: u32,
        records: &[R],
        destination: impl Fn(R) -> u32,
        mut fill: impl FnMut(R, &mut Vec<u8>),
    ) -> Result<(), DeviceError> {
        let mut bytes = Vec::new();
        for records in records.chunks(self.at_a_time(gpu, 4 + 4 * u64::from(words), words.into())) {
            bytes.clear();
            records.iter().for_each(|record| bytes.extend_from_slice(&destination(*record).to_le_bytes()));
            records.iter().for_each(|record| fill(*record, &mut bytes));
            let params = Params { batch: narrow(records.len() as u64), extra1: words, ..Params::default() };
            let threads = records.len() as u64 * u64::from(words);
            gpu.catch_now("rows on their way", bytes.len() as u64, || {
                gpu.queue.write_buffer(&self.records, 0, &bytes);
                self.dispatch(gpu, Kernel::Put, params, threads, &[whole(&self.records), whole(to)]);
            })?;
        }
        Ok(())
    }

    /// Makes the rows of ids that are new, in the order of their slots.
    pub(crate) fn make(&self, gpu: &Gpu, shards: &[GpuShard], new: &[(u64, u32)]) -> Result<(), DeviceError> {
        let words = u64::from(self.rows.dim) * self.rows.dtype.bytes() / 4;
        let mut left = new;
        for shard in shards {
            let first = shard.params.first_row;
            let own = left.partition_point(|(_, slot)| slot - first < shard.rows);
            let (own, behind) = left.split_at(own);
            left = behind;
            for new in own.chunks(self.at_a_time(gpu, 12, words)) {
                let record = |(id, slot): &(u64, u32)| {
                    let [a, b, c, d, e, f, g, h] = id.to_le_bytes();
                    [[a, b, c, d], [e, f, g, h], (slot - first).to_le_bytes()]
                };
                let bytes: Vec<u8> = new.iter().flat_map(record).flatten().collect();
                let params = Params { batch: narrow(new.len() as u64), ..Params::default() };
                let threads = new.len() as u64 * words;
                gpu.catch_now("new rows", bytes.len() as u64, || {
                    gpu.queue.write_buffer(&self.records, 0, &bytes);
                    let spot = shard.buffer.spot();
                    let bound = [whole(&self.records), whole(spot.buffer())];
                    self.dispatch(gpu, Kernel::Make, params, threads, &bound);
                })?;
            }
        }
        Ok(())
    }

    /// Finds the slots of ids of the device.
    pub(crate) fn find(&self, gpu: &Gpu, call: &FindCall<'_>) {
        let (ids, ids_start) = bound_ids(gpu, call.ids);
        let params = Params {
            batch: call.ids.count,
            rows: call.map.buckets,
            ids_start,
            extra1: call.map.seed,
            extra2: call.map.turns,
            last_pass: u32::from(call.keep),
            ..Params::default()
        };
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.clear_buffer(call.missed, 0, Some(4));
        gpu.queue.submit([encoder.finish()]);
        let missed = if call.keep { missed_bytes(call.ids.count) } else { missed_bytes(1) };
        let bound = [
            ids,
            part(call.missed, 0, missed),
            part(call.slots, 0, 4 * u64::from(call.ids.count)),
            whole(call.map.buffer),
        ];
        let kernel = Kernel::Find { id_words: call.ids.id_type.words() };
        self.dispatch(gpu, kernel, params, call.ids.count.into(), &bound);
    }

    /// Writes the rows of ids that have no slot to the output, from byte 0 of it on.
    pub(crate) fn fill(
        &self,
        gpu: &Gpu,
        ids: IdBuffer<'_>,
        slots: &wgpu::Buffer,
        output: &wgpu::Buffer,
        dtype: OutputDtype,
    ) {
        let (bound, ids_start) = bound_ids(gpu, ids);
        let row_bytes = u64::from(self.rows.dim) * dtype.bytes();
        // Even, so that f16 rows of odd length begin on a word.
        let most = (gpu.storage_binding() / row_bytes).min(gpu.most_threads() / u64::from(self.rows.dim)).max(2) & !1;
        let mut first = 0;
        while first < u64::from(ids.count) {
            let rows = most.min(u64::from(ids.count) - first);
            let (from, skip) = split(first * row_bytes, gpu.storage_align());
            let words = (rows * row_bytes).div_ceil(4);
            let params = Params {
                batch: narrow(rows),
                position: narrow(first),
                ids_start,
                out_start: narrow(skip / 4),
                extra1: narrow(words),
                ..Params::default()
            };
            let bound = [bound.clone(), part(slots, 0, 4 * u64::from(ids.count)), part(output, from, skip + 4 * words)];
            let kernel = Kernel::Fill { id_words: ids.id_type.words(), dtype };
            self.dispatch(gpu, kernel, params, words, &bound);
            first += rows;
        }
    }
}

fn make_pipeline(gpu: &Gpu, kernel: Kernel, rows: &RowKind) -> Pipeline {
    let label = format!("{}.dynamic", kernel.entry());
    let source = kernel.source();
    let module = if gpu.checked {
        let source = wgpu::ShaderSource::Wgsl(source.into());
        gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(&label), source })
    } else {
        crate::raw::trusted_module(&gpu.device, &label, &source)
    };
    let entry = |binding, ty| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    };
    let mut entries = vec![entry(0, wgpu::BufferBindingType::Uniform)];
    entries.extend(kernel.bindings().iter().map(|(binding, access)| {
        entry(*binding, wgpu::BufferBindingType::Storage { read_only: matches!(access, Access::Read) })
    }));
    let layout = gpu
        .device
        .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: Some(&label), entries: &entries });
    let pipeline_layout = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some(&label),
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(&label),
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some(kernel.entry()),
        compilation_options: wgpu::PipelineCompilationOptions {
            constants: &kernel.constants(rows),
            ..Default::default()
        },
        cache: None,
    });
    Pipeline { pipeline, layout }
}

fn part(buffer: &wgpu::Buffer, offset: u64, bytes: u64) -> wgpu::BufferBinding<'_> {
    wgpu::BufferBinding { buffer, offset, size: wgpu::BufferSize::new(bytes) }
}

fn whole(buffer: &wgpu::Buffer) -> wgpu::BufferBinding<'_> {
    wgpu::BufferBinding { buffer, offset: 0, size: None }
}

/// Ids as kernels read them, and the words before the first.
fn bound_ids<'a>(gpu: &Gpu, ids: IdBuffer<'a>) -> (wgpu::BufferBinding<'a>, u32) {
    let (from, skip) = split(ids.offset, gpu.storage_align());
    (part(ids.buffer, from, skip + u64::from(ids.count) * id_bytes(ids.id_type)), narrow(skip / 4))
}

/// Bytes of an id.
fn id_bytes(id_type: IdType) -> u64 {
    u64::from(id_type.words()) * 4
}
