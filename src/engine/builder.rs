//! Choosing what an engine runs on.

use std::sync::{Arc, Once};

use super::{BackendInfo, Engine, Inner};
use crate::{
    error::EngineError,
    gpu::{self, Found, Granularity},
    units::Bytes,
};

/// Which backend an engine should take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackendChoice {
    /// A discrete, integrated or virtual GPU; the host where there is none.
    #[default]
    Auto,
    /// The host backend.
    Host,
    /// The first adapter whose description contains the words, in any case: its name, driver, interface (`vulkan`, `metal`,
    /// `dx12`, `gl`) and type (`discrete`, `integrated`, `virtual`, `software`). Software adapters are taken too.
    Adapter(String),
}

impl BackendChoice {
    /// Reads a choice as `GATHERUM_BACKEND` has it: empty or `auto`, `host`, or words of an adapter's description.
    ///
    /// # Examples
    /// ```
    /// use gatherum::BackendChoice;
    /// assert_eq!(BackendChoice::parse("host"), BackendChoice::Host);
    /// assert_eq!(BackendChoice::parse("vulkan llvmpipe"), BackendChoice::Adapter("vulkan llvmpipe".into()));
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "" | "auto" => Self::Auto,
            "host" => Self::Host,
            words => Self::Adapter(words.to_owned()),
        }
    }
}

/// How an engine is made.
#[derive(Clone, Debug, Default)]
pub struct EngineBuilder {
    backend: Option<BackendChoice>,
    pub(super) budget: Option<Bytes>,
    pub(super) granularity: Option<Granularity>,
    pub(super) checked: bool,
    power: wgpu::PowerPreference,
}

impl EngineBuilder {
    /// Takes this backend, whatever `GATHERUM_BACKEND` says.
    #[must_use]
    pub fn backend(mut self, choice: BackendChoice) -> Self {
        self.backend = Some(choice);
        self
    }

    /// Which of several GPUs to take: the fastest, unless less power is asked for. A browser takes it as a hint.
    #[must_use]
    pub fn power_preference(mut self, power: wgpu::PowerPreference) -> Self {
        self.power = power;
        self
    }

    /// Refuses whatever would pass `budget`, over all buffers of the engine, tables and scratch together.
    #[must_use]
    pub fn memory_budget(mut self, budget: Bytes) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Takes this granularity of kernels instead of the one for the type of device.
    #[must_use]
    pub fn granularity(mut self, granularity: Granularity) -> Self {
        self.granularity = Some(granularity);
        self
    }

    /// Keeps wgpu's run-time checks in the shaders. The kernels check ids and positions themselves: this is for those who
    /// want both, at up to 1.6 times the time on software adapters.
    #[must_use]
    pub fn shader_checks(mut self, checked: bool) -> Self {
        self.checked = checked;
        self
    }

    /// Makes the engine.
    ///
    /// # Errors
    /// [`EngineError::NoAdapter`] where the chosen adapter is not there, [`EngineError::Limit`] and
    /// [`EngineError::NoDevice`] where it does not serve. [`BackendChoice::Auto`] passes over adapters that do not.
    pub async fn build(self) -> Result<Engine, EngineError> {
        let choice = self
            .backend
            .clone()
            .unwrap_or_else(|| BackendChoice::parse(&std::env::var("GATHERUM_BACKEND").unwrap_or_default()));
        match choice {
            BackendChoice::Host => Ok(Engine::on_host(self)),
            BackendChoice::Adapter(words) => {
                let found = gpu::find(self.power).await;
                let Some(one) = found.iter().find(|found| matches(found, &words)) else {
                    let names: Vec<String> = found.iter().map(description).collect();
                    let found = if names.is_empty() { "none".to_owned() } else { names.join("; ") };
                    return Err(EngineError::NoAdapter { wanted: words, found });
                };
                self.open(one).await
            }
            BackendChoice::Auto => self.best().await,
        }
    }

    /// As [`EngineBuilder::build`], blocking.
    ///
    /// # Errors
    /// As [`EngineBuilder::build`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn build_blocking(self) -> Result<Engine, EngineError> {
        pollster::block_on(self.build())
    }

    /// Makes an engine on a device of the caller's: see [`Engine::with_device`].
    ///
    /// # Errors
    /// As [`Engine::with_device`].
    pub fn with_device(self, device: wgpu::Device, queue: wgpu::Queue) -> Result<Engine, EngineError> {
        gpu::judge(&device.adapter_info().name, &device.limits(), None)?;
        Ok(Engine { inner: Arc::new(Inner::on_device(device, queue, &self, true)) })
    }

    async fn open(self, found: &Found) -> Result<Engine, EngineError> {
        let (device, queue) = gpu::request(found).await?;
        gpu::judge(&found.info.name, &device.limits(), None)?;
        Ok(Engine { inner: Arc::new(Inner::on_device(device, queue, &self, false)) })
    }

    /// The first GPU that serves, else the host: it is faster than any software adapter.
    async fn best(self) -> Result<Engine, EngineError> {
        static SAID: Once = Once::new();
        let found = gpu::find(self.power).await;
        for one in found.iter().filter(|found| found.info.device_type != wgpu::DeviceType::Cpu) {
            match self.clone().open(one).await {
                Ok(engine) => return Ok(engine),
                Err(error) => tracing::warn!(%error, "adapter passed over"),
            }
        }
        SAID.call_once(|| {
            tracing::warn!(software_adapters = found.len(), "no GPU found: the host backend serves");
        });
        Ok(Engine::on_host(self))
    }
}

/// What the words of a choice are looked for in.
fn description(found: &Found) -> String {
    BackendInfo::from_info(&found.info).to_string()
}

fn matches(found: &Found, words: &str) -> bool {
    let description = description(found).to_lowercase();
    words.to_lowercase().split_whitespace().all(|word| description.contains(word))
}
