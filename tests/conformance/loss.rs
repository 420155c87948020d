//! A18: a device that is destroyed in flight.

use std::{sync::mpsc, thread, time::Duration};

use gatherum::{
    DeviceError, Engine, EngineError, GatherError, IdBuffer, IdPolicy, IdType, Metric, OutputBuffer, OutputDtype,
    Scheme, ScoreError, Table, TableError, wgpu,
};

use crate::{
    backend::Backend,
    case::{Case, Stamp},
    fixture::{Fixture, Repeated},
    lookup::{Batch, Lookup, device, filled, queue},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a18_gather", operation: "gather", stamp: Stamp::Devices(|backend| in_flight(backend, gather)) },
    Case {
        name: "a18_gather_buffer",
        operation: "gather",
        stamp: Stamp::Devices(|backend| in_flight(backend, buffer)),
    },
    Case { name: "a18_recorded", operation: "gather", stamp: Stamp::Devices(|backend| in_flight(backend, recorded)) },
    Case { name: "a18_score", operation: "score", stamp: Stamp::Devices(|backend| in_flight(backend, score)) },
    Case { name: "a18_load", operation: "load", stamp: Stamp::Devices(|backend| in_flight(backend, load)) },
    Case { name: "a18_idle", operation: "engine", stamp: Stamp::Devices(a18_idle) },
];

/// Longer than any call here takes, on however busy a machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Whatever a lookup needs, made while the device is there.
struct Work {
    engine: Engine,
    table: Table,
    fixture: Fixture,
    ids: wgpu::Buffer,
    out: wgpu::Buffer,
}

const IDS: u32 = 20_000;

impl Work {
    fn new(engine: Engine) -> Self {
        let scheme: Scheme = "int8".parse().expect("a scheme");
        let fixture = Fixture::new(&scheme, 100, 128);
        let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
        let ids: Vec<u32> = (0..IDS).map(|at| at % 100).collect();
        let ids = filled(device(&engine), usage, bytemuck::cast_slice(&ids));
        let out = device(&engine).create_buffer(&wgpu::BufferDescriptor {
            label: Some("a test's"),
            size: u64::from(IDS) * 512,
            usage,
            mapped_at_creation: false,
        });
        Self { engine, table, fixture, ids, out }
    }

    fn ids(&self) -> IdBuffer<'_> {
        IdBuffer { buffer: &self.ids, offset: 0, count: IDS, id_type: IdType::U32 }
    }
}

/// One call, and how it ended.
type Call = fn(&Work) -> Result<(), DeviceError>;

fn device_error(error: GatherError) -> DeviceError {
    match error {
        GatherError::Device(error) => error,
        error => panic!("not the device's: {error}"),
    }
}

fn gather(work: &Work) -> Result<(), DeviceError> {
    let rows = work.table.gather_blocking(work.ids(), IdPolicy::Error).map_err(device_error)?;
    work.fixture.compare(0, &rows.values[..128]).expect("the row");
    Ok(())
}

fn score(work: &Work) -> Result<(), DeviceError> {
    let queries = crate::fixture::values(500 * 128, 19);
    match work.table.score_blocking(&queries, Metric::Cosine, ..) {
        Ok(_) => Ok(()),
        Err(ScoreError::Device(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

fn buffer(work: &Work) -> Result<(), DeviceError> {
    let ids: Vec<u32> = (0..IDS).map(|at| at % 100).collect();
    work.table.gather_buffer_blocking(&ids, IdPolicy::Error, OutputDtype::F32).map_err(device_error)?;
    // With ids on the device the call waits for its status.
    work.table.gather_buffer_blocking(work.ids(), IdPolicy::Error, OutputDtype::F16).map(drop).map_err(device_error)
}

fn recorded(work: &Work) -> Result<(), DeviceError> {
    let mut encoder = device(&work.engine).create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let output = OutputBuffer { buffer: &work.out, offset: 0, dtype: OutputDtype::F32 };
    let status = work.table.encode_gather(&mut encoder, work.ids(), IdPolicy::Error, output).map_err(device_error)?;
    queue(&work.engine).submit([encoder.finish()]);
    status.read_blocking().map(drop).map_err(device_error)
}

fn load(work: &Work) -> Result<(), DeviceError> {
    // Three chunks.
    let source = Repeated::new("large", &work.fixture.encoded, 400_000);
    match work.engine.load_blocking(&source) {
        Ok(_) => Ok(()),
        Err(TableError::Device(error)) => Err(error),
        Err(error) => panic!("not the device's: {error}"),
    }
}

const CALLS: [(&str, Call); 4] =
    [("gather", gather), ("gather_buffer", buffer), ("recorded", recorded), ("load", load)];

/// Calls again and again on a thread, and destroys the device meanwhile: first an engine's own, then a lent one.
fn in_flight(backend: &Backend, call: Call) {
    let own = backend.fresh();
    destroy_during(&own, call);
    let rebuilt = pollster::block_on(own.rebuild()).expect("the adapter is still there");
    assert!(!rebuilt.is_lost());
    same_bits(&rebuilt);

    let lent = lent(backend);
    destroy_during(&lent, call);
    let error = pollster::block_on(lent.rebuild()).expect_err("its owner alone can make another");
    assert!(matches!(error, EngineError::NoDevice { .. }), "{error}");
}

/// An engine on a device of a caller who means to survive a loss: where it comes while a caller records, the caller's own
/// commands are in error too, and wgpu panics unless somebody listens.
fn lent(backend: &Backend) -> Engine {
    let (device, queue) = backend.device(wgpu::Limits::default());
    device.on_uncaptured_error(std::sync::Arc::new(|_| {}));
    Engine::with_device(device, queue).expect("an engine")
}

fn destroy_during(engine: &Engine, call: Call) {
    let work = Work::new(engine.clone());
    let lost = engine.device().expect("a device's engine").clone();
    let (started, begun) = mpsc::channel();
    let (ended, end) = mpsc::channel();
    // Not joined: a call that never ends is told by the time, not by waiting for it.
    thread::spawn(move || {
        // One whole call before, so that pipelines are made and the destruction meets the work itself.
        let mut result = call(&work);
        started.send(()).expect("the test waits");
        while result.is_ok() {
            result = call(&work);
        }
        // The test may have given up.
        let _ = ended.send((result, work));
    });
    begun.recv_timeout(LIMIT).expect("the first call ends");
    thread::sleep(Duration::from_millis(7));
    lost.destroy();
    let (result, work) = end.recv_timeout(LIMIT).expect("a call on a device that is gone ends");
    let error = result.expect_err("a call ended with an error");
    assert!(matches!(error, DeviceError::Lost { .. }), "{error}");
    after(&work);
}

/// Every later call says the same.
fn after(work: &Work) {
    for (name, call) in CALLS {
        let (ended, end) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || ended.send(call(work)));
            let result = end.recv_timeout(LIMIT).unwrap_or_else(|error| panic!("{name} never ends: {error}"));
            let error = result.expect_err(name);
            assert!(matches!(error, DeviceError::Lost { .. }), "{name}: {error}");
            assert!(error.to_string().contains("build a new engine"), "{name}: {error}");
        });
    }
    assert!(work.engine.is_lost());
}

fn same_bits(engine: &Engine) {
    let work = Work::new(engine.clone());
    let host = Engine::host();
    let table = host.load_blocking(&work.fixture.encoded).expect("the host takes it");
    let batch = Batch::U32((0..100).collect());
    let got = Lookup::HOST_F32.run(engine, &work.table, &batch, IdPolicy::Error).expect("an answer");
    let want = Lookup::HOST_F32.run(&host, &table, &batch, IdPolicy::Error).expect("an answer");
    assert_eq!(got, want);
}

/// Destroyed with nothing in flight: the next call, whichever it is, says so.
fn a18_idle(backend: &Backend) {
    for (name, call) in CALLS {
        for lend in [false, true] {
            let engine = if lend { lent(backend) } else { backend.fresh() };
            let work = Work::new(engine);
            device(&work.engine).destroy();
            let error = call(&work).expect_err(name);
            assert!(matches!(error, DeviceError::Lost { .. }), "{name}, lent {lend}: {error}");
            assert!(work.engine.is_lost(), "{name}, lent {lend}");
        }
    }
}
