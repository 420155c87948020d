//! Looking rows up.

use std::borrow::Cow;

use super::{DynamicTable, Home, State, store::Store};
use crate::{
    error::{DynamicError, GatherError},
    gpu::OutputDtype,
    op::{BadIds, IdSource, Ids},
    scheme::NO_ROW,
    table::{
        device,
        rows::{RowBuffer, Rows},
    },
    units::Bytes,
};

/// What an id that has no row does where none is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Missing {
    /// The call fails with [`DynamicError::Missing`], and there is no output.
    #[default]
    Error,
    /// Its row is 0.0 throughout; [`BadIds`] counts it.
    Zero,
}

/// What became of the ids that lookups by ids of the device had missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// Rows made for them.
    pub made: u64,
    /// Ids that have none, as there was no room: more than all rows, or where no row may go, more than were free.
    pub left: u64,
}

/// What a lookup is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Ids that have no row are given one.
    Make,
    /// Ids that have no row have none.
    Find(Missing),
    /// The same, and no row counts as used.
    Look,
}

/// Bytes of rows that come back from a device at a time.
const CHUNK: u64 = 32 << 20;

/// Ids as what they are here.
pub(super) fn words(ids: Ids<'_>) -> Cow<'_, [u64]> {
    match ids {
        Ids::U32(ids) => Cow::Owned(ids.iter().map(|id| u64::from(*id)).collect()),
        Ids::U64(ids) => Cow::Borrowed(ids),
        Ids::I64(ids) => Cow::Borrowed(bytemuck::cast_slice(ids)),
    }
}

impl State {
    /// The slots of ids of the host, and which have none.
    pub(super) fn resolve(
        &mut self,
        table: &str,
        ids: &[u64],
        purpose: Use,
    ) -> Result<(Vec<u32>, BadIds), DynamicError> {
        if purpose == Use::Make {
            return Ok((self.admit(table, ids)?, BadIds::default()));
        }
        if purpose == Use::Find(Missing::Error) {
            self.all_there(table, ids)?;
        }
        let slots = self.slots.find(ids, purpose != Use::Look);
        let first = slots.iter().position(|slot| *slot == NO_ROW).map(|position| position as u64);
        let count = slots.iter().filter(|slot| **slot == NO_ROW).count() as u64;
        Ok((slots, BadIds { count, first }))
    }

    fn all_there(&self, table: &str, ids: &[u64]) -> Result<(), DynamicError> {
        let mut missing = (0..).zip(ids).filter(|(_, id)| self.slots.map.find(**id).is_none());
        match missing.next() {
            None => Ok(()),
            Some((position, id)) => Err(DynamicError::Missing {
                table: table.to_owned(),
                position,
                id: Some((*id).into()),
                count: 1 + missing.count() as u64,
            }),
        }
    }
}

impl DynamicTable {
    /// Looks rows up, as f32, into new host memory: `[ids, dim]`, row-major, in the order of the ids. Rows that are not there are made.
    ///
    /// `ids` are a slice of `u32`, `u64` or `i64`, or an [`IdBuffer`](crate::IdBuffer) on the engine's device. What those lack is
    /// answered as it would be made, and made by [`settle`](Self::settle). They say nothing of what is used.
    ///
    /// # Errors
    /// [`DynamicError::TooManyIds`], [`DynamicError::Full`], and nothing has changed; [`DynamicError::Gather`] where scratch would pass the
    /// budget, or the device fails.
    pub async fn gather<'a>(&self, ids: impl Into<IdSource<'a>>) -> Result<Rows<f32>, DynamicError> {
        self.rows(ids.into(), Use::Make).await
    }

    /// As [`DynamicTable::gather`], into a buffer of the engine's device: `[ids, dim]`, row-major, no gap between rows.
    ///
    /// Nothing is waited for: work submitted to the same queue later finds the rows there. That holds for ids of the device too,
    /// but for every sixteenth call of those without [`settle`](Self::settle), which does that first.
    ///
    /// # Errors
    /// As [`DynamicTable::gather`]; [`GatherError::NoDevice`] on the host backend.
    pub async fn gather_buffer<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        dtype: OutputDtype,
    ) -> Result<RowBuffer, DynamicError> {
        self.buffer(ids.into(), Use::Make, dtype).await
    }

    /// Looks rows up, and makes none: as [`DynamicTable::gather`] but for ids that have no row.
    ///
    /// # Errors
    /// [`DynamicError::Missing`] under [`Missing::Error`]; [`DynamicError::Gather`] where scratch would pass the budget, or the device
    /// fails.
    ///
    /// # Examples
    /// ```
    /// use gatherum::{DynamicError, DynamicOptions, Engine, Missing};
    /// # pollster::block_on(async {
    /// let table = Engine::host().dynamic_table("t", 2, &DynamicOptions::default()).await?;
    /// table.upsert(&[u64::MAX], &[0.5, 1.0]).await?;
    /// let rows = table.lookup(&[3, u64::MAX], Missing::Zero).await?;
    /// assert_eq!((rows.values, rows.bad.first), (vec![0.0, 0.0, 0.5, 1.0], Some(0)));
    /// let error = table.lookup(&[u64::MAX, 3], Missing::Error).await.unwrap_err();
    /// assert!(matches!(error, DynamicError::Missing { position: 1, id: Some(3), .. }));
    /// assert_eq!(table.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn lookup<'a>(&self, ids: impl Into<IdSource<'a>>, missing: Missing) -> Result<Rows<f32>, DynamicError> {
        self.rows(ids.into(), Use::Find(missing)).await
    }

    /// As [`DynamicTable::lookup`], into a buffer of the engine's device. Ids of the device are waited for, to count those that have no
    /// row.
    ///
    /// # Errors
    /// As [`DynamicTable::lookup`]; [`GatherError::NoDevice`] on the host backend.
    pub async fn lookup_buffer<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        missing: Missing,
        dtype: OutputDtype,
    ) -> Result<RowBuffer, DynamicError> {
        self.buffer(ids.into(), Use::Find(missing), dtype).await
    }

    /// Makes the rows of ids that [`gather`](Self::gather) was given on the device and did not find, as far as there is room, those of
    /// small ids first. It waits for the device.
    ///
    /// # Errors
    /// [`DynamicError::Gather`] where the device fails.
    pub async fn settle(&self) -> Result<Settled, DynamicError> {
        let mut settled = Settled::default();
        let Home::Gpu(gpu) = &self.inner.home else { return Ok(settled) };
        let missed = std::mem::take(&mut self.lock().missed);
        for missed in missed {
            let count = gpu.read_small(&missed.buffer, 0, 4, bytemuck::pod_read_unaligned::<u32>).await?;
            if count == 0 {
                continue;
            }
            let read = |raw: &[u8]| bytemuck::pod_collect_to_vec::<u8, u64>(raw);
            let mut ids = gpu.read_small(&missed.buffer, 4, 8 * u64::from(count), read).await?;
            ids.sort_unstable();
            ids.dedup();
            let mut state = self.lock();
            ids.retain(|id| state.slots.map.find(*id).is_none());
            let room = state.slots.room();
            settled.left += ids.len().saturating_sub(room) as u64;
            ids.truncate(room);
            settled.made += ids.len() as u64;
            state.admit(self.name(), &ids)?;
        }
        Ok(settled)
    }

    async fn buffer(&self, ids: IdSource<'_>, purpose: Use, dtype: OutputDtype) -> Result<RowBuffer, DynamicError> {
        match &self.inner.home {
            Home::Gpu(gpu) => self.to_buffer(gpu, ids, purpose, dtype).await,
            Home::Host(_) => Err(GatherError::NoDevice { table: self.name().to_owned() }.into()),
        }
    }

    /// `count` rows of zeros.
    pub(super) fn zeros(&self, count: u64) -> Result<Vec<f32>, DynamicError> {
        let needed = count.saturating_mul(u64::from(self.dim()));
        let mut values = Vec::new();
        let length = usize::try_from(needed).ok().filter(|length| values.try_reserve_exact(*length).is_ok());
        let Some(length) = length else {
            return Err(DynamicError::HostMemory {
                table: self.name().to_owned(),
                needed: Bytes(needed.saturating_mul(4)),
            });
        };
        values.resize(length, 0.0);
        Ok(values)
    }

    pub(super) async fn rows(&self, ids: IdSource<'_>, purpose: Use) -> Result<Rows<f32>, DynamicError> {
        let mut values = self.zeros(device::count(ids))?;
        let bad = match (&self.inner.home, ids) {
            (Home::Host(_), IdSource::Device(_)) => {
                return Err(GatherError::NoDevice { table: self.name().to_owned() }.into());
            }
            (Home::Host(_), IdSource::Host(ids)) => {
                let mut state = self.lock();
                let (slots, bad) = state.resolve(self.name(), &words(ids), purpose)?;
                if let Store::Host { table, .. } = &state.store {
                    // On this thread alone: one of a pool that waits may take up another call of this table, and so would
                    // wait for the lock that it has.
                    table.decode(&slots, &mut values);
                }
                bad
            }
            (Home::Gpu(gpu), ids) => {
                let rows = self.to_buffer(gpu, ids, purpose, OutputDtype::F32).await?;
                let chunk = usize::try_from(CHUNK / 4).unwrap_or(usize::MAX);
                for (out, offset) in values.chunks_mut(chunk).zip((0..).step_by(chunk * 4)) {
                    let bytes: &mut [u8] = bytemuck::cast_slice_mut(out);
                    let length = bytes.len() as u64;
                    gpu.read_small(&rows.buffer, offset, length, |raw| bytes.copy_from_slice(raw)).await?;
                }
                rows.bad
            }
        };
        Ok(Rows { values, dim: self.dim(), bad })
    }
}

/// Blocking twins, for callers without an executor.
#[cfg(not(target_arch = "wasm32"))]
impl DynamicTable {
    /// As [`DynamicTable::gather`], blocking.
    ///
    /// # Errors
    /// As [`DynamicTable::gather`].
    pub fn gather_blocking<'a>(&self, ids: impl Into<IdSource<'a>>) -> Result<Rows<f32>, DynamicError> {
        pollster::block_on(self.gather(ids))
    }

    /// As [`DynamicTable::gather_buffer`], blocking.
    ///
    /// # Errors
    /// As [`DynamicTable::gather_buffer`].
    pub fn gather_buffer_blocking<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        dtype: OutputDtype,
    ) -> Result<RowBuffer, DynamicError> {
        pollster::block_on(self.gather_buffer(ids, dtype))
    }

    /// As [`DynamicTable::lookup`], blocking.
    ///
    /// # Errors
    /// As [`DynamicTable::lookup`].
    pub fn lookup_blocking<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        missing: Missing,
    ) -> Result<Rows<f32>, DynamicError> {
        pollster::block_on(self.lookup(ids, missing))
    }

    /// As [`DynamicTable::lookup_buffer`], blocking.
    ///
    /// # Errors
    /// As [`DynamicTable::lookup_buffer`].
    pub fn lookup_buffer_blocking<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        missing: Missing,
        dtype: OutputDtype,
    ) -> Result<RowBuffer, DynamicError> {
        pollster::block_on(self.lookup_buffer(ids, missing, dtype))
    }

    /// As [`DynamicTable::settle`], blocking.
    ///
    /// # Errors
    /// As [`DynamicTable::settle`].
    pub fn settle_blocking(&self) -> Result<Settled, DynamicError> {
        pollster::block_on(self.settle())
    }
}
