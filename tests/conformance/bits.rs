//! A11: the same bits, however often, however split, and on whatever backend.

use gatherum::{Engine, IdPolicy, OutputBuffer, OutputDtype, Scheme, wgpu};

use crate::{
    backend::Backend,
    case::{Case, Stamp, leads},
    fixture::{Fixture, hash},
    lookup::{Answer, Batch, Lookup, device, filled, queue, read_back, same},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a11_repeats_and_splits", operation: "gather", stamp: Stamp::Schemes(a11_repeats_and_splits) },
    Case { name: "a11_one_submission", operation: "gather", stamp: Stamp::DeviceSchemes(a11_one_submission) },
    Case { name: "a11_as_the_host", operation: "gather", stamp: Stamp::DeviceSchemes(a11_as_the_host) },
];

fn ids(count: u64, rows: u32) -> Vec<u32> {
    // One in sixteen names no row.
    (0..count).map(|at| u32::try_from(hash(at) % (u64::from(rows) * 17 / 16)).expect("an id")).collect()
}

/// Five times, and in parts of several sizes.
fn a11_repeats_and_splits(scheme: &Scheme, backend: &Backend) {
    let fixture = Fixture::new(scheme, 97, 100);
    let engine = backend.engine();
    let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
    let ids = ids(1000, fixture.rows());
    let lookups = if leads(scheme) { Lookup::all(backend) } else { Lookup::kernels(backend) };
    for lookup in lookups {
        let run =
            |ids: &[u32]| lookup.run(engine, &table, &Batch::U32(ids.to_vec()), IdPolicy::Zero).expect("an answer");
        let whole = run(&ids);
        for _ in 0..4 {
            assert_eq!(run(&ids), whole, "{lookup:?}");
        }
        for part in [1000, 501, 64, 63] {
            let mut sum = Answer { bits: Vec::new(), bad: whole.bad };
            let mut bad = 0;
            for ids in ids.chunks(part) {
                let answer = run(ids);
                bad += answer.bad.count;
                sum.bits.extend(answer.bits);
            }
            assert_eq!(bad, whole.bad.count);
            same(&sum, &whole, fixture.dim(), &format!("{lookup:?} in parts of {part}"));
        }
    }
}

/// Several lookups in one encoder, to one buffer, next to each other.
fn a11_one_submission(scheme: &Scheme, backend: &Backend) {
    let fixture = Fixture::new(scheme, 97, 24);
    let engine = backend.engine();
    let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
    let ids = ids(300, fixture.rows());
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let id_buffer = filled(device(engine), usage, bytemuck::cast_slice(&ids));
    for dtype in [OutputDtype::F32, OutputDtype::F16] {
        let row = 24 * dtype.bytes();
        let out = filled(device(engine), usage, &vec![0xff; 300 * usize::try_from(row).expect("a row's bytes")]);
        let mut encoder = device(engine).create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut statuses = Vec::new();
        let mut bad = 0;
        // The later parts first; all of them from offsets that no binding may have.
        for (first, count) in [(201_u32, 99_u32), (100, 101), (1, 99), (0, 1)] {
            let part = gatherum::IdBuffer {
                buffer: &id_buffer,
                offset: u64::from(first) * 4,
                count,
                id_type: gatherum::IdType::U32,
            };
            let output = OutputBuffer { buffer: &out, offset: u64::from(first) * row, dtype };
            statuses.push(table.encode_gather(&mut encoder, part, IdPolicy::Zero, output).expect("recorded"));
        }
        queue(engine).submit([encoder.finish()]);
        for status in statuses {
            bad += status.read_blocking().expect("a status").count;
        }
        let whole = Lookup::HOST_F32.run(engine, &table, &Batch::U32(ids.clone()), IdPolicy::Zero).expect("an answer");
        assert_eq!(bad, whole.bad.count);
        let want = if dtype == OutputDtype::F32 { whole } else { whole.halved() };
        let bytes = read_back(engine, &out, 0, out.size());
        let got: Vec<u32> = match dtype {
            OutputDtype::F32 => bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect(),
            _ => bytes.as_chunks().0.iter().map(|half| u32::from(u16::from_le_bytes(*half))).collect(),
        };
        same(&Answer { bits: got, bad: want.bad }, &want, 24, &format!("{dtype:?} in one submission"));
    }
}

/// Each scheme so far decodes by one multiplication and at most one addition, which every backend rounds the same way.
fn a11_as_the_host(scheme: &Scheme, backend: &Backend) {
    let host = Engine::host();
    for dim in [13, 100, 384] {
        let fixture = Fixture::new(scheme, 61, dim);
        let on_host = host.load_blocking(&fixture.encoded).expect("the host takes it");
        let batch = Batch::U32(ids(200, fixture.rows()));
        let f32s = Lookup::HOST_F32.run(&host, &on_host, &batch, IdPolicy::Zero).expect("an answer");
        let halves = Lookup { dtype: OutputDtype::F16, ..Lookup::HOST_F32 };
        let halves = halves.run(&host, &on_host, &batch, IdPolicy::Zero).expect("an answer");
        for tuning in backend.tunings_for(scheme) {
            let engine = backend.tuned(*tuning);
            let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
            for lookup in Lookup::kernels(backend) {
                let answer = lookup.run(engine, &table, &batch, IdPolicy::Zero).expect("an answer");
                let want = if lookup.dtype == OutputDtype::F32 { &f32s } else { &halves };
                same(&answer, want, dim, &format!("{lookup:?}, {tuning:?}, {}, dim {dim}", backend.name));
            }
        }
    }
}
