//! Tables whose rows come and go: what a `HashMap` and a plain reading of the rules say, on every backend.

#![expect(clippy::cast_possible_truncation, reason = "numbers made here, of known size")]

use std::collections::HashSet;

use gatherum::{
    Bytes, DynamicError, DynamicOptions, DynamicTable, EncodedTable, Engine, Eviction, GatherError, IdPolicy,
    Initializer, Missing, OutputDtype,
};
use half::f16;
use rayon::prelude::*;

use crate::{
    backend::Backend,
    case::{Case, Stamp},
    fixture::{hash, values},
    model::{DIM, Model, initial},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "m01_a02_every_key", operation: "map", stamp: Stamp::Backends(m01_a02_every_key) },
    Case { name: "m02_as_the_model", operation: "map", stamp: Stamp::Backends(m02_as_the_model) },
    Case { name: "m03_a_million_steps", operation: "map", stamp: Stamp::Once(m03_a_million_steps) },
    Case { name: "m04_threads", operation: "map", stamp: Stamp::Backends(m04_threads) },
    Case { name: "m05_growth", operation: "map", stamp: Stamp::Backends(m05_growth) },
    Case { name: "m06_full", operation: "map", stamp: Stamp::Backends(m06_full) },
    Case { name: "m07_a15_the_ledger", operation: "map", stamp: Stamp::Backends(m07_a15_the_ledger) },
    Case { name: "m08_initial_rows", operation: "map", stamp: Stamp::Backends(m08_initial_rows) },
    Case { name: "m09_what_is_refused", operation: "map", stamp: Stamp::Backends(m09_what_is_refused) },
    Case { name: "m10_export", operation: "map", stamp: Stamp::Backends(m10_export) },
    Case { name: "m11_threads_of_a_pool", operation: "map", stamp: Stamp::Backends(m11_threads_of_a_pool) },
    Case { name: "m12_a15_ten_million", operation: "map", stamp: Stamp::Once(m12_a15_ten_million) },
];

/// A02.
pub(crate) const KEYS: [u64; 6] = [5, 5 + (1 << 32), 1 << 63, u64::MAX, u64::MAX - 1, 0];

pub(crate) const UNIFORM: Initializer = Initializer::Uniform { seed: 0xfeed_0000_0007, low: -0.25, high: 0.5 };

pub(crate) fn options(capacity: u64) -> DynamicOptions {
    DynamicOptions { capacity, initializer: UNIFORM, ..DynamicOptions::default() }
}

pub(crate) fn make(engine: &Engine, dim: u32, options: DynamicOptions) -> DynamicTable {
    engine.dynamic_table_blocking("rows", dim, &options).expect("a table")
}

/// One row an id, told from all others.
fn row(id: u64) -> [f32; 2] {
    let bits = hash(id);
    [f32::from((bits & 0xffff) as u16), f32::from((bits >> 16 & 0xffff) as u16)]
}

fn rows(ids: &[u64]) -> Vec<f32> {
    ids.iter().flat_map(|id| row(*id)).collect()
}

fn m01_a02_every_key(backend: &Backend) {
    let table = make(backend.engine(), 2, options(6));
    assert_eq!(table.lookup_blocking(&KEYS, Missing::Zero).expect("rows").bad.count, 6);
    table.upsert_blocking(&KEYS, &rows(&KEYS)).expect("room");
    assert_eq!(table.lookup_blocking(&KEYS, Missing::Error).expect("rows").values, rows(&KEYS));
    assert!(KEYS.iter().all(|id| table.contains(*id)) && !table.contains(5 + (2 << 32)));
    // The same ids, as they are read with a sign.
    let signed = KEYS.map(|id| id as i64);
    assert_eq!(table.lookup_blocking(&signed, Missing::Error).expect("rows").values, rows(&KEYS));
    for (gone, id) in KEYS.iter().enumerate() {
        assert_eq!(table.remove_blocking(&[*id, *id]).expect("a row"), 1);
        let left = &KEYS[gone + 1..];
        assert_eq!(table.lookup_blocking(left, Missing::Error).expect("rows").values, rows(left));
        assert!(!table.contains(*id));
    }
    assert!(table.is_empty() && table.take_evicted().is_empty());
}

/// `steps` steps of a table beside its model.
fn follow(table: &DynamicTable, model: &mut Model, steps: u64, batch: u64, seed: u64) {
    let range = 3 * model.capacity() as u64;
    for step in 0..steps {
        let draw = |at: u64| hash(seed << 32 | step << 8 | at);
        let ids: Vec<u64> =
            (0..1 + draw(0) % batch).map(|at| KEYS[(draw(2 + at) % 6) as usize] ^ (draw(100 + at) % range)).collect();
        match draw(1) % 16 {
            0..6 => {
                let want = model.gather(&ids);
                let got = table.gather_blocking(&ids).map(|rows| rows.values);
                assert_eq!(got.ok(), want, "step {step}: gather {ids:?}");
            }
            6..10 => {
                let values = values(ids.len() * DIM, draw(99));
                assert_eq!(table.upsert_blocking(&ids, &values).is_ok(), model.upsert(&ids, &values), "step {step}");
            }
            10..13 => {
                let (want, missing) = model.lookup(&ids);
                let got = table.lookup_blocking(&ids, Missing::Zero).expect("rows");
                assert_eq!((got.values, got.bad.count), (want, missing), "step {step}: lookup {ids:?}");
            }
            13..15 => assert_eq!(table.remove_blocking(&ids).expect("a count"), model.remove(&ids), "step {step}"),
            _ if table.eviction() == Eviction::Score => {
                let scores: Vec<f32> = ids.iter().map(|id| (hash(*id ^ step) % 7) as f32 - 3.0).collect();
                assert_eq!(table.set_scores(&ids, &scores).expect("scores"), model.set_scores(&ids, &scores));
            }
            _ => assert_eq!(table.contains(ids[0]), model.contains(ids[0])),
        }
        assert_eq!(table.len(), model.len() as u64, "step {step}");
        assert_eq!(table.take_evicted(), model.take_evicted(), "step {step}");
    }
    let all = table.export_blocking().expect("rows");
    assert_eq!((all.ids, all.values), model.all());
}

const POLICIES: [Eviction; 4] = [Eviction::Lru, Eviction::Lfu, Eviction::Score, Eviction::Refuse];

fn m02_as_the_model(backend: &Backend) {
    for (eviction, seed) in POLICIES.into_iter().zip(0..) {
        for (capacity, dtype) in [(1, OutputDtype::F32), (7, OutputDtype::F16), (64, OutputDtype::F32)] {
            let options = DynamicOptions { eviction, dtype, ..options(capacity) };
            let table = make(backend.engine(), DIM as u32, options);
            let mut model = Model::new(&options);
            follow(&table, &mut model, 60, 24, seed);
            table.clear_blocking().expect("nothing is left");
            model.clear();
            follow(&table, &mut model, 10, 24, seed + 10);
        }
    }
}

fn m03_a_million_steps() {
    std::thread::scope(|scope| {
        for (eviction, seed) in POLICIES.into_iter().zip(20..) {
            scope.spawn(move || {
                let options = DynamicOptions { eviction, ..options(23) };
                let table = make(&Engine::host(), DIM as u32, options);
                follow(&table, &mut Model::new(&options), 250_000, 4, seed);
            });
        }
    });
}

/// Threads that write, read and take out rows of their own, and of all, at a time: what an id has is what was written for it or what
/// it was made with, and of each id that is gone there is a report for each time that it went.
fn m04_threads(backend: &Backend) {
    let engine = backend.engine();
    let (threads, turns) = if backend.is_host() { (4, 2000) } else { (4, 40) };
    for eviction in [Eviction::Lru, Eviction::Lfu] {
        let table = make(engine, 2, DynamicOptions { eviction, initializer: Initializer::Zeros, ..options(50) });
        let told = std::thread::scope(|scope| {
            let all: Vec<_> = (0..threads)
                .map(|thread| {
                    let table = &table;
                    scope.spawn(move || {
                        let mut removed = 0;
                        let mut told = Vec::new();
                        for turn in 0..turns {
                            let draw = |at: u64| hash(thread << 40 | turn << 8 | at);
                            let ids: Vec<u64> = (0..8).map(|at| draw(at) % 120).collect();
                            match draw(9) % 4 {
                                0 => table.upsert_blocking(&ids, &rows(&ids)).expect("room for 8"),
                                1 => removed += table.remove_blocking(&ids[..2]).expect("a count"),
                                _ => {
                                    let got = table.gather_blocking(&ids).expect("room for 8");
                                    for (id, got) in ids.iter().zip(&got) {
                                        assert!(got == row(*id) || got == [0.0; 2], "id {id}: {got:?}");
                                    }
                                }
                            }
                            told.extend(table.take_evicted());
                        }
                        (told, removed)
                    })
                })
                .collect();
            all.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        });
        let evicted: u64 = told.iter().map(|(told, _)| told.len() as u64).sum();
        let removed: u64 = told.iter().map(|(_, removed)| removed).sum();
        let stats = table.stats();
        assert_eq!(evicted, stats.evictions);
        assert!(stats.rows <= 50 && stats.evictions > 0 && removed > 0);
        let all = table.export_blocking().expect("rows");
        assert_eq!(all.ids.len() as u64, stats.rows);
        for (id, got) in all.ids.iter().zip(all.values.chunks(2)) {
            assert!(got == row(*id) || got == [0.0; 2], "id {id}: {got:?}");
        }
        assert_eq!(table.lookup_blocking(&all.ids, Missing::Error).expect("rows").values, all.values);
    }
}

/// Calls from the threads of a pool that the library uses too: none waits for a lock that its own thread has.
fn m11_threads_of_a_pool(backend: &Backend) {
    let table = make(backend.engine(), 64, options(3000));
    let ids: Vec<u64> = (0..2000).map(hash).collect();
    (0..16).into_par_iter().for_each(|_| {
        let got = table.gather_blocking(&ids).expect("room").values;
        assert_eq!(got[64].to_bits(), initial(UNIFORM, ids[1], 0).to_bits());
    });
    assert_eq!(table.len(), 2000);
}

fn m05_growth(backend: &Backend) {
    for eviction in POLICIES {
        let table = make(backend.engine(), 2, DynamicOptions { eviction, ..options(1) });
        let mut ids: Vec<u64> = Vec::new();
        for capacity in [1, 3, 17, 18, 1023] {
            table.grow_blocking(capacity).expect("more room");
            assert_eq!(table.capacity(), capacity);
            let new: Vec<u64> = (ids.len() as u64..capacity).map(hash).collect();
            table.upsert_blocking(&new, &rows(&new)).expect("room");
            ids.extend(new);
            assert_eq!(table.lookup_blocking(&ids, Missing::Error).expect("rows").values, rows(&ids));
        }
        assert!(table.take_evicted().is_empty());
        let error = table.grow_blocking(1022).expect_err("less room");
        assert!(matches!(error, DynamicError::Shrinks { capacity: 1023, wanted: 1022, .. }), "{error}");
        // The last lookup used the ids in order, and the order is what it was.
        if eviction == Eviction::Lru {
            table.gather_blocking(&[1_u32, 2]).expect("room");
            assert_eq!(table.take_evicted(), ids[..2]);
        }
    }
}

fn m06_full(backend: &Backend) {
    for eviction in POLICIES {
        let table = make(backend.engine(), 2, DynamicOptions { eviction, ..options(4) });
        table.upsert_blocking(&KEYS[..4], &rows(&KEYS[..4])).expect("room for four");
        let before = table.export_blocking().expect("rows");
        let error = table.gather_blocking(&[1_u64, 2, 3, 4, 1, KEYS[1]]).expect_err("five ids");
        assert!(matches!(error, DynamicError::TooManyIds { distinct: 5, capacity: 4, .. }), "{error}");
        let error = table.upsert_blocking(&[1_u64, 2, 3, 4, 6], &[0.0; 10]).expect_err("five ids");
        assert!(matches!(error, DynamicError::TooManyIds { distinct: 5, capacity: 4, .. }), "{error}");
        let full = table.gather_blocking(&[7_u64, KEYS[0], 7]);
        if eviction == Eviction::Refuse {
            let error = full.expect_err("no room");
            assert!(matches!(error, DynamicError::Full { new: 1, free: 0, capacity: 4, .. }), "{error}");
            assert_eq!(table.export_blocking().expect("rows"), before);
            assert!(table.take_evicted().is_empty());
            continue;
        }
        let full = full.expect("one goes");
        assert_eq!((&full.values[..2], &full.values[2..4]), (&full.values[4..], &row(KEYS[0])[..]));
        assert_eq!(table.take_evicted(), [KEYS[1]], "{eviction:?}");
        // Ids of a batch do not go for others of it.
        table.gather_blocking(&[8_u64, 9, KEYS[0], 7]).expect("two go");
        let gone: HashSet<u64> = table.take_evicted().into_iter().collect();
        assert_eq!(gone, HashSet::from([KEYS[2], KEYS[3]]));
        assert_eq!(table.len(), 4);
    }
}

fn m07_a15_the_ledger(backend: &Backend) {
    let engine = backend.fresh();
    for (eviction, each) in [(Eviction::Lru, 48), (Eviction::Lfu, 64), (Eviction::Score, 64), (Eviction::Refuse, 40)] {
        let table = make(&engine, 8, DynamicOptions { eviction, ..options(1000) });
        let memory = engine.memory();
        assert_eq!(memory.live_at("table.rows.ids"), Bytes(1000 * each), "what the host knows of a row: {eviction:?}");
        assert_eq!(memory.live_at("table.rows"), Bytes(32_000));
        assert_eq!(memory.live_at("table.rows.map"), Bytes(if backend.is_host() { 0 } else { 24_000 }));
        table.gather_blocking(&(0..900_u32).collect::<Vec<_>>()).expect("room");
        table.grow_blocking(1501).expect("more room");
        let memory = engine.memory();
        assert_eq!(memory.live_at("table.rows.ids"), Bytes(1501 * each));
        assert_eq!(memory.live_at("table.rows"), Bytes(1501 * 32));
        drop(table);
        engine.trim();
        assert_eq!(engine.memory().live, Bytes(0), "\n{}", engine.memory());
    }
    let engine = backend.builder().memory_budget(Bytes(200_000)).build_blocking().expect("an engine");
    let table = make(&engine, 8, options(1000));
    let live = engine.memory().live;
    let error = table.grow_blocking(4000).expect_err("over the budget");
    assert!(matches!(error, DynamicError::Gather(GatherError::OverBudget(_))), "{error}");
    assert_eq!((table.capacity(), engine.memory().live), (1000, live));
    let error = engine.dynamic_table_blocking("other", 8, &options(4000)).expect_err("over the budget");
    assert!(matches!(error, DynamicError::Gather(GatherError::OverBudget(_))), "{error}");
    assert_eq!(engine.memory().live, live);
    if !backend.is_host() {
        refused_scratch(backend);
    }
}

/// A call that there is no scratch for changes nothing.
fn refused_scratch(backend: &Backend) {
    // All but 20 kB of which are the table's.
    let engine = backend.builder().memory_budget(Bytes(160_000)).build_blocking().expect("an engine");
    let table = make(&engine, 8, options(1000));
    let ids: Vec<u64> = (0..1000).map(hash).collect();
    let error = table.gather_blocking(&ids).expect_err("32 kB of output");
    assert!(matches!(error, DynamicError::Gather(GatherError::OverBudget(_))), "{error}");
    assert_eq!((table.len(), table.take_evicted().len()), (0, 0));
    table.upsert_blocking(&ids, &values(8000, 1)).expect("what rows are on their way in is the table's");
    assert_eq!(table.lookup_blocking(&ids[990..], Missing::Error).expect("ten rows").values.len(), 80);
}

/// The bits of new rows are those of the oracle, which are within their bounds.
fn m08_initial_rows(backend: &Backend) {
    let ids: Vec<u64> = KEYS.into_iter().chain((0..60).map(hash)).collect();
    let initializers = [
        Initializer::Zeros,
        UNIFORM,
        Initializer::Uniform { seed: 1, low: -3.0, high: 1e-30 },
        Initializer::Uniform { seed: u64::MAX, low: 0.3, high: 0.3 },
        Initializer::Normal { seed: 3 << 33, std: 0.02 },
    ];
    for initializer in initializers {
        for (dtype, dim) in [(OutputDtype::F32, 37), (OutputDtype::F16, 38)] {
            let table = make(backend.engine(), dim, DynamicOptions { initializer, dtype, ..options(100) });
            let got = table.gather_blocking(&ids).expect("room").values;
            let again = table.lookup_blocking(&ids, Missing::Error).expect("rows").values;
            for (at, (got, again)) in got.iter().zip(again).enumerate() {
                let (id, column) = (ids[at / dim as usize], (at % dim as usize) as u32);
                let want = initial(initializer, id, column);
                match initializer {
                    Initializer::Uniform { low, high, .. } => assert!((low..=high).contains(&want)),
                    Initializer::Normal { std, .. } => assert!(want.abs() <= 4.9 * std),
                    _ => assert_eq!(want, 0.0),
                }
                let want = if dtype == OutputDtype::F16 { f16::from_f32(want).to_f32() } else { want };
                assert_eq!(got.to_bits(), want.to_bits(), "{initializer:?}: id {id}, column {column}");
                assert_eq!(got.to_bits(), again.to_bits());
            }
        }
    }
}

fn m09_what_is_refused(backend: &Backend) {
    let engine = backend.engine();
    let refused = |dim, options| engine.dynamic_table_blocking("rows", dim, &options).expect_err("refused").to_string();
    assert!(refused(2, options(0)).contains("room for 0 rows"));
    assert!(refused(2, options(1 << 31)).contains("2147483647"));
    assert!(refused(0, options(1)).contains("0 columns"));
    let halves = DynamicOptions { dtype: OutputDtype::F16, ..options(3) };
    assert!(refused(3, halves).contains("even"));
    let large = Initializer::Uniform { seed: 0, low: 0.0, high: 65_520.0 };
    assert!(refused(2, DynamicOptions { initializer: large, ..halves }).contains("65504"));

    let table = make(engine, 2, halves);
    table.upsert_blocking(&[5_u64, 6], &[1.0, 2.0, 3.0, 4.0]).expect("room");
    let before = (table.export_blocking().expect("rows"), table.stats());
    for (value, reason) in [(f32::NAN, "finite"), (f32::NEG_INFINITY, "finite"), (65_520.0, "65504")] {
        let error = table.upsert_blocking(&[5_u64, 7, 8], &[0.0, 0.0, 0.0, value, 0.0, f32::NAN]).expect_err("refused");
        let text = error.to_string();
        assert!(text.contains("row 1 (id 7), column 1") && text.contains(reason) || value == 65_520.0, "{text}");
        assert!(matches!(error, DynamicError::Value { row: 1, id: 7, column: 1, .. }) || value == 65_520.0, "{text}");
    }
    let error = table.upsert_blocking(&[5_u64, 7], &[0.0, 65_520.0, 0.0, 0.0]).expect_err("refused");
    assert!(matches!(error, DynamicError::Value { row: 0, id: 5, column: 1, .. }), "{error}");
    let error = table.upsert_blocking(&[5_u64, 7], &[0.0; 3]).expect_err("refused");
    assert!(matches!(error, DynamicError::Values { ids: 2, dim: 2, got: 3, .. }), "{error}");
    let error = table.lookup_blocking(&[5_i64, -1, 6, -1], Missing::Error).expect_err("refused");
    assert!(
        matches!(error, DynamicError::Missing { position: 1, id: Some(id), count: 2, .. } if id == u64::MAX.into())
    );
    assert!(matches!(table.set_scores(&[5_u64], &[1.0]), Err(DynamicError::Scores { .. })));
    assert_eq!((table.export_blocking().expect("rows"), table.stats()), before);

    let scored = make(engine, 2, DynamicOptions { eviction: Eviction::Score, ..options(3) });
    assert!(scored.set_scores(&[5_u64], &[f32::NAN]).expect_err("NaN").to_string().contains("position 0"));
    assert!(scored.set_scores(&[5_u64], &[]).is_err());
    if backend.is_host() {
        let error = table.gather_buffer_blocking(&[5_u64], OutputDtype::F32).expect_err("no device");
        assert!(matches!(error, DynamicError::Gather(GatherError::NoDevice { .. })), "{error}");
    }
    // No ids, no rows.
    assert!(table.gather_blocking(&[] as &[u64]).expect("nothing").values.is_empty());
    table.upsert_blocking(&[] as &[u64], &[]).expect("nothing");
    // The last row of an id stays.
    table.upsert_blocking(&[9_u64, 5, 9], &[1.0, 1.0, 2.0, 2.0, 3.0, 3.0]).expect("room");
    assert_eq!(table.lookup_blocking(&[9_u64, 5], Missing::Error).expect("rows").values, [3.0, 3.0, 2.0, 2.0]);
}

/// Saved and made again.
fn m10_export(backend: &Backend) {
    let table = make(backend.engine(), 6, options(700));
    let ids: Vec<u64> = (0..600).map(hash).collect();
    table.upsert_blocking(&ids, &values(600 * 6, 3)).expect("room");
    table.remove_blocking(&ids[10..50]).expect("rows");
    let all = table.export_blocking().expect("rows");
    assert_eq!(all.ids.len(), 560);
    assert!(all.ids.is_sorted());
    assert_eq!(table.lookup_blocking(&all.ids, Missing::Error).expect("rows").values, all.values);
    let scheme = "f32".parse().expect("a scheme");
    let (encoded, _) = EncodedTable::encode("rows", &all.values, 6, &scheme).expect("finite rows");
    let saved = backend.engine().load_blocking(&encoded).expect("room");
    let back = saved.gather_blocking(&(0..560_u32).collect::<Vec<_>>(), IdPolicy::Error).expect("rows").values;
    assert_eq!(back, all.values);
    let other = make(backend.engine(), 6, options(560));
    other.upsert_blocking(&all.ids, &back).expect("room");
    assert_eq!(other.export_blocking().expect("rows"), all);
}

/// Ten million ids that come, all but the last of which go: each is told once, what a table takes does not grow, and what is left is
/// what came last.
fn m12_a15_ten_million() {
    const CAPACITY: u64 = 100_003;
    const IDS: u64 = 10_000_000;
    let engine = Engine::host();
    let options = DynamicOptions { initializer: Initializer::Zeros, ..options(CAPACITY) };
    let table = make(&engine, 2, options);
    let live = engine.memory().live;
    // No pattern, and the number of each can be had again: the factor is odd.
    let id = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut gone = vec![0_u64; (IDS as usize).div_ceil(64)];
    let number = |id: u64| id.wrapping_mul(0xf1de_83e1_9937_733d) as usize;
    let mut count = 0;
    for first in (0..IDS).step_by(50_000) {
        let ids: Vec<u64> = (first..first + 50_000).map(id).collect();
        table.gather_blocking(&ids).expect("others go");
        for evicted in table.take_evicted().into_iter().map(number) {
            assert_eq!(gone[evicted / 64] >> (evicted % 64) & 1, 0, "id number {evicted} went twice");
            gone[evicted / 64] |= 1 << (evicted % 64);
            count += 1;
        }
        assert_eq!(table.len() + count, first + 50_000);
        assert_eq!(engine.memory().live, live);
    }
    assert_eq!((table.len(), count), (CAPACITY, IDS - CAPACITY));
    assert!((IDS - CAPACITY..IDS).all(|number| table.contains(id(number))), "the last that came are there");
    assert_eq!(engine.memory().peak, live);
}
