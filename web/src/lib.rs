//! Bindings of gatherum for JavaScript.
//!
//! What is exported here is the seam between two halves of the npm package, and no interface for others: `web/ts` makes one of
//! it, with types, options, streams and errors. Numbers that may pass 2^32 go as `f64`, ids as typed arrays, errors as objects
//! with a `code`.

#![cfg(target_arch = "wasm32")]

mod bags;
mod engine;
mod error;
mod ids;
mod measure;
mod object;
mod parts;
mod source;
mod stream;
mod table;

use std::cell::RefCell;

use js_sys::Function;
use wasm_bindgen::prelude::*;

pub use bags::RawBags;
pub use engine::RawEngine;
pub use measure::{RawCopies, RawGathers};
pub use stream::RawStream;
pub use table::{RawBuffer, RawTable};

thread_local! {
    static ON_PANIC: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Says whom to tell of a panic, by its message. Nothing of the module may be called after one.
#[wasm_bindgen(js_name = onPanic)]
pub fn on_panic(tell: Function) {
    ON_PANIC.set(Some(tell));
    std::panic::set_hook(Box::new(|panic| {
        let message = JsValue::from(panic.to_string());
        ON_PANIC.with_borrow(|tell| {
            if let Some(tell) = tell {
                // What it throws has nowhere to go.
                let _ = tell.call1(&JsValue::UNDEFINED, &message);
            }
        });
    }));
}
