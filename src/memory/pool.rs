//! Shared blocks as data.

use crate::units::Bytes;

/// The blocks that tables of an engine share, and how well they are filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolReport {
    /// Blocks.
    pub blocks: usize,
    /// Bytes of all of them.
    pub bytes: Bytes,
    /// Those that no table has.
    pub free: Bytes,
    /// The most of those that lie together.
    pub largest: Bytes,
}

impl PoolReport {
    /// The share of the free bytes that do not lie together with the most of them: 0 where all do, or none is free.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share of a few digits")]
    pub fn fragmentation(&self) -> f64 {
        if self.free.0 == 0 { 0.0 } else { 1.0 - self.largest.0 as f64 / self.free.0 as f64 }
    }

    /// The share of the blocks that tables have: 1 where there is no block.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share of a few digits")]
    pub fn filled(&self) -> f64 {
        if self.bytes.0 == 0 { 1.0 } else { 1.0 - self.free.0 as f64 / self.bytes.0 as f64 }
    }
}

/// What [`Engine::compact`](crate::Engine::compact) did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// Bytes of tables that were copied to another place.
    pub moved: Bytes,
    /// Bytes of blocks that went back. Blocks that a lookup under way reads go when it ends, and are not counted.
    pub freed: Bytes,
}
