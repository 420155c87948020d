//! Scores and the best rows, against an f64 loop, and the same bits as the host.

use gatherum::{
    Bytes, EncodedTable, Engine, IdPolicy, Metric, Placement, Scheme, ScoreError, Shape, Table, TableSource, TopK,
    TopKOptions,
};

use crate::{
    backend::{Backend, Tuning},
    case::{Case, Stamp},
    fixture::{Fixture, Repeated, row_bytes, values},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "s01_scores", operation: "score", stamp: Stamp::Schemes(s01_scores) },
    Case { name: "s02_long_rows", operation: "score", stamp: Stamp::Backends(s02_long_rows) },
    Case { name: "s03_shards", operation: "score", stamp: Stamp::DeviceSchemes(s03_shards) },
    Case { name: "s04_panels_and_chunks", operation: "score", stamp: Stamp::Devices(s04_panels_and_chunks) },
    Case { name: "s05_top_k", operation: "top_k", stamp: Stamp::Schemes(s05_top_k) },
    Case { name: "s06_ties_and_zeros", operation: "top_k", stamp: Stamp::Backends(s06_ties_and_zeros) },
    Case { name: "s07_no_direction", operation: "score", stamp: Stamp::Backends(s07_no_direction) },
    Case { name: "s08_nothing", operation: "score", stamp: Stamp::Schemes(s08_nothing) },
    Case { name: "s09_refused", operation: "score", stamp: Stamp::Backends(s09_refused) },
    Case { name: "s10_over_the_budget", operation: "score", stamp: Stamp::Devices(s10_over_the_budget) },
];

const METRICS: [Metric; 2] = [Metric::Dot, Metric::Cosine];

/// The errors of a sum of `n` products in f32: so much of the sum of their magnitudes.
fn sum_error(n: usize) -> f64 {
    let n = f64::from(u32::try_from(n).expect("a number of columns"));
    1.01 * (n / 16.0 + 6.0) * 2f64.powi(-24)
}

/// What the score of a query and a row is, and how far from it an answer may be.
///
/// The row that is summed is the decoded one, each column at most `slack` from the reference. A dot product adds the error
/// of its sum. A cosine divides by `|q| |r|`, which is at least the sum of the magnitudes of its terms (Cauchy and Schwarz);
/// the square under the root errs as its own sum does, the root by half of that, and a row that is `slack sqrt(n)` away turns
/// by at most twice as much of its length. Both are rounded once more. A row of zeros has a cosine of 0.
fn expected(fixture: &Fixture, row: u32, query: &[f32], metric: Metric) -> (f64, f64) {
    let stored = fixture.names().stored(row);
    let (reference, slack) = (fixture.row(stored), fixture.slack(stored));
    let reference = &reference[..];
    let terms = || reference.iter().zip(query).map(|(value, factor)| value * f64::from(*factor));
    let magnitudes = |values: &mut dyn Iterator<Item = f64>| values.map(f64::abs).sum::<f64>();
    let (dot, error) = (terms().sum::<f64>(), sum_error(query.len()));
    if metric == Metric::Dot {
        let decoded = slack * magnitudes(&mut query.iter().copied().map(f64::from));
        return (dot, error * (magnitudes(&mut terms()) + decoded) + decoded + f64::from(f32::MIN_POSITIVE));
    }
    let length = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let (one, other) = (length(&mut query.iter().copied().map(f64::from)), length(&mut reference.iter().copied()));
    if other == 0.0 {
        return (0.0, 0.0);
    }
    let columns = f64::from(u32::try_from(query.len()).expect("a number of columns")).sqrt();
    let turned = 2.0 * slack * columns / other;
    (dot / (one * other), 1.6 * error + turned + 2f64.powi(-24))
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Compares all scores with the reference, and with the host's bit by bit.
fn check(fixture: &Fixture, table: &Table, on_host: &Table, queries: &[f32], metric: Metric) {
    let dim = fixture.dim();
    let scores = table.score_blocking(queries, metric, ..).expect("scores");
    assert_eq!(scores.rows, 0..fixture.rows());
    assert_eq!(scores.values.len(), queries.len() / dim * fixture.rows() as usize);
    for (query, scores) in queries.chunks_exact(dim).zip(&scores) {
        for (row, score) in (0..).zip(scores) {
            let (want, slack) = expected(fixture, row, query, metric);
            let apart = (f64::from(*score) - want).abs();
            assert!(apart <= slack, "{metric:?} of {table:?}, row {row}: {score}, not {want} (+- {slack:e})");
        }
    }
    let same = on_host.score_blocking(queries, metric, ..).expect("scores");
    assert!(bits(&scores.values) == bits(&same.values), "{metric:?} of {table:?}: other bits than the host's");
}

/// Dimensions around the 16 lanes, one and several queries, with and without wgpu's checks.
fn s01_scores(scheme: &Scheme, backend: &Backend) {
    let tunings = if backend.is_host() { &[Tuning::Own][..] } else { &[Tuning::Fine, Tuning::CoarseChecked] };
    for (dim, tuning) in [1, 15, 16, 100].into_iter().zip(tunings.iter().cycle()) {
        let fixture = Fixture::new(scheme, 61, dim);
        let on_host = Engine::host().load_blocking(&fixture.encoded).expect("the host takes it");
        let table = backend.tuned(*tuning).load_blocking(&fixture.encoded).expect("the table fits");
        let queries = values(6 * dim, 11);
        check(&fixture, &table, &on_host, &queries, Metric::Cosine);
        check(&fixture, &table, &on_host, &queries[..dim], Metric::Dot);
    }
}

/// Rows of several spans, and the longest there may be: a thread's loop must not take a row whole.
fn s02_long_rows(backend: &Backend) {
    for (rows, dim) in [(5, 4097), (3, 9000), (2, gatherum::MAX_DIM as usize)] {
        let fixture = Fixture::new(&"int8".parse().expect("a scheme"), rows, dim);
        let on_host = Engine::host().load_blocking(&fixture.encoded).expect("the host takes it");
        let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
        check(&fixture, &table, &on_host, &values(2 * dim, 12), Metric::Cosine);
    }
}

/// Rows about the seams of shards, in ranges that cross them and not.
fn s03_shards(scheme: &Scheme, backend: &Backend) {
    const MIB: u64 = 1 << 20;
    let engine = backend.narrow(16 * MIB, 16 * MIB);
    let base = Repeated::base(scheme, 127, 512);
    let rows = 2 * 16 * MIB / row_bytes(&base) * 51 / 50 + 100;
    let source = Repeated::of(scheme, "split", &base, rows, 512);
    let placement = pollster::block_on(Placement::read(&source, Bytes(16 * MIB))).expect("a placement");
    let table = engine.load_blocking(&source).expect("it is split");
    assert_eq!((table.shards(), placement.shards().len()), (3, 3));
    let rows = source.spec().shape().rows();
    let queries = values(5 * 512, 13);
    // The host's scores of the same rows, as those of a table of f32.
    let all: Vec<u32> = (0..base.spec().shape().rows()).collect();
    let host = Engine::host();
    let decoded = host.load_blocking(&base).expect("host memory").gather_blocking(&all, IdPolicy::Error).expect("rows");
    let score = |range: std::ops::Range<u32>| {
        let rows = source.rows(range, &decoded.values);
        let f32s = "f32".parse().expect("a scheme");
        let (rows, _) = EncodedTable::encode("rows", &rows, 512, &f32s).expect("finite");
        let rows = host.load_blocking(&rows).expect("host memory");
        rows.score_blocking(&queries, Metric::Cosine, ..).expect("scores").values
    };
    let seam = placement.shards()[1].first_row;
    let last = placement.shards()[2].first_row;
    for range in [seam - 70..seam + 3, seam..seam + 1, seam - 1..seam, last - 5..rows, 0..1, seam + 9..seam + 9] {
        let scores = table.score_blocking(&queries, Metric::Cosine, range.clone()).expect("scores");
        assert_eq!((scores.rows.clone(), scores.values.len()), (range.clone(), 5 * range.len()));
        assert_eq!(bits(&scores.values), bits(&score(range.clone())), "{scheme}, rows {range:?}");
    }
    let leave_out: Vec<_> = (0..5).map(|query| Some(seam + query)).collect();
    let options = TopKOptions::default().rows(seam - 100..seam + 100).leave_out(&leave_out);
    let found = table.top_k_blocking(&queries, 40, Metric::Cosine, options).expect("the best");
    let scores = score(seam - 100..seam + 100);
    // Cosine leaves rows of zeros out, which are at right angles to every query.
    let zeros = |row: u32| scores.iter().skip((row + 100 - seam) as usize).step_by(200).all(|score| *score == 0.0);
    for (query, (scores, left_out)) in scores.chunks_exact(200).zip(&leave_out).enumerate() {
        let of = |row: u32| scores[(row + 100 - seam) as usize];
        let rows = (seam - 100..seam + 100).filter(|row| Some(*row) != *left_out && !zeros(*row));
        let want = sorted(rows.map(|row| (row, of(row))).collect());
        assert_eq!(found.of(query).collect::<Vec<_>>(), want[..want.len().min(40)], "{scheme}, query {query}");
    }
}

/// The higher score first, then the lower id.
fn sorted(mut scores: Vec<(u32, f32)>) -> Vec<(u32, f32)> {
    scores.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    scores
}

/// More queries than are multiplied together, and more sums than a buffer of them takes.
fn s04_panels_and_chunks(backend: &Backend) {
    let fixture = Fixture::new(&"int8".parse().expect("a scheme"), 9000, 4);
    let on_host = Engine::host().load_blocking(&fixture.encoded).expect("the host takes it");
    let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    let queries = values(259 * 4, 14);
    let score = |table: &Table| table.score_blocking(&queries, Metric::Dot, ..).expect("scores").values;
    assert!(bits(&score(&table)) == bits(&score(&on_host)), "scores");
    let best = |table: &Table| {
        table.top_k_blocking(&queries, 10, Metric::Cosine, TopKOptions::default()).expect("the best rows")
    };
    assert!(best(&table) == best(&on_host), "the best");
}

/// The best are those of all scores, sorted; five times the same.
fn s05_top_k(scheme: &Scheme, backend: &Backend) {
    let fixture = Fixture::new(scheme, 300, 24);
    let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    let queries = values(5 * 24, 15);
    for metric in METRICS {
        let scores = table.score_blocking(&queries, metric, ..).expect("scores");
        for (k, range) in [(1, 0..300), (7, 100..250), (299, 0..300), (1024, 0..300), (1024, 299..300)] {
            let leave_out = [Some(3), None, Some(120), Some(299), Some(u32::MAX)];
            let options = TopKOptions::default().rows(range.clone()).leave_out(&leave_out);
            let found = table.top_k_blocking(&queries, k, metric, options.clone()).expect("the best");
            assert_eq!((found.k, found.ids.len()), (k.min(range.len()), 5 * k.min(range.len())));
            for (query, scores) in scores.iter().enumerate() {
                // Cosine leaves rows of zeros out.
                let zeros = |row: u32| fixture.row(fixture.names().stored(row)).iter().all(|value| *value == 0.0);
                let rows = range.clone().filter(|row| Some(*row) != leave_out[query]);
                let rows = rows.filter(|row| metric == Metric::Dot || !zeros(*row));
                let want = sorted(rows.map(|row| (row, scores[row as usize])).collect());
                let got: Vec<_> = found.of(query).collect();
                assert_eq!(got, want[..found.k.min(want.len())], "{scheme}, {metric:?}, k {k}, query {query}");
            }
            let again = table.top_k_blocking(&queries, k, metric, options).expect("the best");
            assert_eq!(again, found, "{scheme}, {metric:?}, k {k}: twice the same");
        }
    }
}

/// Equal rows in every place; rows of zeros, which cosine leaves out and a dot product does not.
fn s06_ties_and_zeros(backend: &Backend) {
    let rows: Vec<f32> = (0..500).flat_map(|row| [[1.0, 2.0], [0.0, 0.0], [-2.0, 1.0], [2.0, 4.0]][row % 4]).collect();
    let fixture = Fixture::of("ties", &rows, 2, &"f32".parse().expect("a scheme"));
    let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    let of_kind = |kinds: &'static [u32]| (0..500_u32).filter(move |row| kinds.contains(&(row % 4)));
    let ids = |metric, k, leave_out: &[Option<u32>]| -> Vec<u32> {
        let options = TopKOptions::default().leave_out(leave_out);
        let found = table.top_k_blocking(&[3.0, 6.0], k, metric, options).expect("the best");
        found.of(0).map(|(id, _)| id).collect()
    };
    // Twice a row has its direction, to the bit.
    let mut cosine: Vec<u32> = of_kind(&[0, 3]).collect();
    assert_eq!(ids(Metric::Cosine, 130, &[]), cosine[..130]);
    cosine.remove(0);
    assert_eq!(ids(Metric::Cosine, 130, &[Some(0)]), cosine[..130]);
    cosine.extend(of_kind(&[2]));
    let found = table.top_k_blocking(&[3.0, 6.0], 1024, Metric::Cosine, TopKOptions::default()).expect("the best");
    assert_eq!((found.k, found.of(0).count()), (500, 375), "no row of zeros");
    assert_eq!(found.ids[375..], [TopK::NONE; 125]);
    assert!(found.scores[375..].iter().all(|score| *score == f32::NEG_INFINITY));
    assert_eq!(ids(Metric::Cosine, 1024, &[Some(0)]), cosine);
    let dot: Vec<u32> = of_kind(&[3]).chain(of_kind(&[0])).chain(of_kind(&[1, 2])).collect();
    assert_eq!(ids(Metric::Dot, 1024, &[]), dot);
    assert_eq!(found.of(1).count(), 0, "there is one query");
    assert_eq!(found.of(usize::MAX).count(), 0);
}

/// Zeros, and lengths at the ends of what f32 can square; queries may have any.
fn s07_no_direction(backend: &Backend) {
    let sizes = [0.0, 1e-30, 1e-13, 1e-11, 1.0, 1e18, 1e20, 3e38];
    let rows: Vec<f32> = sizes.iter().flat_map(|size| [*size, 0.0, *size]).collect();
    let fixture = Fixture::of("sizes", &rows, 3, &"f32".parse().expect("a scheme"));
    let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    let has_direction = [false, false, false, true, true, true, false, false];
    for size in [1.0, 3e38, 1e-38] {
        let query = [size, size, 0.0];
        let scores = table.score_blocking(&query, Metric::Cosine, ..).expect("scores");
        for (score, has) in scores.values.iter().zip(has_direction) {
            let want = if has { 0.5 } else { 0.0 };
            assert!((score - want).abs() < 1e-6, "a query of {size:e}: {:?}", scores.values);
            assert_eq!(*score == 0.0, !has);
        }
        let found = table.top_k_blocking(&query, 8, Metric::Cosine, TopKOptions::default()).expect("the best");
        let mut ids: Vec<u32> = found.of(0).map(|(id, _)| id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [3, 4, 5]);
    }
    let zeros = [0.0; 3];
    assert_eq!(table.score_blocking(&zeros, Metric::Cosine, ..).expect("scores").values, [0.0; 8]);
    let found = table.top_k_blocking(&zeros, 8, Metric::Cosine, TopKOptions::default()).expect("the best");
    assert_eq!(found.of(0).count(), 0);
}

/// No rows, no queries.
fn s08_nothing(scheme: &Scheme, backend: &Backend) {
    let empty = Fixture::of("empty", &[], 8, scheme);
    let full = Fixture::new(scheme, 3, 8);
    for (fixture, queries) in [(&empty, 2), (&full, 0), (&empty, 0)] {
        let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
        let queries = values(queries * 8, 16);
        for metric in METRICS {
            let scores = table.score_blocking(&queries, metric, ..).expect("scores");
            assert!(scores.values.is_empty() && scores.iter().count() == 0);
            let found = table.top_k_blocking(&queries, 5, metric, TopKOptions::default()).expect("the best");
            assert!(found.ids.is_empty() && found.scores.is_empty() && found.of(0).count() == 0);
        }
    }
}

/// Bad input is an error with the numbers.
fn s09_refused(backend: &Backend) {
    let fixture = Fixture::new(&"int8".parse().expect("a scheme"), 50, 8);
    let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    let mut queries = values(3 * 8, 17);
    let score = |queries: &[f32], range| table.score_blocking(queries, Metric::Dot, range).map(|scores| scores.values);
    let top_k = |queries: &[f32], k, options| table.top_k_blocking(queries, k, Metric::Cosine, options).map(|_| ());
    let error = score(&queries[1..], 0..50).expect_err("23 values");
    assert!(matches!(error, ScoreError::QueryLength { got: 23, dim: 8, .. }), "{error}");
    for range in [0..51, 49..u32::MAX, 51..51] {
        let error = score(&queries, range.clone()).expect_err("50 rows");
        assert!(matches!(error, ScoreError::Rows { rows: 50, .. }), "{error}");
        let error = top_k(&queries, 1, TopKOptions::default().rows(range)).expect_err("50 rows");
        assert!(error.to_string().contains("not within its 50 rows"), "{error}");
    }
    for k in [0, 1025, usize::MAX] {
        let error = top_k(&queries, k, TopKOptions::default()).expect_err("1 to 1,024");
        assert!(matches!(error, ScoreError::K { most: 1024, .. }), "{error}");
    }
    let error = top_k(&queries, 1, TopKOptions::default().leave_out(&[None])).expect_err("one of three");
    assert!(matches!(error, ScoreError::LeaveOut { got: 1, queries: 3, .. }), "{error}");
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        queries[13] = bad;
        let error = score(&queries, 0..50).expect_err("not finite");
        assert!(matches!(error, ScoreError::NotFinite { query: 1, column: 5, .. }), "{error}");
        assert!(top_k(&queries, 1, TopKOptions::default()).is_err());
    }
}

/// Scratch that does not fit is refused with the numbers; what does fit still works after.
fn s10_over_the_budget(backend: &Backend) {
    let budget = Bytes(1 << 20);
    let engine = backend.builder().memory_budget(budget).build_blocking().expect("an engine");
    let shape = Shape::new(20_000, 8).expect("a shape");
    let base = Fixture::new(&"int8".parse().expect("a scheme"), 100, 8).encoded;
    let table = engine.load_blocking(&Repeated::new("t", &base, shape.rows().into())).expect("240 kB");
    let queries = values(100 * 8, 18);
    let error = table.score_blocking(&queries, Metric::Dot, ..).expect_err("8 MB of scores");
    let ScoreError::OverBudget(error) = error else { panic!("{error}") };
    assert!(error.budget == budget && error.needed.0 > 1 << 20, "{error}");
    let scores = table.score_blocking(&queries[..8], Metric::Dot, ..).expect("80 kB of scores");
    assert_eq!(scores.values.len(), 20_000);
    drop((scores, table));
    engine.trim();
    assert_eq!(engine.memory().live, Bytes(0));
}
