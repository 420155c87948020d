//! Rows that stay where lookups find them.

use std::fmt;

/// Rows that stay in the highest tier, or shards that stay loaded, until this is dropped.
///
/// See [`Table::lease`](crate::Table::lease).
#[must_use = "rows are let go when the lease is dropped"]
pub struct Lease {
    _held: Option<Box<dyn Kept>>,
}

/// What lets go of something when it is dropped.
trait Kept: wgpu::WasmNotSendSync {}

impl<T: wgpu::WasmNotSendSync> Kept for T {}

impl Lease {
    /// Keeps `held` until it is dropped.
    pub(super) fn new(held: impl wgpu::WasmNotSendSync + 'static) -> Self {
        Self { _held: Some(Box::new(held)) }
    }

    /// Of a table that is there whole, and stays.
    pub(super) fn nothing() -> Self {
        Self { _held: None }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").finish_non_exhaustive()
    }
}
