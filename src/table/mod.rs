//! Tables: made from rows, kept as parts, placed on an engine.

mod encode;
mod encoded;
mod report;

pub use encode::{Encoder, Progress};
pub use encoded::EncodedTable;
pub use report::EncodeReport;
