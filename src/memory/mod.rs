//! Bytes: who holds how many, and who may have more.

mod blocks;
mod cuts;
mod ledger;
mod placement;
mod pool;
mod report;

pub(crate) use blocks::{Blocks, Movable, Move, Space};
pub(crate) use ledger::{Ledger, Need, Reservation, Spare};
pub use placement::{Placement, RowTooLarge, Shard};
pub use pool::{Compaction, PoolReport};
pub use report::{MemoryReport, MemoryRow};
