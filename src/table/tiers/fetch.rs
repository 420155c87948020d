//! Pages from below: out of host memory, or by reading the source.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::{StreamExt, stream};

use super::{
    host::HostTier,
    pages::{PageBytes, Pages},
};
use crate::{
    error::{ShardCause, ShardError, SourceError},
    source::TableSource,
    store::{Retry, SharedSource, Tried},
};

/// Bytes between two pages that are read with them, rather than by two requests.
const GAP: u64 = 16 << 10;
/// About the most bytes that one request is for.
const MOST: u64 = 4 << 20;

/// Where pages come from.
pub(super) struct Below {
    pub(super) source: SharedSource,
    pub(super) pages: Pages,
    pub(super) host: Arc<HostTier>,
    /// What all rows share, part by part; empty where rows have a part of their own.
    pub(super) shared: Vec<Vec<u8>>,
    pub(super) retry: Retry,
    /// Requests at a time.
    pub(super) at_once: usize,
    pub(super) counts: Counts,
}

/// What reading took so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) requests: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) nanoseconds: AtomicU64,
}

/// Pages that one request reads, with those between them.
#[derive(Debug, PartialEq)]
struct Run {
    pages: Range<u32>,
    /// Those that are wanted: places in the order of their pages.
    places: Range<usize>,
}

impl Below {
    /// The bytes of `wanted`, each named once, in that order.
    pub(super) async fn fetch(&self, wanted: &[u32]) -> Result<PageBytes, ShardError> {
        let mut bytes = self.pages.room(wanted.len());
        let mut missing = self.host.copy(&self.pages, wanted, &mut bytes);
        if missing.is_empty() {
            return Ok(bytes);
        }
        missing.sort_unstable_by_key(|at| wanted[*at]);
        let sorted: Vec<u32> = missing.iter().map(|at| wanted[*at]).collect();
        let start = now();
        let mut reads = stream::iter(runs(&sorted, self.pages.page_bytes().0))
            .map(|run| async {
                let parts = self.read(&run.pages).await?;
                Ok::<_, ShardError>((run, parts))
            })
            .buffer_unordered(self.at_once.max(1));
        while let Some(read) = reads.next().await {
            let (run, parts) = read?;
            for place in run.places {
                let from = (sorted[place] - run.pages.start) as usize;
                for (part, own) in parts.iter().enumerate() {
                    let out = &mut bytes.parts[part][self.pages.place(part, missing[place])];
                    // The last page may have rows that the table lacks.
                    let own = &own[self.pages.place(part, from).start.min(own.len())..];
                    let length = out.len().min(own.len());
                    out[..length].copy_from_slice(&own[..length]);
                }
            }
        }
        drop(reads);
        self.counts.nanoseconds.fetch_add(since(start), Ordering::Relaxed);
        self.host.keep(&self.pages, wanted, &missing, &bytes);
        Ok(bytes)
    }

    /// The bytes of neighbours, part by part.
    async fn read(&self, pages: &Range<u32>) -> Result<Vec<Vec<u8>>, ShardError> {
        let attempt = || async {
            let mut parts = Vec::new();
            for (number, part) in self.pages.spec.parts().iter().enumerate() {
                let page = self.pages.bytes[number] as u64;
                let end = (u64::from(pages.end) * page).min(part.bytes().0);
                let begin = (u64::from(pages.start) * page).min(end);
                let mut bytes = vec![0; usize::try_from(end - begin).unwrap_or(usize::MAX)];
                if !bytes.is_empty() && !part.is_shared() {
                    self.source.read_part(number, begin, &mut bytes).await?;
                    self.counts.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                }
                parts.push(bytes);
            }
            Ok::<_, SourceError>(parts)
        };
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        self.retry.run(attempt, |_| true).await.map_err(|tried| self.failed(pages, tried))
    }

    fn failed(&self, pages: &Range<u32>, tried: Tried<SourceError>) -> ShardError {
        let Tried { attempts, last, late } = tried;
        let cause = match last {
            Some(error) if !late => ShardCause::Source { attempts, error },
            last => ShardCause::Deadline { deadline: self.retry.deadline, attempts, last },
        };
        let all = self.pages.spec.shape().rows();
        let rows = pages.start * self.pages.rows..pages.end.saturating_mul(self.pages.rows).min(all);
        tracing::debug!(table = self.source.name(), ?rows, %cause, "rows not read");
        ShardError { table: self.source.name().to_owned(), shard: None, rows, cause: cause.into() }
    }
}

/// What all rows share, part by part; empty where rows have a part of their own.
pub(super) async fn shared(source: &impl TableSource, pages: &Pages) -> Result<Vec<Vec<u8>>, SourceError> {
    let mut parts = Vec::new();
    for (number, part) in pages.spec.parts().iter().enumerate() {
        let bytes = if part.is_shared() { part.bytes().0 } else { 0 };
        let mut shared = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        if !shared.is_empty() {
            source.read_part(number, 0, &mut shared).await?;
        }
        parts.push(shared);
    }
    Ok(parts)
}

/// Ascending pages as few requests.
fn runs(pages: &[u32], page_bytes: u64) -> Vec<Run> {
    let bytes = |from: u32, to: u32| u64::from(to - from) * page_bytes;
    let mut runs: Vec<Run> = Vec::new();
    for (place, page) in pages.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if bytes(run.pages.end, *page) <= GAP && bytes(run.pages.start, *page) < MOST => {
                run.pages.end = page + 1;
                run.places.end = place + 1;
            }
            _ => runs.push(Run { pages: *page..page + 1, places: place..place + 1 }),
        }
    }
    runs
}

#[cfg(not(target_arch = "wasm32"))]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

#[cfg(not(target_arch = "wasm32"))]
fn since(start: std::time::Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A page in a browser has no clock that all of its threads may read.
#[cfg(target_arch = "wasm32")]
fn now() {}

#[cfg(target_arch = "wasm32")]
fn since((): ()) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_read_together() {
        let run = |pages, places| Run { pages, places };
        assert_eq!(runs(&[3, 4, 20, 21_000], 1024), [run(3..21, 0..3), run(21_000..21_001, 3..4)]);
        assert_eq!(runs(&[0, 4096, 8192], 4), [run(0..8193, 0..3)]);
        // A request stays of a size that is worth one.
        assert_eq!(runs(&(0..8).collect::<Vec<_>>(), 1 << 20), [run(0..4, 0..4), run(4..8, 4..8)]);
        assert_eq!(runs(&[], 8), []);
    }
}
