//! Any shape, any ids, any policy: every way of looking up gives what the reference says.

use std::fmt::Debug;

use gatherum::{BagMode, IdPolicy, IdType, Scheme};
use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any},
    prop_oneof,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use crate::{
    backend::Backend,
    bagged::Call,
    case::{Case, Stamp},
    fixture::{Fixture, values},
    lookup::{Batch, Lookup, verify},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a01_any_shape_and_ids", operation: "gather", stamp: Stamp::Schemes(a01_any_shape_and_ids) },
    Case { name: "a10_any_bags", operation: "bag", stamp: Stamp::Schemes(a10_any_bags) },
];

/// The same cases in every run.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn batches(rows: usize) -> impl Strategy<Value = Batch> {
    let rows = rows as i128;
    let near = (-2 * rows - 2..2 * rows + 2).boxed();
    let good = (0..rows.max(1)).boxed();
    let far = any::<i64>().prop_map(i128::from).boxed();
    let folded = good.clone().prop_map(|id| id + (1 << 32)).boxed();
    let id = prop_oneof![6 => good, 2 => near, 1 => far, 1 => folded];
    let types = prop_oneof![Just(IdType::U32), Just(IdType::U64), Just(IdType::I64)];
    (types, vec(id, 0..70)).prop_map(|(id_type, ids)| Batch::of(id_type, &ids))
}

fn a01_any_shape_and_ids(scheme: &Scheme, backend: &Backend) {
    let policies = prop_oneof![Just(IdPolicy::Error), Just(IdPolicy::Zero), Just(IdPolicy::Wrap)];
    let shapes = (0..60usize, 1..140usize);
    let calls = (shapes, policies).prop_flat_map(|(shape, policy)| (Just(shape), Just(policy), batches(shape.0)));
    check(&calls, |((rows, dim), policy, batch)| {
        let fixture = Fixture::new(scheme, rows, dim);
        let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
        verify(&Lookup::all(backend), backend.engine(), &table, &fixture, &batch, policy);
    });
}

/// Any cuts of any ids; the shape is one, as each pipeline costs a software adapter its time.
fn a10_any_bags(scheme: &Scheme, backend: &Backend) {
    let rows = 19;
    let fixture = Fixture::new(scheme, rows, 18);
    let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    let lengths = vec(prop_oneof![3 => 0..5usize, 1 => 0..70usize], 0..12);
    let modes = prop_oneof![Just(BagMode::Sum), Just(BagMode::Mean), Just(BagMode::Max)];
    let policies = prop_oneof![Just(IdPolicy::Zero), Just(IdPolicy::Wrap)];
    let padding = proptest::option::of(-3..rows as i128 + 3);
    let calls = (batches(rows), lengths, modes, policies, padding, any::<bool>());
    check(&calls, |(batch, mut lengths, mode, policy, padding, weighted)| {
        // Lengths are cut to the ids there are, and the last bag takes what is left.
        let mut left = batch.len();
        for length in &mut lengths {
            *length = (*length).min(left);
            left -= *length;
        }
        lengths.push(left);
        let weights = (weighted && mode != BagMode::Max).then(|| values(batch.len(), 5));
        let call = Call { mode, policy, padding, weights, ..Call::sum(batch, &lengths) };
        call.verify(backend, backend.engine(), &table, &fixture);
    });
}

/// Runs `test`, whose failures are panics, and shrinks the values at which it fails.
fn check<T: Debug>(values: &impl Strategy<Value = T>, test: impl Fn(T)) {
    let result = runner(6).run(values, |value| {
        test(value);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
