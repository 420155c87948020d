//! Memory of table parts.
//!
//! Rows are read at random, and on pages of 4 KiB nearly each of them misses the TLB: a gather of random int8 rows of a
//! million takes over twice the time that it takes on pages of 2 MiB.

use std::ops::{Deref, DerefMut};

use crate::units::Bytes;

/// The bytes of one part.
#[derive(Debug)]
pub(super) enum PartBytes {
    /// From the allocator.
    Heap(Vec<u8>),
    /// Pages of its own, that the system was asked to make huge.
    #[cfg(target_os = "linux")]
    Huge(memmap2::MmapMut),
}

/// What deserves pages of its own: rows of smaller parts seldom miss the TLB.
#[cfg(target_os = "linux")]
const HUGE: u64 = 4 << 20;

impl PartBytes {
    /// `bytes` zeros; `None` where the system has no room for them.
    pub(super) fn zeroed(bytes: Bytes) -> Option<Self> {
        let length = usize::try_from(bytes.0).ok()?;
        #[cfg(target_os = "linux")]
        if bytes.0 >= HUGE
            && let Ok(memory) = memmap2::MmapMut::map_anon(length)
        {
            // A system without huge pages refuses; the pages serve all the same.
            let _ = memory.advise(memmap2::Advice::HugePage);
            return Some(Self::Huge(memory));
        }
        let mut memory = Vec::new();
        memory.try_reserve_exact(length).ok()?;
        memory.resize(length, 0);
        Some(Self::Heap(memory))
    }
}

impl Deref for PartBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Heap(memory) => memory,
            #[cfg(target_os = "linux")]
            Self::Huge(memory) => memory,
        }
    }
}

impl DerefMut for PartBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(memory) => memory,
            #[cfg(target_os = "linux")]
            Self::Huge(memory) => memory,
        }
    }
}
