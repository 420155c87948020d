//! Gather: rows by id.
//!
//! ```text
//! for each block of ids, on all cores:
//!     rows = resolve(ids)           # on the stack
//!     out[block] = decode(rows)     # straight to the output
//! ```
//! Under [`IdPolicy::Error`] all ids are resolved once before, so that nothing is written where one is bad.

use half::{f16, slice::HalfFloatSliceExt};
use rayon::prelude::*;

use super::HostTable;
use crate::{
    error::GatherError,
    op::{BadIds, IdPolicy, Ids, Resolver},
    scheme::MOST_READ,
};

/// The most ids of a block: their row numbers take 1 KiB of stack, or 4 where each reads several.
const BLOCK_IDS: usize = 256;
/// About the most values of a block: 128 KiB as f32, so that a block is worth a thread's attention.
const BLOCK_VALUES: usize = 1 << 15;
/// Batches of at most so many values stay on the calling thread: waking another one takes longer than they do.
const ALONE_VALUES: usize = 1 << 16;

impl HostTable {
    /// Looks `ids` up as f32. `out: [ids.len(), dim]`, row-major; the order of the ids is kept.
    ///
    /// # Errors
    /// [`GatherError::OutputLength`], and [`GatherError::BadId`] under [`IdPolicy::Error`]; nothing is written then.
    pub(crate) fn gather_f32(&self, ids: Ids<'_>, policy: IdPolicy, out: &mut [f32]) -> Result<BadIds, GatherError> {
        self.gather(ids, policy, out, |rows, out| self.decode(rows, out))
    }

    /// Looks `ids` up as f16: the f32 answer, rounded to nearest, ties to even. `out: [ids.len(), dim]`, row-major.
    ///
    /// # Errors
    /// As [`HostTable::gather_f32`].
    pub(crate) fn gather_f16(&self, ids: Ids<'_>, policy: IdPolicy, out: &mut [f16]) -> Result<BadIds, GatherError> {
        self.gather(ids, policy, out, |rows, out| {
            self.visit(rows, |first, values| {
                out[first * self.dim()..][..values.len()].convert_from_f32_slice(values);
            });
        })
    }

    /// Resolves ids by blocks and lets `decode` fill each block's output.
    fn gather<T: Send>(
        &self,
        ids: Ids<'_>,
        policy: IdPolicy,
        out: &mut [T],
        decode: impl Fn(&[u32], &mut [T]) + Sync,
    ) -> Result<BadIds, GatherError> {
        let dim = self.dim();
        let needed = ids.len() as u64 * dim as u64;
        if out.len() as u64 != needed {
            return Err(GatherError::OutputLength {
                table: self.name().to_owned(),
                ids: ids.len() as u64,
                dim: self.spec().shape().dim(),
                needed,
                got: out.len() as u64,
            });
        }
        let resolver = Resolver::new(self.spec(), policy);
        if policy == IdPolicy::Error {
            let bad = resolver.check(ids);
            resolver.refuse(self.name(), bad, |position| {
                usize::try_from(position).ok().and_then(|position| ids.get(position))
            })?;
        }
        let block = (BLOCK_VALUES / dim).clamp(1, BLOCK_IDS);
        let run = |(number, out): (usize, &mut [T])| {
            let (first, length) = (number * block, out.len() / dim);
            let mut rows = [0; BLOCK_IDS * MOST_READ];
            let rows = &mut rows[..length * resolver.each()];
            let bad = resolver.resolve(ids.slice(first..first + length), rows);
            decode(rows, out);
            let mut sum = BadIds::default();
            sum.merge(first as u64, bad);
            sum
        };
        let merge = |mut one: BadIds, other| {
            one.merge(0, other);
            one
        };
        Ok(if out.len() <= ALONE_VALUES {
            out.chunks_mut(block * dim).enumerate().map(run).fold(BadIds::default(), merge)
        } else {
            out.par_chunks_mut(block * dim).enumerate().map(run).reduce(BadIds::default, merge)
        })
    }
}
