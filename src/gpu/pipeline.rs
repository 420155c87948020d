//! Pipelines, made once for each kind of call.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use super::{
    Gpu,
    compose::{Bound, Op, Sink, compose, table_constants},
    params::Params,
};
use crate::{
    op::{IdType, MOST_TURNS, STRETCH, longest_span},
    scheme::TableSpec,
};

/// Threads of a workgroup.
pub(crate) const WORKGROUP: u32 = 64;

/// How much of a row one thread takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Granularity {
    /// 16 columns: neighbouring threads write neighbouring bytes, as GPUs want it.
    Fine,
    /// A row, or 4,096 columns of a longer one: fewest threads, as software adapters want it.
    Coarse,
}

impl Granularity {
    /// The choice for a type of device: coarse for software adapters, fine for all others.
    pub(crate) fn for_device(device: wgpu::DeviceType) -> Self {
        if device == wgpu::DeviceType::Cpu { Self::Coarse } else { Self::Fine }
    }

    /// Groups of 16 columns a thread, for rows of a table.
    pub(crate) fn span(self, spec: &TableSpec) -> u32 {
        match self {
            Self::Fine => 1,
            Self::Coarse => longest_span(spec),
        }
    }

    /// The same for bags.
    pub(crate) fn bag_span(self, spec: &TableSpec) -> u32 {
        let longest = MOST_TURNS / (STRETCH * bag_turns(spec));
        self.span(spec).min(longest.max(1))
    }
}

/// Ids of a bag that a thread takes at a time, [`STRETCH`] or fewer.
pub(crate) fn stretch(spec: &TableSpec) -> usize {
    (MOST_TURNS / bag_turns(spec)).clamp(1, STRETCH) as usize
}

/// Turns of loops for an id and 16 columns of its row.
fn bag_turns(spec: &TableSpec) -> u32 {
    spec.scheme().codec().turns(spec.shape().dim()) + 6
}

/// What tells pipelines apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) scheme: String,
    pub(crate) dim: u32,
    pub(crate) bound: Bound,
    pub(crate) sink: Sink,
    pub(crate) op: Op,
    pub(crate) ids: IdKind,
}

/// What kernels know of ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct IdKind {
    words: u32,
    /// Whether those of two words have a sign, where that makes a difference: a row number has none of either.
    signed: bool,
    wrap: bool,
}

impl IdKind {
    pub(crate) fn new(spec: &TableSpec, id_type: IdType, wrap: bool) -> Self {
        let signed = id_type == IdType::I64 && spec.buckets().is_some();
        Self { words: id_type.words(), signed, wrap }
    }

    fn constants(self) -> impl Iterator<Item = (&'static str, f64)> {
        let flag = |name, is: bool| (name, f64::from(u8::from(is)));
        let both = [("ID_WORDS", f64::from(self.words)), flag("WRAP", self.wrap)];
        both.into_iter().chain(self.signed.then_some(flag("SIGNED", true)))
    }
}

/// A pipeline and the layout of its one bind group.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
    /// The shards that it binds.
    pub(crate) bound: Bound,
}

/// Pipelines made so far.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    made: Mutex<HashMap<Key, Pipeline>>,
}

impl Cache {
    /// Forgets all; those in use live on until they are not.
    pub(crate) fn clear(&self) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Gpu {
    /// The pipeline for `key`, made now if it is the first call of its kind.
    pub(crate) fn pipeline(&self, spec: &TableSpec, key: Key) -> Pipeline {
        let mut made = self.pipelines.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = made.get(&key) {
            return pipeline.clone();
        }
        let pipeline = self.make_pipeline(spec, &key);
        made.insert(key, pipeline.clone());
        pipeline
    }

    fn make_pipeline(&self, spec: &TableSpec, key: &Key) -> Pipeline {
        let label = format!("{}.{}", key.op.entry(), spec.scheme().stem());
        let source = compose(spec.scheme(), key.bound, key.sink, key.op);
        let module = if self.checked {
            let source = wgpu::ShaderSource::Wgsl(source.into());
            self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(&label), source })
        } else {
            crate::raw::trusted_module(&self.device, &label, &source)
        };
        let layout = self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(&label),
            entries: &layout_entries(key.bound, key.op),
        });
        let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(&label),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let mut constants = table_constants(spec, key.bound, key.op);
        constants.push(("WORKGROUP", f64::from(WORKGROUP)));
        let span = match key.op {
            Op::Bag { .. } => self.granularity.bag_span(spec),
            // The order of its sums does not depend on the grain.
            Op::Score { .. } => longest_span(spec),
            _ => self.granularity.span(spec),
        };
        constants.push(("SPAN", f64::from(span)));
        if key.op.has_ids() {
            constants.extend(key.ids.constants());
        }
        constants.extend(key.op.constants());
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&label),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some(key.op.entry()),
            compilation_options: wgpu::PipelineCompilationOptions { constants: &constants, ..Default::default() },
            cache: None,
        });
        tracing::debug!(label, ?key, granularity = ?self.granularity, "pipeline made");
        Pipeline { pipeline, layout, bound: key.bound }
    }
}

fn layout_entries(bound: Bound, op: Op) -> Vec<wgpu::BindGroupLayoutEntry> {
    let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
    let kinds = [wgpu::BufferBindingType::Uniform, storage(true), storage(false), storage(false)];
    let all = kinds.into_iter().chain((0..bound.places()).map(|_| storage(true)));
    (0..)
        .zip(all)
        .filter(|(binding, _)| *binding != 2 || op.has_status())
        .map(|(binding, ty)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty,
                has_dynamic_offset: false,
                min_binding_size: if binding == 0 { wgpu::BufferSize::new(size_of::<Params>() as u64) } else { None },
            },
            count: None,
        })
        .collect()
}
