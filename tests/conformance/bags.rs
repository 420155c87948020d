//! A10, A03 and A04 for bags: sums, means and maxima, nothing at all, and what does not fit.

use gatherum::{BagMode, Bags, BagsError, Bytes, GatherError, IdPolicy, IdType, Placement, Scheme, TableSource};

use crate::{
    backend::{Backend, Tuning},
    bagged::{Call, same},
    case::{Case, Stamp, leads},
    fixture::{Fixture, Repeated, hash, row_bytes, values},
    lookup::Batch,
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a10_bags", operation: "bag", stamp: Stamp::Schemes(a10_bags) },
    Case { name: "a10_policies", operation: "bag", stamp: Stamp::Schemes(a10_policies) },
    Case { name: "a10_zeros", operation: "bag", stamp: Stamp::Backends(a10_zeros) },
    Case { name: "a10_norms", operation: "bag", stamp: Stamp::Backends(a10_norms) },
    Case { name: "a10_norms_of_long_rows", operation: "bag", stamp: Stamp::Backends(a10_norms_of_long_rows) },
    Case { name: "a10_shards", operation: "bag", stamp: Stamp::Devices(a10_shards) },
    Case { name: "a10_over_one_buffer", operation: "bag", stamp: Stamp::Devices(a10_over_one_buffer) },
    Case { name: "a10_as_pytorch", operation: "bag", stamp: Stamp::Backends(a10_as_pytorch) },
    Case { name: "a03_no_bags", operation: "bag", stamp: Stamp::Schemes(a03_no_bags) },
    Case { name: "a04_offsets", operation: "bag", stamp: Stamp::Backends(a04_offsets) },
    Case { name: "a04_weights_and_outputs", operation: "bag", stamp: Stamp::Backends(a04_weights_and_outputs) },
];

const MODES: [BagMode; 3] = [BagMode::Sum, BagMode::Mean, BagMode::Max];

/// Row numbers without an order, with repeats.
fn ids(count: usize, rows: u32, seed: u64) -> Vec<u32> {
    let row = |at: u64| u32::try_from(hash(seed << 32 | at) % u64::from(rows)).expect("a row number");
    (0..count as u64).map(row).collect()
}

/// Every mode, weights and padding, bags of no ids to 5,000 of them: one group of columns and several, words and vectors.
fn a10_bags(scheme: &Scheme, backend: &Backend) {
    let lengths = [0, 1, 2, 0, 0, 31, 1024, 7, 5000, 1, 1025, 0];
    let count = lengths.iter().sum();
    let weights: Vec<f32> = values(count, 3).iter().map(|weight| weight * 2.0).collect();
    let tunings = [(13, Tuning::Own), (36, Tuning::Coarse), (36, Tuning::FineChecked)];
    // As with gathers: wgpu's checks are around a scheme's code.
    for (dim, tuning) in tunings.into_iter().take(if leads(scheme) { 3 } else { 2 }) {
        let tuning = if backend.is_host() { Tuning::Own } else { tuning };
        let fixture = Fixture::new(scheme, 23, dim);
        let engine = backend.tuned(tuning);
        let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
        for mode in MODES {
            for padding in [None, Some(4)] {
                let batch = Batch::U32(ids(count, fixture.rows(), dim as u64));
                let call = Call { mode, padding, ..Call::sum(batch, &lengths) };
                call.verify(backend, engine, &table, &fixture);
                if mode != BagMode::Max {
                    let mut weights = weights.clone();
                    // What stands at ignored ids is nobody's.
                    for (weight, id) in weights.iter_mut().zip(ids(count, fixture.rows(), dim as u64)) {
                        if padding == Some(i128::from(id)) {
                            *weight = f32::NAN;
                        }
                    }
                    let call = Call { weights: Some(weights), ..call };
                    call.verify(backend, engine, &table, &fixture);
                }
            }
        }
    }
}

/// Bad ids of every type under every policy, some of them the padding id.
fn a10_policies(scheme: &Scheme, backend: &Backend) {
    let fixture = Fixture::new(scheme, 9, 20);
    let engine = backend.engine();
    let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
    let list = [3, -1, 8, 9, 0, 0, -9, -10, 1 << 32, (1 << 32) + 5, 7, i128::from(i64::MIN), 2, -1, -1];
    for id_type in [IdType::U32, IdType::U64, IdType::I64] {
        let batch = Batch::of(id_type, &list);
        let lengths = [2, 0, 1, batch.len() - 3];
        for mode in MODES {
            for padding in [None, Some(-1), Some(9), Some(3)] {
                for policy in [IdPolicy::Zero, IdPolicy::Wrap] {
                    let call = Call { mode, padding, policy, ..Call::sum(batch.clone(), &lengths) };
                    call.verify(backend, engine, &table, &fixture);
                }
            }
        }
        let call = Call { padding: Some(-1), ..Call::sum(batch.clone(), &lengths) };
        let rows = batch.rows(fixture.names(), IdPolicy::Error);
        let bad = |at: &usize| rows[*at].is_none() && batch.ids().get(*at) != Some(-1);
        match (0..batch.len()).find(bad) {
            Some(first) => {
                let error = call.run(&table).expect_err("bad ids");
                let GatherError::BadId { position, id, rows: 9, .. } = error else { panic!("{error}") };
                assert_eq!((position, id), (first as u64, batch.ids().get(first)));
            }
            None => call.verify(backend, engine, &table, &fixture),
        }
        // A padding id alone is no bad one.
        let good = Batch::of(id_type, &[1, 9, 9, 0]);
        let call = Call { padding: Some(9), ..Call::sum(good, &[1, 1, 2]) };
        call.verify(backend, engine, &table, &fixture);
    }
}

/// Zeros of both signs, for the schemes that keep them: equals, of which a maximum is the first, and a sum is 0.0.
fn a10_zeros(backend: &Backend) {
    for scheme in ["f32", "f16"] {
        for dim in [5, 20] {
            let rows: Vec<f32> =
                (0..16 * dim as u64).map(|at| [0.0, -0.0, -0.0, -1.0][(hash(at) % 4) as usize]).collect();
            let fixture = Fixture::of("zeros", &rows, dim, &scheme.parse().expect("a scheme"));
            let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
            let lengths = [1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 9, 1030];
            // Row 16 is none: a row of 0.0.
            let batch = Batch::U32(ids(lengths.iter().sum(), 17, dim as u64));
            for mode in MODES {
                let call = Call { mode, policy: IdPolicy::Zero, ..Call::sum(batch.clone(), &lengths) };
                call.verify(backend, backend.engine(), &table, &fixture);
            }
        }
    }
}

/// Norms of rows of every size: squares that would overflow or vanish, and zeros.
fn a10_norms(backend: &Backend) {
    let scheme: Scheme = "f32".parse().expect("a scheme");
    for dim in [7, 16, 100] {
        let mut rows = values(6 * dim, 7);
        for (row, size) in rows.chunks_mut(dim).zip([1.0, 1e-30, 3e37, 0.0, 1e15, 1.0]) {
            row.iter_mut().for_each(|value| *value *= size);
        }
        let fixture = Fixture::of("norms", &rows, dim, &scheme);
        let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
        for mode in [BagMode::Sum, BagMode::Mean] {
            let call = Call::sum(Batch::U32(vec![0, 1, 2, 3, 4, 5, 0, 5, 3]), &[1, 1, 1, 1, 1, 0, 4]);
            Call { mode, normalised: true, ..call }.verify(backend, backend.engine(), &table, &fixture);
        }
    }
}

/// The longest rows there are, of words: no thread may take too many turns.
fn a10_norms_of_long_rows(backend: &Backend) {
    let scheme: Scheme = "f32".parse().expect("a scheme");
    let fixture = Fixture::new(&scheme, 2, gatherum::MAX_DIM as usize - 1);
    let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    let call = Call { normalised: true, ..Call::sum(Batch::U32(vec![0, 1, 1]), &[1, 2]) };
    let rows = call.run(&table).expect("an answer");
    let host = gatherum::Engine::host().load_blocking(&fixture.encoded).expect("host memory");
    same(&rows, &call.run(&host).expect("an answer"), "the host");
    for row in rows.chunks_exact(fixture.dim()) {
        let norm2: f64 = row.iter().map(|value| f64::from(*value).powi(2)).sum();
        // Twice the relative error of a value, which is 2^20 / 32 + 12 units.
        assert!((norm2 - 1.0).abs() < 2f64.powi(-7), "{norm2}");
    }
}

const MIB: u64 = 1 << 20;

/// More shards than a pass binds, and bags longer than a stretch: the documented order, to the bit.
fn a10_shards(backend: &Backend) {
    let engine = backend.narrow(16 * MIB, 64 * MIB);
    let base = Fixture::new(&"int8".parse().expect("a scheme"), 127, 64);
    let row = row_bytes(&base.encoded);
    let source = Repeated::new("many", &base.encoded, (6 * 16 * MIB / row + 1000) | 1);
    let placement = pollster::block_on(Placement::read(&source, Bytes(16 * MIB))).expect("a placement");
    let table = engine.load_blocking(&source).expect("it is split");
    assert_eq!(table.shards(), 7, "two passes");
    let rows = source.spec().shape().rows();
    let second = placement.shards()[5].first_row;
    let lengths = [3, 0, 4000, 1, 1024, 500];
    let list = ids(lengths.iter().sum(), rows, 1);
    // The plain loop needs those rows only: the host has them from the small table.
    let host = gatherum::Engine::host().load_blocking(&base.encoded).expect("host memory");
    let few: Vec<u32> = list.iter().map(|id| source.base_row(*id)).collect();
    let decoded = host.gather_blocking(&few, IdPolicy::Error).expect("good ids").values;
    // Position `at` of the batch is row `at` of `decoded`: the loop is given positions, in the order that passes take them.
    let weights = values(list.len(), 9);
    for mode in MODES {
        for weights in [None, Some(weights.clone())].into_iter().filter(|some| mode != BagMode::Max || some.is_none()) {
            let call = Call { mode, weights, ..Call::sum(Batch::U32(list.clone()), &lengths) };
            let sorted = by_passes(&call, &list, second);
            let want = sorted.naive(&decoded, 64, &[]);
            same(&call.run(&table).expect("an answer"), &want, &format!("{mode:?}"));
            same(&call.run_buffer(&engine, &table).expect("an answer"), &want, &format!("{mode:?}"));
        }
    }
    // Bad ids add nothing in any pass, and are zeros to a maximum.
    let call = Call::sum(Batch::U32(vec![rows - 1, rows, 0, u32::MAX, u32::MAX]), &[4, 1]);
    let good =
        host.gather_blocking(&[source.base_row(rows - 1), source.base_row(0)], IdPolicy::Error).expect("rows").values;
    for mode in MODES {
        let call = Call { mode, policy: IdPolicy::Zero, ..call.clone() };
        let got = call.run(&table).expect("an answer");
        for (column, got) in got[..64].iter().enumerate() {
            let (last, first) = (good[column], good[64 + column]);
            let want = match mode {
                BagMode::Max => last.max(first).max(0.0),
                BagMode::Mean => (first + last) * 0.25,
                _ => first + last,
            };
            assert_eq!(*got, want, "{mode:?}, column {column}");
        }
        assert!(got[64..].iter().all(|value| value.to_bits() == 0));
    }
}

/// The call with ids that are positions, put in the order in which passes take them: each stretch sorted by pass.
fn by_passes(call: &Call, list: &[u32], second: u32) -> Call {
    let mut order: Vec<u32> = (0..).take(list.len()).collect();
    for ends in call.starts.windows(2) {
        let at = |start: u64| usize::try_from(start).expect("a position");
        for stretch in order[at(ends[0])..at(ends[1])].chunks_mut(1024) {
            stretch.sort_by_key(|at| list[*at as usize] >= second);
        }
    }
    let weights = call.weights.as_ref().map(|weights| order.iter().map(|at| weights[*at as usize]).collect());
    Call { ids: Batch::U32(order), weights, ..call.clone() }
}

/// Bags whose ids, weights or rows pass the device's largest buffer; one bag alone does.
fn a10_over_one_buffer(backend: &Backend) {
    let engine = backend.narrow(16 * MIB, 16 * MIB);
    for (dim, lengths) in [(3, vec![5, 0, 1_450_000, 2, 0]), (65, vec![1; 70_001])] {
        let fixture = Fixture::new(&"int8".parse().expect("a scheme"), 251, dim);
        let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
        let count = lengths.iter().sum();
        let list: Vec<i128> = ids(count, fixture.rows(), 5).into_iter().map(i128::from).collect();
        let call = Call::sum(Batch::of(IdType::I64, &list), &lengths);
        let call = Call { weights: Some(values(count, 8)), mode: BagMode::Mean, ..call };
        let host = gatherum::Engine::host().load_blocking(&fixture.encoded).expect("host memory");
        let all: Vec<u32> = (0..fixture.rows()).collect();
        let decoded = host.gather_blocking(&all, IdPolicy::Error).expect("good ids").values;
        let want = call.naive(&decoded, dim, &[]);
        same(&call.run(&host).expect("an answer"), &want, "the host");
        same(&call.run(&table).expect("an answer"), &want, "the device");
        let normal = Call { normalised: true, ..call };
        same(&normal.run(&table).expect("an answer"), &normal.run(&host).expect("an answer"), "norms");
        let fits = lengths.len() as u64 * dim as u64 * 4 <= 16 * MIB;
        assert_eq!(normal.run_buffer(&engine, &table).is_ok(), fits);
        // A buffer that holds them all, and is bound by parts.
        let engine = backend.narrow(16 * MIB, 64 * MIB);
        let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
        same(&normal.run_buffer(&engine, &table).expect("an answer"), &normal.run(&host).expect("rows"), "a buffer");
    }
}

/// What PyTorch's `EmbeddingBag` gave; `scripts/embedding-bag-reference.py` asks it. Sums are exact in any order; a mean is
/// divided there, and multiplied by a rounded reciprocal here.
fn a10_as_pytorch(backend: &Backend) {
    let recorded: serde_json::Value = serde_json::from_str(include_str!("../data/embedding_bag.json")).expect("JSON");
    let numbers = |value: &serde_json::Value| -> Vec<i64> {
        value.as_array().expect("a list").iter().map(|number| number.as_i64().expect("a whole number")).collect()
    };
    let floats = |value: &serde_json::Value| -> Vec<f32> {
        let bits = numbers(value).into_iter().map(|bits| i32::try_from(bits).expect("32 bits").cast_unsigned());
        bits.map(f32::from_bits).collect()
    };
    let dim = usize::try_from(recorded["dim"].as_u64().expect("a number")).expect("a dimension");
    let fixture = Fixture::of("torch", &floats(&recorded["table"]), dim, &"f32".parse().expect("a scheme"));
    let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    let cases = recorded["cases"].as_array().expect("cases");
    assert!(cases.len() > 100);
    for case in cases {
        let (ids, offsets, want) = (numbers(&case["ids"]), numbers(&case["offsets"]), floats(&case["out"]));
        let mode = match case["mode"].as_str() {
            Some("sum") => BagMode::Sum,
            Some("mean") => BagMode::Mean,
            Some("max") => BagMode::Max,
            other => panic!("{other:?}"),
        };
        let with_last = case["include_last_offset"].as_bool().expect("a flag");
        let mut bags = if with_last { Bags::offsets_with_last(&offsets, mode) } else { Bags::offsets(&offsets, mode) };
        let weights = case["per_sample_weights"].is_array().then(|| floats(&case["per_sample_weights"]));
        if let Some(weights) = &weights {
            bags = bags.weights(weights);
        }
        if let Some(id) = case["padding_idx"].as_i64() {
            bags = bags.padding_id(id);
        }
        let got = table.bag_blocking(&ids, &bags, IdPolicy::Error).expect("an answer").values;
        assert_eq!(got.len(), want.len(), "{case}");
        let slack = if mode == BagMode::Mean { 2f32.powi(-22) } else { 0.0 };
        for (got, want) in got.iter().zip(&want) {
            assert!((got - want).abs() <= want.abs() * slack, "{got}, not {want}: {case}");
        }
    }
}

/// No ids, no bags, bags without ids, and a table of no rows.
fn a03_no_bags(scheme: &Scheme, backend: &Backend) {
    for rows in [3, 0] {
        let fixture = Fixture::new(scheme, rows, 13);
        let engine = backend.engine();
        let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
        for mode in MODES {
            let normalised = mode == BagMode::Mean;
            for lengths in [&[][..], &[0], &[0, 0, 0]] {
                let call = Call { mode, normalised, ..Call::sum(Batch::U32(vec![]), lengths) };
                call.verify(backend, engine, &table, &fixture);
            }
            let call = Call { mode, normalised, ..Call::sum(Batch::U32(vec![0, 2, 1]), &[0, 2, 1, 0]) };
            Call { policy: IdPolicy::Zero, ..call }.verify(backend, engine, &table, &fixture);
        }
        let nothing: [i64; 0] = [];
        let bags = Bags::offsets(&nothing, BagMode::Mean);
        let none = table.bag_blocking(&nothing, &bags, IdPolicy::Error).expect("no bags");
        assert_eq!((none.values.len(), none.dim), (0, 13));
    }
}

/// Offsets and lengths that do not fit: refused with the numbers, and nothing is written.
fn a04_offsets(backend: &Backend) {
    let fixture = Fixture::new(&"int8".parse().expect("a scheme"), 5, 7);
    let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    let ids = [1_u32, 2, 3];
    let check = |bags: Bags<'_>, count: usize, want: BagsError| {
        let mut out = vec![f32::NAN; count * 7];
        let error = table.bag_into_blocking(&ids, &bags, IdPolicy::Zero, &mut out).expect_err("they do not fit");
        assert!(out.iter().all(|value| value.is_nan()), "nothing is written");
        assert!(error.to_string().contains("t5x7"), "{error}");
        let GatherError::Bags { error, .. } = error else { panic!("{error}") };
        assert_eq!(error, want);
    };
    let sum = BagMode::Sum;
    check(Bags::offsets(&[1_u32, 2], sum), 2, BagsError::FirstOffset { offset: 1 });
    check(Bags::offsets(&[-1_i64, 2], sum), 2, BagsError::FirstOffset { offset: -1 });
    check(Bags::offsets(&[0_u64, 2, 1], sum), 3, BagsError::Decreasing { at: 2, offset: 1, before: 2 });
    check(Bags::offsets(&[0_i64, 2, -1], sum), 3, BagsError::Decreasing { at: 2, offset: -1, before: 2 });
    check(Bags::offsets(&[0_u32, 4], sum), 2, BagsError::End { end: 4, ids: 3 });
    check(Bags::offsets(&[0, u64::MAX], sum), 2, BagsError::End { end: i128::from(u64::MAX), ids: 3 });
    check(Bags::offsets(&[0_u32; 0], sum), 0, BagsError::End { end: 0, ids: 3 });
    check(Bags::offsets_with_last(&[0_u32, 2], sum), 1, BagsError::End { end: 2, ids: 3 });
    check(Bags::offsets_with_last(&[0_u32, 4], sum), 1, BagsError::End { end: 4, ids: 3 });
    check(Bags::offsets_with_last(&[0_u32; 0], sum), 0, BagsError::NoOffsets);
    check(Bags::lengths(&[1_u32, 1], sum), 2, BagsError::End { end: 2, ids: 3 });
    check(Bags::lengths(&[u64::MAX, u64::MAX], sum), 2, BagsError::End { end: 2 * i128::from(u64::MAX), ids: 3 });
    check(Bags::lengths(&[4_i64, -1], sum), 2, BagsError::Length { at: 1, length: -1 });
}

/// Weights and outputs that do not fit.
fn a04_weights_and_outputs(backend: &Backend) {
    let fixture = Fixture::new(&"int8".parse().expect("a scheme"), 5, 7);
    let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    let check = |bags: &Bags<'_>, length: usize| {
        let mut out = vec![f32::NAN; length];
        let error = table.bag_into_blocking(&[1_u32, 2, 3], bags, IdPolicy::Zero, &mut out).expect_err("no fit");
        assert!(out.iter().all(|value| value.is_nan()), "nothing is written");
        let GatherError::Bags { error, .. } = error else { panic!("{error}") };
        error
    };
    let bags = Bags::offsets(&[0_u32, 1], BagMode::Sum);
    assert_eq!(check(&bags.weights(&[1.0; 2]), 14), BagsError::Weights { weights: 2, ids: 3 });
    assert_eq!(check(&bags.weights(&[1.0; 4]), 14), BagsError::Weights { weights: 4, ids: 3 });
    let weights = [1.0, f32::INFINITY, 1.0];
    let error = check(&bags.weights(&weights).padding_id(3), 14);
    assert_eq!(error, BagsError::Weight { position: 1, weight: f32::INFINITY });
    let max = Bags::offsets(&[0_u32, 1], BagMode::Max).weights(&[1.0; 3]);
    assert_eq!(check(&max, 14), BagsError::WeightedMax);
    for length in [0, 13, 15, 21] {
        let got = length as u64;
        assert_eq!(check(&bags, length), BagsError::OutputLength { bags: 2, dim: 7, needed: 14, got });
    }
}
