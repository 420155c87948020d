//! A17: a device that a caller lends stays the caller's.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gatherum::{
    BackendChoice, Engine, EngineError, GatherError, IdBuffer, IdPolicy, IdType, OutputBuffer, OutputDtype, Scheme,
    wgpu,
};

use crate::{
    backend::Backend,
    case::{Case, Stamp},
    fixture::Fixture,
    lookup::{Batch, Lookup, device, filled, queue, read_back, verify},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a17_default_limits", operation: "gather", stamp: Stamp::DeviceSchemes(a17_default_limits) },
    Case { name: "a17_handlers", operation: "engine", stamp: Stamp::Devices(a17_handlers) },
    Case { name: "a17_scopes", operation: "gather", stamp: Stamp::Devices(a17_scopes) },
    Case { name: "a17_submits_nothing", operation: "gather", stamp: Stamp::Devices(a17_submits_nothing) },
    Case { name: "a17_unfit_buffers", operation: "gather", stamp: Stamp::Devices(a17_unfit_buffers) },
    Case { name: "a17_unfit_limits", operation: "engine", stamp: Stamp::Devices(a17_unfit_limits) },
    Case { name: "a17_dropped_futures", operation: "gather", stamp: Stamp::Devices(a17_dropped_futures) },
    Case { name: "a19_choices", operation: "engine", stamp: Stamp::Backends(a19_choices) },
    Case { name: "a19_software_after_the_host", operation: "engine", stamp: Stamp::Once(a19_software_after_the_host) },
];

fn int8() -> Scheme {
    "int8".parse().expect("a scheme")
}

/// Default limits and no features are enough, and what the library asks for beyond is to be had.
fn a17_default_limits(scheme: &Scheme, backend: &Backend) {
    let (device, queue) = backend.device(wgpu::Limits::default());
    assert!(device.features().is_empty());
    let engine = Engine::with_device(device, queue).expect("an engine on default limits");
    let fixture = Fixture::new(scheme, 19, 21);
    let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
    verify(&Lookup::all(backend), &engine, &table, &fixture, &Batch::I64(vec![18, 0, -1, 19, 4]), IdPolicy::Wrap);
    assert!(Engine::required_features().is_empty());
}

/// A command that wgpu refuses.
fn mistake(device: &wgpu::Device) {
    let _ = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("a mistake"),
        size: 16,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    });
}

/// The caller's handlers hear the caller's errors and the loss, and nothing of the library's.
fn a17_handlers(backend: &Backend) {
    let (lent, queue) = backend.device(wgpu::Limits::default());
    let errors = Arc::new(AtomicUsize::new(0));
    let losses = Arc::new(AtomicUsize::new(0));
    let (heard_errors, heard_losses) = (errors.clone(), losses.clone());
    lent.on_uncaptured_error(Arc::new(move |_| {
        heard_errors.fetch_add(1, Ordering::SeqCst);
    }));
    lent.set_device_lost_callback(move |_, _| {
        heard_losses.fetch_add(1, Ordering::SeqCst);
    });
    let engine = Engine::with_device(lent.clone(), queue.clone()).expect("an engine");
    let fixture = Fixture::new(&int8(), 19, 21);
    let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
    verify(&Lookup::all(backend), &engine, &table, &fixture, &Batch::U32(vec![18, 0, 19]), IdPolicy::Zero);
    verify(&Lookup::all(backend), &engine, &table, &fixture, &Batch::U32(vec![18, 0, 19]), IdPolicy::Error);
    assert_eq!(errors.load(Ordering::SeqCst), 0, "the library's work made no error of the caller's");
    mistake(&lent);
    assert_eq!(errors.load(Ordering::SeqCst), 1, "the caller's handler still hears the caller's mistakes");
    drop((table, engine));
    mistake(&lent);
    assert_eq!(errors.load(Ordering::SeqCst), 2, "and does so after the engine is gone");
    assert_eq!(losses.load(Ordering::SeqCst), 0);
    lent.destroy();
    // On a device that is gone, waiting may fail; the callback is what matters.
    let _ = lent.poll(wgpu::PollType::wait_indefinitely());
    assert_eq!(losses.load(Ordering::SeqCst), 1, "the caller's handler hears of the loss");
    // wgpu tells of a loss through the queue.
    drop(queue);
}

/// Calls leave the caller's error scopes as they were, with nothing of the library's in them.
fn a17_scopes(backend: &Backend) {
    let (lent, queue) = backend.device(wgpu::Limits::default());
    let engine = Engine::with_device(lent.clone(), queue).expect("an engine");
    let fixture = Fixture::new(&int8(), 19, 21);
    let work = || {
        let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
        verify(&Lookup::all(backend), &engine, &table, &fixture, &Batch::U32(vec![18, 0, 19]), IdPolicy::Zero);
        verify(&Lookup::all(backend), &engine, &table, &fixture, &Batch::U32(vec![18, 0, 19]), IdPolicy::Error);
    };
    let outer = lent.push_error_scope(wgpu::ErrorFilter::Validation);
    let inner = lent.push_error_scope(wgpu::ErrorFilter::Validation);
    work();
    assert!(pollster::block_on(inner.pop()).is_none(), "the library's work leaves no error");
    mistake(&lent);
    work();
    let error = pollster::block_on(outer.pop()).expect("the caller's own mistake is in the caller's scope");
    assert!(error.to_string().contains("a mistake"), "{error}");
}

/// Recording writes and submits nothing: rows are there after the caller's submission, and never without it.
fn a17_submits_nothing(backend: &Backend) {
    let engine = backend.engine();
    let fixture = Fixture::new(&int8(), 19, 20);
    let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let ids = filled(device(engine), usage, bytemuck::cast_slice(&[3_u32, 18]));
    let out = filled(device(engine), usage, &[0xff; 160]);
    let record = || {
        let mut encoder = device(engine).create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let ids = IdBuffer { buffer: &ids, offset: 0, count: 2, id_type: IdType::U32 };
        let output = OutputBuffer { buffer: &out, offset: 0, dtype: OutputDtype::F32 };
        let status = table.encode_gather(&mut encoder, ids, IdPolicy::Error, output).expect("recorded");
        (encoder, status)
    };
    let untouched = || read_back(engine, &out, 0, 160).iter().all(|byte| *byte == 0xff);
    let (encoder, status) = record();
    assert!(untouched(), "recorded");
    drop((encoder, status));
    assert!(untouched(), "dropped");
    let (encoder, status) = record();
    let commands = encoder.finish();
    assert!(untouched(), "finished");
    queue(engine).submit([commands]);
    assert_eq!(status.read_blocking().expect("good ids").count, 0);
    let bytes = read_back(engine, &out, 0, 160);
    let values: Vec<f32> = bytes.as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect();
    fixture.compare(3, &values[..20]).expect("the first row");
    fixture.compare(18, &values[20..]).expect("the second row");
}

/// Buffers that cannot serve are refused in words, before anything is recorded.
fn a17_unfit_buffers(backend: &Backend) {
    let engine = backend.engine();
    let fixture = Fixture::new(&int8(), 19, 21);
    let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
    let storage = wgpu::BufferUsages::STORAGE;
    let ids = filled(device(engine), storage, &[0; 64]);
    let copied = filled(device(engine), wgpu::BufferUsages::COPY_SRC, &[0; 1024]);
    let out = filled(device(engine), storage, &[0; 1024]);
    let id = |buffer, offset, count, id_type| IdBuffer { buffer, offset, count, id_type };
    let to = |buffer, offset| OutputBuffer { buffer, offset, dtype: OutputDtype::F32 };
    let good = id(&ids, 0, 4, IdType::U32);
    for (role, problem, ids, output) in [
        ("id", "no multiple of 4", id(&ids, 2, 4, IdType::U32), to(&out, 0)),
        ("id", "64 bytes", id(&ids, 0, 17, IdType::U32), to(&out, 0)),
        ("id", "64 bytes", id(&ids, 0, 9, IdType::U64), to(&out, 0)),
        ("id", "64 bytes", id(&ids, 4, 8, IdType::I64), to(&out, 0)),
        ("id", "64 bytes", id(&ids, u64::MAX - 3, 4, IdType::U32), to(&out, 0)),
        ("id", "64 bytes", id(&ids, 0, u32::MAX, IdType::U64), to(&out, 0)),
        ("id", "STORAGE", id(&copied, 0, 4, IdType::U32), to(&out, 0)),
        ("output", "no multiple of 4", good, to(&out, 1)),
        ("output", "1024 bytes", good, to(&out, 1024 - 4 * 84 + 4)),
        ("output", "1024 bytes", good, to(&out, u64::MAX - 3)),
        ("output", "STORAGE", good, to(&copied, 0)),
        ("output", "ids", id(&out, 0, 4, IdType::U32), to(&out, 512)),
    ] {
        let mut encoder = device(engine).create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let scope = device(engine).push_error_scope(wgpu::ErrorFilter::Validation);
        let error = table.encode_gather(&mut encoder, ids, IdPolicy::Zero, output).expect_err(problem);
        let GatherError::Buffer { role: named, .. } = error else { panic!("{error}") };
        assert_eq!(named, role, "{error}");
        assert!(error.to_string().contains(problem), "`{error}` does not say `{problem}`");
        queue(engine).submit([encoder.finish()]);
        assert!(pollster::block_on(scope.pop()).is_none(), "nothing was recorded");
    }
}

/// A device below what the kernels need is refused with the limit and both numbers.
fn a17_unfit_limits(backend: &Backend) {
    let limits = wgpu::Limits { max_storage_buffers_per_shader_stage: 7, ..wgpu::Limits::default() };
    let (device, queue) = backend.device(limits);
    let error = Engine::with_device(device, queue).expect_err("seven storage buffers");
    let EngineError::Limit { limit, has, needs, .. } = error else { panic!("{error}") };
    assert_eq!((limit, has, needs), ("max_storage_buffers_per_shader_stage", 7, 8));
}

/// A future that is dropped half-way leaves nothing behind that the next call trips over.
fn a17_dropped_futures(backend: &Backend) {
    let engine = backend.fresh();
    let fixture = Fixture::new(&int8(), 19, 21);
    let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
    let ids: Vec<u32> = (0..2000).map(|at| at % 19).collect();
    for polls in 1..5 {
        let mut future = Box::pin(table.gather(&ids, IdPolicy::Error));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        for _ in 0..polls {
            if future.as_mut().poll(&mut context).is_ready() {
                break;
            }
        }
        drop(future);
        // As large, so that the same buffers serve.
        verify(&Lookup::all(backend), &engine, &table, &fixture, &Batch::U32(ids.clone()), IdPolicy::Error);
    }
    drop(table);
    engine.trim();
    assert_eq!(engine.memory().live.0, 0, "{}", engine.memory());
}

/// An engine that was asked for is the one that comes; one that is not there is an error with what there is.
fn a19_choices(backend: &Backend) {
    let engine = backend.fresh();
    assert_eq!(engine.backend().kind == "host", backend.is_host());
    assert_eq!(engine.device().is_some(), !backend.is_host());
    assert!(format!("{engine:?}").contains("Engine"));
    let error = Engine::builder()
        .backend(BackendChoice::parse("no such adapter"))
        .build_blocking()
        .expect_err("nothing is called so");
    let EngineError::NoAdapter { wanted, found } = error else { panic!("{error}") };
    assert_eq!(wanted, "no such adapter");
    assert!(backend.is_host() || found.contains(&engine.backend().name), "{found}");
}

/// A software adapter is never taken by itself: the host is faster.
fn a19_software_after_the_host() {
    let engine = Engine::builder().backend(BackendChoice::Auto).build_blocking().expect("there is always the host");
    assert_ne!(engine.backend().kind, "software");
}
