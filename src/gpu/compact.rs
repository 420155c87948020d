//! Blocks that tables share: making them, and moving tables so that some go back.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Gpu, UploadError, buffer::Owned};
use crate::{
    error::DeviceError,
    memory::{Compaction, Move, Need, PoolReport, Space, Spare},
    units::Bytes,
};

const USAGE: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_DST).union(wgpu::BufferUsages::COPY_SRC);

/// Nobody else moves tables while this lives.
struct Compacting<'a>(&'a AtomicBool);

impl<'a> Compacting<'a> {
    fn begin(flag: &'a AtomicBool) -> Option<Self> {
        (!flag.swap(true, Ordering::Acquire)).then(|| Self(flag))
    }
}

impl Drop for Compacting<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Gpu {
    /// Room in a block, an old one or a new one; `None` where there is too little for a new one.
    pub(super) async fn space(&self, need: &Need) -> Result<Option<Space<Owned>>, UploadError> {
        if let Some(space) = self.blocks.take(need) {
            return Ok(Some(space));
        }
        let Ok(mut reserved) = self.reserve(vec![self.blocks.next(need.total())]) else { return Ok(None) };
        let reserved = reserved.swap_remove(0);
        let size = reserved.bytes();
        let block = self.catch("a block of tables", size, || self.owned(size, "pool", USAGE)).await?;
        Ok(self.blocks.add(block, reserved, need))
    }

    /// What tables share.
    pub(crate) fn pool(&self) -> PoolReport {
        self.blocks.report()
    }

    /// Moves tables so that blocks go back, where they fit into the others, and then into smaller ones where half of a block is
    /// free. Lookups go on meanwhile.
    pub(crate) async fn compact(&self) -> Result<Compaction, DeviceError> {
        self.alive()?;
        let Some(_alone) = Compacting::begin(&self.compacting) else { return Ok(Compaction::default()) };
        let before = self.blocks.report().bytes;
        let mut moved = self.run(self.blocks.evacuations())?;
        for (block, need) in self.blocks.halves() {
            let Ok(mut reserved) = self.ledger.reserve(vec![need]) else { continue };
            let reserved = reserved.swap_remove(0);
            let size = reserved.bytes();
            let smaller = self.catch("a block of tables", size, || self.owned(size, "pool", USAGE)).await?;
            moved += self.run(self.blocks.replace(&block, smaller, reserved))?;
        }
        let freed = Bytes(before.0.saturating_sub(self.blocks.report().bytes.0));
        tracing::debug!(moved, freed = freed.0, "tables moved");
        Ok(Compaction { moved: Bytes(moved), freed })
    }

    /// Copies spaces to where they go. What was recorded reads them where they were, what is recorded from now on where they are.
    fn run(&self, moves: Vec<Move<Owned>>) -> Result<u64, DeviceError> {
        if moves.is_empty() {
            return Ok(0);
        }
        let bytes = moves.iter().map(|one| one.to.bytes()).sum();
        self.catch_now("tables that move", bytes, || {
            let mut encoder =
                self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("compact") });
            for Move { from, to, .. } in &moves {
                encoder.copy_buffer_to_buffer(from.value(), from.offset(), to.value(), to.offset(), to.bytes());
            }
            self.queue.submit([encoder.finish()]);
        })?;
        moves.into_iter().for_each(Move::done);
        Ok(bytes)
    }
}

impl Spare for Gpu {
    /// What is only kept for reuse must not cost anybody an answer; then what blocks have free.
    fn let_go(&self) -> u64 {
        self.recordings.sweep();
        let kept = self.reuse.clear();
        if kept > 0 {
            return kept;
        }
        let Some(_alone) = Compacting::begin(&self.compacting) else { return 0 };
        let before = self.blocks.report().bytes.0;
        // A device that is gone tells whoever asks next.
        let _ = self.run(self.blocks.evacuations());
        before.saturating_sub(self.blocks.report().bytes.0)
    }
}
