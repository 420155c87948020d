//! Looking rows up: to host memory, to a buffer, or recorded into a caller's encoder.

use half::{f16, slice::HalfFloatSliceExt};

use super::{
    Table,
    device::{self, DeviceTable},
    resident::Place,
    rows::{GatherStatus, OutputBuffer, RowBuffer, Rows},
};
use crate::{
    error::GatherError,
    gpu::OutputDtype,
    host::HostTable,
    op::{BadIds, IdBuffer, IdPolicy, IdSource, Ids, Resolver},
};

/// An element that rows are delivered in.
pub(super) trait Element: bytemuck::Pod + Send + Sync {
    const DTYPE: OutputDtype;
    fn on_host(table: &HostTable, ids: Ids<'_>, policy: IdPolicy, out: &mut [Self]) -> Result<BadIds, GatherError>;
    /// Rounds values of rows, as many as `out` takes.
    fn round(values: &[f32], out: &mut [Self]);
}

impl Element for f32 {
    const DTYPE: OutputDtype = OutputDtype::F32;
    fn on_host(table: &HostTable, ids: Ids<'_>, policy: IdPolicy, out: &mut [Self]) -> Result<BadIds, GatherError> {
        table.gather_f32(ids, policy, out)
    }

    fn round(values: &[f32], out: &mut [Self]) {
        out.copy_from_slice(values);
    }
}

impl Element for f16 {
    const DTYPE: OutputDtype = OutputDtype::F16;
    fn on_host(table: &HostTable, ids: Ids<'_>, policy: IdPolicy, out: &mut [Self]) -> Result<BadIds, GatherError> {
        table.gather_f16(ids, policy, out)
    }

    fn round(values: &[f32], out: &mut [Self]) {
        out.convert_from_f32_slice(values);
    }
}

impl Table {
    /// Looks rows up as f32, into new host memory: `[ids, dim]`, row-major, in the order of the ids.
    ///
    /// `ids` are a slice of `u32`, `u64` or `i64`, or an [`IdBuffer`] on the engine's device. What an id outside of the
    /// table does is the policy's to say; it never reads another row. Batches beyond any limit of the device are split.
    ///
    /// # Errors
    /// [`GatherError::BadId`] under [`IdPolicy::Error`]; [`GatherError::OverBudget`] where scratch would pass the budget;
    /// [`GatherError::Device`] where the device fails.
    ///
    /// # Examples
    /// ```
    /// use gatherum::{EncodedTable, Engine, IdPolicy};
    /// # pollster::block_on(async {
    /// let values = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5];
    /// let (table, _) = EncodedTable::encode("words", &values, 2, &"f16".parse()?)?;
    /// let table = Engine::host().load(&table).await?;
    /// let rows = table.gather(&[2_u32, 0], IdPolicy::Error).await?;
    /// assert_eq!(rows.values, [2.0, 2.5, 0.0, 0.5]);
    ///
    /// let rows = table.gather(&[-1_i64, 7], IdPolicy::Wrap).await?;
    /// assert_eq!(rows.values, [2.0, 2.5, 0.0, 0.0]);
    /// assert_eq!(rows.bad.first, Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn gather<'a>(&self, ids: impl Into<IdSource<'a>>, policy: IdPolicy) -> Result<Rows<f32>, GatherError> {
        self.rows(ids.into(), policy).await
    }

    /// As [`Table::gather`], as f16: the f32 value rounded to nearest, ties to even.
    ///
    /// # Errors
    /// As [`Table::gather`].
    pub async fn gather_f16<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        policy: IdPolicy,
    ) -> Result<Rows<f16>, GatherError> {
        self.rows(ids.into(), policy).await
    }

    /// As [`Table::gather`], into `out: [ids, dim]`. Under [`IdPolicy::Error`], a bad id leaves `out` as it was.
    ///
    /// # Errors
    /// As [`Table::gather`], and [`GatherError::OutputLength`] where `out` has another size.
    pub async fn gather_into<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        policy: IdPolicy,
        out: &mut [f32],
    ) -> Result<BadIds, GatherError> {
        self.fill(ids.into(), policy, out).await
    }

    /// As [`Table::gather_into`], as f16.
    ///
    /// # Errors
    /// As [`Table::gather_into`].
    pub async fn gather_f16_into<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        policy: IdPolicy,
        out: &mut [f16],
    ) -> Result<BadIds, GatherError> {
        self.fill(ids.into(), policy, out).await
    }

    /// Looks rows up into a buffer of the engine's device: `[ids, dim]`, row-major, no gap between rows.
    ///
    /// The buffer comes from a pool and goes back there when the [`RowBuffer`] is dropped. With ids from host memory
    /// nothing is waited for: work submitted to the same queue later finds the rows there.
    ///
    /// # Errors
    /// As [`Table::gather`]; [`GatherError::NoDevice`] on the host backend.
    pub async fn gather_buffer<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        policy: IdPolicy,
        dtype: OutputDtype,
    ) -> Result<RowBuffer, GatherError> {
        let Place::OnDemand(shards) = &self.inner.place else {
            return self.device()?.to_buffer(ids.into(), policy, dtype).await;
        };
        let _reading = self.reading().await;
        let ids = shards.host_ids(self.name(), ids.into()).await?;
        let resolver = self.check_ids(ids.ids(), policy)?;
        shards.to_buffer(self.name(), ids.ids(), resolver, dtype).await
    }

    /// Records a lookup into the caller's encoder and buffer; submits nothing.
    ///
    /// Rows of bad ids are zeros; the policy decides whether [`GatherStatus::read`], after the caller has submitted, is an
    /// error. Keep the status until then: it holds buffers that the recorded commands use.
    ///
    /// # Errors
    /// [`GatherError::Buffer`] where a buffer is too small, lacks a usage, or an offset is no multiple of 4;
    /// [`GatherError::NoDevice`] on the host backend; [`GatherError::NotResident`] for a table on demand of which a shard is
    /// not there: nothing can be loaded while commands are recorded; [`GatherError::Changing`] where the rows of its source change.
    pub fn encode_gather(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        ids: IdBuffer<'_>,
        policy: IdPolicy,
        output: OutputBuffer<'_>,
    ) -> Result<GatherStatus, GatherError> {
        let Place::OnDemand(shards) = &self.inner.place else {
            return self.device()?.encode(encoder, ids, policy, output);
        };
        let (name, spec) = (self.name(), self.spec());
        if shards.changes().is_some() {
            return Err(GatherError::Changing { table: name.to_owned() });
        }
        let Some(gpu) = shards.gpu() else { return Err(GatherError::NoDevice { table: name.to_owned() }) };
        let all = shards.all(spec).map_err(|resident| GatherError::NotResident {
            table: name.to_owned(),
            resident,
            shards: shards.placed().len(),
        })?;
        DeviceTable { name, spec, gpu, shards: &all }.encode(encoder, ids, policy, output)
    }

    /// Refuses bad ids where the policy says so.
    fn check_ids(&self, ids: Ids<'_>, policy: IdPolicy) -> Result<Resolver, GatherError> {
        let resolver = Resolver::new(self.spec(), policy);
        if policy == IdPolicy::Error {
            let id = |position| usize::try_from(position).ok().and_then(|position| ids.get(position));
            resolver.refuse(self.name(), resolver.check(ids), id)?;
        }
        Ok(resolver)
    }

    pub(super) fn device(&self) -> Result<DeviceTable<'_>, GatherError> {
        match &self.inner.place {
            Place::Gpu { gpu, shards } => {
                Ok(DeviceTable { name: &self.inner.name, spec: &self.inner.spec, gpu, shards })
            }
            Place::Host { .. } | Place::OnDemand(_) => Err(GatherError::NoDevice { table: self.inner.name.clone() }),
        }
    }

    async fn rows<T: Element>(&self, ids: IdSource<'_>, policy: IdPolicy) -> Result<Rows<T>, GatherError> {
        let dim = self.inner.spec.shape().dim();
        let count = device::count(ids);
        let needed = count.checked_mul(u64::from(dim)).and_then(|values| usize::try_from(values).ok());
        let mut values = Vec::new();
        let room = needed.map(|values_needed| values.try_reserve_exact(values_needed).map(|()| values_needed));
        let Some(Ok(length)) = room else {
            return Err(GatherError::Buffer {
                table: self.inner.name.clone(),
                role: "output",
                problem: format!("of {count} ids x {dim} columns does not fit host memory"),
            });
        };
        values.resize(length, T::zeroed());
        let bad = self.fill(ids, policy, &mut values).await?;
        Ok(Rows { values, dim, bad })
    }

    async fn fill<T: Element>(
        &self,
        ids: IdSource<'_>,
        policy: IdPolicy,
        out: &mut [T],
    ) -> Result<BadIds, GatherError> {
        let (dim, count) = (self.inner.spec.shape().dim(), device::count(ids));
        let needed = count.saturating_mul(u64::from(dim));
        if out.len() as u64 != needed {
            let (table, got) = (self.inner.name.clone(), out.len() as u64);
            return Err(GatherError::OutputLength { table, ids: count, dim, needed, got });
        }
        match (&self.inner.place, ids) {
            (Place::Host { table, .. }, IdSource::Host(ids)) => T::on_host(table, ids, policy, out),
            (Place::Host { .. }, IdSource::Device(_)) => Err(GatherError::NoDevice { table: self.inner.name.clone() }),
            (Place::Gpu { .. }, ids) => self.device()?.to_host(ids, policy, out).await,
            (Place::OnDemand(shards), ids) => {
                let _reading = self.reading().await;
                let ids = shards.host_ids(self.name(), ids).await?;
                let resolver = self.check_ids(ids.ids(), policy)?;
                shards.to_host(ids.ids(), resolver, out).await
            }
        }
    }
}

/// Blocking twins, for callers without an executor.
#[cfg(not(target_arch = "wasm32"))]
impl Table {
    /// As [`Table::gather`], blocking.
    ///
    /// # Errors
    /// As [`Table::gather`].
    pub fn gather_blocking<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        policy: IdPolicy,
    ) -> Result<Rows<f32>, GatherError> {
        pollster::block_on(self.gather(ids, policy))
    }

    /// As [`Table::gather_f16`], blocking.
    ///
    /// # Errors
    /// As [`Table::gather`].
    pub fn gather_f16_blocking<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        policy: IdPolicy,
    ) -> Result<Rows<f16>, GatherError> {
        pollster::block_on(self.gather_f16(ids, policy))
    }

    /// As [`Table::gather_into`], blocking.
    ///
    /// # Errors
    /// As [`Table::gather_into`].
    pub fn gather_into_blocking<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        policy: IdPolicy,
        out: &mut [f32],
    ) -> Result<BadIds, GatherError> {
        pollster::block_on(self.gather_into(ids, policy, out))
    }

    /// As [`Table::gather_f16_into`], blocking.
    ///
    /// # Errors
    /// As [`Table::gather_into`].
    pub fn gather_f16_into_blocking<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        policy: IdPolicy,
        out: &mut [f16],
    ) -> Result<BadIds, GatherError> {
        pollster::block_on(self.gather_f16_into(ids, policy, out))
    }

    /// As [`Table::gather_buffer`], blocking.
    ///
    /// # Errors
    /// As [`Table::gather_buffer`].
    pub fn gather_buffer_blocking<'a>(
        &self,
        ids: impl Into<IdSource<'a>>,
        policy: IdPolicy,
        dtype: OutputDtype,
    ) -> Result<RowBuffer, GatherError> {
        pollster::block_on(self.gather_buffer(ids, policy, dtype))
    }
}
