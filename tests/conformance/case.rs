//! Cases, and the tests that they are stamped out to.

use std::{
    fs::OpenOptions,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use gatherum::Scheme;
use libtest_mimic::{Completion, Failed, Trial};

use crate::backend::{Backend, Wanted, wanted};

/// A case of the suite.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// What is computed.
    pub(crate) operation: &'static str,
    pub(crate) stamp: Stamp,
}

/// What a case is stamped on.
#[derive(Clone, Copy)]
pub(crate) enum Stamp {
    /// Each variant of each scheme, on each backend.
    Schemes(fn(&Scheme, &Backend)),
    /// Each variant of each scheme, on each backend that is a device.
    DeviceSchemes(fn(&Scheme, &Backend)),
    /// The first variant of each scheme, on each backend: what does not depend on a scheme's options, and takes long.
    Leading(fn(&Scheme, &Backend)),
    /// The first variant of each scheme, on each backend that is a device.
    DeviceLeading(fn(&Scheme, &Backend)),
    /// Each backend.
    Backends(fn(&Backend)),
    /// Each backend that is a device.
    Devices(fn(&Backend)),
    /// Nothing: one test.
    Once(fn()),
    /// One test, on systems that have what it needs; the first says what they lack.
    #[cfg(feature = "journal")]
    Where(fn() -> Result<(), String>, fn()),
    /// No test on this system, for that reason.
    Never(&'static str),
}

/// A test that an adapter is known to fail. Where it passes, that is a failure: the entry must go.
struct ExpectedFailure {
    case: &'static str,
    /// A variant, or empty for any.
    scheme: &'static str,
    backend: &'static str,
    reason: &'static str,
}

/// Held by the test that runs on GL.
static GL: Mutex<()> = Mutex::new(());

/// All of them: none.
const EXPECTED_FAILURES: &[ExpectedFailure] = &[];

/// Every test.
pub(crate) fn trials(cases: impl Iterator<Item = &'static Case>) -> Vec<Trial> {
    let backends = wanted();
    let mut trials: Vec<Trial> = backends.iter().map(presence).collect();
    for case in cases {
        stamp(case, &backends, &mut trials);
    }
    trials
}

/// The test that a backend is there.
fn presence(wanted: &Wanted) -> Trial {
    let (found, required) = (wanted.found.clone(), wanted.required);
    Trial::ignorable_test(format!("adapter::{}", wanted.name), move || match found {
        Ok(_) => Ok(Completion::Completed),
        Err(reason) if required => Err(Failed::from(reason)),
        Err(reason) => Ok(Completion::ignored_with(reason)),
    })
}

/// Whether a scheme is the first variant of its kind.
pub(crate) fn leads(scheme: &Scheme) -> bool {
    Scheme::all().iter().any(|info| {
        info.variants.first().is_some_and(|first| first.parse().is_ok_and(|first: Scheme| first == *scheme))
    })
}

/// Whether a scheme is the registry's first: what is the same for all schemes is tested with it alone.
pub(crate) fn is_plain(scheme: &Scheme) -> bool {
    let first = Scheme::all().first().and_then(|info| info.variants.first());
    first.is_some_and(|first| first.parse().is_ok_and(|first: Scheme| first == *scheme))
}

fn stamp(case: &'static Case, backends: &[Wanted], trials: &mut Vec<Trial>) {
    let leading = matches!(case.stamp, Stamp::Leading(_) | Stamp::DeviceLeading(_));
    let variants = || {
        let all = Scheme::all().iter();
        all.flat_map(move |info| info.variants.iter().take(if leading { 1 } else { usize::MAX })).copied()
    };
    let parsed = |variant: &str| variant.parse::<Scheme>().expect("a variant of the registry");
    let devices_only = matches!(case.stamp, Stamp::Devices(_) | Stamp::DeviceSchemes(_) | Stamp::DeviceLeading(_));
    let backends = || backends.iter().filter(move |wanted| !(devices_only && wanted.name == "host"));
    match case.stamp {
        Stamp::Once(run) => trials.push(Trial::test(case.name, move || attempt(case, "", "", run))),
        #[cfg(feature = "journal")]
        Stamp::Where(has, run) => trials.push(Trial::ignorable_test(case.name, move || match has() {
            Ok(()) => attempt(case, "", "", run).map(|()| Completion::Completed),
            Err(reason) => Ok(Completion::ignored_with(reason)),
        })),
        Stamp::Never(reason) => {
            trials.push(Trial::ignorable_test(case.name, move || Ok(Completion::ignored_with(reason))));
        }
        Stamp::Schemes(run) | Stamp::DeviceSchemes(run) | Stamp::Leading(run) | Stamp::DeviceLeading(run) => {
            // Neighbours are of different backends, so that tests that run at a time seldom wait for one device.
            for variant in variants() {
                for wanted in backends() {
                    let name = format!("{}::{variant}::{}", case.name, wanted.name);
                    let run = move |backend: &Backend| run(&parsed(variant), backend);
                    trials.extend(on_backend(case, name, variant, wanted, run));
                }
            }
        }
        Stamp::Backends(run) | Stamp::Devices(run) => {
            for wanted in backends() {
                let name = format!("{}::{}", case.name, wanted.name);
                trials.extend(on_backend(case, name, "", wanted, run));
            }
        }
    }
}

/// The test on one backend. One that is missing has failed already where it was required; else it shows as ignored.
fn on_backend(
    case: &'static Case,
    name: String,
    scheme: &'static str,
    wanted: &Wanted,
    run: impl Fn(&Backend) + Send + 'static,
) -> Option<Trial> {
    let trial = match &wanted.found {
        Ok(backend) => {
            let backend: &'static Backend = backend;
            Trial::test(name, move || {
                // Where one compiles for long, wgpu takes a second for a deadlock on GL, where all share a context.
                let _alone = (backend.name == "gl").then(|| GL.lock().unwrap_or_else(PoisonError::into_inner));
                let start = Instant::now();
                let result = attempt(case, scheme, backend.name, || run(backend));
                backend.trim();
                note_time(case.name, scheme, backend.name, start.elapsed());
                result
            })
        }
        Err(_) if wanted.required => return None,
        Err(_) => Trial::ignorable_test(name, || Ok(Completion::ignored_with("no such adapter"))),
    };
    Some(trial.with_kind(case.operation))
}

/// Appends a line to the file that `GATHERUM_TEST_TIMES` names: how long a test took, in milliseconds, and which it was.
fn note_time(case: &str, scheme: &str, backend: &str, time: Duration) {
    let Some(path) = std::env::var_os("GATHERUM_TEST_TIMES") else { return };
    let line = format!("{}\t{case}\t{scheme}\t{backend}\n", time.as_millis());
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file for times can be written");
}

/// Runs a test; a panic is its failure, unless it is an expected one.
fn attempt(case: &Case, scheme: &str, backend: &str, run: impl Fn()) -> Result<(), Failed> {
    let expected = EXPECTED_FAILURES.iter().find(|entry| {
        entry.case == case.name && entry.backend == backend && (entry.scheme.is_empty() || entry.scheme == scheme)
    });
    match (catch_unwind(AssertUnwindSafe(&run)), expected) {
        (Ok(()), None) | (Err(_), Some(_)) => Ok(()),
        (Ok(()), Some(entry)) => Err(format!("passes, and was expected to fail: {}", entry.reason).into()),
        (Err(panic), None) => resume_unwind(panic),
    }
}
