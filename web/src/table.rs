//! A table, and lookups in it. Each call takes what it needs, so that a table may be freed while answers are on their way.

use std::rc::Rc;

use gatherum::{BadIds, IdPolicy, Metric, OutputDtype, RowBuffer, Rows, Table, TopKOptions, io::Vocabulary};
use js_sys::{Array, Float32Array, Promise, Uint32Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::{
    bags::RawBags,
    error::{ToJs, bad_argument},
    ids::OwnIds,
    object::{number, object},
};

/// A table placed on the engine, and the words of its rows.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawTable {
    pub(crate) table: Table,
    words: Option<Rc<Vocabulary>>,
}

/// Rows in a buffer of the device, until this is freed.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawBuffer {
    rows: RowBuffer,
}

impl RawTable {
    pub(crate) fn new(table: Table, words: Option<Vocabulary>) -> Self {
        Self { table, words: words.map(Rc::new) }
    }
}

#[wasm_bindgen]
impl RawTable {
    /// Name, scheme, shape, parts and sizes.
    pub fn describe(&self) -> JsValue {
        let spec = self.table.spec();
        let parts: Array = spec
            .parts()
            .iter()
            .map(|part| {
                object([
                    ("name", part.name().into()),
                    ("dtype", part.dtype().to_string().into()),
                    ("category", part.category().to_string().into()),
                    ("bytes", number(part.bytes().0)),
                ])
            })
            .collect();
        object([
            ("name", self.table.name().into()),
            ("scheme", spec.scheme().to_string().into()),
            ("rows", spec.shape().rows().into()),
            ("dim", spec.shape().dim().into()),
            ("bytes", number(self.table.bytes().0)),
            ("f32Bytes", number(spec.shape().f32_bytes().0)),
            ("shards", number(self.table.shards() as u64)),
            ("parts", parts.into()),
        ])
    }

    /// What of it is there, and what that took.
    pub fn residency(&self) -> JsValue {
        let now = self.table.residency();
        object([
            ("shards", number(now.shards as u64)),
            ("residentShards", number(now.resident_shards as u64)),
            ("bytes", number(now.bytes.0)),
            ("residentBytes", number(now.resident_bytes.0)),
            ("read", number(now.read.0)),
            ("hits", number(now.hits)),
            ("misses", number(now.misses)),
            ("evictions", number(now.evictions)),
        ])
    }

    /// Shards, three numbers each: the first row, the one behind the last, and 1 where it is there, else 0.
    #[wasm_bindgen(js_name = shardRows)]
    pub fn shard_rows(&self) -> Vec<u32> {
        let shards = self.table.shard_rows();
        shards.iter().flat_map(|shard| [shard.rows.start, shard.rows.end, shard.resident.into()]).collect()
    }

    /// Loads what has the rows of ids, or all where there are none.
    pub fn prefetch(&self, ids: &JsValue) -> Result<Promise, JsValue> {
        let table = self.table.clone();
        let ids = if ids.is_undefined() { None } else { Some(OwnIds::new("ids", ids)?) };
        Ok(future_to_promise(async move {
            match ids {
                Some(ids) => table.prefetch(ids.borrow()).await,
                None => table.warm().await,
            }
            .map_err(|error| error.to_js())?;
            Ok(JsValue::UNDEFINED)
        }))
    }

    /// Lets go of what has rows from one up to another, and says how many bytes that had.
    pub fn evict(&self, start: u32, end: u32) -> f64 {
        number(self.table.evict(start..end).0).as_f64().unwrap_or_default()
    }

    /// Rows of ids, as an array: values, number of bad ids, the first of them.
    pub fn gather(&self, ids: &JsValue, policy: &str) -> Result<Promise, JsValue> {
        let (table, ids, policy) = (self.table.clone(), OwnIds::new("ids", ids)?, id_policy(policy)?);
        Ok(future_to_promise(async move {
            let rows = table.gather(ids.borrow(), policy).await.map_err(|error| error.to_js())?;
            Ok(rows_to_js(&rows))
        }))
    }

    /// Rows of ids in a buffer of the device, `f32` or `f16`.
    #[wasm_bindgen(js_name = gatherToBuffer)]
    pub fn gather_to_buffer(&self, ids: &JsValue, policy: &str, dtype: &str) -> Result<Promise, JsValue> {
        let (table, ids, policy) = (self.table.clone(), OwnIds::new("ids", ids)?, id_policy(policy)?);
        let dtype = match dtype {
            "f32" => OutputDtype::F32,
            "f16" => OutputDtype::F16,
            other => return Err(bad_argument(&format!("dtype is `{other}`; it may be f32 or f16"))),
        };
        Ok(future_to_promise(async move {
            let rows = table.gather_buffer(ids.borrow(), policy, dtype).await.map_err(|error| error.to_js())?;
            Ok(RawBuffer { rows }.into())
        }))
    }

    /// A row of each bag, as [`gather`](Self::gather) gives rows.
    pub fn bag(&self, ids: &JsValue, bags: RawBags, policy: &str) -> Result<Promise, JsValue> {
        let (table, ids, policy) = (self.table.clone(), OwnIds::new("ids", ids)?, id_policy(policy)?);
        Ok(future_to_promise(async move {
            let rows = table.bag(ids.borrow(), &bags.borrow(), policy).await.map_err(|error| error.to_js())?;
            Ok(rows_to_js(&rows))
        }))
    }

    /// A row of each bag in a buffer of the device.
    #[wasm_bindgen(js_name = bagToBuffer)]
    pub fn bag_to_buffer(&self, ids: &JsValue, bags: RawBags, policy: &str) -> Result<Promise, JsValue> {
        let (table, ids, policy) = (self.table.clone(), OwnIds::new("ids", ids)?, id_policy(policy)?);
        Ok(future_to_promise(async move {
            let rows = table.bag_buffer(ids.borrow(), &bags.borrow(), policy).await.map_err(|error| error.to_js())?;
            Ok(RawBuffer { rows }.into())
        }))
    }

    /// The best rows of queries, as an array: ids, scores, places of each. A row of `leave_out` that is no row leaves none out.
    #[wasm_bindgen(js_name = topK)]
    pub fn top_k(
        &self,
        queries: Vec<f32>,
        k: u32,
        metric: &str,
        rows: Option<Vec<u32>>,
        leave_out: Vec<u32>,
    ) -> Result<Promise, JsValue> {
        let (table, metric) = (self.table.clone(), metric_of(metric)?);
        let all = table.spec().shape().rows();
        let leave_out: Vec<Option<u32>> = leave_out.into_iter().map(|row| (row < all).then_some(row)).collect();
        Ok(future_to_promise(async move {
            let mut options = TopKOptions::default().leave_out(&leave_out);
            if let Some([start, end]) = rows.as_deref() {
                options = options.rows(*start..*end);
            }
            let best = table.top_k(&queries, k as usize, metric, options).await.map_err(|error| error.to_js())?;
            let (ids, scores) = (Uint32Array::from(&best.ids[..]), Float32Array::from(&best.scores[..]));
            Ok(Array::of3(&ids, &scores, &number(best.k as u64)).into())
        }))
    }

    /// Scores of all rows, or some, for each query.
    pub fn score(&self, queries: Vec<f32>, metric: &str, rows: Option<Vec<u32>>) -> Result<Promise, JsValue> {
        let (table, metric) = (self.table.clone(), metric_of(metric)?);
        Ok(future_to_promise(async move {
            let range = match rows.as_deref() {
                Some([start, end]) => *start..*end,
                _ => 0..table.spec().shape().rows(),
            };
            let scores = table.score(&queries, metric, range).await.map_err(|error| error.to_js())?;
            Ok(Float32Array::from(&scores.values[..]).into())
        }))
    }

    /// Number of words; undefined where the file has none.
    #[wasm_bindgen(js_name = wordCount)]
    pub fn word_count(&self) -> Option<usize> {
        self.words.as_ref().map(|words| words.len())
    }

    /// The word of a row.
    pub fn word(&self, row: u32) -> Option<String> {
        let words = self.words.as_ref()?;
        ((row as usize) < words.len()).then(|| String::from_utf8_lossy(words.get(row)).into_owned())
    }

    /// The first row of a word.
    pub fn find(&self, word: &str) -> Option<u32> {
        self.words.as_ref()?.find(word)
    }
}

#[wasm_bindgen]
impl RawBuffer {
    /// The `GPUBuffer`.
    pub fn buffer(&self) -> JsValue {
        self.rows.buffer().as_webgpu().map_or(JsValue::UNDEFINED, |buffer| buffer.clone().into())
    }

    /// Number of rows, columns, bytes and bad ids, and the first of those.
    pub fn describe(&self) -> JsValue {
        let rows = &self.rows;
        Array::of5(
            &rows.rows().into(),
            &rows.dim().into(),
            &number(rows.bytes()),
            &number(rows.bad().count),
            &first_bad(rows.bad()),
        )
        .into()
    }
}

fn rows_to_js(rows: &Rows<f32>) -> JsValue {
    let values = Float32Array::from(&rows.values[..]);
    Array::of3(&values, &number(rows.bad.count), &first_bad(rows.bad)).into()
}

fn first_bad(bad: BadIds) -> JsValue {
    bad.first.map_or(JsValue::UNDEFINED, number)
}

fn id_policy(name: &str) -> Result<IdPolicy, JsValue> {
    match name {
        "error" => Ok(IdPolicy::Error),
        "zero" => Ok(IdPolicy::Zero),
        "wrap" => Ok(IdPolicy::Wrap),
        other => Err(bad_argument(&format!("policy is `{other}`; it may be error, zero or wrap"))),
    }
}

fn metric_of(name: &str) -> Result<Metric, JsValue> {
    match name {
        "cosine" => Ok(Metric::Cosine),
        "dot" => Ok(Metric::Dot),
        other => Err(bad_argument(&format!("metric is `{other}`; it may be cosine or dot"))),
    }
}
