//! A table on its way to an engine, part by part, as its bytes come.

use std::sync::Arc;

use super::{
    EncodedTable, Table,
    resident::{self, Place},
};
use crate::{
    error::{DeviceError, SourceError, TableError},
    gpu::{Gpu, GpuShard},
    host::HostTable,
    memory::{Ledger, Placement, Reservation, Shard},
    scheme::{Band, Part, TableSpec},
    source::PartSink,
};

/// Bytes of a part that are gathered before they go to the device.
const CHUNK: usize = 1 << 20;

/// Room on an engine that is being filled. Dropping it gives all of it back.
pub(crate) struct Loading {
    name: String,
    spec: TableSpec,
    /// Bytes that each part has so far.
    done: Vec<u64>,
    place: Unfilled,
}

enum Unfilled {
    Host(HostTable, Reservation),
    Gpu(Box<UnfilledShards>),
    Whole(Box<Whole>),
}

/// A table whose rows have different numbers of values: which shard a row goes to follows from all of them.
struct Whole {
    gpu: Arc<Gpu>,
    /// What has come so far, in host memory.
    table: EncodedTable,
    /// The table, once all has come.
    placed: Option<Table>,
}

struct UnfilledShards {
    gpu: Arc<Gpu>,
    bands: Vec<Band>,
    placement: Placement,
    shards: Vec<GpuShard>,
    /// Of each part the bytes that came and have not gone to the device: its last ones so far.
    pending: Vec<Vec<u8>>,
}

impl Loading {
    /// Room in host memory.
    pub(crate) fn on_host(name: &str, spec: &TableSpec, ledger: &Ledger) -> Result<Self, TableError> {
        let reserved = resident::reserve_host(name, spec, ledger)?;
        let table = HostTable::empty(name, spec)?;
        Ok(Self::new(name, spec, Unfilled::Host(table, reserved)))
    }

    /// Room on a device.
    pub(crate) async fn on_gpu(name: &str, spec: &TableSpec, gpu: Arc<Gpu>) -> Result<Self, TableError> {
        if spec.parts().iter().any(Part::counts_values) {
            let table = EncodedTable::zeroed(name, spec.clone())?;
            return Ok(Self::new(name, spec, Unfilled::Whole(Box::new(Whole { gpu, table, placed: None }))));
        }
        let bands = spec.bands();
        let (placement, shards) = make_shards(name, spec, &bands, &gpu).await?;
        let pending = vec![Vec::new(); spec.parts().len()];
        let shards = UnfilledShards { gpu, bands, placement, shards, pending };
        Ok(Self::new(name, spec, Unfilled::Gpu(Box::new(shards))))
    }

    fn new(name: &str, spec: &TableSpec, place: Unfilled) -> Self {
        Self { name: name.to_owned(), spec: spec.clone(), done: vec![0; spec.parts().len()], place }
    }

    /// Takes the next bytes of part number `part`. Each part comes in order and without a gap.
    ///
    /// # Errors
    /// [`TableError::Source`] where the part has not as many bytes, [`TableError::Device`] where the device fails.
    pub(crate) async fn write_part(&mut self, part: usize, bytes: &[u8]) -> Result<(), TableError> {
        let (begin, needed) = (self.done[part], self.spec.parts()[part].bytes().0);
        if bytes.len() as u64 > needed - begin {
            return Err(self.wrong(part, &format!("gets {} bytes behind {begin} of its {needed}", bytes.len())));
        }
        match &mut self.place {
            Unfilled::Host(table, _) => {
                let begin = usize::try_from(begin).unwrap_or(usize::MAX);
                table.part_mut(part)[begin..begin + bytes.len()].copy_from_slice(bytes);
            }
            Unfilled::Gpu(shards) => shards.write(part, begin, bytes).await?,
            Unfilled::Whole(whole) => whole.table.write_part(part, begin, bytes)?,
        }
        self.done[part] += bytes.len() as u64;
        if let Unfilled::Whole(whole) = &mut self.place
            && self.spec.parts().iter().zip(&self.done).all(|(part, done)| part.bytes().0 == *done)
        {
            whole.placed = Some(Table::on_gpu(&whole.table, whole.gpu.clone()).await?);
        }
        Ok(())
    }

    fn wrong(&self, part: usize, problem: &str) -> TableError {
        let (table, part) = (&self.name, self.spec.parts()[part].name());
        SourceError::Invalid(format!("{table}: part `{part}` {problem}")).into()
    }

    /// The table, once all parts are there.
    ///
    /// # Errors
    /// [`TableError::Source`] where a part is not complete, [`TableError::Device`] where the device was lost.
    pub(crate) fn finish(self) -> Result<Table, TableError> {
        for (number, part) in self.spec.parts().iter().enumerate() {
            if self.done[number] != part.bytes().0 {
                let problem = format!("has {} of its {:#}", self.done[number], part.bytes());
                return Err(self.wrong(number, &problem));
            }
        }
        let (bytes, place) = match self.place {
            Unfilled::Whole(whole) => match whole.placed {
                Some(table) => return Ok(table),
                None => return Err(SourceError::Invalid(format!("{}: no part has come", self.name)).into()),
            },
            Unfilled::Host(table, reserved) => {
                table.check()?;
                (self.spec.bytes(), Place::Host { table, _reserved: reserved })
            }
            Unfilled::Gpu(filled) => {
                filled.gpu.alive()?;
                filled.gpu.settle_shards(&filled.shards);
                (filled.placement.bytes(), Place::Gpu { gpu: filled.gpu, shards: filled.shards })
            }
        };
        Ok(Table::new(&self.name, &self.spec, bytes, place))
    }
}

/// Makes the buffers of all shards of a table whose rows all take the same bytes, or none.
async fn make_shards(
    name: &str,
    spec: &TableSpec,
    bands: &[Band],
    gpu: &Gpu,
) -> Result<(Placement, Vec<GpuShard>), TableError> {
    gpu.alive()?;
    let placement = Placement::plan(spec, resident::most_bound(gpu)).map_err(|error| TableError::RowTooLarge {
        table: name.to_owned(),
        row: error.row,
        binding: error.binding,
    })?;
    let shards = gpu.place_shards(&resident::label(name), &placement, bands).await?;
    Ok((placement, shards))
}

/// Where the next bytes of a part go.
struct Target {
    shard: usize,
    /// Where in its buffer.
    offset: u64,
    /// Bytes of the part that the shard still lacks.
    left: u64,
    /// Bytes behind them that only align what follows.
    padding: u64,
}

impl UnfilledShards {
    /// Takes bytes of a part from `begin` on, and sends on what fills a chunk or completes the part in a shard.
    async fn write(&mut self, part: usize, begin: u64, mut bytes: &[u8]) -> Result<(), DeviceError> {
        let mut pending = std::mem::take(&mut self.pending[part]);
        let mut sent = begin - pending.len() as u64;
        while !bytes.is_empty() {
            let targets = self.targets(part, sent);
            // A table of no rows has no shards, and what its rows would share goes nowhere.
            let Some(left) = targets.first().map(|target| usize::try_from(target.left).unwrap_or(usize::MAX)) else {
                break;
            };
            let room = left.min(CHUNK) - pending.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            // All of a chunk at once: growing step by step would take up to three times as much.
            pending.reserve_exact(room);
            pending.extend_from_slice(now);
            bytes = later;
            if now.len() < room {
                break;
            }
            let length = pending.len();
            for target in targets {
                let padding = if length == left { target.padding } else { 0 };
                pending.resize(length + usize::try_from(padding).unwrap_or(0), 0);
                self.gpu.upload(&self.shards[target.shard].buffer, target.offset, &pending).await?;
            }
            sent += length as u64;
            pending.clear();
        }
        self.pending[part] = pending;
        Ok(())
    }

    /// Where byte `at` of a part goes: to one shard, or to all of its band where all rows share the part.
    fn targets(&self, part: usize, at: u64) -> Vec<Target> {
        let Some((number, band)) = self.bands.iter().enumerate().find(|(_, band)| band.parts.contains(&part)) else {
            return Vec::new();
        };
        let (own, part) = (part - band.parts.start, &band.spec.parts()[part - band.parts.start]);
        let shards = self.placement.shards().iter().enumerate().filter(|(_, shard)| shard.band == number);
        let target = |(index, shard): (usize, &Shard)| {
            let range = shard.part_range(part);
            let end = shard.offsets[own] + range.end - range.start;
            let until = shard.offsets.get(own + 1).copied().unwrap_or(shard.bytes.0);
            range.contains(&at).then(|| Target {
                shard: index,
                offset: shard.offsets[own] + at - range.start,
                left: range.end - at,
                padding: until - end,
            })
        };
        shards.filter_map(target).collect()
    }
}

impl std::fmt::Debug for Loading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loading").field("name", &self.name).field("done", &self.done).finish_non_exhaustive()
    }
}
