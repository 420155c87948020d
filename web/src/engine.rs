//! The engine.

use gatherum::{BackendChoice, Bytes, Engine, OnDemand, io::StoredTable, wgpu};
use js_sys::{Array, Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::{
    error::{ToJs, bad_argument},
    measure::{RawCopies, RawGathers},
    object::{bytes, number, object},
    parts::PageParts,
    source::PageSource,
    stream::RawStream,
    table::RawTable,
};

/// Where tables live.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawEngine {
    engine: Engine,
}

#[wasm_bindgen]
impl RawEngine {
    /// An engine on `auto`, `webgpu` or `host`, whose bytes stay under a budget.
    pub async fn create(backend: String, low_power: bool, budget: Option<f64>) -> Result<RawEngine, JsValue> {
        let choice = match &*backend {
            "auto" => BackendChoice::Auto,
            "host" => BackendChoice::Host,
            // A browser's adapter says nothing of itself but this.
            "webgpu" => BackendChoice::Adapter("webgpu".to_owned()),
            other => return Err(bad_argument(&format!("backend is `{other}`; it may be auto, webgpu or host"))),
        };
        let power = if low_power { wgpu::PowerPreference::LowPower } else { wgpu::PowerPreference::HighPerformance };
        let mut builder = Engine::builder().backend(choice).power_preference(power);
        if let Some(budget) = budget {
            builder = builder.memory_budget(Bytes(bytes(budget)));
        }
        let engine = builder.build().await.map_err(|error| error.to_js())?;
        Ok(Self { engine })
    }

    /// Name, kind (`other`, `software` or `host`) and interface of what it runs on.
    pub fn backend(&self) -> JsValue {
        let backend = self.engine.backend();
        object([
            ("name", (&*backend.name).into()),
            ("kind", backend.kind.into()),
            ("interface", (&*backend.interface).into()),
        ])
    }

    /// The `GPUDevice`; undefined on the host.
    pub fn device(&self) -> JsValue {
        let device = self.engine.device().and_then(wgpu::Device::as_webgpu);
        device.map_or(JsValue::UNDEFINED, |device| device.clone().into())
    }

    /// The ledger.
    pub fn memory(&self) -> JsValue {
        let report = self.engine.memory();
        let rows: Array = report
            .rows
            .iter()
            .map(|row| {
                object([
                    ("label", (&*row.label).into()),
                    ("category", row.category.to_string().into()),
                    ("live", number(row.live.0)),
                    ("peak", number(row.peak.0)),
                ])
            })
            .collect();
        object([
            ("live", number(report.live.0)),
            ("peak", number(report.peak.0)),
            ("budget", report.budget.map_or(JsValue::UNDEFINED, |budget| number(budget.0))),
            ("rows", rows.into()),
        ])
    }

    /// Whether the device is known to be lost.
    pub fn lost(&self) -> bool {
        self.engine.is_lost()
    }

    /// Gives back what is kept for the next call.
    pub fn trim(&self) {
        self.engine.trim();
    }

    /// Opens a table file of `size` bytes, of which `read` gives ranges: the header is read, and the words where they are wanted.
    /// Shards are about `shard` bytes, and take at most `budget` together.
    pub fn open(
        &self,
        name: String,
        size: f64,
        read: Function,
        shard: f64,
        budget: Option<f64>,
        with_words: bool,
    ) -> Promise {
        let (engine, source) = (self.engine.clone(), PageSource::new(name, bytes(size), read));
        let options = OnDemand {
            shard: Bytes(bytes(shard)),
            budget: budget.map(|budget| Bytes(bytes(budget))),
            ..OnDemand::default()
        };
        future_to_promise(async move {
            let stored = StoredTable::open(source).await.map_err(|error| error.to_js())?;
            let words = match with_words {
                true => stored.words().await.map_err(|error| error.to_js())?,
                false => None,
            };
            let table = engine.load_on_demand(stored, &options).map_err(|error| error.to_js())?;
            Ok(RawTable::new(table, words).into())
        })
    }

    /// Loads a table whose parts `read` gives: of the part of a name, the bytes from one place up to another.
    #[wasm_bindgen(js_name = loadParts)]
    pub fn load_parts(
        &self,
        name: String,
        scheme: String,
        rows: u32,
        dim: u32,
        read: Function,
    ) -> Result<Promise, JsValue> {
        let (engine, parts) = (self.engine.clone(), PageParts::new(name, &scheme, rows, dim, read)?);
        Ok(future_to_promise(async move {
            let table = engine.load(&parts).await.map_err(|error| error.to_js())?;
            Ok(RawTable::new(table, None).into())
        }))
    }

    /// Lookups of `ids` to be timed.
    pub fn gathers(&self, table: &RawTable, ids: Vec<u32>) -> Promise {
        let (engine, table) = (self.engine.clone(), table.table.clone());
        future_to_promise(async move { Ok(RawGathers::new(engine, table, ids).await?.into()) })
    }

    /// Copies of `bytes` to be timed, by threads that move `span` times 16 bytes; none where the budget holds no two such buffers.
    pub fn copies(&self, bytes: f64, span: u32) -> Option<RawCopies> {
        RawCopies::new(&self.engine, self::bytes(bytes), span)
    }

    /// Begins a table file.
    pub fn stream(&self, name: &str) -> RawStream {
        RawStream::new(&self.engine, name)
    }
}
