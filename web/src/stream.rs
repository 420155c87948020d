//! A table file on its way to the engine.

use gatherum::{Engine, io::TableStream};
use wasm_bindgen::prelude::*;

use crate::{error::ToJs, object::number, table::RawTable};

/// Takes the bytes of a table file in order.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawStream {
    stream: TableStream,
}

impl RawStream {
    pub(crate) fn new(engine: &Engine, name: &str) -> Self {
        Self { stream: TableStream::new(engine, name) }
    }
}

#[wasm_bindgen]
impl RawStream {
    /// Takes the next bytes.
    pub async fn push(&mut self, bytes: Vec<u8>) -> Result<(), JsValue> {
        self.stream.push(&bytes).await.map_err(|error| error.to_js())
    }

    /// Bytes of the file, undefined until its header is there.
    #[wasm_bindgen(js_name = fileBytes)]
    pub fn file_bytes(&self) -> JsValue {
        self.stream.file_bytes().map_or(JsValue::UNDEFINED, |bytes| number(bytes.0))
    }

    /// The table, once all bytes are there.
    pub fn finish(self) -> Result<RawTable, JsValue> {
        let (table, words) = self.stream.finish().map_err(|error| error.to_js())?;
        Ok(RawTable::new(table, words))
    }
}
