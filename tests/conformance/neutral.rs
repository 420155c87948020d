//! A20: whatever the adapter, its limits and its features, every operation gives the host's answers.

use gatherum::{BagMode, Bags, Engine, IdPolicy, Metric, Scheme, Table, TopK, TopKOptions};

use crate::{
    backend::Backend,
    case::{Case, Stamp},
    fixture::{Fixture, hash, values},
};

pub(crate) const CASES: &[Case] =
    &[Case { name: "a20_neutrality", operation: "all", stamp: Stamp::Devices(a20_neutrality) }];

/// What a table answers.
#[derive(Debug, PartialEq)]
struct Answers {
    rows: Vec<u32>,
    halves: Vec<u16>,
    bags: Vec<u32>,
    best: TopK,
}

impl Answers {
    fn of(table: &Table, ids: &[u64], queries: &[f32]) -> Self {
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect();
        let bags = Bags::lengths(&[1_u32, 0, 40, 7, 152], BagMode::Mean);
        let halves = table.gather_f16_blocking(ids, IdPolicy::Zero).expect("an answer").values;
        Self {
            rows: bits(table.gather_blocking(ids, IdPolicy::Zero).expect("an answer").values),
            halves: halves.into_iter().map(half::f16::to_bits).collect(),
            bags: bits(table.bag_blocking(ids, &bags, IdPolicy::Zero).expect("an answer").values),
            best: table.top_k_blocking(queries, 10, Metric::Cosine, TopKOptions::default()).expect("an answer"),
        }
    }
}

/// Three kinds of files in one scheme, whose stored rows have other columns than the codec's and the table's.
const NESTED: &[&str] = &["multihash:k=2,rows=50/lowrank:k=5/int8", "qr:rows=30,op=concat/lowrank:k=4/int4"];

/// Each example of each scheme, in every operation, against the host to the bit.
fn a20_neutrality(backend: &Backend) {
    let host = Engine::host();
    for text in Scheme::all().iter().flat_map(|info| info.examples).chain(NESTED) {
        for dim in [52, 77] {
            let fixture = Fixture::new(&text.parse().expect("an example"), 300, dim);
            // One in sixteen names no row, unless the scheme has a row for every id.
            let ids: Vec<u64> = (0..200).map(|at| hash(at) % 320).collect();
            let queries = values(3 * dim, 5);
            let [want, got] = [&host, backend.engine()].map(|engine| {
                Answers::of(&engine.load_blocking(&fixture.encoded).expect("the table fits"), &ids, &queries)
            });
            assert!(got == want, "{text} of {dim} columns: {got:?}, and the host has {want:?}");
        }
    }
}
