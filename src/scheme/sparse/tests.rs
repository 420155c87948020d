#![expect(clippy::cast_possible_truncation, reason = "numbers made here, of known size")]

use crate::{EncodeReport, EncodedTable, Scheme, Shape, TableSource};

fn encode(text: &str, values: &[f32], dim: usize) -> (EncodedTable, EncodeReport) {
    EncodedTable::encode("t", values, dim, &text.parse().unwrap()).unwrap()
}

/// Rows of no values, of all, and of some.
fn values(rows: usize, dim: usize) -> Vec<f32> {
    let value = |row: usize, column: usize| match row % 4 {
        0 => 0.0,
        1 => ((row * dim + column) as f32 * 0.37).sin() + 2.0,
        _ if (row * 31 + column * 17).is_multiple_of(7) => ((row + column) as f32).cos(),
        _ => 0.0,
    };
    (0..rows).flat_map(|row| (0..dim).map(move |column| value(row, column))).collect()
}

fn figure(report: &EncodeReport, name: &str) -> f64 {
    report.fit.iter().find(|figure| figure.name == name).unwrap().value
}

#[test]
fn odd_strings_are_refused_with_the_reason() {
    for (text, says) in [
        ("csr", "`/` is missing"),
        ("csr/int8", "must be followed by `f32` or `f16`"),
        ("csr/int4", "must be followed by `f32` or `f16`"),
        ("csr/csr/f32", "`csr` is no codec"),
        ("hash:rows=5/csr/f32", "is no way to store rows that ids share"),
        ("qr:rows=5/coo:density=0.5/f16", "is no way to store rows that ids share"),
        ("csr:density=0/f32", "a share over 0 and up to 1"),
        ("csr:density=1.5/f32", "a share over 0 and up to 1"),
        ("csr:density=nan/f32", "is no number"),
        ("coo:threshold=-1/f32", "a number from 0 up"),
        ("coo:threshold=1e39/f32", "a number from 0 up"),
        ("csr:nonzeros=4294967296/f32", "is no whole number"),
        ("csr:density=0.5,threshold=1/f32", "exclude each other"),
        ("coo:every=4/f32", "does not exist"),
    ] {
        let error = text.parse::<Scheme>().unwrap_err().to_string();
        assert!(error.contains(says), "{text:?}: {error}");
    }
}

/// All that is not zero comes back, of rows that are empty and full, on both sides of each width of column numbers.
#[test]
fn without_options_nothing_is_lost() {
    for text in ["csr/f32", "coo/f32", "csr:threshold=0/f32", "coo:density=1/f32"] {
        for (rows, dim) in [(1, 1), (33, 1), (40, 13), (100, 256), (50, 257), (3, 65_536), (3, 65_537)] {
            let values = values(rows, dim);
            let (table, report) = encode(text, &values, dim);
            let kept = values.iter().filter(|value| **value != 0.0).count();
            assert_eq!((report.max_error, table.spec().values()), (0.0, kept as u64), "{text} {rows} x {dim}");
            for at in (0..values.len()).step_by(values.len() / 997 + 1) {
                let got = table.reference((at / dim) as u32, (at % dim) as u32);
                assert_eq!(got, f64::from(values[at]), "{text} {rows} x {dim}, {at}");
            }
        }
    }
}

#[test]
fn sizes_are_those_of_the_format() {
    let bytes =
        |text: &str, rows, dim| text.parse::<Scheme>().unwrap().spec(Shape::new(rows, dim).unwrap()).unwrap().bytes().0;
    assert_eq!(bytes("csr:nonzeros=1000/f16", 100, 256), 1000 * 3 + 101 * 4);
    assert_eq!(bytes("csr:nonzeros=1000/f16", 100, 257), 1000 * 4 + 101 * 4);
    assert_eq!(bytes("csr:nonzeros=1000/f32", 100, 65_537), 1000 * 8 + 101 * 4);
    assert_eq!(bytes("coo:nonzeros=1000/f16", 100, 256), 1000 * 4 + 8 * 4);
    assert_eq!(bytes("csr:density=0.1/f16", 100, 128), 1280 * 3 + 101 * 4);
    assert_eq!(bytes("csr:nonzeros=1000/f16", 10, 10), 100 * 3 + 11 * 4, "there are no more values");
    assert_eq!(bytes("csr/f32", 0, 10), 4);
}

/// The largest magnitudes are kept, as many as were asked for, and the bound holds for the others.
#[test]
fn the_largest_are_kept() {
    let (rows, dim) = (61, 19);
    let values: Vec<f32> = (0..rows * dim).map(|at| (at as f32 * 0.7713).sin() * (at as f32 * 0.01).exp()).collect();
    let mut sorted: Vec<f32> = values.iter().map(|value| value.abs()).collect();
    sorted.sort_by(f32::total_cmp);
    for (text, kept) in [
        ("csr:density=0.1/f32", values.len().div_ceil(10)),
        ("coo:density=0.5/f32", values.len().div_ceil(2)),
        ("csr:nonzeros=7/f32", 7),
        ("csr:nonzeros=0/f32", 0),
        ("csr:nonzeros=100000/f32", values.iter().filter(|value| **value != 0.0).count()),
    ] {
        let (table, report) = encode(text, &values, dim);
        let least = if kept == 0 { f32::INFINITY } else { sorted[sorted.len() - kept] };
        assert_eq!(table.spec().values(), kept as u64, "{text}");
        assert!(table.spec().scheme().to_string().contains(&format!(":nonzeros={kept}/")), "{text}");
        let square = |value: &f32| f64::from(*value) * f64::from(*value);
        let (mut all, mut energy) = (0.0, 0.0);
        for (at, value) in values.iter().enumerate() {
            let want = if value.abs() >= least { f64::from(*value) } else { 0.0 };
            assert_eq!(table.reference((at / dim) as u32, (at % dim) as u32), want, "{text}, {at}");
            all += square(value);
            energy += if want == 0.0 { 0.0 } else { square(value) };
        }
        assert!((figure(&report, "energy kept") - energy / all).abs() < 1e-9, "{text}");
        for (row, values) in values.chunks(dim).enumerate() {
            let bound = table.spec().scheme().error_bound(values);
            for (column, value) in values.iter().enumerate() {
                let error = table.reference(row as u32, column as u32) - f64::from(*value);
                assert!(error.abs() <= bound, "{text}, [{row}, {column}]");
            }
        }
    }
}

#[test]
fn equal_magnitudes_are_kept_together() {
    let values = [1.0, -1.0, 1.0, 0.5, 0.0, -0.0, f32::from_bits(1), 2.0];
    let kept = |text: &str| encode(text, &values, 4).0.spec().values();
    assert_eq!(kept("csr:nonzeros=1/f32"), 1);
    assert_eq!(kept("csr:nonzeros=2/f32"), 4);
    assert_eq!(kept("csr:threshold=0.75/f32"), 4);
    assert_eq!(kept("csr:threshold=1/f32"), 4);
    assert_eq!(kept("csr/f32"), 6, "no zero, and the smallest number");
    assert_eq!(kept("coo:density=0.6/f32"), 5);
}

#[test]
fn a_value_over_the_codecs_range_is_named() {
    let mut values = values(20, 5);
    values[12 * 5 + 3] = 70_000.0;
    let error = EncodedTable::encode("t", &values, 5, &"csr/f16".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("row 12") && error.contains("column 3"), "{error}");
}

#[test]
fn malformed_parts_are_refused_with_the_row() {
    let (csr, _) = encode("csr/f32", &values(40, 13), 13);
    let (coo, _) = encode("coo/f32", &values(40, 13), 13);
    let refused = |table: &EncodedTable, part: usize, change: &dyn Fn(&mut Vec<u8>)| {
        let mut parts: Vec<Vec<u8>> = table.parts().map(<[u8]>::to_vec).collect();
        change(&mut parts[part]);
        EncodedTable::from_parts("t", table.spec().clone(), parts).map(drop).unwrap_err().to_string()
    };
    let set = |at: usize, byte: u8| move |part: &mut Vec<u8>| part[at] = byte;
    // Row 1 is full: values 0 to 12.
    for (part, at, byte, says) in [
        (2, 0, 1, "`starts` does not begin with 0"),
        (2, 4, 14, "row 1: its values begin at 14 and end at 13"),
        (2, 11, 1, "row 1: its values end at"),
        (1, 3, 13, "row 1: value 3 is in column 13 of 13"),
        (1, 3, 2, "row 1: value 3 is in column 2, and the one before in 2"),
        (1, 3, 1, "row 1: value 3 is in column 1, and the one before in 2"),
    ] {
        let error = refused(&csr, part, &set(at, byte));
        assert!(error.contains(says), "{error}, not {says}");
    }
    for (part, at, byte, says) in [
        (3, 0, 1, "`starts` does not begin with 0"),
        (3, 5, 9, "row 0: its values end at"),
        (2, 0, 2, "row 1: value 1 stands behind those of row 2"),
        (2, 3, 16, "row 0: value 3 is of row 16 of 16"),
        (1, 3, 13, "row 1: value 3 is in column 13 of 13"),
    ] {
        let error = refused(&coo, part, &set(at, byte));
        assert!(error.contains(says), "{error}, not {says}");
    }
    // The last rows are 8 of 16.
    let last = coo.spec().values() as usize - 1;
    assert!(refused(&coo, 2, &set(last, 8)).contains("row 32: value"), "of a row that is not there");
    assert!(refused(&csr, 2, &|part| part.truncate(4)).contains("part `starts` has 4 B"));
}
