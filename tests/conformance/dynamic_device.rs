//! Tables whose rows come and go on a device: several shards, and ids that lie there.

#![expect(clippy::cast_possible_truncation, reason = "numbers made here, of known size")]

use std::collections::HashSet;

use gatherum::{
    Bytes, DynamicError, DynamicOptions, Engine, Eviction, GatherError, IdBuffer, IdType, Missing, OutputDtype, wgpu,
};
use half::f16;

use crate::{
    backend::Backend,
    case::{Case, Stamp},
    dynamic::{KEYS, UNIFORM, make, options},
    fixture::{hash, values},
    lookup::device,
    model::initial,
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "m12_several_shards", operation: "map", stamp: Stamp::Devices(m12_several_shards) },
    Case { name: "m13_ids_on_the_device", operation: "map", stamp: Stamp::Devices(m13_ids_on_the_device) },
];

/// Rows of 16 KiB, of which a binding holds 1,024, and a batch takes many submissions.
fn m12_several_shards(backend: &Backend) {
    const DIM: usize = 4096;
    let binding = 1 << 24;
    let engine = backend.narrow(binding, 1 << 26);
    let options = options(1100);
    let table = make(&engine, DIM as u32, options);
    let ids: Vec<u64> = (0..1100).map(hash).collect();
    let new = table.gather_blocking(&ids).expect("room").values;
    for (at, got) in new.iter().enumerate().step_by(997) {
        assert_eq!(got.to_bits(), initial(UNIFORM, ids[at / DIM], (at % DIM) as u32).to_bits());
    }
    let written = values(100 * DIM, 9);
    table.upsert_blocking(&ids[980..1080], &written).expect("room");
    table.grow_blocking(2051).expect("more room");
    let got = table.lookup_blocking(&ids, Missing::Error).expect("rows").values;
    assert!(got[..980 * DIM] == new[..980 * DIM] && got[1080 * DIM..] == new[1080 * DIM..]);
    assert!(got[980 * DIM..1080 * DIM] == written);
    let large = DynamicOptions { capacity: 699_051, ..options };
    let error = engine.dynamic_table_blocking("rows", 1, &large).expect_err("a map");
    assert!(
        matches!(error, DynamicError::MapTooLarge { map: Bytes(16_777_224), binding: Bytes(16_777_216), .. }),
        "{error}"
    );
}

/// Ids in a buffer, from byte `offset` on.
fn buffer(engine: &Engine, ids: &[u64], id_type: IdType, offset: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    let narrow: Vec<u32> = ids.iter().map(|id| *id as u32).collect();
    let bytes: &[u8] = if id_type == IdType::U32 { bytemuck::cast_slice(&narrow) } else { bytemuck::cast_slice(ids) };
    let buffer = device(engine).create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: offset + bytes.len() as u64,
        usage: usage | wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    engine.queue().expect("a device").write_buffer(&buffer, offset, bytes);
    buffer
}

fn m13_ids_on_the_device(backend: &Backend) {
    let engine = backend.engine();
    for (id_type, dtype, dim, offset) in [
        (IdType::U64, OutputDtype::F32, 5, 0),
        (IdType::I64, OutputDtype::F16, 6, 260),
        (IdType::U32, OutputDtype::F32, 17, 12),
    ] {
        let table = make(engine, dim, DynamicOptions { dtype, ..options(300) });
        let narrow = |id: u64| if id_type == IdType::U32 { id & 0xffff_ffff } else { id };
        let mut ids: Vec<u64> = KEYS.into_iter().chain((0..250).map(hash)).map(narrow).collect();
        ids.sort_unstable();
        ids.dedup();
        // A part of them has rows, of which some are written.
        table.gather_blocking(&ids[..200]).expect("room");
        table.upsert_blocking(&ids[50..100], &values(50 * dim as usize, 4)).expect("room");
        table.remove_blocking(&ids[60..70]).expect("rows");
        let batch: Vec<u64> = (0..401).map(|at| ids[(hash(at) % ids.len() as u64) as usize]).collect();
        let there: Vec<bool> = batch.iter().map(|id| table.contains(*id)).collect();
        let raw = buffer(engine, &batch, id_type, offset, wgpu::BufferUsages::COPY_SRC);
        let on_device = IdBuffer { buffer: &raw, offset, count: 401, id_type };

        let found = table.lookup_blocking(on_device, Missing::Zero).expect("rows");
        assert_eq!(found, table.lookup_blocking(&batch, Missing::Zero).expect("rows"));
        assert_eq!(found.bad.count as usize, there.iter().filter(|there| !**there).count());
        let first = there.iter().position(|there| !there).expect("some are missing") as u64;
        let error = table.lookup_blocking(on_device, Missing::Error).expect_err("some are missing");
        let id = i128::from(batch[first as usize]);
        assert!(
            matches!(error, DynamicError::Missing { position, id: Some(found), .. } if position == first && found == id),
            "{error}"
        );

        let (rows, counts) = (table.len(), table.stats());
        let made = table.gather_blocking(on_device).expect("rows").values;
        let halves = table.gather_buffer_blocking(on_device, OutputDtype::F16).expect("rows");
        assert_eq!((table.len(), table.stats()), (rows, counts), "nothing is made until they are settled");
        let settled = table.settle_blocking().expect("rows");
        let missing: HashSet<u64> = batch.iter().zip(&there).filter(|(_, there)| !**there).map(|(id, _)| *id).collect();
        assert_eq!((settled.made, settled.left), (missing.len() as u64, 0));
        assert_eq!(table.len(), rows + settled.made);
        assert_eq!(table.lookup_blocking(&batch, Missing::Error).expect("they are there now").values, made);
        assert_eq!(table.settle_blocking().expect("nothing is left").made, 0);
        assert_eq!(table.lookup_blocking(on_device, Missing::Error).expect("the copy follows").values, made);
        let bits = read_halves(engine, halves.buffer(), made.len());
        let want: Vec<u16> = made.iter().map(|value| f16::from_f32(*value).to_bits()).collect();
        assert_eq!(bits, want);
    }
    // Ids that no room is for are answered all the same.
    let table = make(engine, 2, DynamicOptions { eviction: Eviction::Refuse, ..options(2) });
    table.upsert_blocking(&[7_u64], &[1.0, 2.0]).expect("room");
    let raw = buffer(engine, &KEYS, IdType::U64, 0, wgpu::BufferUsages::empty());
    let on_device = IdBuffer { buffer: &raw, offset: 0, count: 6, id_type: IdType::U64 };
    let rows = table.gather_blocking(on_device).expect("rows").values;
    let want: Vec<f32> = KEYS.iter().flat_map(|id| [initial(UNIFORM, *id, 0), initial(UNIFORM, *id, 1)]).collect();
    assert_eq!(rows, want);
    let settled = table.settle_blocking().expect("one has room");
    assert_eq!((settled.made, settled.left, table.contains(0)), (1, 5, true));
    let error = table.lookup_blocking(on_device, Missing::Error).expect_err("five are missing");
    assert!(matches!(error, DynamicError::Missing { position: 0, id: None, count: 5, .. }), "{error}");
    let short = IdBuffer { count: 7, ..on_device };
    assert!(matches!(table.gather_blocking(short), Err(DynamicError::Gather(GatherError::Buffer { .. }))));
    // Many lookups without a word between them.
    for _ in 0..40 {
        table.gather_buffer_blocking(on_device, OutputDtype::F32).expect("rows");
    }
}

/// Elements of a buffer of halves.
fn read_halves(engine: &Engine, buffer: &wgpu::Buffer, count: usize) -> Vec<u16> {
    let bytes = (2 * count as u64).next_multiple_of(4);
    let staging = device(engine).create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = device(engine).create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, bytes);
    engine.queue().expect("a device").submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., |result| result.expect("a mapping"));
    device(engine).poll(wgpu::PollType::wait_indefinitely()).expect("the work ends");
    let range = staging.get_mapped_range(..).expect("it is mapped");
    bytemuck::pod_collect_to_vec::<u8, u16>(&range[..2 * count])
}
