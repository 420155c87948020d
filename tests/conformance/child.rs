//! A08, A16 and A19: what only a process of its own can show. The suite starts itself again for these.

use std::{
    process::{Command, ExitCode},
    sync::atomic::{AtomicUsize, Ordering},
};

use gatherum::{
    BackendChoice, Engine, EngineError, IdPolicy, PartSink, Scheme, TableSource,
    io::{TableFile, TableWriter},
};

use crate::{
    backend::{self, Backend},
    case::{Case, Stamp},
    fixture::{Fixture, Repeated},
};

const MEMORY: Option<&str> =
    if cfg!(target_os = "linux") { None } else { Some("the peak of memory is read from /proc/self/status") };

const fn on_linux(run: fn(&Backend)) -> Stamp {
    match MEMORY {
        None => Stamp::Backends(run),
        Some(reason) => Stamp::Never(reason),
    }
}

pub(crate) const CASES: &[Case] = &[
    Case { name: "a08_transient_memory", operation: "load", stamp: on_linux(a08_transient_memory) },
    Case { name: "a16_upload_memory", operation: "load", stamp: on_linux(a16_upload_memory) },
    Case {
        name: "a19_no_adapter",
        operation: "engine",
        stamp: match MEMORY {
            None => Stamp::Once(a19_no_adapter),
            Some(_) => Stamp::Never("drivers can be hidden from Linux' loaders alone"),
        },
    },
];

/// What a child is to do.
pub(crate) const TASK: &str = "GATHERUM_TEST_CHILD";

/// Does the task, in a child; `None` in the suite itself.
pub(crate) fn run() -> Option<ExitCode> {
    let task = std::env::var(TASK).ok()?;
    match task.split(' ').collect::<Vec<_>>()[..] {
        ["large", name] => large(&backend::one(name)),
        ["file", name, path] => file(&backend::one(name), path),
        ["no_adapter"] => no_adapter(),
        #[cfg(feature = "journal")]
        ["write", path, first] => crate::kills::write(path, first),
        #[cfg(feature = "journal")]
        ["full", folder] => crate::kills::full(folder),
        _ => panic!("no such task: {task}"),
    }
    Some(ExitCode::SUCCESS)
}

/// Runs a child, whose failure is the test's.
fn start(task: &str, environment: &[(&str, &str)]) {
    let program = std::env::current_exe().expect("this program");
    run_to_end(Command::new(program).env(TASK, task).envs(environment.iter().copied()));
}

/// Runs a child, whose failure is the test's.
pub(crate) fn run_to_end(command: &mut Command) {
    let child = command.output().expect("a child");
    let (out, err) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success(), "{command:?}: {}\n{out}{err}", child.status);
}

/// Bytes of the chunks that go to a device.
const CHUNK: u64 = 4 << 20;
/// What allocators round up and drivers keep beside what was asked of them: glibc may keep a chunk that another thread freed.
const SLACK: u64 = 6 << 20;

/// A number of `/proc/self/status`, in bytes.
fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("a field of it");
    line.trim_start_matches(':').trim().trim_end_matches(" kB").trim().parse::<u64>().expect("kB") * 1024
}

/// Loads `source`, and compares the growth of this process's memory with what may be held beside the table.
fn growth(backend: &Backend, source: &impl TableSource) {
    let engine = backend.fresh();
    // What a driver sets up once is not the upload's.
    let small = Fixture::new(&"int8".parse().expect("a scheme"), 10, 10);
    let small = engine.load_blocking(&small.encoded).expect("a small table");
    small.gather_blocking(&[1_u32], IdPolicy::Error).expect("an answer");
    let before = status("VmRSS");
    // From here on the peak counts.
    std::fs::write("/proc/self/clear_refs", "5").expect("one's own peak can be reset");
    let table = engine.load_blocking(source).expect("the table fits");
    let grown = status("VmHWM").saturating_sub(before);
    let kept = if backend.in_host_memory() { table.bytes().0 } else { 0 };
    let beside = if backend.is_host() { 0 } else { 2 * CHUNK };
    println!("{}: {grown} bytes grown for {} of table", backend.name, table.bytes().0);
    assert!(
        grown <= kept + beside + SLACK,
        "{}: {grown} bytes were taken for a table of {kept} here; {} of them beside it, {beside} may be",
        backend.name,
        grown - kept.min(grown)
    );
}

fn a08_transient_memory(backend: &Backend) {
    start(&format!("large {}", backend.name), &[]);
}

fn large(backend: &Backend) {
    let base = Fixture::new(&"f32".parse().expect("a scheme"), 127, 1280).encoded;
    growth(backend, &Repeated::new("large", &base, 51_865));
}

fn a16_upload_memory(backend: &Backend) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.safetensors");
    let scheme: Scheme = "int8".parse().expect("a scheme");
    let base = Fixture::new(&scheme, 127, 200).encoded;
    let source = Repeated::new("large", &base, 1_000_000);
    let mut writer = TableWriter::create(&path, source.spec(), None).expect("a file");
    let mut bytes = vec![0; 1 << 20];
    for (number, part) in source.spec().parts().iter().enumerate() {
        let mut at = 0;
        while at < part.bytes().0 {
            let length = (part.bytes().0 - at).min(1 << 20);
            let bytes = &mut bytes[..usize::try_from(length).expect("a chunk")];
            pollster::block_on(source.read_part(number, at, bytes)).expect("rows");
            writer.write_part(number, at, bytes).expect("written");
            at += length;
        }
    }
    writer.finish().expect("a table file");
    start(&format!("file {} {}", backend.name, path.display()), &[]);
}

fn file(backend: &Backend, path: &str) {
    growth(backend, &TableFile::open(path).expect("a table file"));
}

fn a19_no_adapter() {
    let nothing = "/nonexistent";
    start(
        "no_adapter",
        &[
            ("VK_DRIVER_FILES", nothing),
            ("VK_ICD_FILENAMES", nothing),
            ("__EGL_VENDOR_LIBRARY_FILENAMES", nothing),
            ("GATHERUM_BACKEND", ""),
        ],
    );
}

/// With no driver at all the host serves, and says so once.
fn no_adapter() {
    let adapters = Engine::adapters_blocking();
    assert!(adapters.is_empty(), "a driver could not be hidden: {adapters:?}");
    tracing::subscriber::set_global_default(Warnings).expect("the only subscriber");
    for _ in 0..3 {
        let engine = Engine::new_blocking().expect("the host needs no driver");
        assert_eq!(engine.backend().kind, "host");
        let fixture = Fixture::new(&"int8".parse().expect("a scheme"), 5, 3);
        let table = engine.load_blocking(&fixture.encoded).expect("the host takes it");
        let rows = table.gather_blocking(&[4_u32], IdPolicy::Error).expect("an answer");
        fixture.compare(4, &rows.values).expect("the row");
    }
    assert_eq!(SAID.load(Ordering::SeqCst), 1, "times that the choice of the host was said");
    let wanted = Engine::builder().backend(BackendChoice::parse("vulkan")).build_blocking();
    let error = wanted.expect_err("no adapter");
    assert!(
        matches!(&error, EngineError::NoAdapter { wanted, found } if wanted == "vulkan" && found == "none"),
        "{error}"
    );
}

/// Warnings of this library that name the host.
static SAID: AtomicUsize = AtomicUsize::new(0);

/// Counts them.
struct Warnings;

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("gatherum") && *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _span: &tracing::span::Id, _values: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _span: &tracing::span::Id, _follows: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, _field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{value:?}"));
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        if text.0.contains("host backend serves") {
            SAID.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn enter(&self, _span: &tracing::span::Id) {}

    fn exit(&self, _span: &tracing::span::Id) {}
}
