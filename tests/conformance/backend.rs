//! The backends that the suite runs on, and the engines made on them.

use std::{
    fmt,
    sync::{Mutex, OnceLock, PoisonError},
};

use gatherum::{AdapterReport, BackendChoice, Engine, EngineBuilder, Granularity, Scheme, wgpu};

use crate::case::leads;

/// An adapter that tests know by name.
struct Kind {
    name: &'static str,
    about: &'static str,
    is: fn(&wgpu::AdapterInfo) -> bool,
}

/// All of them. Where several adapters are of a kind, the one that an engine prefers is taken.
const KINDS: [Kind; 4] = [
    Kind {
        name: "lavapipe",
        about: "Mesa's software Vulkan",
        is: |info| info.backend == wgpu::Backend::Vulkan && info.name.contains("llvmpipe"),
    },
    Kind {
        name: "swiftshader",
        about: "Chromium's software Vulkan",
        is: |info| info.backend == wgpu::Backend::Vulkan && info.name.contains("SwiftShader"),
    },
    Kind { name: "gl", about: "OpenGL, of whatever driver", is: |info| info.backend == wgpu::Backend::Gl },
    Kind {
        name: "gpu",
        about: "an adapter that is no software",
        is: |info| info.device_type != wgpu::DeviceType::Cpu && info.backend != wgpu::Backend::Gl,
    },
];

/// The variable that names the adapters which must be there.
const REQUIRED: &str = "GATHERUM_TEST_ADAPTERS";

/// A backend, or why there is none.
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) found: Result<&'static Backend, String>,
    /// Whether its absence is a failure.
    pub(crate) required: bool,
}

/// The host, and each adapter that is named in the environment, or that there could be.
pub(crate) fn wanted() -> Vec<Wanted> {
    let reports = Engine::adapters_blocking();
    let named = std::env::var(REQUIRED).ok();
    let names: Vec<String> = match &named {
        Some(names) => names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
        None => KINDS.iter().map(|kind| kind.name.to_owned()).collect(),
    };
    let host: &Backend = Box::leak(Box::new(Backend::new("host", None)));
    let mut all = vec![Wanted { name: "host".to_owned(), found: Ok(host), required: true }];
    all.extend(names.into_iter().map(|name| {
        let found = find(&name, &reports).map(|backend| &*Box::leak(Box::new(backend)));
        Wanted { name, found, required: named.is_some() }
    }));
    all
}

/// The one of that name, for a child process.
pub(crate) fn one(name: &str) -> Backend {
    match name {
        "host" => Backend::new("host", None),
        name => find(name, &Engine::adapters_blocking()).expect("the parent has found it"),
    }
}

fn find(name: &str, reports: &[AdapterReport]) -> Result<Backend, String> {
    let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
        let known: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
        return Err(format!("no adapter is called `{name}`; {REQUIRED} takes {}", known.join(", ")));
    };
    match reports.iter().find(|report| (kind.is)(&report.info)) {
        Some(report) => Ok(Backend::new(kind.name, Some(report))),
        None => {
            let found: Vec<_> = reports.iter().map(|report| report.backend.to_string()).collect();
            Err(format!("not found: {}; there are: [{}]", kind.about, found.join("; ")))
        }
    }
}

/// How an engine's kernels are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tuning {
    /// As the engine chooses.
    Own,
    Fine,
    Coarse,
    /// With wgpu's run-time checks in the shaders.
    FineChecked,
    CoarseChecked,
}

/// A backend, and what was made on it.
pub(crate) struct Backend {
    pub(crate) name: &'static str,
    adapter: Option<AdapterReport>,
    engines: [OnceLock<Engine>; 5],
    lent: Mutex<Vec<(u64, u64, Engine)>>,
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Backend {
    fn new(name: &'static str, adapter: Option<&AdapterReport>) -> Self {
        Self { name, adapter: adapter.cloned(), engines: Default::default(), lent: Mutex::default() }
    }

    pub(crate) fn is_host(&self) -> bool {
        self.adapter.is_none()
    }

    /// Whether what lies on the device lies in this process's memory.
    pub(crate) fn in_host_memory(&self) -> bool {
        self.adapter.as_ref().is_none_or(|adapter| adapter.info.device_type == wgpu::DeviceType::Cpu)
    }

    /// What the adapter allows.
    pub(crate) fn limits(&self) -> &wgpu::Limits {
        &self.adapter.as_ref().expect("a device's backend").limits
    }

    /// An engine's builder that will take this backend.
    pub(crate) fn builder(&self) -> EngineBuilder {
        Engine::builder().backend(match &self.adapter {
            None => BackendChoice::Host,
            // All the words of its description: no other adapter has them.
            Some(adapter) => BackendChoice::Adapter(adapter.backend.to_string()),
        })
    }

    /// An engine of the caller's own.
    pub(crate) fn fresh(&self) -> Engine {
        self.builder().build_blocking().expect("an engine")
    }

    /// The engine that tests share.
    pub(crate) fn engine(&self) -> &Engine {
        self.tuned(Tuning::Own)
    }

    /// Both grains of kernels, with and without wgpu's checks; the host has no kernels.
    pub(crate) fn tunings(&self) -> &'static [Tuning] {
        if self.is_host() {
            return &[Tuning::Own];
        }
        &[Tuning::Fine, Tuning::Coarse, Tuning::FineChecked, Tuning::CoarseChecked]
    }

    /// Those that a case of all schemes needs: wgpu's checks are around a scheme's code, not of it, so one variant has them.
    pub(crate) fn tunings_for(&self, scheme: &Scheme) -> &'static [Tuning] {
        let all = self.tunings();
        if leads(scheme) { all } else { &all[..all.len().min(2)] }
    }

    /// A shared engine whose kernels are built so.
    pub(crate) fn tuned(&self, tuning: Tuning) -> &Engine {
        self.engines[tuning as usize].get_or_init(|| {
            let builder = self.builder();
            let builder = match tuning {
                Tuning::Own => builder,
                Tuning::Fine | Tuning::FineChecked => builder.granularity(Granularity::Fine),
                Tuning::Coarse | Tuning::CoarseChecked => builder.granularity(Granularity::Coarse),
            };
            let checked = matches!(tuning, Tuning::FineChecked | Tuning::CoarseChecked);
            builder.shader_checks(checked).build_blocking().expect("an engine")
        })
    }

    /// A shared engine on a device that binds at most `binding` bytes and has buffers of at most `buffer` bytes.
    pub(crate) fn narrow(&self, binding: u64, buffer: u64) -> Engine {
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., engine)) = lent.iter().find(|(one, other, _)| (*one, *other) == (binding, buffer)) {
            return engine.clone();
        }
        let (device, queue) = self.device(wgpu::Limits {
            max_storage_buffer_binding_size: binding,
            max_buffer_size: buffer,
            ..wgpu::Limits::default()
        });
        assert_eq!(device.limits().max_storage_buffer_binding_size, binding);
        let engine = Engine::with_device(device, queue).expect("an engine on a lent device");
        lent.push((binding, buffer, engine.clone()));
        engine
    }

    /// Gives back what shared engines keep for the next call: few tests make the same pipelines, and a software adapter's are
    /// large.
    pub(crate) fn trim(&self) {
        self.engines.iter().filter_map(OnceLock::get).for_each(Engine::trim);
        let lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        lent.iter().for_each(|(.., engine)| engine.trim());
    }

    /// A device of the caller's own, with these limits and no features.
    pub(crate) fn device(&self, limits: wgpu::Limits) -> (wgpu::Device, wgpu::Queue) {
        let wanted = &self.adapter.as_ref().expect("a device's backend").info;
        // An instance of its own, as each engine has: on GL all devices of an instance wait for one another.
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wanted.backend.into(),
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = pollster::block_on(instance.enumerate_adapters(wanted.backend.into()));
        let same = |info: &wgpu::AdapterInfo| info.name == wanted.name && info.driver_info == wanted.driver_info;
        let adapter =
            adapters.into_iter().find(|adapter| same(&adapter.get_info())).expect("the adapter is still there");
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("a caller's device"),
            required_limits: limits,
            ..wgpu::DeviceDescriptor::default()
        };
        pollster::block_on(adapter.request_device(&descriptor)).expect("a device")
    }
}
