//! Futures of any kind, behind a pointer.

use std::pin::Pin;

/// A future that may go from thread to thread, where there are threads.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// A future that may go from thread to thread, where there are threads.
#[cfg(target_arch = "wasm32")]
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
