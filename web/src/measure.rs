//! Work for a device to be timed by: lookups, and the plainest copies of as many bytes.

use gatherum::{Engine, IdBuffer, IdPolicy, IdType, OutputBuffer, OutputDtype, RowBuffer, Table, testing, wgpu};
use wasm_bindgen::prelude::*;

use crate::error::{ToJs, bad_argument};

/// Lookups of the same ids, which lie on the device as their rows do.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawGathers {
    engine: Engine,
    table: Table,
    ids: wgpu::Buffer,
    count: u32,
    rows: RowBuffer,
}

/// Copies of as many bytes.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawCopies {
    engine: Engine,
    copy: testing::Roofline,
}

impl RawGathers {
    pub(crate) async fn new(engine: Engine, table: Table, ids: Vec<u32>) -> Result<Self, JsValue> {
        let rows = table.gather_buffer(&ids, IdPolicy::Error, OutputDtype::F32).await.map_err(|error| error.to_js())?;
        let (Some(device), Some(queue)) = (engine.device(), engine.queue()) else {
            return Err(bad_argument("the engine has no device"));
        };
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("measure.ids"),
            size: bytes.len() as u64,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        queue.write_buffer(&buffer, 0, &bytes);
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        Ok(Self { engine, table, ids: buffer, count, rows })
    }
}

#[wasm_bindgen]
impl RawGathers {
    /// Submits `times` lookups, one behind the other.
    pub fn submit(&self, times: u32) -> Result<(), JsValue> {
        let (table, rows) = (&self.table, self.rows.buffer());
        submit(&self.engine, times, |encoder| {
            let ids = IdBuffer { buffer: &self.ids, offset: 0, count: self.count, id_type: IdType::U32 };
            let output = OutputBuffer { buffer: rows, offset: 0, dtype: OutputDtype::F32 };
            table.encode_gather(encoder, ids, IdPolicy::Error, output).map_err(|error| error.to_js())
        })
    }
}

impl Drop for RawGathers {
    fn drop(&mut self) {
        self.ids.destroy();
    }
}

impl RawCopies {
    pub(crate) fn new(engine: &Engine, bytes: u64, span: u32) -> Option<Self> {
        testing::roofline(engine, bytes, span).map(|copy| Self { engine: engine.clone(), copy })
    }
}

#[wasm_bindgen]
impl RawCopies {
    /// Submits `times` copies, one behind the other.
    pub fn submit(&self, times: u32) -> Result<(), JsValue> {
        submit(&self.engine, times, |encoder| {
            self.copy.encode(encoder);
            Ok(())
        })
    }
}

/// Submits what `record` records, `times` over; what it gives lives until then.
fn submit<T>(
    engine: &Engine,
    times: u32,
    mut record: impl FnMut(&mut wgpu::CommandEncoder) -> Result<T, JsValue>,
) -> Result<(), JsValue> {
    let (Some(device), Some(queue)) = (engine.device(), engine.queue()) else { return Ok(()) };
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("measure") });
    let kept = (0..times).map(|_| record(&mut encoder)).collect::<Result<Vec<_>, _>>()?;
    queue.submit([encoder.finish()]);
    drop(kept);
    Ok(())
}
