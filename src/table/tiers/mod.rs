//! Tables over tiers: rows on the device, over rows in host memory, over wherever the table is stored.
//!
//! ```text
//! rows that a batch names
//!   | each page once: held, so that it stays
//!   v
//! device.rs   pages in slots of a small table; those that lack one get it from a page that was not used for long
//!   | pages that are not there
//!   v
//! host.rs     pages in host memory, copied
//!   | pages that are not there
//!   v
//! fetch.rs    the source: neighbours by one request, several requests at a time
//! ```
//! A lookup runs on the small table, with numbers of slots for ids: the bits are those of the whole table. A batch of more rows
//! than there are slots goes through them by parts. What is where says only how long an answer takes. Scans pass by: they read
//! shards of their own.

mod device;
mod fetch;
mod host;
mod lookup;
mod pages;
mod slots;

use std::{
    ops::Range,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use device::{DeviceTier, Holder};
use fetch::{Below, Counts};
use host::HostTier;
use pages::Pages;

use super::{Lease, resident};
use crate::{
    error::{GatherError, TableError},
    gpu::Gpu,
    memory::Ledger,
    source::TableSource,
    store::{Residency, SharedSource, TierReport, Tiered},
    units::Bytes,
};

/// The tiers of a table.
pub(super) struct Tiers {
    below: Below,
    device: Option<Arc<DeviceTier>>,
}

impl Tiers {
    /// Makes room for the tiers; nothing of the table is read but what all rows share.
    pub(super) async fn new(
        source: SharedSource,
        gpu: Option<&Arc<Gpu>>,
        ledger: &Ledger,
        options: &Tiered,
    ) -> Result<Self, TableError> {
        let name = source.name().to_owned();
        let pages = Pages::new(source.spec().stored());
        let count = pages.within(options.host);
        // A device's ledger knows its memory; that of an engine on the host, the host's.
        let reserved = match gpu {
            Some(_) => None,
            None => Some(resident::reserve_host(&name, &pages.table(count), ledger)?),
        };
        let host = Arc::new(HostTier::new(&name, &pages, count, reserved)?);
        let shared = fetch::shared(&source, &pages).await?;
        let device = match gpu {
            Some(gpu) => Some(Arc::new(DeviceTier::new(&name, &shared, &pages, gpu.clone(), options.device).await?)),
            None => None,
        };
        let (retry, at_once) = (options.retry, options.at_once);
        Ok(Self { below: Below { source, pages, host, shared, retry, at_once, counts: Counts::default() }, device })
    }

    /// The share of the table in its highest tier, and what that took.
    pub(super) fn residency(&self) -> Residency {
        let report = self.report();
        let top = report.device.unwrap_or(report.host);
        let page = self.below.pages.page_bytes().0.max(1);
        Residency {
            shards: self.below.pages.count() as usize,
            resident_shards: usize::try_from(top.resident.0 / page).unwrap_or(usize::MAX),
            bytes: self.below.pages.spec.bytes(),
            resident_bytes: top.resident,
            read: report.read,
            hits: top.hits,
            misses: top.misses,
            evictions: top.evictions,
            ..Residency::default()
        }
    }

    /// What each tier did so far.
    pub(super) fn report(&self) -> TierReport {
        let counts = &self.below.counts;
        TierReport {
            device: self.device.as_ref().map(|device| device.stats(&self.below.pages)),
            host: self.below.host.stats(&self.below.pages),
            requests: counts.requests.load(Ordering::Relaxed),
            read: Bytes(counts.bytes.load(Ordering::Relaxed)),
            waited: Duration::from_nanos(counts.nanoseconds.load(Ordering::Relaxed)),
        }
    }

    /// Brings the pages of `rows` up, as many as the highest tier takes at once.
    pub(super) async fn fetch(&self, rows: &[u32]) -> Result<(), GatherError> {
        match &self.device {
            Some(device) => drop(device.place(&self.below, rows, Holder::Lookup).await?),
            None => drop(self.below.fetch(&self.unique(rows)).await?),
        }
        Ok(())
    }

    /// Brings the first pages up, as many as the highest tier takes.
    pub(super) async fn warm(&self) -> Result<(), GatherError> {
        let count = match &self.device {
            Some(device) => device.len(),
            None => self.below.host.len(),
        };
        let (pages, step) = (&self.below.pages, self.step());
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        for first in (0..count).step_by(step) {
            let until = count.min(first.saturating_add(u32::try_from(step).unwrap_or(u32::MAX)));
            let rows: Vec<u32> = (first..until).map(|page| page * pages.rows).collect();
            self.fetch(&rows).await?;
        }
        Ok(())
    }

    /// Pages that are brought up at a time where all are: about 16 MiB of them.
    fn step(&self) -> usize {
        usize::try_from((16 << 20) / self.below.pages.page_bytes().0.max(1)).unwrap_or(usize::MAX).max(1)
    }

    /// Lets go of the pages that have `rows`, in all tiers, unless somebody holds them, and says how many bytes those had.
    pub(super) fn evict(&self, rows: &Range<u32>) -> Bytes {
        let pages = &self.below.pages;
        let end = rows.end.min(pages.spec.shape().rows()).div_ceil(pages.rows);
        let range = (rows.start / pages.rows).min(end)..end;
        let host = self.below.host.forget(range.clone());
        let gone = self.device.as_ref().map_or(0, |device| device.forget(range));
        Bytes((host + gone) * pages.page_bytes().0)
    }

    /// Forgets the pages of `rows`, which changed, in all tiers. No call is in flight.
    pub(super) fn changed(&self, rows: &[u32]) {
        let pages = self.unique(rows);
        self.below.host.change(pages.iter().copied());
        if let Some(device) = &self.device {
            device.change(pages.iter().copied());
        }
    }

    /// Holds the pages of `rows` in the highest tier.
    pub(super) async fn lease(&self, rows: &[u32]) -> Result<Lease, GatherError> {
        match &self.device {
            Some(device) => Ok(Lease::new(device.place(&self.below, rows, Holder::Lease).await?.1)),
            None => {
                let (wanted, host) = (self.unique(rows), &self.below.host);
                drop(self.below.fetch(&wanted).await?);
                let held = host.hold(&wanted).ok_or_else(|| GatherError::CacheBusy {
                    table: self.below.source.name().to_owned(),
                    pages: host.len(),
                })?;
                Ok(Lease::new(held))
            }
        }
    }
}
