//! What an engine runs on, in words and numbers.

use std::fmt;

use crate::{error::EngineError, gpu::Found};

/// What an engine runs on. Prints as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendInfo {
    /// The adapter's name, or `host`.
    pub name: String,
    /// `discrete`, `integrated`, `virtual`, `software`, `other`, or `host`.
    pub kind: &'static str,
    /// `vulkan`, `metal`, `dx12`, `gl`, `webgpu`, or empty on the host.
    pub interface: String,
    /// Driver and its version, where the driver tells.
    pub driver: String,
}

impl BackendInfo {
    pub(super) fn host() -> Self {
        let threads = rayon::current_num_threads();
        Self { name: "host".to_owned(), kind: "host", interface: String::new(), driver: format!("{threads} threads") }
    }

    pub(super) fn of(device: &wgpu::Device) -> Self {
        Self::from_info(&device.adapter_info())
    }

    pub(super) fn from_info(info: &wgpu::AdapterInfo) -> Self {
        let kind = match info.device_type {
            wgpu::DeviceType::DiscreteGpu => "discrete",
            wgpu::DeviceType::IntegratedGpu => "integrated",
            wgpu::DeviceType::VirtualGpu => "virtual",
            wgpu::DeviceType::Cpu => "software",
            wgpu::DeviceType::Other => "other",
        };
        let driver = format!("{} {}", info.driver, info.driver_info);
        Self {
            name: info.name.clone(),
            kind,
            interface: info.backend.to_str().to_owned(),
            driver: driver.trim().to_owned(),
        }
    }
}

impl fmt::Display for BackendInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == "host" {
            return write!(f, "host ({})", self.driver);
        }
        write!(f, "{} ({}, {}", self.name, self.kind, self.interface)?;
        if !self.driver.is_empty() {
            write!(f, ", {}", self.driver)?;
        }
        f.write_str(")")
    }
}

/// An adapter, and whether an engine would take it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AdapterReport {
    /// What it is.
    pub backend: BackendInfo,
    /// What it allows at most.
    pub limits: wgpu::Limits,
    /// What it can do beyond the base.
    pub features: wgpu::Features,
    /// As wgpu describes it.
    pub info: wgpu::AdapterInfo,
    /// Why an engine would not take it.
    pub verdict: Result<(), EngineError>,
}

impl AdapterReport {
    pub(super) fn new(found: &Found) -> Self {
        Self {
            backend: BackendInfo::from_info(&found.info),
            limits: found.adapter.limits(),
            features: found.adapter.features(),
            info: found.info.clone(),
            verdict: found.verdict.clone(),
        }
    }
}
