//! Bytes: who holds how many, and who may have more.

mod cuts;
mod ledger;
mod placement;
mod report;

pub(crate) use ledger::{Ledger, Need, Reservation, Spare};
pub use placement::{Placement, RowTooLarge, Shard};
pub use report::{MemoryReport, MemoryRow};
