//! Plain JavaScript objects.

use js_sys::{Object, Reflect};
use wasm_bindgen::JsValue;

/// An object of these members.
pub(crate) fn object<const N: usize>(members: [(&str, JsValue); N]) -> JsValue {
    let object = Object::new();
    for (name, value) in members {
        set(&object, name, &value);
    }
    object.into()
}

/// Sets a member.
pub(crate) fn set(object: &Object, name: &str, value: &JsValue) {
    // An object of our own takes any member.
    let _ = Reflect::set(object, &JsValue::from(name), value);
}

/// A count of rows or bytes: exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "JavaScript counts in f64, and no memory has 2^53 bytes")]
pub(crate) fn number(value: u64) -> JsValue {
    JsValue::from(value as f64)
}

/// Bytes as JavaScript gives them, which may have no fraction left to lose.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(crate) fn bytes(value: f64) -> u64 {
    value as u64
}
