//! Changing rows: writing them, taking them out, and making room for more.

use super::{DynamicTable, calls::words, checked, eviction::Eviction, ids_need, spec, store::Store};
use crate::{error::DynamicError, op::Ids, units::Bytes};

impl DynamicTable {
    /// Writes rows: `values: [ids, dim]`, row-major. Ids that have no row are given one. Where an id stands in the batch twice, its last
    /// row stays.
    ///
    /// # Errors
    /// [`DynamicError::Values`], [`DynamicError::Value`], [`DynamicError::TooManyIds`], [`DynamicError::Full`], and nothing has changed;
    /// [`DynamicError::Gather`] where the device fails.
    pub async fn upsert<'a>(&self, ids: impl Into<Ids<'a>>, values: &[f32]) -> Result<(), DynamicError> {
        let ids = ids.into();
        let ids = words(ids);
        let bytes = self.encode(&ids, values)?;
        self.lock().write(self.name(), &ids, &bytes)
    }

    /// The bytes of rows, which fit the table.
    fn encode(&self, ids: &[u64], values: &[f32]) -> Result<Vec<u8>, DynamicError> {
        let (dim, table) = (self.dim(), || self.name().to_owned());
        if ids.len() as u64 * u64::from(dim) != values.len() as u64 {
            return Err(DynamicError::Values { table: table(), ids: ids.len() as u64, dim, got: values.len() as u64 });
        }
        let refuse = |index: usize, reason| {
            let (row, column) = (index / dim as usize, index % dim as usize);
            let column = u32::try_from(column).unwrap_or(u32::MAX);
            DynamicError::Value { table: table(), row: row as u64, id: ids[row], column, value: values[index], reason }
        };
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(refuse(index, "a table must be finite"));
        }
        let scheme = spec(dim, self.dtype(), 1)?;
        let length = values.len() * usize::try_from(self.dtype().bytes()).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(length).is_err() {
            return Err(DynamicError::HostMemory { table: table(), needed: Bytes(length as u64) });
        }
        bytes.resize(length, 0);
        let encoded = scheme.scheme().codec().encode_rows(dim as usize, values, &mut [&mut bytes]);
        encoded.map_err(|misfit| refuse(misfit.index, misfit.reason))?;
        Ok(bytes)
    }

    /// Takes rows out, and says how many there were of those. Ids that have none are passed over. One that is used again is new.
    ///
    /// # Errors
    /// [`DynamicError::Gather`] where the device fails.
    pub async fn remove<'a>(&self, ids: impl Into<Ids<'a>>) -> Result<u64, DynamicError> {
        let ids = words(ids.into());
        let mut state = self.lock();
        let removed = state.slots.remove(ids.iter().copied());
        state.sync()?;
        Ok(removed as u64)
    }

    /// Takes all rows out.
    ///
    /// # Errors
    /// As [`DynamicTable::remove`].
    pub async fn clear(&self) -> Result<(), DynamicError> {
        let mut state = self.lock();
        state.missed.clear();
        state.slots.clear();
        state.sync()
    }

    /// Gives rows scores, one an id, by which they go where there is no room: the lowest first. Says how many of the ids have a
    /// row; the others are passed over. A row that is new has 0.
    ///
    /// # Errors
    /// [`DynamicError::Scores`] where there is not one an id, one is NaN, or rows of the table do not go by [`Eviction::Score`].
    ///
    /// # Examples
    /// ```
    /// use gatherum::{DynamicOptions, Engine, Eviction};
    /// # pollster::block_on(async {
    /// let options = DynamicOptions { capacity: 2, eviction: Eviction::Score, ..DynamicOptions::default() };
    /// let table = Engine::host().dynamic_table("t", 1, &options).await?;
    /// table.gather(&[10_u32, 20]).await?;
    /// table.set_scores(&[10_u32, 20], &[-1.0, 2.5])?;
    /// table.gather(&[30_u32]).await?;
    /// assert_eq!(table.take_evicted(), [10]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn set_scores<'a>(&self, ids: impl Into<Ids<'a>>, scores: &[f32]) -> Result<u64, DynamicError> {
        let ids = words(ids.into());
        let refuse = |problem| Err(DynamicError::Scores { table: self.name().to_owned(), problem });
        if self.eviction() != Eviction::Score {
            return refuse("rows do not go by score".to_owned());
        }
        if scores.len() != ids.len() {
            return refuse(format!("{} scores for {} ids", scores.len(), ids.len()));
        }
        if let Some(position) = scores.iter().position(|score| score.is_nan()) {
            return refuse(format!("the score at position {position} is NaN"));
        }
        Ok(self.lock().slots.score(&ids, scores) as u64)
    }

    /// Makes room for more rows, as many as `capacity` in all; those that are there keep their values. While it runs, the memory of both is taken.
    ///
    /// # Errors
    /// [`DynamicError::Shrinks`] where there is room for more already; as making the table, and nothing has changed.
    pub async fn grow(&self, capacity: u64) -> Result<(), DynamicError> {
        let inner = &self.inner;
        let rows = checked(self.name(), capacity)?;
        self.may_grow(self.capacity(), capacity)?;
        let kernels = self.lock().store.kernels();
        let spec = spec(self.dim(), self.dtype(), rows)?;
        let grown = Store::with_kernels(self.name(), spec, inner.kind, inner.eviction, &inner.home, kernels).await?;
        let (mut store, reserved) = grown;
        let mut state = self.lock();
        let state = &mut *state;
        // It may have grown meanwhile.
        self.may_grow(state.slots.capacity() as u64, capacity)?;
        store.take_rows(&mut state.store)?;
        if state.slots.grow(rows, inner.home.gpu().is_some()).is_none() {
            let needed = Bytes(ids_need(self.name(), rows, inner.eviction).total());
            return Err(DynamicError::HostMemory { table: self.name().to_owned(), needed });
        }
        state.store = store;
        state.reserved = reserved;
        state.sync()
    }

    fn may_grow(&self, capacity: u64, wanted: u64) -> Result<(), DynamicError> {
        if wanted < capacity {
            return Err(DynamicError::Shrinks { table: self.name().to_owned(), capacity, wanted });
        }
        Ok(())
    }
}

/// Blocking twins, for callers without an executor.
#[cfg(not(target_arch = "wasm32"))]
impl DynamicTable {
    /// As [`DynamicTable::upsert`], blocking.
    ///
    /// # Errors
    /// As [`DynamicTable::upsert`].
    pub fn upsert_blocking<'a>(&self, ids: impl Into<Ids<'a>>, values: &[f32]) -> Result<(), DynamicError> {
        pollster::block_on(self.upsert(ids, values))
    }

    /// As [`DynamicTable::remove`], blocking.
    ///
    /// # Errors
    /// As [`DynamicTable::remove`].
    pub fn remove_blocking<'a>(&self, ids: impl Into<Ids<'a>>) -> Result<u64, DynamicError> {
        pollster::block_on(self.remove(ids))
    }

    /// As [`DynamicTable::clear`], blocking.
    ///
    /// # Errors
    /// As [`DynamicTable::clear`].
    pub fn clear_blocking(&self) -> Result<(), DynamicError> {
        pollster::block_on(self.clear())
    }

    /// As [`DynamicTable::grow`], blocking.
    ///
    /// # Errors
    /// As [`DynamicTable::grow`].
    pub fn grow_blocking(&self, capacity: u64) -> Result<(), DynamicError> {
        pollster::block_on(self.grow(capacity))
    }
}
