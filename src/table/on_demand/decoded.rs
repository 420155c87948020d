//! Rows that a part of a batch needs, decoded, as a small table of f32.
//!
//! A table with bands has bags folded band by band: its small table has as many.

use std::{ops::Range, sync::Arc};

use super::{
    Shards,
    gather::scratch,
    plan::{LEFT_OUT, Plan},
};
use crate::{
    error::GatherError,
    gpu::{Gpu, GpuShard},
    host::HostTable,
    memory::Placement,
    scheme::TableSpec,
    table::{device::DeviceTable, resident::most_bound},
    units::Shape,
};

/// Where the rows of a plan are in their small table.
struct Layout {
    spec: TableSpec,
    /// The places of each band's rows among those of the plan, and its first row in the small table.
    bands: Vec<(Range<usize>, u32)>,
}

/// The small table on a device.
pub(super) struct Decoded {
    layout: Layout,
    shards: Vec<GpuShard>,
}

impl Layout {
    fn new(shards: &Shards, plan: &Plan) -> Self {
        let mut places = vec![0..0; shards.loader.bands.len()];
        for needed in &plan.needed {
            let places = &mut places[shards.placed()[needed.shard].band];
            let start = if places.end == 0 { needed.rows.start } else { places.start.min(needed.rows.start) };
            *places = start..places.end.max(needed.rows.end);
        }
        let mut total = 0u32;
        let mut ends = Vec::new();
        let bands = places.into_iter().map(|places| {
            let first = total;
            // At least one row, of whatever values: each band is there, in its turn.
            total += u32::try_from(places.len().max(1)).unwrap_or(u32::MAX);
            ends.push(total);
            (places, first)
        });
        let bands: Vec<_> = bands.collect();
        Self { spec: spec(&ends, shards.dim()), bands }
    }

    /// Turns places of a plan into rows of the small table.
    fn rows(&self, places: &mut [u32]) {
        if self.bands.len() == 1 {
            return;
        }
        for place in places.iter_mut().filter(|place| **place < LEFT_OUT) {
            let at = *place as usize;
            let band = self.bands.iter().find(|(places, _)| places.contains(&at));
            *place = band.map_or(LEFT_OUT, |(places, first)| first + (*place - start(places)));
        }
    }
}

fn start(places: &Range<usize>) -> u32 {
    u32::try_from(places.start).unwrap_or(u32::MAX)
}

/// That of a table of f32 with bands that end at these rows.
fn spec(ends: &[u32], dim: u32) -> TableSpec {
    let total = ends.last().copied().unwrap_or(1);
    let mut text = String::from("f32");
    if let [before @ .., _] = ends
        && !before.is_empty()
    {
        // The nearest row to such a share of the rows is that row.
        let bands = before.iter().map(|end| format!("{}=f32,", f64::from(*end) / f64::from(total)));
        text = format!("bands:{}rest=f32", bands.collect::<String>());
    }
    let scheme = text.parse::<crate::scheme::Scheme>();
    match (scheme, Shape::new(total.into(), dim.into())) {
        (Ok(scheme), Ok(shape)) => match scheme.spec(shape) {
            Ok(spec) => spec,
            Err(error) => unreachable!("f32 takes all columns: {error}"),
        },
        other => unreachable!("shares that ascend, and a part of a table: {other:?}"),
    }
}

impl Decoded {
    /// Decodes the rows of a plan on the device.
    pub(super) async fn on_gpu(shards: &Shards, gpu: &Arc<Gpu>, table: &str, plan: &Plan) -> Result<Self, GatherError> {
        let layout = Layout::new(shards, plan);
        let placement = Placement::plan(&layout.spec, most_bound(gpu)).map_err(|error| GatherError::Buffer {
            table: table.to_owned(),
            role: "output",
            problem: error.to_string(),
        })?;
        let row_bytes = u64::from(shards.dim()) * 4;
        let bytes = (plan.rows.len() as u64 * row_bytes).max(placement.bytes().0);
        let limit = gpu.limits.max_buffer_size;
        if bytes > limit {
            let problem = format!("of {bytes} bytes for the rows of one bag is over the device's limit of {limit}");
            return Err(GatherError::Buffer { table: table.to_owned(), role: "scratch", problem });
        }
        let rows = scratch(gpu, bytes).await?;
        shards.decode_on_gpu(gpu, plan, &rows).await?;
        let bands = layout.spec.bands();
        let made = |shard, buffer| GpuShard::scratch(shard, &bands[shard.band], buffer);
        let mut small = Vec::new();
        match placement.shards() {
            [shard] => small.push(made(shard, rows)),
            several => {
                for shard in several {
                    let buffer = scratch(gpu, shard.bytes.0).await?;
                    let (places, first) = &layout.bands[shard.band];
                    let from = places.start as u64 + u64::from(shard.first_row - first);
                    let length = (places.end as u64).saturating_sub(from).min(shard.rows.into());
                    let copy = || {
                        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                        encoder.copy_buffer_to_buffer(&rows, from * row_bytes, &buffer, 0, length * row_bytes);
                        gpu.queue.submit([encoder.finish()]);
                    };
                    if length > 0 {
                        gpu.catch("a copy of rows", length * row_bytes, copy).await?;
                    }
                    small.push(made(shard, buffer));
                }
            }
        }
        Ok(Self { layout, shards: small })
    }

    /// The small table, which takes [`Decoded::rows`] as ids.
    pub(super) fn device<'a>(&'a self, name: &'a str, gpu: &'a Arc<Gpu>) -> DeviceTable<'a> {
        DeviceTable { name, spec: &self.layout.spec, gpu, shards: &self.shards }
    }

    /// Turns places of the plan into ids of the small table.
    pub(super) fn rows(&self, places: &mut [u32]) {
        self.layout.rows(places);
    }
}

/// Decodes the rows of a plan on the host, and turns its places into ids of the small table.
pub(super) async fn on_host(
    shards: &Shards,
    name: &str,
    plan: &Plan,
    places: &mut [u32],
) -> Result<HostTable, GatherError> {
    let layout = Layout::new(shards, plan);
    let dim = shards.dim() as usize;
    let mut rows = vec![0f32; plan.rows.len() * dim];
    shards.decode_on_host(plan, &mut rows).await?;
    let part = |(places, _): &(Range<usize>, u32)| {
        let mut bytes: Vec<u8> = bytemuck::cast_slice(&rows[places.start * dim..places.end * dim]).to_vec();
        bytes.resize(places.len().max(1) * dim * size_of::<f32>(), 0);
        bytes
    };
    layout.rows(places);
    Ok(HostTable::of_parts(name, layout.spec, layout.bands.iter().map(part).collect()))
}
