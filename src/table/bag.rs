//! Bags of rows as one row each: to host memory, or to a buffer.

use super::{
    Table,
    resident::Place,
    rows::{RowBuffer, Rows},
};
use crate::{
    error::{BagsError, GatherError},
    op::{BadIds, Bags, CheckedBags, IdPolicy, Ids, Resolver},
};

impl Table {
    /// Makes one row of each bag of ids, into new host memory: `[bags, dim]`, row-major, in the order of the bags.
    ///
    /// `ids` are a slice of `u32`, `u64` or `i64`; see [`Bags`] for the rest, and for an example. Rows are decoded where they
    /// are and added as they come: those of the ids are never made. An id outside of the table is an error, or a row of
    /// zeros: it adds nothing to a sum, is counted by the mean, and is 0.0 to the maximum; [`Rows::bad`] counts it.
    ///
    /// The host and all adapters that round as IEEE 754 says give the same bits, those of a plain loop over the ids, where no
    /// product, sum or result is subnormal (drivers may take those for zero). Where a table is split over more than five
    /// buffers, a bag is folded by stretches of 1,024 ids (fewer where a row takes 58 steps or more to decode), and within a
    /// stretch by the shards that are bound together: the first five, the next five; or, where an id reads several stored rows,
    /// sets of the groups of shards that ids read, the smaller sets first.
    ///
    /// # Errors
    /// [`GatherError::Bags`] where bags or weights do not fit the ids, before anything is computed; [`GatherError::BadId`]
    /// under [`IdPolicy::Error`]; [`GatherError::OverBudget`] where scratch would pass the budget; [`GatherError::Device`]
    /// where the device fails.
    pub async fn bag<'a>(
        &self,
        ids: impl Into<Ids<'a>>,
        bags: &Bags<'a>,
        policy: IdPolicy,
    ) -> Result<Rows<f32>, GatherError> {
        let (bags, bad) = self.check_bags(ids.into(), bags, policy)?;
        let dim = self.inner.spec.shape().dim();
        let mut values = Vec::new();
        let room = bags.len().checked_mul(dim as usize).map(|length| (length, values.try_reserve_exact(length)));
        let Some((length, Ok(()))) = room else {
            return Err(GatherError::Buffer {
                table: self.inner.name.clone(),
                role: "output",
                problem: format!("of {} bags x {dim} columns does not fit host memory", bags.len()),
            });
        };
        values.resize(length, 0.0);
        self.fill_bags(&bags, policy, &mut values).await?;
        Ok(Rows { values, dim, bad })
    }

    /// As [`Table::bag`], into `out: [bags, dim]`. An error leaves `out` as it was, unless the device failed.
    ///
    /// # Errors
    /// As [`Table::bag`]; [`BagsError::OutputLength`] where `out` has another size.
    pub async fn bag_into<'a>(
        &self,
        ids: impl Into<Ids<'a>>,
        bags: &Bags<'a>,
        policy: IdPolicy,
        out: &mut [f32],
    ) -> Result<BadIds, GatherError> {
        let (bags, bad) = self.check_bags(ids.into(), bags, policy)?;
        let dim = self.inner.spec.shape().dim();
        let (count, got) = (bags.len() as u64, out.len() as u64);
        let needed = count.saturating_mul(u64::from(dim));
        if got != needed {
            return Err(self.wrong_bags(BagsError::OutputLength { bags: count, dim, needed, got }));
        }
        self.fill_bags(&bags, policy, out).await?;
        Ok(bad)
    }

    /// As [`Table::bag`], into a buffer of the engine's device: `[bags, dim]`, row-major, no gap between rows.
    ///
    /// The buffer comes from a pool and goes back there when the [`RowBuffer`] is dropped. Nothing is waited for: work
    /// submitted to the same queue later finds the rows there.
    ///
    /// # Errors
    /// As [`Table::bag`]; [`GatherError::NoDevice`] on the host backend.
    pub async fn bag_buffer<'a>(
        &self,
        ids: impl Into<Ids<'a>>,
        bags: &Bags<'a>,
        policy: IdPolicy,
    ) -> Result<RowBuffer, GatherError> {
        if let Place::OnDemand(shards) = &self.inner.place {
            let (bags, bad) = self.check_bags(ids.into(), bags, policy)?;
            let _reading = self.reading().await;
            return shards.bags_to_buffer(self.name(), &bags, self.resolver(policy), bad).await;
        }
        let device = self.device()?;
        let (bags, bad) = self.check_bags(ids.into(), bags, policy)?;
        device.bags_to_buffer(&bags, policy, bad).await
    }

    /// Refuses bags that do not fit, and bad ids where the policy says so.
    fn check_bags<'a>(
        &self,
        ids: Ids<'a>,
        bags: &Bags<'a>,
        policy: IdPolicy,
    ) -> Result<(CheckedBags<'a>, BadIds), GatherError> {
        let bags = bags.check(ids).map_err(|error| self.wrong_bags(error))?;
        let resolver = self.resolver(policy);
        let bad = resolver.refuse(&self.inner.name, bags.bad_ids(resolver), |position| {
            usize::try_from(position).ok().and_then(|position| ids.get(position))
        })?;
        Ok((bags, bad))
    }

    fn resolver(&self, policy: IdPolicy) -> Resolver {
        Resolver::new(&self.inner.spec, policy)
    }

    fn wrong_bags(&self, error: BagsError) -> GatherError {
        GatherError::Bags { table: self.inner.name.clone(), error }
    }

    async fn fill_bags(&self, bags: &CheckedBags<'_>, policy: IdPolicy, out: &mut [f32]) -> Result<(), GatherError> {
        let _reading = self.reading().await;
        match &self.inner.place {
            Place::Host { table, .. } => {
                table.bag(bags, self.resolver(policy), out);
                Ok(())
            }
            Place::Gpu { .. } => self.device()?.bags_to_host(bags, policy, out).await,
            Place::OnDemand(shards) => shards.bags_to_host(self.name(), bags, self.resolver(policy), out).await,
        }
    }
}

/// Blocking twins, for callers without an executor.
#[cfg(not(target_arch = "wasm32"))]
impl Table {
    /// As [`Table::bag`], blocking.
    ///
    /// # Errors
    /// As [`Table::bag`].
    pub fn bag_blocking<'a>(
        &self,
        ids: impl Into<Ids<'a>>,
        bags: &Bags<'a>,
        policy: IdPolicy,
    ) -> Result<Rows<f32>, GatherError> {
        pollster::block_on(self.bag(ids, bags, policy))
    }

    /// As [`Table::bag_into`], blocking.
    ///
    /// # Errors
    /// As [`Table::bag_into`].
    pub fn bag_into_blocking<'a>(
        &self,
        ids: impl Into<Ids<'a>>,
        bags: &Bags<'a>,
        policy: IdPolicy,
        out: &mut [f32],
    ) -> Result<BadIds, GatherError> {
        pollster::block_on(self.bag_into(ids, bags, policy, out))
    }

    /// As [`Table::bag_buffer`], blocking.
    ///
    /// # Errors
    /// As [`Table::bag_buffer`].
    pub fn bag_buffer_blocking<'a>(
        &self,
        ids: impl Into<Ids<'a>>,
        bags: &Bags<'a>,
        policy: IdPolicy,
    ) -> Result<RowBuffer, GatherError> {
        pollster::block_on(self.bag_buffer(ids, bags, policy))
    }
}
