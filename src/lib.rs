//! Embedding tables on any GPU, in a tenth of the memory.

mod engine;
pub mod error;
mod gpu;
mod host;
#[cfg(feature = "files")]
pub mod io;
mod memory;
mod op;
mod raw;
mod scheme;
mod source;
mod table;
mod units;

pub use engine::{AdapterReport, BackendChoice, BackendInfo, Engine, EngineBuilder};
pub use error::{
    DeviceError, EncodeError, EngineError, GatherError, OverBudget, SchemeError, ShapeError, SourceError, TableError,
};
pub use gpu::{Granularity, OutputDtype};
pub use memory::{MemoryReport, MemoryRow, Placement, RowTooLarge, Shard};
pub use op::{BadIds, IdBuffer, IdPolicy, IdSource, IdType, Ids};
pub use scheme::{Category, Dtype, Part, Scheme, SchemeInfo, TableSpec};
pub use source::{PartSink, RowSource, SliceSource, TableSource};
pub use table::{EncodeReport, EncodedTable, Encoder, GatherStatus, OutputBuffer, Progress, RowBuffer, Rows, Table};
pub use units::{Bytes, MAX_DIM, MAX_ROWS, Shape};
pub use wgpu;

/// For this project's own tests.
#[doc(hidden)]
pub mod testing {
    pub use crate::gpu::{ComposedShader, Roofline};

    /// The copy roofline on the engine's device: `bytes` by threads that move `span` x 16 bytes each.
    #[must_use]
    pub fn roofline(engine: &crate::Engine, bytes: u64, span: u32) -> Option<Roofline> {
        engine.gpu().map(|gpu| Roofline::new(gpu, bytes, span))
    }

    /// Every pipeline the engine may make.
    #[must_use]
    pub fn shaders() -> Vec<ComposedShader> {
        crate::gpu::composed_shaders()
    }

    /// Names, offsets and sizes of the members of the uniform block.
    #[must_use]
    pub fn params_layout() -> Vec<(&'static str, usize, usize)> {
        crate::gpu::params_layout()
    }
}
