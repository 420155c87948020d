//! Bytes that are read when they are needed: where they come from, how often that is tried, and which of them stay.

mod boxed;
mod cache;
#[cfg(all(feature = "files", not(target_arch = "wasm32")))]
mod disk;
#[cfg(not(target_arch = "wasm32"))]
mod file;
#[cfg(all(feature = "remote", not(target_arch = "wasm32")))]
mod object;
mod options;
mod retry;
mod source;
mod tiers;

pub use crate::source::{Changes, Publishing};
pub(crate) use boxed::Boxed;
pub(crate) use cache::{Cache, Held, Use};
#[cfg(all(feature = "files", not(target_arch = "wasm32")))]
pub(crate) use disk::BlockKey;
#[cfg(all(feature = "files", not(target_arch = "wasm32")))]
pub use disk::{DiskCache, DiskStats};
#[cfg(not(target_arch = "wasm32"))]
pub use file::FileSource;
#[cfg(all(feature = "remote", not(target_arch = "wasm32")))]
pub use object::ObjectSource;
pub use options::{OnDemand, Residency, ShardRows};
pub use retry::Retry;
pub(crate) use retry::Tried;
pub(crate) use source::SharedSource;
pub use source::{ByteSource, MemorySource};
pub use tiers::{TierReport, TierStats, Tiered};
