//! Tables on demand: the answers of a table that is there, with few shards at a time, and every byte in the ledger.

use gatherum::{
    BagMode, Bytes, Engine, GatherError, IdPolicy, IdType, Metric, OnDemand, Scheme, Table, TableError, TableSource,
    TopKOptions,
};

use crate::{
    backend::Backend,
    bagged::Call,
    case::{Case, Stamp},
    fixture::{Fixture, hash, values},
    lookup::{Batch, Lookup, Way, verify},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "d01_lookups_on_demand", operation: "gather", stamp: Stamp::Schemes(d01_lookups_on_demand) },
    Case { name: "d02_bags_on_demand", operation: "bag", stamp: Stamp::Schemes(d02_bags_on_demand) },
    Case { name: "d03_scores_on_demand", operation: "score", stamp: Stamp::Schemes(d03_scores_on_demand) },
    Case { name: "d04_what_is_needed", operation: "gather", stamp: Stamp::Backends(d04_what_is_needed) },
    Case { name: "d05_the_ledger", operation: "gather", stamp: Stamp::Backends(d05_the_ledger) },
    Case { name: "d06_the_engines_budget", operation: "gather", stamp: Stamp::Backends(d06_the_engines_budget) },
    Case { name: "d07_recorded", operation: "gather", stamp: Stamp::Devices(d07_recorded) },
    Case { name: "d08_many_at_a_time", operation: "gather", stamp: Stamp::Backends(d08_many_at_a_time) },
];

/// About nine shards, of which three may be there; `None` for a scheme whose shards do not stand alone, which is refused.
fn few(engine: &Engine, fixture: &Fixture) -> Option<Table> {
    let spec = fixture.encoded.spec();
    let shard = Bytes((spec.bytes().0 / 9).max(1));
    let options = OnDemand { shard, ..OnDemand::default() };
    let all = match engine.load_on_demand(fixture.encoded.clone(), &options) {
        Ok(table) => table.residency(),
        Err(error) => {
            assert!(matches!(error, TableError::NotOnDemand { .. }), "{error}");
            let scheme = spec.scheme().to_string();
            let known = ["csr:", "coo:", "multihash:", "qr:"].iter().any(|stem| scheme.contains(stem));
            assert!(known && error.to_string().contains(&scheme), "{error}");
            return None;
        }
    };
    let budget = Some(Bytes(all.bytes.0.div_ceil(all.shards.max(1) as u64) * 7 / 2));
    let table = engine.load_on_demand(fixture.encoded.clone(), &OnDemand { budget, ..options });
    Some(table.expect("three shards fit"))
}

/// What is there is within the budget, and it is not all.
fn within(engine: &Engine, table: &Table) {
    let residency = table.residency();
    if residency.shards > 4 {
        assert!(residency.resident_shards < residency.shards, "{residency:?}");
        assert!(residency.share() < 0.8, "{residency:?}");
    }
    let label = format!("table.{}", table.name());
    let live = engine.memory().rows.iter().filter(|row| row.label == label).map(|row| row.live.0).sum::<u64>();
    assert_eq!(live, residency.resident_bytes.0, "{residency:?}");
}

/// All ways but those that are recorded, which need all shards.
pub(crate) fn ways(backend: &Backend) -> Vec<Lookup> {
    Lookup::all(backend).into_iter().filter(|lookup| !matches!(lookup.way, Way::Recorded { .. })).collect()
}

fn d01_lookups_on_demand(scheme: &Scheme, backend: &Backend) {
    let engine = backend.fresh();
    let fixture = Fixture::new(scheme, 601, 21);
    let Some(table) = few(&engine, &fixture) else { return };
    lookups(&engine, backend, &table, &fixture, &within);
    let empty = Fixture::new(scheme, 0, 21);
    let table = engine.load_on_demand(empty.encoded.clone(), &OnDemand::default()).expect("nothing fits");
    verify(&ways(backend), &engine, &table, &empty, &Batch::of(IdType::U32, &[0, 5]), IdPolicy::Zero);
}

/// Lookups of all kinds in a table of 601 rows; `after` looks at it after each.
pub(crate) fn lookups(
    engine: &Engine,
    backend: &Backend,
    table: &Table,
    fixture: &Fixture,
    after: &dyn Fn(&Engine, &Table),
) {
    let scattered = |id_type| Batch::of(id_type, &(0..300).map(|at| i128::from(hash(at) % 601)).collect::<Vec<_>>());
    for (batch, policy) in [
        (scattered(IdType::U32), IdPolicy::Error),
        (Batch::of(IdType::U64, &[600, 3, 3, 0, 600]), IdPolicy::Error),
        (Batch::of(IdType::U64, &[1 << 40, 5, 601, 599]), IdPolicy::Zero),
        (Batch::of(IdType::U64, &[0, 601]), IdPolicy::Error),
        (Batch::of(IdType::I64, &[-1, -601, 300, -602, 7]), IdPolicy::Wrap),
        (Batch::of(IdType::I64, &[-1, -700]), IdPolicy::Zero),
        (Batch::of(IdType::U32, &[]), IdPolicy::Error),
    ] {
        verify(&ways(backend), engine, table, fixture, &batch, policy);
        after(engine, table);
    }
}

fn d02_bags_on_demand(scheme: &Scheme, backend: &Backend) {
    let engine = backend.fresh();
    let fixture = Fixture::new(scheme, 601, 21);
    let Some(table) = few(&engine, &fixture) else { return };
    bags(&engine, backend, &table, &fixture);
    within(&engine, &table);
}

/// Bags of all kinds in a table of 601 rows of 21 columns.
pub(crate) fn bags(engine: &Engine, backend: &Backend, table: &Table, fixture: &Fixture) {
    let ids: Vec<i128> = (0..2600).map(|at| i128::from(hash(at) % 601)).collect();
    let lengths = [0, 1, 3, 2500, 0, 96];
    let sum = Call::sum(Batch::of(IdType::U32, &ids), &lengths);
    sum.verify(backend, engine, table, fixture);
    let weights = Some(values(2600, 7));
    let mean = Call { mode: BagMode::Mean, weights, padding: Some(ids[17]), ..sum.clone() };
    mean.verify(backend, engine, table, fixture);
    let mut wrong = ids.clone();
    (wrong[2], wrong[70], wrong[2599]) = (9_999, -4, 601);
    let max = Call {
        ids: Batch::of(IdType::I64, &wrong),
        mode: BagMode::Max,
        policy: IdPolicy::Zero,
        padding: Some(-4),
        ..sum.clone()
    };
    max.verify(backend, engine, table, fixture);
    Call { normalised: true, ..sum.clone() }.verify(backend, engine, table, fixture);
    Call::sum(Batch::of(IdType::U32, &[]), &[]).verify(backend, engine, table, fixture);
}

fn d03_scores_on_demand(scheme: &Scheme, backend: &Backend) {
    let engine = backend.fresh();
    let fixture = Fixture::new(scheme, 601, 21);
    let Some(table) = few(&engine, &fixture) else { return };
    scores(&table, &fixture, &|| within(&engine, &table));
}

/// Scores and best rows of a table of 601 rows of 21 columns; `after` looks at it after each.
pub(crate) fn scores(table: &Table, fixture: &Fixture, after: &dyn Fn()) {
    let there = Engine::host().load_blocking(&fixture.encoded).expect("host memory");
    let queries = values(3 * 21, 5);
    for (metric, rows) in [(Metric::Dot, 0..601), (Metric::Cosine, 0..601), (Metric::Dot, 77..402)] {
        let got = table.score_blocking(&queries, metric, rows.clone()).expect("scores");
        let want = there.score_blocking(&queries, metric, rows).expect("scores");
        crate::bagged::same(&got.values, &want.values, &format!("{metric:?}"));
        after();
    }
    let best = |table: &Table| table.top_k_blocking(&queries, 9, Metric::Cosine, TopKOptions::default()).expect("rows");
    assert_eq!(best(table), best(&there));
}

fn f32s(rows: usize) -> Fixture {
    Fixture::new(&"f32".parse().expect("a scheme"), rows, 16)
}

/// Shards of 64 rows, each of 4 KiB.
const SMALL: Bytes = Bytes(4096);

fn d04_what_is_needed(backend: &Backend) {
    let engine = backend.fresh();
    let fixture = f32s(640);
    let options = OnDemand { shard: SMALL, budget: Some(Bytes(5 * 4096)), ..OnDemand::default() };
    let table = engine.load_on_demand(fixture.encoded.clone(), &options).expect("five shards fit");
    let there = |table: &Table| table.residency().resident_shards;
    assert_eq!((table.shards(), there(&table)), (10, 0));
    table.gather_blocking(&[3_u32, 70, 3], IdPolicy::Error).expect("rows");
    assert_eq!(there(&table), 2, "shards that no id needs are not loaded");
    let residency = table.prefetch_blocking(&[639_u32, 9_999_999]).expect("a shard");
    assert_eq!((residency.resident_shards, residency.misses, residency.hits), (3, 3, 0));
    assert_eq!(table.warm_blocking().expect("shards").resident_shards, 5, "as many as the budget takes");
    // Rows 0 to 319 are there; those of 0 are used now, and are the last to go.
    table.gather_blocking(&[0_u32], IdPolicy::Error).expect("a row");
    table.gather_blocking(&[320_u32, 384, 448, 512], IdPolicy::Error).expect("rows");
    let misses = table.residency().misses;
    table.gather_blocking(&[1_u32], IdPolicy::Error).expect("a row");
    assert_eq!(table.residency().misses, misses, "the least recently used goes first");
    table.score_blocking(&values(16, 1), Metric::Dot, ..).expect("scores");
    let misses = table.residency().misses;
    table.gather_blocking(&[1_u32], IdPolicy::Error).expect("a row");
    let now = table.residency();
    assert_eq!(now.misses, misses, "a scan leaves what lookups use");
    assert_eq!(table.evict(..64), SMALL);
    assert_eq!(there(&table), now.resident_shards - 1);
    table.evict(..);
    assert_eq!((there(&table), engine.memory().live_of(gatherum::Category::Payload)), (0, Bytes(0)));
    // A batch that needs more than the budget takes is answered in turns.
    let all: Vec<u32> = (0..640).rev().collect();
    verify(&[Lookup::HOST_F32], &engine, &table, &fixture, &Batch::U32(all), IdPolicy::Error);
    within(&engine, &table);
    // So it is in what room leases leave; where they leave none, it says so, and does not wait.
    let lease = table.lease_blocking(&[5_u32, 100, 200, 300]).expect("four shards");
    verify(&[Lookup::HOST_F32], &engine, &table, &fixture, &Batch::U32((0..640).collect()), IdPolicy::Error);
    table.score_blocking(&values(16, 1), Metric::Dot, ..).expect("scores");
    let last = table.lease_blocking(&[400_u32]).expect("the fifth");
    verify(&[Lookup::HOST_F32], &engine, &table, &fixture, &Batch::U32(vec![300, 400]), IdPolicy::Error);
    let error = table.gather_blocking(&[5_u32, 639], IdPolicy::Error).expect_err("no room");
    assert!(error.to_string().contains("leases hold"), "{error}");
    let error = table.lease_blocking(&[639_u32]).expect_err("no room");
    assert!(matches!(error, GatherError::CacheBusy { .. }), "{error}");
    drop((lease, last));
    table.gather_blocking(&[5_u32, 639], IdPolicy::Error).expect("rows");

    let options = OnDemand { budget: Some(Bytes(4095)), ..options };
    let error = engine.load_on_demand(fixture.encoded, &options).expect_err("no shard fits");
    assert!(matches!(error, TableError::ShardBudget { shard: SMALL, budget: Bytes(4095), .. }), "{error}");
}

/// A15: what is there is in the ledger, at each step, and nothing is left.
fn d05_the_ledger(backend: &Backend) {
    let engine = backend.fresh();
    let fixture = f32s(640);
    let options = OnDemand { shard: SMALL, budget: Some(Bytes(3 * 4096)), ..OnDemand::default() };
    let table = engine.load_on_demand(fixture.encoded.clone(), &options).expect("three shards fit");
    for turn in 0..100 {
        let ids: Vec<u32> = (0..2).map(|at| u32::try_from(hash(turn * 2 + at) % 640).expect("a row")).collect();
        table.gather_blocking(&ids, IdPolicy::Error).expect("rows");
        within(&engine, &table);
    }
    let payload =
        engine.memory().rows.iter().filter(|row| row.label.starts_with("table.")).map(|row| row.peak.0).sum::<u64>();
    assert!(payload <= 3 * 4096, "{payload} bytes at a time");
    let residency = table.residency();
    assert_eq!(residency.misses, residency.evictions + residency.resident_shards as u64);
    assert_eq!(residency.read.0, residency.misses * 4096);
    drop(table);
    engine.trim();
    assert_eq!(engine.memory().live, Bytes(0));
}

/// What is kept on demand goes before anybody is refused.
fn d06_the_engines_budget(backend: &Backend) {
    let engine = backend.builder().memory_budget(Bytes(80_000)).build_blocking().expect("an engine");
    let fixture = f32s(640);
    let options = OnDemand { shard: SMALL, ..OnDemand::default() };
    let table = engine.load_on_demand(fixture.encoded.clone(), &options).expect("no budget of its own");
    let resident = table.warm_blocking().expect("all of it").resident_bytes;
    assert_eq!(resident, Bytes(40_960));
    let other = Fixture::new(&"f32".parse().expect("a scheme"), 900, 16);
    let loaded = engine.load_blocking(&other.encoded).expect("57,600 bytes, once shards were let go");
    let left = table.residency();
    assert!(left.resident_bytes < resident && left.evictions > 0, "{left:?}");
    let batch = Batch::of(IdType::U32, &[0, 639, 320, 3, 2]);
    verify(&[Lookup::HOST_F32], &engine, &table, &fixture, &batch, IdPolicy::Error);
    drop(loaded);
}

/// Recorded lookups need all shards.
fn d07_recorded(backend: &Backend) {
    let engine = backend.fresh();
    for scheme in ["hash:rows=64/f32", "bands:0.1=int8,0.5=int4:affine,rest=int2:affine,scales=f32"] {
        let fixture = Fixture::new(&scheme.parse().expect("a scheme"), 640, 16);
        let table = engine
            .load_on_demand(fixture.encoded.clone(), &OnDemand { shard: Bytes(1024), ..OnDemand::default() })
            .expect("no budget");
        let recorded = Lookup { way: Way::Recorded { offset: 272 }, dtype: gatherum::OutputDtype::F32 };
        let batch = Batch::of(IdType::U64, &[0, 639, 77, 300]);
        let error = recorded.run(&engine, &table, &batch, IdPolicy::Error).expect_err("nothing is there");
        assert!(matches!(error, GatherError::NotResident { resident: 0, .. }), "{error}");
        table.warm_blocking().expect("shards");
        verify(&[recorded], &engine, &table, &fixture, &batch, IdPolicy::Error);
    }
}

/// Lookups of several threads, with room for as many shards as one of them needs.
fn d08_many_at_a_time(backend: &Backend) {
    let engine = backend.fresh();
    let fixture = f32s(640);
    let options = OnDemand { shard: SMALL, budget: Some(Bytes(4 * 4096)), ..OnDemand::default() };
    let table = engine.load_on_demand(fixture.encoded.clone(), &options).expect("four shards fit");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (table, engine, fixture) = (&table, &engine, &fixture);
            scope.spawn(move || {
                for turn in 0..12 {
                    let ids: Vec<i128> =
                        (0..6).map(|at| i128::from(hash(thread << 20 | turn << 8 | at) % 640)).collect();
                    let batch = Batch::of(IdType::U32, &ids);
                    verify(&[Lookup::HOST_F32], engine, table, fixture, &batch, IdPolicy::Error);
                }
            });
        }
    });
    within(&engine, &table);
    assert!(table.residency().resident_bytes <= Bytes(4 * 4096));
}
