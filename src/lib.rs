//! Embedding tables on any GPU, in a tenth of the memory.
//!
//! Gatherum compresses embedding tables, places them on a device by [`wgpu`] or on the host, and looks rows up in them where
//! they are, without expanding the table.
//!
//! - A [`Scheme`] says how rows are stored, and takes its string form everywhere: `"int8:group=32"`.
//! - [`EncodedTable::encode`] or an [`Encoder`] makes a table from rows, and tells what it cost. Module `io` (feature `files`)
//!   reads rows from safetensors, NumPy and word-vector files, and writes and reads tables.
//! - An [`Engine`] is a device or the host. [`Engine::load`] places a table there; [`Table::gather`] looks rows up,
//!   [`Table::gather_buffer`] leaves them on the device, [`Table::encode_gather`] records into an encoder of the caller's.
//!   [`Table::bag`] sums, averages or takes the maximum of the rows of each bag of ids, without making them.
//! - [`Table::score`] compares rows with queries by dot product or cosine, and [`Table::top_k`] finds the nearest.
//! - [`Engine::load_on_demand`] takes a table of any size, of which lookups load what they need: see module [`store`].
//! - [`Engine::dynamic_table`] makes a table whose rows come and go, for ids of any 64 bits.
//! - [`Engine::memory`] tells, to the byte, where the memory went; [`EngineBuilder::memory_budget`] bounds it.
//!
//! ```
//! use gatherum::{EncodedTable, Engine, IdPolicy, Scheme};
//! # pollster::block_on(async {
//! let rows: Vec<f32> = (0..1000 * 64).map(|i| (i as f32).sin()).collect();
//! let scheme: Scheme = "int8".parse()?;
//! let (encoded, report) = EncodedTable::encode("waves", &rows, 64, &scheme)?;
//! assert!(report.share() < 0.27);
//!
//! let engine = Engine::new().await?;
//! let table = engine.load(&encoded).await?;
//! let found = table.gather(&[3_u64, 999], IdPolicy::Error).await?;
//! assert!((found.values[0] - rows[3 * 64]).abs() < 0.01);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Features
//!
//! `files` (default): module `io`. `journal`: tables in files that are written to while they are served. `remote`: tables in object stores and behind web servers. `lowrank` (default): fitting tables of low rank; reading them needs no feature. `cli`: the
//! command `gatherum`.
//!
//! # Ids
//!
//! Every kernel compares an id with the number of rows before it makes an address of it. What an id outside of the table does
//! is the [`IdPolicy`]'s to say; it never reads another row.
//!
//! # Same bits
//!
//! Decoding is one f32 multiplication and at most one addition after it, so the host and every adapter that rounds them as
//! IEEE 754 says give the same bits; the tests compare the host, lavapipe, SwiftShader and GL.

mod engine;
mod error;
mod gpu;
mod host;
#[cfg(feature = "files")]
pub mod io;
mod memory;
mod op;
mod raw;
mod scheme;
mod source;
pub mod store;
mod table;
mod units;

pub use engine::{AdapterReport, BackendChoice, BackendInfo, Engine, EngineBuilder};
pub use error::{
    BagsError, DeviceError, DynamicError, EncodeError, EngineError, GatherError, OverBudget, SchemeError, ScoreError,
    ShapeError, ShardCause, ShardError, SourceError, SparseError, TableError,
};
pub use gpu::{Granularity, OutputDtype};
pub use memory::{Compaction, MemoryReport, MemoryRow, Placement, PoolReport, RowTooLarge, Shard};
pub use op::{BadIds, BagMode, Bags, IdBuffer, IdPolicy, IdSource, IdType, Ids, Metric};
pub use scheme::{Category, Dtype, FitFigure, Part, RowSpan, Scheme, SchemeInfo, TableSpec, swap_nibbles};
pub use source::{Duplicates, PartSink, RowSource, SliceSource, SparseRows, TableSource};
pub use store::{OnDemand, Residency, ShardRows, TierReport, TierStats, Tiered};
pub use table::{
    DynamicOptions, DynamicStats, DynamicTable, EncodeReport, EncodedTable, Encoder, Eviction, Exported, GatherStatus,
    Initializer, Lease, Missing, OutputBuffer, Progress, RowBuffer, Rows, Scores, Settled, Table, TopK, TopKOptions,
};
pub use units::{Bytes, MAX_DIM, MAX_ROWS, Shape};
pub use wgpu;

/// The README's examples, which are tests.
#[cfg(all(doctest, feature = "files"))]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// For this project's own tests.
#[doc(hidden)]
pub mod testing {
    pub use crate::gpu::{ComposedShader, Roofline};

    /// The copy roofline on the engine's device: `bytes` by threads that move `span` x 16 bytes each. None on the host, and where
    /// the budget holds no two buffers of so many bytes.
    #[must_use]
    pub fn roofline(engine: &crate::Engine, bytes: u64, span: u32) -> Option<Roofline> {
        engine.gpu().and_then(|gpu| Roofline::new(gpu, bytes, span).ok())
    }

    /// How far an f32 answer may be from the f64 reference of a row; 0 where it must be the reference rounded to f32. The
    /// argument stands in the scheme's documentation.
    #[must_use]
    pub fn rounding(spec: &crate::TableSpec, row: &[f64]) -> f64 {
        spec.scheme().codec().rounding(row)
    }

    /// The stored rows that are stored alike, and the parts they have: all rows and parts, unless the scheme has bands.
    #[must_use]
    pub fn bands(spec: &crate::TableSpec) -> Vec<(std::ops::Range<u32>, std::ops::Range<usize>)> {
        let rows = |first: u32, rows: u32| first..first + rows;
        spec.bands().into_iter().map(|band| (rows(band.first_row, band.spec.stored_rows()), band.parts)).collect()
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
