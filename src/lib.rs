//! Embedding tables on any GPU, in a tenth of the memory.

pub mod error;
mod host;
mod op;
mod scheme;
mod table;
mod units;

pub use error::*;
pub use op::{BadIds, IdPolicy, Ids};
pub use scheme::{Category, Dtype, Part, Scheme, SchemeInfo, TableSpec};
pub use table::{EncodeReport, EncodedTable, Encoder, PartSink, Progress, RowSource, SliceSource, TableSource};
pub use units::{Bytes, MAX_DIM, MAX_ROWS, Shape};
pub use wgpu;
