//! A15: the ledger is what lives, to the byte.

use gatherum::{
    Bytes, Category, Engine, GatherError, IdPolicy, OutputDtype, Placement, Scheme, TableError, TableSource, wgpu,
};

use crate::{
    backend::Backend,
    case::{Case, Stamp},
    fixture::{Fixture, Repeated},
    lookup::{Batch, Lookup, device},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a15_a_million_rows", operation: "load", stamp: Stamp::Backends(a15_a_million_rows) },
    Case { name: "a15_as_placed", operation: "load", stamp: Stamp::Schemes(a15_as_placed) },
    Case { name: "a15_as_wgpu_counts", operation: "gather", stamp: Stamp::Devices(a15_as_wgpu_counts) },
    Case { name: "a15_a_hundred_cycles", operation: "gather", stamp: Stamp::Backends(a15_a_hundred_cycles) },
    Case { name: "a15_the_budget", operation: "gather", stamp: Stamp::Devices(a15_the_budget) },
    Case { name: "a15_the_budget_of_loads", operation: "load", stamp: Stamp::Backends(a15_the_budget_of_loads) },
];

fn int8() -> Scheme {
    "int8".parse().expect("a scheme")
}

/// 1,000,000 x 128 by int8: 128,000,000 bytes of codes, 4,000,000 of scales, none more.
fn a15_a_million_rows(backend: &Backend) {
    let base = Fixture::new(&int8(), 31, 128).encoded;
    let source = Repeated::new("million", &base, 1_000_000);
    let engine = backend.fresh();
    let table = engine.load_blocking(&source).expect("132 MB");
    let memory = engine.memory();
    assert_eq!(memory.live_of(Category::Payload), Bytes(128_000_000));
    assert_eq!(memory.live_of(Category::Scales), Bytes(4_000_000));
    assert_eq!(memory.live, Bytes(132_000_000));
    assert_eq!(memory.live, source.spec().bytes());
    assert_eq!(table.bytes(), memory.live);
    let text = memory.to_string();
    assert!(text.contains("128000000 B") && text.contains("table.million"), "{text}");
    drop(table);
    assert_eq!(engine.memory().live, Bytes(0));
    assert_eq!(engine.memory().peak, Bytes(132_000_000));
}

/// Every scheme: payload, scales and padding are those of the placement.
fn a15_as_placed(scheme: &Scheme, backend: &Backend) {
    let engine = backend.fresh();
    for (rows, dim) in [(1, 1), (7, 13), (1000, 100)] {
        let fixture = Fixture::new(scheme, rows, dim);
        let spec = fixture.encoded.spec();
        let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
        let memory = engine.memory();
        for category in [Category::Payload, Category::Scales] {
            let parts = spec.parts().iter().filter(|part| part.category() == category);
            assert_eq!(memory.live_of(category).0, parts.map(|part| part.bytes().0).sum::<u64>(), "{category}");
        }
        let placed = match backend.is_host() {
            true => spec.bytes(),
            false => Placement::plan(spec, Bytes(1 << 24)).expect("one shard").bytes(),
        };
        // Small tables share blocks, and nothing else does here.
        assert_eq!((Bytes(memory.live.0 - memory.live_at("pool").0), table.bytes()), (placed, placed));
        drop(table);
        assert_eq!(engine.memory().live, Bytes(0));
    }
}

/// Buffers and bytes that wgpu has, by its own counters. GL counts no bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counted {
    buffers: isize,
    bytes: isize,
}

/// A device, and what wgpu has made for itself there.
fn counted_device(backend: &Backend) -> (wgpu::Device, wgpu::Queue, Counted) {
    let (device, queue) = backend.device(wgpu::Limits::default());
    // What a new device has on its way goes with the first submission.
    queue.submit([]);
    let base = counted(&device);
    (device, queue, base)
}

fn counted(device: &wgpu::Device) -> Counted {
    device.poll(wgpu::PollType::wait_indefinitely()).expect("the work ends");
    let counters = device.get_internal_counters().hal;
    Counted { buffers: counters.buffers.read(), bytes: counters.buffer_memory.read() }
}

/// What lives beside `base` is what the ledger says: as many bytes, but for what a driver rounds each buffer up by.
fn agrees(engine: &Engine, base: Counted, buffers: isize, context: &str) {
    let now = counted(device(engine));
    assert_eq!(now.buffers - base.buffers, buffers, "{context}: buffers\n{}", engine.memory());
    let ledger = isize::try_from(engine.memory().live.0).expect("a number of bytes");
    let bytes = now.bytes - base.bytes;
    if now.bytes > 0 {
        assert!((ledger..=ledger + 256 * buffers).contains(&bytes), "{context}: {bytes} bytes\n{}", engine.memory());
    }
}

/// After every call, wgpu has the buffers that the ledger knows, and no other.
fn a15_as_wgpu_counts(backend: &Backend) {
    let (lent, queue, base) = counted_device(backend);
    assert!(base.buffers > 0, "wgpu counts nothing: its feature `counters` is off");
    let engine = Engine::with_device(lent, queue).expect("an engine");
    let fixture = Fixture::new(&int8(), 1000, 100);
    let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
    agrees(&engine, base, 1, "one shard");
    let batch = Batch::U32((0..1000).collect());
    Lookup::HOST_F32.run(&engine, &table, &batch, IdPolicy::Error).expect("an answer");
    agrees(&engine, base, 6, "ids, output, staging, status and parameters are kept");
    let rows = table.gather_buffer_blocking(batch.ids(), IdPolicy::Error, OutputDtype::F32).expect("rows");
    agrees(&engine, base, 6, "rows in the buffer that was kept");
    let more = table.gather_buffer_blocking(batch.ids(), IdPolicy::Error, OutputDtype::F16).expect("rows");
    agrees(&engine, base, 7, "rows in another buffer");
    drop((rows, more));
    agrees(&engine, base, 7, "both are kept");
    drop(table);
    agrees(&engine, base, 6, "the table is gone");
    engine.trim();
    assert_eq!(counted(device(&engine)), base, "all is gone");
    assert_eq!(engine.memory().live, Bytes(0));
}

/// A hundred times loaded, looked up in every way, and dropped.
fn a15_a_hundred_cycles(backend: &Backend) {
    let (engine, base) = match backend.is_host() {
        true => (Engine::host(), None),
        false => {
            let (device, queue, base) = counted_device(backend);
            (Engine::with_device(device, queue).expect("an engine"), Some(base))
        }
    };
    let fixture = Fixture::new(&int8(), 100, 40);
    let batch = Batch::I64(vec![0, 99, -1, 1 << 40]);
    let mut peak = None;
    for cycle in 0..100 {
        let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
        for lookup in Lookup::all(backend) {
            lookup.run(&engine, &table, &batch, IdPolicy::Wrap).expect("an answer");
        }
        let one = *peak.get_or_insert(engine.memory().peak);
        assert_eq!(engine.memory().peak, one, "cycle {cycle} needed more than the first");
    }
    engine.trim();
    assert_eq!(engine.memory().live, Bytes(0), "{}", engine.memory());
    assert!(engine.memory().rows.iter().all(|row| row.live == Bytes(0)));
    if let Some(base) = base {
        assert_eq!(counted(device(&engine)), base, "wgpu has buffers that the ledger lacks");
    }
}

/// Scratch and output are under the budget too; what is only kept for reuse gives way.
fn a15_the_budget(backend: &Backend) {
    let fixture = Fixture::new(&int8(), 1000, 256);
    let table_bytes = Placement::plan(fixture.encoded.spec(), Bytes(1 << 24)).expect("one shard").bytes();
    let batch = |count: u32| (0..count).map(|id| id % 1000).collect::<Vec<u32>>();

    let engine = backend.builder().memory_budget(table_bytes).build_blocking().expect("an engine");
    let table = engine.load_blocking(&fixture.encoded).expect("just fits");
    let error = table.gather_blocking(&batch(10), IdPolicy::Error).expect_err("no room for the output");
    let GatherError::OverBudget(error) = error else { panic!("{error}") };
    assert_eq!((error.budget, error.live, error.needed), (table_bytes, table_bytes, error.largest));
    assert_eq!(engine.memory().live, table_bytes, "{}", engine.memory());
    drop(table);

    // Room for 512 rows of output and staging, and little more.
    let budget = Bytes(table_bytes.0 + 2 * 512 * 1024 + (64 << 10));
    let engine = backend.builder().memory_budget(budget).build_blocking().expect("an engine");
    let table = engine.load_blocking(&fixture.encoded).expect("fits");
    table.gather_blocking(&batch(512), IdPolicy::Error).expect("fits");
    assert!(table.gather_blocking(&batch(600), IdPolicy::Error).is_err(), "does not fit");
    let rows = table.gather_buffer_blocking(&batch(900), IdPolicy::Error, OutputDtype::F32).expect("fits alone");
    let error = table.gather_blocking(&batch(512), IdPolicy::Error).expect_err("the rows are still held");
    assert!(error.to_string().contains("budget"), "{error}");
    drop(rows);
    // The first would be served by the buffer of 900 rows, and leave too little for its way back.
    for count in [512, 400, 1, 100, 400, 300] {
        table.gather_blocking(&batch(count), IdPolicy::Error).expect("kept buffers give way");
    }
    // A table too is more than what is kept.
    let other = Fixture::new(&int8(), 4000, 250);
    engine.load_blocking(&other.encoded).expect("kept buffers give way to a table");
    assert!(engine.memory().peak <= budget, "{}", engine.memory());
}

/// Tables are refused with what was needed, the budget, what lives, and the largest part; then smaller ones still fit.
fn a15_the_budget_of_loads(backend: &Backend) {
    let fixture = Fixture::new(&int8(), 1000, 64);
    let bytes = backend.fresh().load_blocking(&fixture.encoded).expect("the table fits").bytes();
    let budget = Bytes(2 * bytes.0 + bytes.0 / 2);
    let engine = backend.builder().memory_budget(budget).build_blocking().expect("an engine");
    let first = engine.load_blocking(&fixture.encoded).expect("fits");
    let second = engine.load_blocking(&fixture.encoded).expect("fits");
    let error = engine.load_blocking(&fixture.encoded).expect_err("a third does not fit");
    let TableError::OverBudget(error) = error else { panic!("{error}") };
    assert_eq!((error.needed, error.budget), (bytes, budget));
    assert_eq!((error.live, error.largest), (Bytes(2 * bytes.0), bytes));
    drop(first);
    let third = engine.load_blocking(&fixture.encoded).expect("fits in the place of the first");
    assert_eq!(engine.memory().live, Bytes(2 * bytes.0));
    drop((second, third));
    assert_eq!((engine.memory().live, engine.memory().peak), (Bytes(0), Bytes(2 * bytes.0)));
}
