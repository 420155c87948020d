//! Tables in tiers: the answers of a table that is there, whatever is where, and each tier within its budget.

use gatherum::{
    Bytes, EncodedTable, Engine, GatherError, IdPolicy, IdType, Scheme, SourceError, Table, TableError, TableSource,
    TableSpec, Tiered, store::Retry,
};

use crate::{
    backend::Backend,
    case::{Case, Stamp},
    fixture::{Fixture, hash},
    lookup::{Batch, Lookup, verify},
    on_demand,
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "t01_lookups_in_tiers", operation: "gather", stamp: Stamp::Schemes(t01_lookups_in_tiers) },
    Case { name: "t02_bags_in_tiers", operation: "bag", stamp: Stamp::Schemes(t02_bags_in_tiers) },
    Case { name: "t03_scores_in_tiers", operation: "score", stamp: Stamp::Leading(t03_scores_in_tiers) },
    Case { name: "t04_what_is_where", operation: "gather", stamp: Stamp::Backends(t04_what_is_where) },
    Case { name: "t05_leases", operation: "gather", stamp: Stamp::Backends(t05_leases) },
    Case { name: "t06_many_at_a_time", operation: "gather", stamp: Stamp::Backends(t06_many_at_a_time) },
    Case { name: "t07_a_source_that_fails", operation: "gather", stamp: Stamp::Backends(t07_a_source_that_fails) },
    Case { name: "t08_one_page", operation: "gather", stamp: Stamp::Backends(t08_one_page) },
];

/// A quarter of the table on the device, a half in host memory; `None` for a scheme that is refused.
fn quarter(engine: &Engine, fixture: &Fixture) -> Option<Table> {
    let spec = fixture.encoded.spec();
    let shared: u64 = spec.parts().iter().filter(|part| part.is_shared()).map(|part| part.bytes().0).sum();
    let own = spec.bytes().0 - shared;
    let options = Tiered { device: Bytes(shared + own / 4 + 256), host: Bytes(shared + own / 2), ..Tiered::default() };
    match engine.load_tiered_blocking(fixture.encoded.clone(), &options) {
        Ok(table) => Some(table),
        Err(error) => {
            assert!(matches!(error, TableError::NotOnDemand { .. }), "{error}");
            let scheme = spec.scheme().to_string();
            let known = ["csr:", "coo:", "multihash:", "qr:", "bands:"].iter().any(|stem| scheme.contains(stem));
            assert!(known && error.to_string().contains(&scheme), "{error}");
            None
        }
    }
}

/// Each tier is within its capacity, and the ledger has what there is on the device, or the host's.
fn within(_engine: &Engine, table: &Table) {
    let report = table.tiers().expect("a table in tiers");
    for tier in report.device.iter().chain([&report.host]) {
        assert!(tier.resident <= tier.capacity, "{report:?}");
        assert!(tier.misses >= tier.evictions, "{report:?}");
    }
    let residency = table.residency();
    assert!(residency.share() <= 0.6, "{residency:?}");
}

fn t01_lookups_in_tiers(scheme: &Scheme, backend: &Backend) {
    let engine = backend.fresh();
    let fixture = Fixture::new(scheme, 601, 21);
    let Some(table) = quarter(&engine, &fixture) else { return };
    on_demand::lookups(&engine, backend, &table, &fixture, &within);
    let empty = Fixture::new(scheme, 0, 21);
    let table = engine.load_tiered_blocking(empty.encoded.clone(), &Tiered::default()).expect("nothing fits");
    let batch = Batch::of(IdType::U32, &[0, 5]);
    verify(&on_demand::ways(backend), &engine, &table, &empty, &batch, IdPolicy::Zero);
}

fn t02_bags_in_tiers(scheme: &Scheme, backend: &Backend) {
    let engine = backend.fresh();
    let fixture = Fixture::new(scheme, 601, 21);
    let Some(table) = quarter(&engine, &fixture) else { return };
    on_demand::bags(&engine, backend, &table, &fixture);
    within(&engine, &table);
}

fn t03_scores_in_tiers(scheme: &Scheme, backend: &Backend) {
    let engine = backend.fresh();
    let fixture = Fixture::new(scheme, 601, 21);
    let Some(table) = quarter(&engine, &fixture) else { return };
    table.gather_blocking(&[3_u32], IdPolicy::Error).expect("a row");
    let before = table.tiers();
    on_demand::scores(&table, &fixture, &|| ());
    assert_eq!(table.tiers(), before, "scans pass tiers by");
}

fn f32s(rows: usize) -> Fixture {
    Fixture::new(&"f32".parse().expect("a scheme"), rows, 16)
}

/// So many rows of 64 bytes in each tier.
fn rows(device: u64, host: u64) -> Tiered {
    // A shard ends on 16 bytes, and a shader may read 20 behind its last row.
    Tiered { device: Bytes(device * 64 + 32), host: Bytes(host * 64), ..Tiered::default() }
}

fn t04_what_is_where(backend: &Backend) {
    let engine = backend.fresh();
    let fixture = f32s(640);
    let table = engine.load_tiered_blocking(fixture.encoded.clone(), &rows(10, 40)).expect("tiers");
    let whole = table.bytes();
    assert_eq!((whole, table.residency().resident_shards), (Bytes(640 * 64), 0));
    let top = |table: &Table| {
        let report = table.tiers().expect("tiers");
        report.device.unwrap_or(report.host)
    };
    table.gather_blocking(&[3_u32, 70, 3], IdPolicy::Error).expect("rows");
    assert_eq!((top(&table).misses, top(&table).hits, table.residency().resident_shards), (2, 0, 2));
    table.gather_blocking(&[70_u32], IdPolicy::Error).expect("a row");
    assert_eq!((top(&table).misses, top(&table).hits), (2, 1));
    // More rows than any tier has slots for: by parts, and right.
    let all: Vec<u32> = (0..640).rev().collect();
    verify(&[Lookup::HOST_F32], &engine, &table, &fixture, &Batch::U32(all), IdPolicy::Error);
    let report = table.tiers().expect("tiers");
    assert_eq!(report.host.resident, Bytes(40 * 64));
    if let Some(device) = report.device {
        assert_eq!(device.resident, Bytes(10 * 64));
        assert_eq!(device.moved.0, device.misses * 64);
    }
    // What is in host memory is not read again.
    let (read, host) = (report.read, report.host.hits);
    let gone = table.evict(..);
    assert_eq!(gone.0, report.host.resident.0 + report.device.map_or(0, |device| device.resident.0));
    assert_eq!(table.residency().resident_bytes, Bytes(0));
    let residency = table.prefetch_blocking(&[5_u32, 6, 9_999_999]).expect("rows");
    assert_eq!((residency.resident_shards, residency.read), (2, Bytes(read.0 + 128)));
    table.gather_blocking(&[5_u32, 6], IdPolicy::Error).expect("rows");
    let report = table.tiers().expect("tiers");
    assert_eq!(report.read.0, read.0 + 128);
    assert!(report.host.hits >= host);
    let full = if report.device.is_some() { 10 } else { 40 };
    assert_eq!(table.warm_blocking().expect("rows").resident_shards, full);
    drop(table);
    engine.trim();
    assert_eq!(engine.memory().live, Bytes(0));

    let error = engine.load_tiered_blocking(f32s(9).encoded, &Tiered { device: Bytes(63), ..rows(1, 1) });
    assert_eq!(error.is_err(), !backend.is_host());
    // A host tier without room is no tier.
    let table = engine.load_tiered_blocking(fixture.encoded.clone(), &rows(10, 0)).expect("one tier");
    let batch = Batch::of(IdType::U32, &[0, 639, 320, 3, 2, 3]);
    verify(&on_demand::ways(backend), &engine, &table, &fixture, &batch, IdPolicy::Error);
}

fn t05_leases(backend: &Backend) {
    let engine = backend.fresh();
    let fixture = f32s(640);
    let table = engine.load_tiered_blocking(fixture.encoded.clone(), &rows(8, 8)).expect("tiers");
    let leased = [1_u32, 2, 3, 4, 5];
    let lease = table.lease_blocking(&leased).expect("five of eight");
    let top = |table: &Table| {
        let report = table.tiers().expect("tiers");
        report.device.unwrap_or(report.host)
    };
    // Whatever comes by, they stay.
    for first in (100..600).step_by(7) {
        let ids: Vec<i128> = (first..first + 7).collect();
        verify(&[Lookup::HOST_F32], &engine, &table, &fixture, &Batch::of(IdType::U32, &ids), IdPolicy::Error);
    }
    let misses = top(&table).misses;
    table.gather_blocking(&leased, IdPolicy::Error).expect("rows");
    assert_eq!(top(&table).misses, misses);
    let busy = table.lease_blocking(&[10_u32, 11, 12, 13]).expect_err("three are left");
    assert!(matches!(busy, GatherError::CacheBusy { pages: 8, .. }), "{busy}");
    let second = table.lease_blocking(&[10_u32, 11, 1]).expect("one is held already");
    let third = table.lease_blocking(&[12_u32]).expect("the last");
    let answer = table.gather_blocking(&[77_u32], IdPolicy::Error);
    // On the host rows are copied, so that a lookup needs no slot.
    assert_eq!(matches!(answer, Err(GatherError::CacheBusy { .. })), !backend.is_host());
    drop((lease, second));
    table.gather_blocking(&[77_u32], IdPolicy::Error).expect("a row");
    drop(third);
    assert_eq!(table.evict(..).0 % 64, 0);
    assert_eq!(table.residency().resident_bytes, Bytes(0), "leases that ended hold nothing");
    // Other tables lease as well.
    let whole = engine.load_blocking(&fixture.encoded).expect("the table");
    drop(whole.lease_blocking(&leased).expect("it is there"));
}

fn t06_many_at_a_time(backend: &Backend) {
    let engine = backend.fresh();
    let fixture = f32s(640);
    let table = engine.load_tiered_blocking(fixture.encoded.clone(), &rows(9, 30)).expect("tiers");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (table, engine, fixture) = (&table, &engine, &fixture);
            scope.spawn(move || {
                for turn in 0..12 {
                    let ids: Vec<i128> =
                        (0..14).map(|at| i128::from(hash(thread << 20 | turn << 8 | at) % 64)).collect();
                    let batch = Batch::of(IdType::U32, &ids);
                    verify(&[Lookup::HOST_F32], engine, table, fixture, &batch, IdPolicy::Error);
                }
            });
        }
    });
    assert!(table.tiers().expect("tiers").host.hits > 0);
}

/// A table of which the rows from 320 on cannot be read.
struct Half(EncodedTable);

impl TableSource for Half {
    fn spec(&self) -> &TableSpec {
        self.0.spec()
    }

    fn name(&self) -> &str {
        TableSource::name(&self.0)
    }

    async fn read_part(&self, part: usize, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        if offset >= 320 * 64 {
            return Err(SourceError::Invalid("no such luck".to_owned()));
        }
        self.0.read_part(part, offset, out).await
    }
}

fn t07_a_source_that_fails(backend: &Backend) {
    let engine = backend.fresh();
    let fixture = f32s(640);
    let retry = Retry { attempts: 2, wait: std::time::Duration::from_millis(1), ..Retry::default() };
    let options = Tiered { retry, ..rows(4, 4) };
    let table = engine.load_tiered_blocking(Half(fixture.encoded.clone()), &options).expect("tiers");
    for _ in 0..3 {
        let error = table.gather_blocking(&[3_u32, 400], IdPolicy::Error).expect_err("row 400 is not to be had");
        let GatherError::Shard(error) = error else { panic!("{error}") };
        assert_eq!(error.rows, 400..401);
        assert!(error.to_string().contains("no such luck"), "{error}");
        let batch = Batch::of(IdType::U32, &[3, 319, 4, 5, 6, 7]);
        verify(&[Lookup::HOST_F32], &engine, &table, &fixture, &batch, IdPolicy::Error);
    }
    assert!(table.lease_blocking(&[500_u32]).is_err());
}

/// Tiers of one page each.
fn t08_one_page(backend: &Backend) {
    let engine = backend.fresh();
    let fixture = Fixture::new(&"f16".parse().expect("a scheme"), 31, 5);
    // Two rows of 10 bytes are a page.
    let options = Tiered { device: Bytes(64), host: Bytes(20), ..Tiered::default() };
    let table = engine.load_tiered_blocking(fixture.encoded.clone(), &options).expect("a page");
    let ids: Vec<i128> = (0..50).map(|at| i128::from(hash(at) % 31)).collect();
    verify(&on_demand::ways(backend), &engine, &table, &fixture, &Batch::of(IdType::U32, &ids), IdPolicy::Error);
}
