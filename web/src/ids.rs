//! Ids as typed arrays.

use gatherum::Ids;
use js_sys::{BigInt64Array, BigUint64Array, Uint32Array};
use wasm_bindgen::{JsCast, JsValue};

use crate::error::bad_argument;

/// A copy of a typed array of ids, or of offsets or lengths of bags.
#[derive(Clone, Debug)]
pub(crate) enum OwnIds {
    U32(Vec<u32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
}

impl OwnIds {
    /// Takes a `Uint32Array`, `BigUint64Array` or `BigInt64Array`. `what` names it in the error.
    pub(crate) fn new(what: &str, array: &JsValue) -> Result<Self, JsValue> {
        if let Some(array) = array.dyn_ref::<Uint32Array>() {
            Ok(Self::U32(array.to_vec()))
        } else if let Some(array) = array.dyn_ref::<BigUint64Array>() {
            Ok(Self::U64(array.to_vec()))
        } else if let Some(array) = array.dyn_ref::<BigInt64Array>() {
            Ok(Self::I64(array.to_vec()))
        } else {
            Err(bad_argument(&format!("{what} must be a Uint32Array, BigUint64Array or BigInt64Array")))
        }
    }

    pub(crate) fn borrow(&self) -> Ids<'_> {
        match self {
            Self::U32(ids) => Ids::U32(ids),
            Self::U64(ids) => Ids::U64(ids),
            Self::I64(ids) => Ids::I64(ids),
        }
    }
}
