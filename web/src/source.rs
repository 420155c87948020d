//! Bytes that the page reads by ranges.

use std::ops::Range;

use gatherum::{SourceError, store::ByteSource};
use js_sys::{Function, Promise, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::object::number;

/// A function of the page that gives the bytes from one place up to another.
pub(crate) struct PageSource {
    name: String,
    size: u64,
    read: Function,
}

impl PageSource {
    pub(crate) fn new(name: String, size: u64, read: Function) -> Self {
        Self { name, size, read }
    }

    fn failed(&self, error: &JsValue) -> SourceError {
        let message = error.dyn_ref::<js_sys::Error>().map(|error| String::from(error.message()));
        let message = message.or_else(|| error.as_string()).unwrap_or_else(|| format!("{error:?}"));
        SourceError::Io { what: self.name.clone(), error: std::io::Error::other(message) }
    }
}

impl ByteSource for PageSource {
    fn name(&self) -> &str {
        &self.name
    }

    async fn size(&self) -> Result<u64, SourceError> {
        Ok(self.size)
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let (start, end) = (number(range.start), number(range.end));
        let promise = self.read.call2(&JsValue::UNDEFINED, &start, &end).map_err(|error| self.failed(&error))?;
        let bytes = JsFuture::from(Promise::resolve(&promise)).await.map_err(|error| self.failed(&error))?;
        match bytes.dyn_into::<Uint8Array>() {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(other) => Err(SourceError::Invalid(format!("{}: {other:?} is no Uint8Array", self.name))),
        }
    }
}
