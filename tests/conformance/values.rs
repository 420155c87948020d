//! A09 and A12: hostile rows, and tables that went through a file.

use std::collections::BTreeSet;

use gatherum::{Category, Dtype, EncodeError, EncodedTable, IdPolicy, OutputDtype, Scheme, Shape, TableSource, io};

use crate::{
    backend::Backend,
    case::{Case, Stamp},
    fixture::{Fixture, values},
    lookup::{Batch, Lookup, Way, verify},
    names::Names,
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a09_hostile_rows", operation: "gather", stamp: Stamp::Schemes(a09_hostile_rows) },
    Case { name: "a09_not_finite", operation: "gather", stamp: Stamp::Schemes(a09_not_finite) },
    Case { name: "a12_through_a_file", operation: "gather", stamp: Stamp::Schemes(a12_through_a_file) },
];

/// Rows of `dim` columns that broke an encoder or a decoder somewhere.
fn hostile(dim: usize) -> Vec<(&'static str, Vec<f32>)> {
    let noise = values(dim, 9);
    let each = |value: &dyn Fn(f32) -> f32| noise.iter().map(|x| value(*x)).collect();
    let signs = |size: f32| (0..dim).map(|at| if at % 2 == 0 { size } else { -size }).collect();
    let mut spike = vec![1e-3; dim];
    spike[dim - 1] = 1e4;
    vec![
        ("constant 2.5", vec![2.5; dim]),
        ("constant -1e-7", vec![-1e-7; dim]),
        ("all zero", vec![0.0; dim]),
        ("negative zeros", vec![-0.0; dim]),
        ("a range of 1e-9", each(&|x| x * 5e-10)),
        ("1 and a range of 1e-9", each(&|x| 1.0 + x * 5e-10)),
        ("1000 +- 0.05", each(&|x| 1000.0 + x * 0.05)),
        ("+-1e5", signs(1e5)),
        ("up to 1e5", each(&|x| x * 1e5)),
        ("up to 65504", each(&|x| x * 65504.0)),
        ("65519.996", vec![65519.996; dim]),
        ("subnormals", each(&|x| f32::from_bits(x.to_bits() & 0x807f_ffff))),
        ("the least subnormals", signs(f32::from_bits(1))),
        ("the least normal", signs(f32::MIN_POSITIVE)),
        ("subnormals of f16", each(&|x| x * 6e-5)),
        ("under f16's least", signs(2.9e-8)),
        ("a range over f32's", signs(f32::MAX)),
        ("large, of one sign", each(&|x| f32::MAX - (x + 1.0) * 1e38)),
        ("one spike", spike),
    ]
}

/// Whether a scheme may say that it does not hold a row.
///
/// Halves, of values or of scales, end at 65504; so do, far above, f32 ranges. At the other end their spacing is `2^-24`:
/// a scale is at least a 15th of a row's largest magnitude (4 bits, a range from 0), so that of a row under `2^-17` is
/// under nine spacings, and the row is mostly rounding. Zeros are held by any scale, and values that are halves
/// themselves are rounded as such, not refused.
fn may_refuse(scheme: &Scheme, row: &[f32]) -> bool {
    let spec = scheme.spec(Shape::new(1, row.len() as u64).expect("a shape")).expect("such rows");
    let half_scales = spec.parts().iter().any(|part| part.category() == Category::Scales && part.dtype() == Dtype::F16);
    let largest = row.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    largest > 65504.0 || half_scales && largest > 0.0 && largest < 2f32.powi(-17)
}

/// Finite and within the scheme's own bound, or a typed error; the rows around are as ever.
fn a09_hostile_rows(scheme: &Scheme, backend: &Backend) {
    for dim in [4, 13, 100] {
        for (what, row) in hostile(dim) {
            // Each row is alone in its bucket, where there are such: then the bound is its own.
            let rows = [values(dim, 1), row.clone(), values(dim, 2)].concat();
            let encoded = match EncodedTable::encode("hostile", &rows, dim, scheme) {
                Ok((encoded, _)) => encoded,
                Err(EncodeError::Precision { row: 1, reason, .. }) => {
                    assert!(!reason.is_empty());
                    assert!(may_refuse(scheme, &row), "{scheme} refuses {what}: {reason}");
                    continue;
                }
                Err(error) => panic!("{what}: {error}"),
            };
            let names = Names::of(encoded.spec());
            let stored: BTreeSet<u32> = (0..3).map(|row| names.stored(row).rows()[0]).collect();
            assert_eq!(stored.len(), 3, "{scheme}: rows share buckets");
            let own = names.width(dim);
            let table = backend.engine().load_blocking(&encoded).expect("the table fits");
            let mut halves = None;
            for lookup in Lookup::all(backend) {
                let batch = Batch::U32(vec![0, 1, 2]);
                let answer = lookup.run(backend.engine(), &table, &batch, IdPolicy::Error).expect("an answer");
                if lookup.dtype == OutputDtype::F16 {
                    // To the bit what the first f32 answer rounds to.
                    assert_eq!(Some(&answer), halves.as_ref(), "{what} by {lookup:?}");
                    continue;
                }
                halves.get_or_insert_with(|| answer.halved());
                for (number, (got, original)) in answer.f32s().chunks(dim).zip(rows.chunks(dim)).enumerate() {
                    within(scheme, &original[..own], &got[..own], &format!("{what}: row {number} by {lookup:?}"));
                }
                // Where all rows share a basis, one row is as near as the others let it be.
                let shares = encoded.spec().parts().iter().any(gatherum::Part::is_shared);
                if what == "constant 2.5" && !shares {
                    assert!(answer.f32s()[dim..dim + own].iter().all(|x| *x == 2.5), "{what} by {lookup:?}");
                }
                if what == "all zero" {
                    assert!(answer.f32s()[dim..dim + own].iter().all(|x| *x == 0.0), "{what} by {lookup:?}");
                }
            }
        }
    }
}

fn within(scheme: &Scheme, original: &[f32], got: &[f32], context: &str) {
    let bound = scheme.error_bound(original);
    assert!(bound.is_finite(), "{context}: {scheme}'s bound");
    for (column, (x, y)) in original.iter().zip(got).enumerate() {
        assert!(y.is_finite(), "{context}: {scheme}, column {column}: {x:e} is {y:e}");
        let error = (f64::from(*x) - f64::from(*y)).abs();
        assert!(
            error <= bound,
            "{context}: {scheme}, column {column}: {x:e} is {y:e}, {error:e} off; the bound is {bound:e}"
        );
    }
}

/// A NaN or an infinity is refused with row and column, and makes nothing; without it the same rows are right.
fn a09_not_finite(scheme: &Scheme, backend: &Backend) {
    let dim = 7;
    let mut rows = values(5 * dim, 3);
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for at in [0, 3 * dim + 5, 5 * dim - 1] {
            let kept = std::mem::replace(&mut rows[at], value);
            let error = EncodedTable::encode("t", &rows, dim, scheme).expect_err("no finite table");
            rows[at] = kept;
            let EncodeError::NotFinite { row, column, value: named } = error else { panic!("{error}") };
            assert_eq!((row, column as usize), ((at / dim) as u64, at % dim));
            assert_eq!(named.to_bits(), value.to_bits());
        }
    }
    let fixture = Fixture::of("finite", &rows, dim, scheme);
    let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    verify(&Lookup::all(backend), backend.engine(), &table, &fixture, &Batch::U32((0..5).collect()), IdPolicy::Error);
}

/// Encode, save, load, look up: the same bytes, and the same rows; a compressed table stays compressed on the way.
fn a12_through_a_file(scheme: &Scheme, backend: &Backend) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("saved.safetensors");
    let fixture = Fixture::new(scheme, 101, 50);
    io::save_table(&fixture.encoded, None, &path).expect("saved");
    let stored = std::fs::metadata(&path).expect("a file").len();
    let bytes = fixture.encoded.spec().bytes().0;
    assert!((bytes..bytes + 2000).contains(&stored), "{stored} bytes in the file, {bytes} in its parts");
    let file = io::TableFile::open(&path).expect("a table file");
    assert_eq!(file.spec(), fixture.encoded.spec());
    assert_eq!(file.spec().scheme().to_string().parse::<Scheme>().as_ref(), Ok(fixture.encoded.spec().scheme()));
    let read = pollster::block_on(EncodedTable::read(&file)).expect("its parts");
    assert!(read.parts().eq(fixture.encoded.parts()), "the parts came back as other bytes");
    let engine = backend.fresh();
    let table = engine.load_blocking(&file).expect("the table fits");
    // Beside what its block has free.
    let (memory, pool) = (engine.memory(), engine.memory().live_at("pool").0);
    let padding = memory.live_of(Category::Padding).0 - pool;
    assert_eq!(memory.live.0, bytes + padding + pool, "what is loaded is what is stored");
    assert!(padding <= 64 * table.shards() as u64, "{padding}");
    let before = Fixture::from_encoded(read);
    let batch = Batch::I64(vec![100, 0, -1, 50, 101]);
    verify(&Lookup::all(backend), &engine, &table, &before, &batch, IdPolicy::Wrap);
    let original = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    let way = if backend.is_host() { Way::Host } else { Way::Recorded { offset: 272 } };
    for dtype in [OutputDtype::F32, OutputDtype::F16] {
        let lookup = Lookup { way, dtype };
        let one = lookup.run(&engine, &table, &batch, IdPolicy::Wrap).expect("an answer");
        let other = lookup.run(backend.engine(), &original, &batch, IdPolicy::Wrap).expect("an answer");
        assert_eq!(one, other);
    }
}
