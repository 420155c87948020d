//! The copy roofline: as many bytes as a gather writes, moved by the plainest kernel there is.

use super::{Gpu, Tracked, pipeline::WORKGROUP};
use crate::{error::OverBudget, memory::Need, scheme::Category};

/// A copy of `bytes` from one buffer of the device to another.
#[derive(Debug)]
pub struct Roofline {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    grid: (u32, u32),
    /// Given back with this.
    _buffers: Vec<Tracked>,
}

impl Roofline {
    /// A copy by threads that move `span` x 16 bytes each.
    pub(crate) fn new(gpu: &Gpu, bytes: u64, span: u32) -> Result<Self, OverBudget> {
        let needs = ["copy.from", "copy.to"].map(|label| Need::one(label, Category::Staging, bytes));
        let reserved = gpu.reserve(needs.to_vec())?;
        let make = |reserved| gpu.buffer(reserved, "copy", wgpu::BufferUsages::STORAGE);
        let buffers: Vec<Tracked> = reserved.into_iter().map(make).collect();
        let device = &gpu.device;
        let module = crate::raw::trusted_module(device, "copy", include_str!("../../shaders/op/copy.wgsl"));
        let lanes = u32::try_from(bytes / 16).unwrap_or(u32::MAX);
        let groups = lanes.div_ceil(span).div_ceil(WORKGROUP);
        let width = groups.clamp(1, gpu.limits.max_compute_workgroups_per_dimension);
        let constants = [
            ("WORKGROUP", f64::from(WORKGROUP)),
            ("SPAN", f64::from(span)),
            ("LANES", f64::from(lanes)),
            ("GRID_WIDTH", f64::from(width * WORKGROUP)),
        ];
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some("copy"),
            layout: None,
            module: &module,
            entry_point: Some("copy"),
            compilation_options: wgpu::PipelineCompilationOptions { constants: &constants, ..Default::default() },
            cache: None,
        });
        let entries: Vec<_> = (0..)
            .zip(&buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("copy"),
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        Ok(Self { pipeline, group, grid: (width, groups.div_ceil(width)), _buffers: buffers })
    }

    /// Records one copy.
    pub fn encode(&self, encoder: &mut wgpu::CommandEncoder) {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.group, &[]);
        pass.dispatch_workgroups(self.grid.0, self.grid.1, 1);
    }
}
