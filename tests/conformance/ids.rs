//! A01 to A03: bad ids, wide ids, and nothing at all.

use gatherum::{BadIds, Engine, GatherError, IdPolicy, IdType, OutputDtype, Scheme};

use crate::{
    backend::Backend,
    case::{Case, Stamp},
    fixture::Fixture,
    lookup::{Batch, Lookup, Way, verify},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a01_bad_ids", operation: "gather", stamp: Stamp::Schemes(a01_bad_ids) },
    Case { name: "a02_wide_ids", operation: "gather", stamp: Stamp::Schemes(a02_wide_ids) },
    Case { name: "a03_nothing", operation: "gather", stamp: Stamp::Schemes(a03_nothing) },
    Case { name: "a03_the_wrong_length", operation: "gather", stamp: Stamp::Backends(a03_the_wrong_length) },
    Case { name: "a03_no_device", operation: "gather", stamp: Stamp::Once(a03_no_device) },
];

const POLICIES: [IdPolicy; 3] = [IdPolicy::Error, IdPolicy::Zero, IdPolicy::Wrap];
const TYPES: [IdType; 3] = [IdType::U32, IdType::U64, IdType::I64];

/// Ids of every kind that went wrong somewhere: just outside, negative, and such whose address or low word is a row's.
fn a01_bad_ids(scheme: &Scheme, backend: &Backend) {
    // Wider than 16, so that several threads share a row on fine grain, and odd, so that f16 rows share words.
    let fixture = Fixture::new(scheme, 23, 37);
    let rows = i128::from(fixture.rows());
    let bad = [
        rows,
        rows + 1,
        -1,
        -rows,
        -rows - 1,
        i128::from(i32::MIN),
        1 << 29,
        i128::from(i32::MAX),
        1 << 31,
        i128::from(u32::MAX),
        (1 << 32) + 3,
        (1 << 32) - rows,
        (1 << 63) + 2,
        i128::from(i64::MIN),
        i128::from(i64::MAX),
        i128::from(u64::MAX),
        -(1 << 32),
        -(1 << 32) + 1,
    ];
    // Good ones stand between the bad ones, and before them.
    let mut ids = vec![rows - 1, 0, 7];
    for (good, bad) in (0..).zip(bad) {
        ids.extend([bad, good % rows]);
    }
    let check = |engine: &Engine, lookups: &[Lookup]| {
        let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
        for id_type in TYPES {
            let batch = Batch::of(id_type, &ids);
            for policy in POLICIES {
                verify(lookups, engine, &table, &fixture, &batch, policy);
            }
            // Good ones alone pass the strictest policy.
            let batch = Batch::of(id_type, &[rows - 1, 0, 0, 11]);
            verify(lookups, engine, &table, &fixture, &batch, IdPolicy::Error);
        }
    };
    check(backend.engine(), &Lookup::all(backend));
    for tuning in backend.tunings_for(scheme) {
        check(backend.tuned(*tuning), &Lookup::kernels(backend));
    }
}

/// Ids over 32 bits never are those that their low words are.
fn a02_wide_ids(scheme: &Scheme, backend: &Backend) {
    let fixture = Fixture::new(scheme, 9, 20);
    let engine = backend.engine();
    let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
    let wide = [5, (1 << 32) + 5, 1 << 32, (1 << 63) + 5, (1 << 33) - 1, (5 << 32) + 5, 5 << 32, 8];
    for id_type in [IdType::U64, IdType::I64] {
        for policy in POLICIES {
            verify(&Lookup::all(backend), engine, &table, &fixture, &Batch::of(id_type, &wide), policy);
            verify(&Lookup::all(backend), engine, &table, &fixture, &Batch::of(id_type, &[8, 0, 5]), policy);
        }
    }
}

/// No ids, and a table of no rows.
fn a03_nothing(scheme: &Scheme, backend: &Backend) {
    for tuning in backend.tunings() {
        let engine = backend.tuned(*tuning);
        for rows in [3, 0] {
            let fixture = Fixture::new(scheme, rows, 13);
            let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
            assert_eq!(table.spec().shape().rows() as usize, rows);
            for id_type in TYPES {
                for policy in POLICIES {
                    verify(&Lookup::all(backend), engine, &table, &fixture, &Batch::of(id_type, &[]), policy);
                    if rows == 0 {
                        verify(
                            &Lookup::all(backend),
                            engine,
                            &table,
                            &fixture,
                            &Batch::of(id_type, &[0, 1, 2]),
                            policy,
                        );
                    }
                }
            }
        }
    }
}

/// An output of another length than ids x dim is refused with the numbers, and not touched.
fn a03_the_wrong_length(backend: &Backend) {
    let fixture = Fixture::new(&"int8".parse().expect("a scheme"), 5, 7);
    let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
    for length in [0, 13, 15, 21] {
        let mut out = vec![f32::NAN; length];
        let error =
            table.gather_into_blocking(&[1_u32, 2], IdPolicy::Zero, &mut out).expect_err("14 values are needed");
        assert!(out.iter().all(|value| value.is_nan()));
        let GatherError::OutputLength { ids: 2, dim: 7, needed: 14, got, .. } = error else { panic!("{error}") };
        assert_eq!(got, length as u64);
    }
}

/// Buffers of a device are refused by the host, in words.
fn a03_no_device() {
    let fixture = Fixture::new(&"f32".parse().expect("a scheme"), 5, 7);
    let engine = Engine::host();
    let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
    let error = table.gather_buffer_blocking(&[1_u32], IdPolicy::Error, OutputDtype::F32).expect_err("no device");
    assert!(matches!(error, GatherError::NoDevice { .. }), "{error}");
    let host = Lookup { way: Way::Host, dtype: OutputDtype::F32 };
    let answer = host.run(&engine, &table, &Batch::U32(vec![4]), IdPolicy::Error).expect("the host answers");
    assert_eq!(answer.bad, BadIds::default());
}
