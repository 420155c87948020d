//! Tables: made from rows, kept as parts, placed on an engine, looked up.

mod bag;
mod device;
mod device_bag;
mod encode;
mod encoded;
mod gather;
mod report;
mod resident;
mod rows;

pub use encode::{Encoder, Progress};
pub use encoded::EncodedTable;
pub use report::EncodeReport;
pub use resident::Table;
pub use rows::{GatherStatus, OutputBuffer, RowBuffer, Rows};

#[cfg(test)]
mod tests;
