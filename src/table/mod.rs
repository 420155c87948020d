//! Tables: made from rows, kept as parts, placed on an engine, looked up.

mod bag;
mod device;
mod device_bag;
mod dynamic;
mod encode;
#[cfg(all(feature = "journal", not(target_arch = "wasm32")))]
mod encode_alone;
mod encode_block;
mod encode_stored;
mod encoded;
mod gather;
mod lease;
#[cfg(feature = "files")]
mod loading;
mod on_demand;
mod report;
mod residency;
mod resident;
mod rows;
mod score;
mod sums;
mod sums_shared;
mod tiers;

pub use dynamic::{DynamicOptions, DynamicStats, DynamicTable, Eviction, Exported, Initializer, Missing, Settled};
pub use encode::{Encoder, Progress};
#[cfg(all(feature = "journal", not(target_arch = "wasm32")))]
pub(crate) use encode_alone::encode_alone;
pub use encoded::EncodedTable;
pub use lease::Lease;
#[cfg(feature = "files")]
pub(crate) use loading::Loading;
pub use report::EncodeReport;
pub use resident::Table;
pub use rows::{GatherStatus, OutputBuffer, RowBuffer, Rows};
pub use score::{Scores, TopK, TopKOptions};

#[cfg(test)]
mod tests;
