//! Which adapters there are, and which of them the kernels run on.

use crate::{
    error::EngineError,
    gpu::{params::SHARDS_A_PASS, pipeline::WORKGROUP},
};

/// An adapter, and whether the engine would take it.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) adapter: wgpu::Adapter,
    pub(crate) info: wgpu::AdapterInfo,
    pub(crate) verdict: Result<(), EngineError>,
}

/// Every adapter, in the order in which an engine prefers them: of high performance, unless less power is asked for.
pub(crate) async fn find(power: wgpu::PowerPreference) -> Vec<Found> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::all(),
        flags: wgpu::InstanceFlags::empty(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    #[cfg(not(target_arch = "wasm32"))]
    let adapters = instance.enumerate_adapters(wgpu::Backends::all()).await;
    // A browser offers the one adapter it thinks best.
    #[cfg(target_arch = "wasm32")]
    let adapters = {
        let power_preference = match power {
            wgpu::PowerPreference::LowPower => power,
            _ => wgpu::PowerPreference::HighPerformance,
        };
        let options = wgpu::RequestAdapterOptions { power_preference, ..Default::default() };
        instance.request_adapter(&options).await.into_iter().collect::<Vec<_>>()
    };
    let mut found: Vec<Found> = adapters
        .into_iter()
        .map(|adapter| {
            let info = adapter.get_info();
            let verdict = judge(&info.name, &adapter.limits(), Some(&adapter.get_downlevel_capabilities()));
            Found { adapter, info, verdict }
        })
        .collect();
    found.sort_by_key(|found| (rank(found.info.device_type, power), api_rank(found.info.backend)));
    found
}

/// Discrete before integrated before virtual before software; integrated first where less power is asked for.
fn rank(device: wgpu::DeviceType, power: wgpu::PowerPreference) -> u8 {
    match device {
        wgpu::DeviceType::IntegratedGpu if power == wgpu::PowerPreference::LowPower => 0,
        wgpu::DeviceType::DiscreteGpu if power == wgpu::PowerPreference::LowPower => 1,
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu | wgpu::DeviceType::Other => 2,
        wgpu::DeviceType::Cpu => 3,
    }
}

/// The same adapter may be there by several interfaces; GL is the last resort.
fn api_rank(backend: wgpu::Backend) -> u8 {
    u8::from(backend == wgpu::Backend::Gl)
}

/// Limits to ask an adapter for: the defaults, and all it has of binding and buffer size. Asking for more than it has
/// would fail, so what it has less of is asked for as it is; [`judge`] says whether that is enough.
pub(crate) fn needed_limits(adapter: &wgpu::Limits) -> wgpu::Limits {
    wgpu::Limits {
        max_storage_buffer_binding_size: adapter.max_storage_buffer_binding_size,
        max_buffer_size: adapter.max_buffer_size,
        ..wgpu::Limits::default().or_worse_values_from(adapter)
    }
}

/// Whether the kernels run within these limits.
pub(crate) fn judge(
    adapter: &str,
    limits: &wgpu::Limits,
    downlevel: Option<&wgpu::DownlevelCapabilities>,
) -> Result<(), EngineError> {
    let refuse = |limit, has, needs| Err(EngineError::Limit { adapter: adapter.to_owned(), limit, has, needs });
    if downlevel.is_some_and(|caps| !caps.flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS)) {
        return refuse("compute shaders", 0, 1);
    }
    // `unpack2x16float`, which WebGPU has everywhere and old drivers may not.
    if downlevel.is_some_and(|caps| !caps.flags.contains(wgpu::DownlevelFlags::SHADER_F16_IN_F32)) {
        return refuse("f16 values in shaders", 0, 1);
    }
    let storage = SHARDS_A_PASS as u64 + 3;
    for (limit, has, needs) in [
        ("max_storage_buffers_per_shader_stage", u64::from(limits.max_storage_buffers_per_shader_stage), storage),
        ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size, 16 << 20),
        ("max_buffer_size", limits.max_buffer_size, 16 << 20),
        (
            "max_compute_invocations_per_workgroup",
            u64::from(limits.max_compute_invocations_per_workgroup),
            u64::from(WORKGROUP),
        ),
        ("max_compute_workgroup_size_x", u64::from(limits.max_compute_workgroup_size_x), u64::from(WORKGROUP)),
        ("max_compute_workgroups_per_dimension", u64::from(limits.max_compute_workgroups_per_dimension), 1 << 10),
        ("max_bindings_per_bind_group", u64::from(limits.max_bindings_per_bind_group), storage + 1),
    ] {
        if has < needs {
            return refuse(limit, has, needs);
        }
    }
    Ok(())
}

/// A device of `found`, on default limits but for the size of buffers.
pub(crate) async fn request(found: &Found) -> Result<(wgpu::Device, wgpu::Queue), EngineError> {
    found.verdict.clone()?;
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("gatherum"),
        required_features: wgpu::Features::empty(),
        required_limits: needed_limits(&found.adapter.limits()),
        // Buffers are few and large: blocks to carve them from would only be held in vain.
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..wgpu::DeviceDescriptor::default()
    };
    let no_device = |error: wgpu::RequestDeviceError| EngineError::NoDevice {
        adapter: found.info.name.clone(),
        reason: error.to_string(),
    };
    found.adapter.request_device(&descriptor).await.map_err(no_device)
}
