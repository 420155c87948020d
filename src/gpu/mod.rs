//! The device side: adapters, pipelines composed from `shaders/`, recording, and results coming back.

mod adapter;
mod bag;
mod buffer;
mod compact;
mod compose;
mod dynamic;
mod gather;
mod params;
mod pass;
mod pipeline;
mod readback;
mod recorded;
mod reuse;
mod roofline;
mod scope;
mod score;
mod shard;
mod wait;

use std::{
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicBool},
};

pub(crate) use adapter::{Found, find, judge, needed_limits, request};
pub(crate) use bag::BagCall;
pub(crate) use buffer::Tracked;
pub use compose::ComposedShader;
pub(crate) use compose::composed_shaders;
pub(crate) use dynamic::{FindCall, Kernels, MapBinding, RowKind, STORED, missed_bytes};
pub use gather::OutputDtype;
pub(crate) use gather::{GatherCall, IdBinding, Output, STATUS_BYTES, read_status};
pub(crate) use params::{SHARDS_A_PASS, params_layout};
pub use pipeline::Granularity;
pub(crate) use recorded::Recorded;
pub(crate) use reuse::{POOL_STEP, Pooled, PooledError};
pub use roofline::Roofline;
pub(crate) use score::ScoreCall;
pub(crate) use shard::{GpuShard, UploadError, need};

use crate::{
    error::DeviceError,
    memory::{Blocks, Ledger},
};

/// A device, and what was made on it.
pub(crate) struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) ledger: Ledger,
    pub(crate) limits: wgpu::Limits,
    pub(crate) granularity: Granularity,
    /// Whether wgpu's run-time checks stay in the shaders.
    pub(crate) checked: bool,
    pipelines: pipeline::Cache,
    reuse: Arc<reuse::Reuse>,
    recordings: recorded::Recordings,
    /// Tables that share buffers.
    blocks: Blocks<buffer::Owned>,
    /// Whether somebody moves tables now.
    compacting: AtomicBool,
    waiter: wait::Waiter,
    lost: Arc<OnceLock<String>>,
    /// Whether the device is this library's own.
    #[cfg(target_arch = "wasm32")]
    owned: bool,
}

/// How kernels are built for a device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tuning {
    pub(crate) granularity: Option<Granularity>,
    pub(crate) checked: bool,
}

impl Gpu {
    pub(crate) fn new(device: wgpu::Device, queue: wgpu::Queue, ledger: Ledger, tuning: Tuning) -> Self {
        let granularity =
            tuning.granularity.unwrap_or_else(|| Granularity::for_device(device.adapter_info().device_type));
        tracing::debug!(adapter = device.adapter_info().name, ?granularity, checked = tuning.checked, "device taken");
        Self {
            limits: device.limits(),
            reuse: Arc::default(),
            recordings: recorded::Recordings::default(),
            blocks: Blocks::new(pass::storage_align(&device.limits())),
            compacting: AtomicBool::new(false),
            waiter: wait::Waiter::new(&device),
            lost: Arc::default(),
            #[cfg(target_arch = "wasm32")]
            owned: false,
            pipelines: pipeline::Cache::default(),
            granularity,
            checked: tuning.checked,
            device,
            queue,
            ledger,
        }
    }

    /// Installs handlers on a device that is this library's own.
    pub(crate) fn own(&mut self) {
        #[cfg(target_arch = "wasm32")]
        {
            self.owned = true;
        }
        let lost = self.lost.clone();
        self.device.set_device_lost_callback(move |reason, message| {
            tracing::warn!(?reason, message, "device lost");
            let _ = lost.set(if message.is_empty() { format!("{reason:?}") } else { message });
        });
        self.device.on_uncaptured_error(Arc::new(|error: wgpu::Error| {
            tracing::error!(%error, "uncaptured device error");
        }));
    }

    /// Remembers that the device is gone, and gives the error for it.
    pub(crate) fn lose(&self, reason: &str) -> DeviceError {
        DeviceError::Lost { reason: self.lost.get_or_init(|| reason.to_owned()).clone() }
    }

    /// Refuses work on a device known to be gone.
    pub(crate) fn alive(&self) -> Result<(), DeviceError> {
        match self.lost.get() {
            Some(reason) => Err(DeviceError::Lost { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Gives back the memory of buffers and pipelines that are kept for reuse.
    pub(crate) fn trim(&self) {
        self.recordings.sweep();
        self.reuse.clear();
        self.pipelines.clear();
    }
}

#[cfg(target_arch = "wasm32")]
impl Drop for Gpu {
    fn drop(&mut self) {
        // A dropped device keeps its memory until the garbage collector comes by.
        if self.owned {
            self.device.destroy();
        }
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu")
            .field("adapter", &self.device.adapter_info().name)
            .field("granularity", &self.granularity)
            .field("checked", &self.checked)
            .field("binding", &self.limits.max_storage_buffer_binding_size)
            .finish_non_exhaustive()
    }
}
