//! What is stored of rows that share a bucket, and what is told of it.

#![expect(clippy::cast_possible_truncation, reason = "f32 values, and small numbers")]

use crate::{EncodeReport, EncodedTable, Encoder, Scheme, SliceSource, TableSource, error::EncodeError};

fn encode(scheme: &str, values: &[f32], dim: usize) -> (EncodedTable, EncodeReport) {
    EncodedTable::encode("t", values, dim, &scheme.parse().unwrap()).unwrap()
}

#[test]
fn buckets_are_weighted_means() {
    let values = [1.0, 2.0, 4.0, 8.0, 16.0];
    // Rows 0, 2 and 4 weigh 1, 1/3 and 1/5; rows 1 and 3 weigh 1/2 and 1/4.
    let (table, report) = encode("hash:rows=2/f32", &values, 1);
    assert_eq!((table.spec().stored_rows(), table.spec().bytes().0), (2, 8));
    let means = [(1.0 + 4.0 / 3.0 + 16.0 / 5.0) / (1.0 + 1.0 / 3.0 + 0.2), (2.0 / 2.0 + 8.0 / 4.0) / 0.75];
    for row in 0..5 {
        assert!((table.reference(row, 0) - means[row as usize % 2]).abs() < 1e-6, "row {row}");
    }
    assert_eq!(report.max_error_row, 4);
    assert!((report.max_error - (16.0 - means[0])).abs() < 1e-5, "{report}");
    let (equal, _) = encode("hash:rows=2,weights=equal/f32", &values, 1);
    assert_eq!([equal.reference(2, 0), equal.reference(1, 0)], [7.0, 5.0]);
    let figures: Vec<_> = report.fit.iter().map(|figure| (figure.name, figure.value)).collect();
    assert_eq!(figures[..3], [("rows a bucket", 2.5), ("longest chain", 3.0), ("traffic that collides", 1.0)]);
}

#[test]
fn what_is_told_of_traffic() {
    // Of six rows in five buckets, rows 0 and 5 share one.
    let (_, report) = encode("hash:rows=5/f32", &[0.0; 6], 1);
    let all: f64 = (1..=6).map(|rank| 1.0 / f64::from(rank)).sum();
    assert!((report.fit[2].value - (1.0 + 1.0 / 6.0) / all).abs() < 1e-12);
    let (_, report) = encode("hash:rows=6/f32", &[0.0; 6], 1);
    assert_eq!((report.fit[1].value, report.fit[2].value), (1.0, 0.0));
}

#[test]
fn what_is_stored_is_within_the_codec_s_bound_of_the_mean() {
    let values: Vec<f32> = (0..200 * 9).map(|at| (at as f32 * 0.37).sin() * (at % 7) as f32).collect();
    let (exact, _) = encode("hash:rows=13,fn=mix/f32", &values, 9);
    for codec in ["f16", "int8", "int4:group=16,affine", "lowrank:k=9/int8"] {
        let scheme: Scheme = format!("hash:rows=13,fn=mix/{codec}").parse().unwrap();
        let (table, report) = EncodedTable::encode("t", &values, 9, &scheme).unwrap();
        assert!(!scheme.bounds_rows() && report.fit.len() >= 3);
        for row in 0..200 {
            let mean: Vec<f32> = (0..9).map(|column| exact.reference(row, column) as f32).collect();
            for (column, value) in (0..).zip(&mean) {
                let apart = (table.reference(row, column) - f64::from(*value)).abs();
                assert!(apart <= scheme.error_bound(&mean), "{codec}, row {row}: {apart}");
            }
        }
    }
}

#[test]
fn a_value_that_does_not_fit_is_told_by_a_row_of_the_table() {
    let mut values = [0.0; 12];
    values[7] = 1e6;
    let error = EncodedTable::encode("t", &values, 1, &"hash:rows=5/f16".parse().unwrap()).unwrap_err();
    // Stored row 2 has rows 2 and 7.
    assert!(matches!(error, EncodeError::Precision { row: 2, column: 0, .. }), "{error}");
}

#[test]
fn what_was_fitted_is_one_table_s() {
    let values = [1.0, 2.0, 3.0, 4.0];
    let scheme: Scheme = "hash:rows=2/f32".parse().unwrap();
    let (table, report) = EncodedTable::encode("t", &values, 2, &scheme).unwrap();
    for spec in [table.spec(), &report.spec] {
        assert!(spec.scheme().codec().stored().is_none(), "rows are not kept with the table");
    }
    let encoder = Encoder::new(&scheme).fit(&mut SliceSource::new(&values, 2).unwrap()).unwrap();
    let error = encoder.table("t", &mut SliceSource::new(&values, 1).unwrap()).unwrap_err();
    assert!(error.to_string().contains("2 x 2"), "{error}");
}
