//! Lookups in the small tables of tiers.

use rayon::prelude::*;

use super::{Tiers, device::Holder};
use crate::{
    error::{GatherError, ShardError},
    gpu::OutputDtype,
    host::HostTable,
    op::{BadIds, IdPolicy, Ids, Resolver},
    scheme::NO_ROW,
    table::{gather::Element, on_demand::plan::LEFT_OUT, rows::OutputBuffer},
};

/// Rows that one thread decodes at a time on the host.
const TASK_ROWS: usize = 256;

impl Tiers {
    /// Whether rows of that type can be looked up in the device's small table, by parts of any number of rows.
    pub(in crate::table) fn gathers(&self, dtype: OutputDtype) -> bool {
        // Rows of an odd number of bytes would begin within a word.
        self.device.is_some() && (dtype == OutputDtype::F32 || self.below.pages.spec.shape().dim().is_multiple_of(2))
    }

    /// The pages of `rows`, each once, in ascending order.
    pub(super) fn unique(&self, rows: &[u32]) -> Vec<u32> {
        let pages = &self.below.pages;
        let known = rows.iter().filter(|row| **row < pages.spec.shape().rows());
        let mut unique: Vec<u32> = known.map(|row| row / pages.rows).collect();
        unique.par_sort_unstable();
        unique.dedup();
        unique
    }

    /// Decodes stored rows on the host: `out: [rows, dim]`.
    pub(in crate::table) async fn decode_on_host(&self, rows: &[u32], out: &mut [f32]) -> Result<(), ShardError> {
        if rows.is_empty() {
            return Ok(());
        }
        let (pages, wanted) = (&self.below.pages, self.unique(rows));
        let mut bytes = self.below.fetch(&wanted).await?;
        for (part, shared) in bytes.parts.iter_mut().zip(&self.below.shared) {
            if !shared.is_empty() {
                part.clone_from(shared);
            }
        }
        let spec = pages.table(u32::try_from(wanted.len()).unwrap_or(u32::MAX));
        let table = HostTable::of_parts("rows", spec, bytes.parts);
        let number = |row: &u32| {
            let place = wanted.binary_search(&(row / pages.rows)).unwrap_or_default();
            u32::try_from(place).unwrap_or(u32::MAX) * pages.rows + row % pages.rows
        };
        let dim = pages.spec.shape().dim() as usize;
        let tasks = rows.par_chunks(TASK_ROWS).zip(out.par_chunks_mut(TASK_ROWS * dim));
        tasks.for_each(|(rows, out)| {
            let numbers: Vec<u32> = rows.iter().map(number).collect();
            table.decode(&numbers, out);
        });
        Ok(())
    }

    /// Looks stored rows up in the device's small table, to `output` and what follows: what is no row gives zeros.
    pub(in crate::table) async fn gather(&self, rows: &[u32], output: OutputBuffer<'_>) -> Result<(), GatherError> {
        let Some(device) = &self.device else { unreachable!("asked of tables on a device") };
        let table = device.table();
        let (mut rows, mut offset) = (rows, output.offset);
        while !rows.is_empty() {
            let (numbers, held) = device.place(&self.below, rows, Holder::Lookup).await?;
            let output = OutputBuffer { offset, ..output };
            drop(table.submit((&numbers).into(), IdPolicy::Zero, output).await?);
            drop(held);
            offset += numbers.len() as u64 * table.row_bytes(output.dtype);
            rows = &rows[numbers.len()..];
        }
        Ok(())
    }

    /// Looks rows up to host memory, through the device. `out` has the right length.
    pub(in crate::table) async fn to_host<T: Element>(
        &self,
        ids: Ids<'_>,
        resolver: Resolver,
        part: usize,
        out: &mut [T],
    ) -> Result<BadIds, GatherError> {
        let Some(device) = &self.device else { unreachable!("asked of tables on a device") };
        let (table, dim) = (device.table(), self.below.pages.spec.shape().dim() as usize);
        let mut sum = BadIds::default();
        let mut rows = Vec::new();
        for (number, out) in out.chunks_mut(part.saturating_mul(dim)).enumerate() {
            let first = number * part;
            rows.resize(out.len() / dim, NO_ROW);
            sum.merge(first as u64, resolver.resolve(ids.slice(first..first + rows.len()), &mut rows));
            let (mut rest, mut out) = (&rows[..], out);
            while !rest.is_empty() {
                let (numbers, held) = device.place(&self.below, rest, Holder::Lookup).await?;
                let (now, later) = out.split_at_mut(numbers.len() * dim);
                table.to_host((&numbers).into(), IdPolicy::Zero, now).await?;
                drop(held);
                (rest, out) = (&rest[numbers.len()..], later);
            }
        }
        Ok(sum)
    }

    /// As [`Tiers::to_host`], into a buffer from `output` on.
    pub(in crate::table) async fn to_buffer(
        &self,
        ids: Ids<'_>,
        resolver: Resolver,
        part: usize,
        output: OutputBuffer<'_>,
    ) -> Result<BadIds, GatherError> {
        let row_bytes = u64::from(self.below.pages.spec.shape().dim()) * output.dtype.bytes();
        let mut sum = BadIds::default();
        let mut rows = Vec::new();
        for first in (0..ids.len()).step_by(part) {
            rows.resize(part.min(ids.len() - first), NO_ROW);
            sum.merge(first as u64, resolver.resolve(ids.slice(first..first + rows.len()), &mut rows));
            let offset = output.offset + first as u64 * row_bytes;
            self.gather(&rows, OutputBuffer { offset, ..output }).await?;
        }
        Ok(sum)
    }
}

const _: () = assert!(LEFT_OUT < NO_ROW, "what is left out is no row either");
