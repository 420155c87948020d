//! The host backend against the definition of each format.

#![expect(clippy::cast_possible_truncation, reason = "numbers made here, of known size")]

use half::f16;

use super::HostTable;
use crate::{
    EncodedTable, Scheme, TableSource,
    error::GatherError,
    op::{BadIds, IdPolicy, Ids},
};

/// Every variant of every scheme.
fn variants() -> impl Iterator<Item = Scheme> {
    Scheme::all().iter().flat_map(|info| info.variants).map(|text| text.parse().unwrap())
}

/// Numbers in -1..1 that look random and are the same each time.
fn values(count: usize) -> Vec<f32> {
    (0..count as u32)
        .map(|index| {
            let bits = index.wrapping_add(1).wrapping_mul(0x9e37_79b1);
            let bits = (bits ^ bits >> 15).wrapping_mul(0x85eb_ca77);
            (f64::from(bits ^ bits >> 13) / f64::from(u32::MAX) * 2.0 - 1.0) as f32
        })
        .collect()
}

fn table(scheme: &Scheme, rows: usize, dim: usize) -> (EncodedTable, HostTable) {
    let (encoded, _) = EncodedTable::encode("test", &values(rows * dim), dim, scheme).unwrap();
    let mut table = HostTable::empty("test", encoded.spec()).unwrap();
    pollster::block_on(table.read(&encoded)).unwrap();
    (encoded, table)
}

/// Looks up into an output of NaN: what nobody wrote shows.
fn gather<'a>(table: &HostTable, ids: impl Into<Ids<'a>>, policy: IdPolicy) -> (Vec<f32>, BadIds) {
    let ids = ids.into();
    let mut out = vec![f32::NAN; ids.len() * table.dim()];
    let bad = table.gather_f32(ids, policy, &mut out).unwrap();
    (out, bad)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Compares a row with the reference: the nearest f32 to it, or within what the scheme's decoders round.
fn assert_row(encoded: &EncodedTable, scheme: &Scheme, row: u32, got: &[f32]) {
    let want: Vec<f64> = (0..).take(got.len()).map(|column| encoded.reference(row, column)).collect();
    let rounding = scheme.codec().rounding(&want);
    for (column, (got, want)) in got.iter().zip(&want).enumerate() {
        let same = if rounding == 0.0 {
            got.to_bits() == (*want as f32).to_bits()
        } else {
            (f64::from(*got) - want).abs() <= rounding
        };
        assert!(same, "{scheme} [{row}, {column}]: {got} for {want}, +- {rounding:e}");
    }
}

#[test]
fn a05_every_scheme_at_every_dimension() {
    for scheme in variants() {
        for dim in [1, 2, 3, 5, 7, 13, 63, 100, 257, 1023, 1024, 1025, 2048, 4096] {
            let (encoded, table) = table(&scheme, 7, dim);
            let ids = [6_u32, 0, 3, 3, 5, 1];
            let (out, bad) = gather(&table, &ids, IdPolicy::Error);
            assert_eq!(bad, BadIds::default());
            for (row, out) in ids.iter().zip(out.chunks_exact(dim)) {
                assert_row(&encoded, &scheme, *row, out);
            }
            let mut halves = vec![f16::NAN; out.len()];
            table.gather_f16((&ids).into(), IdPolicy::Error, &mut halves).unwrap();
            for (half, value) in halves.iter().zip(&out) {
                assert_eq!(half.to_bits(), f16::from_f32(*value).to_bits(), "{scheme}, {dim} columns");
            }
        }
    }
}

#[test]
fn a06_last_rows_of_odd_tables() {
    for scheme in variants() {
        for rows in [1, 2, 3, 5, 257] {
            let (encoded, table) = table(&scheme, rows, 20);
            let last = rows as u32 - 1;
            assert_row(&encoded, &scheme, last, &gather(&table, &[last], IdPolicy::Error).0);
        }
    }
}

#[test]
fn a01_bad_ids_by_policy() {
    const ROWS: i64 = 300;
    let ids: Vec<i64> =
        vec![ROWS - 1, ROWS, ROWS + 1, -1, -ROWS, -ROWS - 1, i32::MIN.into(), 1 << 29, u32::MAX.into(), (1 << 32) + 3];
    // Where rows are shared by hashes, ids past the last have rows: see below.
    for scheme in variants().filter(Scheme::bounds_rows) {
        let (encoded, table) = table(&scheme, ROWS as usize, 12);

        let mut out = vec![f32::NAN; ids.len() * 12];
        let error = table.gather_f32((&ids).into(), IdPolicy::Error, &mut out).unwrap_err();
        assert!(out.iter().all(|value| value.is_nan()), "there is no output");
        let GatherError::BadId { table: name, position, rows, count, .. } = &error else { panic!("{error}") };
        assert_eq!((name.as_str(), *position, *rows, *count), ("test", 1, 300, 9));
        assert!(error.to_string().contains("id 300 at position 1"), "{error}");

        for (policy, wrapped) in [(IdPolicy::Zero, &[][..]), (IdPolicy::Wrap, &[(3, 299), (4, 0)])] {
            let (out, bad) = gather(&table, &ids, policy);
            assert_eq!(bad, BadIds { count: 9 - wrapped.len() as u64, first: Some(1) });
            for (position, out) in out.chunks_exact(12).enumerate() {
                let wrapped = wrapped.iter().find(|(at, _)| *at == position).map(|(_, row)| *row);
                match if position == 0 { Some(299) } else { wrapped } {
                    Some(row) => assert_row(&encoded, &scheme, row, out),
                    None => assert_eq!(bits(out), [0; 12], "position {position} is +0.0 throughout"),
                }
            }
        }
    }
}

#[test]
fn a02_hashed_tables_accept_any_unsigned_id() {
    let naive = |id: i128| usize::try_from(id.rem_euclid(7)).unwrap();
    let (encoded, table) = table(&"hash:rows=7/f32".parse().unwrap(), 300, 12);
    let stored: Vec<f32> =
        encoded.parts().next().unwrap().as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
    let check = |ids: Ids<'_>, out: &[f32]| {
        for (id, out) in ids.iter().zip(out.chunks_exact(12)) {
            assert_eq!(bits(out), bits(&stored[naive(id) * 12..][..12]), "{id}");
        }
    };
    let wide = [0, 6, 7, 299, 300, (1 << 32) - 1, 1 << 32, (1 << 32) + 5, 1 << 63, u64::MAX];
    let narrow = [0, 6, 7, 299, 300, u32::MAX];
    check((&wide).into(), &gather(&table, &wide, IdPolicy::Error).0);
    check((&narrow).into(), &gather(&table, &narrow, IdPolicy::Error).0);
    let signed = [5, -1, i64::MAX, -300, -301, i64::MIN];
    let (out, bad) = gather(&table, &signed, IdPolicy::Wrap);
    check((&[5_i64, 299, i64::MAX, 0]).into(), &out);
    assert_eq!((bits(&out[48..]), bad), (vec![0; 24], BadIds { count: 2, first: Some(4) }));
    let (out, bad) = gather(&table, &signed, IdPolicy::Zero);
    assert_eq!((bits(&out[12..24]), bad), (vec![0; 12], BadIds { count: 4, first: Some(1) }));
    let error = table.gather_f32((&signed).into(), IdPolicy::Error, &mut [0.0; 72]).unwrap_err().to_string();
    assert!(error.contains("id -1 at position 1 is outside of its 300 rows (4 such"), "{error}");
}

#[test]
fn a01_bad_ids_far_into_a_batch() {
    let (_, table) = table(&"int8".parse().unwrap(), 100, 64);
    let mut ids: Vec<u64> = (0..20_000).map(|id| id % 100).collect();
    ids[12_345] = 100;
    ids[19_999] = u64::MAX;
    let mut out = vec![f32::NAN; ids.len() * 64];
    let error = table.gather_f32((&ids).into(), IdPolicy::Error, &mut out).unwrap_err();
    assert!(error.to_string().contains("id 100 at position 12345 is outside of its 100 rows (2 such"), "{error}");
    assert!(out.iter().all(|value| value.is_nan()));
    let (out, bad) = gather(&table, &ids, IdPolicy::Zero);
    assert_eq!(bad, BadIds { count: 2, first: Some(12_345) });
    assert!(out.iter().all(|value| !value.is_nan()));
}

#[test]
fn a02_wide_ids_keep_their_high_word() {
    let (_, table) = table(&"int8".parse().unwrap(), 10, 8);
    let narrow = gather(&table, &[5_u32, 9], IdPolicy::Error).0;
    assert_eq!(bits(&gather(&table, &[5_u64, 9], IdPolicy::Error).0), bits(&narrow));
    assert_eq!(bits(&gather(&table, &[5_i64, 9], IdPolicy::Error).0), bits(&narrow));
    assert!(table.gather_f32((&[(1_u64 << 32) + 5]).into(), IdPolicy::Error, &mut [0.0; 8]).is_err());
}

#[test]
fn a03_no_ids_and_no_rows() {
    for scheme in variants() {
        let (_, full) = table(&scheme, 3, 8);
        assert_eq!(gather(&full, &[0_u32; 0], IdPolicy::Error).1, BadIds::default());
        let (_, empty) = table(&scheme, 0, 8);
        assert_eq!(gather(&empty, &[0_u32; 0], IdPolicy::Error).1, BadIds::default());
        assert!(empty.gather_f32((&[0_u32]).into(), IdPolicy::Error, &mut [0.0; 8]).is_err());
        assert_eq!(gather(&empty, &[0_u32], IdPolicy::Zero).0, [0.0; 8]);
    }
}

#[test]
fn outputs_of_another_size_are_refused() {
    let (_, table) = table(&"f32".parse().unwrap(), 3, 8);
    for length in [0, 15, 17] {
        let error = table.gather_f32((&[0_u32, 1]).into(), IdPolicy::Error, &mut vec![0.0; length]).unwrap_err();
        assert!(error.to_string().contains("2 ids x 8 columns need 16"), "{error}");
    }
}

#[test]
fn a11_the_same_bits_in_any_split() {
    for scheme in variants() {
        let (_, table) = table(&scheme, 1_000, 100);
        let ids: Vec<u32> = (0..3_000).map(|id| id * 7_919 % 1_000).collect();
        // More than a batch that stays on the calling thread.
        let whole = bits(&gather(&table, &ids, IdPolicy::Error).0);
        for part in [1, 63, 64, 257, 1_999] {
            let split: Vec<u32> =
                ids.chunks(part).flat_map(|ids| bits(&gather(&table, ids, IdPolicy::Error).0)).collect();
            assert!(split == whole, "{scheme} in parts of {part}");
        }
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert!(bits(&alone.install(|| gather(&table, &ids, IdPolicy::Error)).0) == whole, "{scheme} on one thread");
    }
}

#[test]
fn large_parts_are_read_whole() {
    // 4,200,000 bytes of codes: past the size that gets pages of its own.
    let (encoded, table) = table(&"int8".parse().unwrap(), 42_000, 100);
    for row in [0, 20_971, 41_999] {
        assert_row(&encoded, &"int8".parse().unwrap(), row, &gather(&table, &[row], IdPolicy::Error).0);
    }
}
