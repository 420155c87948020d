//! The rows, by slot.

use std::sync::Arc;

use super::{
    Home, State,
    eviction::Eviction,
    ids_need, init,
    map::{Changed, Map},
};
use crate::{
    error::{DeviceError, DynamicError, TableError},
    gpu::{Gpu, GpuShard, Kernels, MapBinding, RowKind, STORED, Tracked, need},
    host::HostTable,
    memory::{Need, Placement, Reservation},
    scheme::{Category, TableSpec},
    table::resident::{label, most_bound},
    units::Bytes,
};

/// Bytes of the map that go to a device at a time.
const CHUNK: usize = 4 << 20;

/// Where rows are.
pub(super) enum Store {
    Host { table: HostTable, kind: RowKind, _reserved: Reservation },
    Device(Device),
}

/// Rows on a device, and its copy of the map.
pub(super) struct Device {
    pub(super) gpu: Arc<Gpu>,
    pub(super) spec: TableSpec,
    pub(super) shards: Vec<GpuShard>,
    pub(super) kernels: Arc<Kernels>,
    map: Tracked,
}

/// Bytes of the map, where the device binds as many.
fn map_bytes(gpu: &Gpu, name: &str, capacity: u32) -> Result<u64, DynamicError> {
    let (map, binding) = (Map::bytes(capacity), most_bound(gpu));
    if map > binding.0 {
        let (table, capacity) = (name.to_owned(), capacity.into());
        return Err(DynamicError::MapTooLarge { table, capacity, map: Bytes(map), binding });
    }
    Ok(map)
}

impl Store {
    /// Room for the rows of `spec`, and what the ledger has of what the host knows of as many ids. All is reserved before anything is
    /// made.
    pub(super) async fn new(
        name: &str,
        spec: TableSpec,
        kind: RowKind,
        eviction: Eviction,
        home: &Home,
    ) -> Result<(Self, Reservation), DynamicError> {
        Self::with_kernels(name, spec, kind, eviction, home, None).await
    }

    /// The same, of a table that has been on its device.
    pub(super) async fn with_kernels(
        name: &str,
        spec: TableSpec,
        kind: RowKind,
        eviction: Eviction,
        home: &Home,
        kernels: Option<Arc<Kernels>>,
    ) -> Result<(Self, Reservation), DynamicError> {
        let capacity = spec.shape().rows();
        let mut needs = vec![ids_need(name, capacity, eviction)];
        let gpu = match home {
            Home::Host(_) => {
                needs.push(Need { label: label(name), bytes: vec![(Category::Payload, spec.bytes().0)] });
                let mut reserved = home.reserve(needs)?.into_iter();
                let (Some(ids), Some(rows)) = (reserved.next(), reserved.next()) else {
                    unreachable!("one for each need")
                };
                let table = HostTable::empty(name, &spec).map_err(TableError::from)?;
                return Ok((Self::Host { table, kind, _reserved: rows }, ids));
            }
            Home::Gpu(gpu) => gpu,
        };
        let binding = most_bound(gpu);
        let placement = Placement::plan(&spec, binding).map_err(|error| TableError::RowTooLarge {
            table: name.to_owned(),
            row: error.row,
            binding: error.binding,
        })?;
        let map_label = format!("table.{name}.map");
        let records_label = format!("table.{name}.records");
        needs.push(Need::one(&map_label, Category::Index, map_bytes(gpu, name, capacity)?));
        if kernels.is_none() {
            needs.extend(Kernels::needs(&records_label, &kind, capacity));
        }
        needs.extend(placement.shards().iter().map(|shard| need(&label(name), shard)));
        let mut reserved = home.reserve(needs)?.into_iter();
        let mut next = || match reserved.next() {
            Some(reservation) => reservation,
            None => unreachable!("one for each need"),
        };
        let (ids, map) = (next(), next());
        let map = gpu.catch(&map_label, map.bytes(), || gpu.buffer(map, &map_label, STORED)).await?;
        let kernels = match kernels {
            Some(kernels) => kernels,
            None => {
                let buffers = [next(), next()];
                Arc::new(gpu.catch(&records_label, 0, || Kernels::new(gpu, &records_label, kind, buffers)).await?)
            }
        };
        let bands = spec.bands();
        let mut shards = Vec::new();
        for shard in placement.shards() {
            shards.push(gpu.make_shard(&label(name), shard, &bands[shard.band], next()).await?);
        }
        Ok((Self::Device(Device { gpu: gpu.clone(), spec, shards, kernels, map }), ids))
    }

    /// The kernels, where rows are on a device.
    pub(super) fn kernels(&self) -> Option<Arc<Kernels>> {
        match self {
            Self::Host { .. } => None,
            Self::Device(device) => Some(device.kernels.clone()),
        }
    }

    /// Makes the rows of ids that are new, in the order of their slots.
    pub(super) fn make(&mut self, new: &[(u64, u32)]) -> Result<(), DeviceError> {
        match self {
            Self::Host { table, kind, .. } => {
                let mut values = vec![0.0; kind.dim as usize];
                for (id, slot) in new {
                    init::row(kind, *id, &mut values);
                    let codec = table.spec().scheme().codec().clone();
                    // What it gives has been checked to fit.
                    let encoded = codec.encode_rows(values.len(), &values, &mut [row_of(table, *slot)]);
                    debug_assert!(encoded.is_ok(), "rows of the initializer fit");
                }
                Ok(())
            }
            Self::Device(device) => device.kernels.make(&device.gpu, &device.shards, new),
        }
    }

    /// Writes rows: for each its slot, which no other has, and its number among the rows that `bytes` has.
    pub(super) fn put(&mut self, mut rows: Vec<(u32, usize)>, bytes: &[u8]) -> Result<(), DeviceError> {
        match self {
            Self::Host { table, .. } => {
                for (slot, number) in rows {
                    let row = row_of(table, slot);
                    let length = row.len();
                    row.copy_from_slice(&bytes[number * length..][..length]);
                }
                Ok(())
            }
            Self::Device(device) => {
                rows.sort_unstable();
                device.put(&rows, bytes)
            }
        }
    }

    /// Takes all rows of a store that has fewer.
    pub(super) fn take_rows(&mut self, from: &mut Self) -> Result<(), DeviceError> {
        match (self, from) {
            (Self::Host { table, .. }, Self::Host { table: from, .. }) => {
                let from = from.part_mut(0);
                table.part_mut(0)[..from.len()].copy_from_slice(from);
                Ok(())
            }
            (Self::Device(device), Self::Device(from)) => device.copy_rows(from),
            _ => unreachable!("a table stays where it is"),
        }
    }
}

/// The bytes of a row of a table of plain rows.
fn row_of(table: &mut HostTable, slot: u32) -> &mut [u8] {
    let bytes = usize::try_from(table.spec().row_bytes()).unwrap_or(usize::MAX);
    &mut table.part_mut(0)[slot as usize * bytes..][..bytes]
}

impl Device {
    /// Writes rows in the order of their slots.
    fn put(&self, rows: &[(u32, usize)], bytes: &[u8]) -> Result<(), DeviceError> {
        let row_bytes = self.spec.row_bytes();
        let length = usize::try_from(row_bytes).unwrap_or(usize::MAX);
        let words = u32::try_from(row_bytes / 4).unwrap_or(u32::MAX);
        let mut left = rows;
        for shard in &self.shards {
            let first = shard.params.first_row;
            let own = left.partition_point(|(slot, _)| slot - first < shard.rows);
            let (own, behind) = left.split_at(own);
            left = behind;
            let row = |(_, number): (u32, usize), out: &mut Vec<u8>| {
                out.extend_from_slice(&bytes[number * length..][..length]);
            };
            self.kernels.put(&self.gpu, shard.buffer.spot().buffer(), words, own, |(slot, _)| slot - first, row)?;
        }
        Ok(())
    }

    fn copy_rows(&self, from: &Self) -> Result<(), DeviceError> {
        let bytes = self.spec.row_bytes();
        self.gpu.catch_now("rows of a table that grows", 0, || {
            let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for to in &self.shards {
                for from in &from.shards {
                    let start = to.params.first_row.max(from.params.first_row);
                    let end = (to.params.first_row + to.rows).min(from.params.first_row + from.rows);
                    if start < end {
                        let place = |shard: &GpuShard| u64::from(start - shard.params.first_row) * bytes;
                        let size = u64::from(end - start) * bytes;
                        let (old, new) = (from.buffer.spot(), to.buffer.spot());
                        let (begin, end) = (old.at(place(from)), new.at(place(to)));
                        encoder.copy_buffer_to_buffer(old.buffer(), begin, new.buffer(), end, size);
                    }
                }
            }
            self.gpu.queue.submit([encoder.finish()]);
        })
    }

    /// Brings the copy of the map up to date.
    fn sync(&self, map: &mut Map) -> Result<(), DeviceError> {
        let changed = match map.take_changed() {
            Changed::Some(changed) => changed,
            Changed::All => {
                let bytes: &[u8] = bytemuck::cast_slice(map.buckets());
                for (chunk, offset) in bytes.chunks(CHUNK).zip((0..).step_by(CHUNK)) {
                    self.gpu.catch_now("a map of ids", chunk.len() as u64, || {
                        self.gpu.queue.write_buffer(&self.map, offset, chunk);
                        self.gpu.queue.submit([]);
                    })?;
                }
                return Ok(());
            }
        };
        let bucket = |at: u32, out: &mut Vec<u8>| {
            out.extend_from_slice(bytemuck::bytes_of(&map.buckets()[at as usize]));
        };
        self.kernels.put(&self.gpu, &self.map, 3, &changed, |at| at, bucket)
    }

    /// The map as kernels search it.
    pub(super) fn map<'a>(&'a self, map: &Map) -> MapBinding<'a> {
        MapBinding { buffer: &self.map, buckets: map.count(), seed: map.seed(), turns: map.turns() }
    }
}

impl State {
    /// Brings a device's copy of the map up to date.
    pub(super) fn sync(&mut self) -> Result<(), DynamicError> {
        if let Store::Device(device) = &self.store
            && let Err(error) = device.sync(&mut self.slots.map)
        {
            self.slots.map.all_changed();
            return Err(error.into());
        }
        Ok(())
    }

    /// Gives each id a slot, and each new one the row that the initializer gives.
    pub(super) fn admit(&mut self, table: &str, ids: &[u64]) -> Result<Vec<u32>, DynamicError> {
        let admitted = self.slots.admit(table, ids)?;
        let mut new = admitted.made;
        new.sort_unstable_by_key(|(_, slot)| *slot);
        let made = self.store.make(&new);
        self.finish(made, &new)?;
        Ok(admitted.slots)
    }

    /// Writes one row an id.
    pub(super) fn write(&mut self, table: &str, ids: &[u64], bytes: &[u8]) -> Result<(), DynamicError> {
        let admitted = self.slots.admit(table, ids)?;
        let rows = self.slots.last_of_each(&admitted.slots);
        let put = self.store.put(rows, bytes);
        self.finish(put, &admitted.made)
    }

    /// Ends a change of the rows. New ids whose rows could not be made are not there.
    fn finish(&mut self, done: Result<(), DeviceError>, new: &[(u64, u32)]) -> Result<(), DynamicError> {
        let done = done.map_err(DynamicError::from).and_then(|()| self.sync());
        if done.is_err() {
            self.slots.remove(new.iter().map(|(id, _)| *id));
        }
        done
    }
}
