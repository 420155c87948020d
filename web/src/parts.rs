//! Tables whose parts the page has.

use gatherum::{Scheme, Shape, SourceError, TableSource, TableSpec};
use js_sys::{Function, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};

use crate::{error::bad_argument, object::number};

/// A table of which a function of the page has the bytes: of a part, from one place up to another, at once.
pub(crate) struct PageParts {
    name: String,
    spec: TableSpec,
    read: Function,
}

impl PageParts {
    pub(crate) fn new(name: String, scheme: &str, rows: u32, dim: u32, read: Function) -> Result<Self, JsValue> {
        let scheme: Scheme = scheme.parse().map_err(|error| bad_argument(&format!("{error}")))?;
        let shape = Shape::new(rows.into(), dim.into()).map_err(|error| bad_argument(&error.to_string()))?;
        let spec = scheme.spec(shape).map_err(|error| bad_argument(&error.to_string()))?;
        Ok(Self { name, spec, read })
    }

    fn invalid(&self, what: &str) -> SourceError {
        SourceError::Invalid(format!("{}: {what}", self.name))
    }
}

impl TableSource for PageParts {
    fn spec(&self) -> &TableSpec {
        &self.spec
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn read_part(&self, part: usize, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let name = self.spec.parts()[part].name();
        let end = offset + out.len() as u64;
        let bytes = self.read.call3(&JsValue::UNDEFINED, &name.into(), &number(offset), &number(end));
        let bytes = bytes.map_err(|error| self.invalid(&format!("{error:?}")))?;
        match bytes.dyn_ref::<Uint8Array>() {
            Some(bytes) if bytes.length() as usize == out.len() => bytes.copy_to(out),
            _ => return Err(self.invalid(&format!("part `{name}` has no bytes {offset} to {end}"))),
        }
        Ok(())
    }
}
