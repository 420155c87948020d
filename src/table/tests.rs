//! Encoding: bounds, hostile rows, refusals, and the report.

#![expect(clippy::cast_possible_truncation, reason = "numbers made here, of known size")]

use proptest::prelude::*;

use super::{EncodedTable, Encoder};
use crate::{
    Scheme,
    error::{EncodeError, SourceError},
    source::{PartSink, RowSource, TableSource},
    units::Shape,
};

/// Every variant of every scheme.
fn variants() -> impl Iterator<Item = Scheme> {
    Scheme::all().iter().flat_map(|info| info.variants).map(|text| text.parse().unwrap())
}

fn encode(scheme: &Scheme, values: &[f32], dim: usize) -> Result<EncodedTable, EncodeError> {
    EncodedTable::encode("test", values, dim, scheme).map(|(table, _)| table)
}

/// The largest error of a table of one row.
fn error(table: &EncodedTable, row: &[f32]) -> f64 {
    (0..).zip(row).map(|(column, value)| (table.reference(0, column) - f64::from(*value)).abs()).fold(0.0, f64::max)
}

/// Asserts that what is stored of `row` is finite and within the scheme's bound.
fn assert_bound(scheme: &Scheme, row: &[f32]) {
    let table = encode(scheme, row, row.len()).unwrap_or_else(|error| panic!("{scheme}: {error}"));
    let (error, bound) = (error(&table, row), scheme.error_bound(row));
    assert!(bound.is_finite() && error <= bound, "{scheme}: error {error:e} over the bound {bound:e} for {row:?}");
}

/// Rows of the kinds that break quantisers, spread over `dim` columns.
fn hostile(dim: usize) -> Vec<(&'static str, Vec<f32>)> {
    let row = |value: &dyn Fn(f64) -> f64| -> Vec<f32> {
        (0..dim).map(|column| value(column as f64 / (dim as f64 - 1.0).max(1.0) * 2.0 - 1.0) as f32).collect()
    };
    let max = f64::from(f32::MAX);
    vec![
        ("zeros", row(&|_| 0.0)),
        ("range 1e-9", row(&|x| 0.5e-9 * x)),
        ("range 1e-9 about 0.3", row(&|x| 0.3 + 0.5e-9 * x)),
        ("1000 +- 0.05", row(&|x| 1000.0 + 0.05 * x)),
        ("-1000 +- 0.05", row(&|x| -1000.0 + 0.05 * x)),
        ("+-1e5", row(&|x| 1e5 * x)),
        ("+-1e5 or 0.001", row(&|x| if x.abs() == 1.0 { 1e5 * x } else { 0.001 * x })),
        ("-0.0", row(&|_| -0.0)),
        ("one -0.0", row(&|x| if x == 1.0 { 1.0 } else { -0.0 })),
        ("subnormal", row(&|x| 1e-41 * x)),
        ("least subnormal", row(&|_| f64::from(f32::from_bits(1)))),
        ("about 2^-102", row(&|x| 2f64.powi(-95) * x - 2f64.powi(-103))),
        ("about 2^-126", row(&|x| 2f64.powi(-119) * x)),
        ("+-max", row(&|x| max * x)),
        ("max", row(&|_| max)),
        ("just under max", row(&|x| max * (1.0 - 1e-7 * (x + 1.0)))),
        ("0 to -max", row(&|x| -max * (x + 1.0) / 2.0)),
    ]
}

/// Whether a scheme may say that a row is none it can hold: where halves end, at either end, where f32 does not hold an
/// affine range, or where a row is longer than f32 goes.
fn may_refuse(scheme: &Scheme, row: &[f32]) -> bool {
    let largest = row.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    let norm = row.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    let of = |end: fn(f32, f32) -> f32| row.iter().copied().reduce(end).unwrap();
    match scheme.stem() {
        "f32" | "int8" => false,
        "f16" => largest >= 65520.0,
        "lowrank" => norm * 1.0001 >= f64::from(f32::MAX),
        _ if has_halves(scheme) => largest > 65504.0 || largest < 2f32.powi(-17),
        _ => scheme.to_string().contains("affine") && (of(f32::max) - of(f32::min)).is_infinite(),
    }
}

/// Whether a scheme stores numbers of 16 bits.
fn has_halves(scheme: &Scheme) -> bool {
    let spec = scheme.spec(Shape::new(1, 100).unwrap()).unwrap();
    spec.parts().iter().any(|part| part.dtype() == crate::Dtype::F16)
}

#[test]
fn a09_hostile_rows_are_within_the_bound() {
    for scheme in variants() {
        for dim in [1, 2, 3, 15, 16, 17, 32, 100] {
            for (name, row) in hostile(dim) {
                match encode(&scheme, &row, dim) {
                    Ok(_) => assert_bound(&scheme, &row),
                    Err(EncodeError::Precision { reason, .. }) => {
                        assert!(may_refuse(&scheme, &row), "{scheme}, {name}: {reason}");
                    }
                    Err(error) => panic!("{scheme}, {name}: {error}"),
                }
            }
        }
    }
}

#[test]
fn a09_constant_rows_are_exact() {
    for scheme in variants() {
        for constant in [2.5, -2.5, 1.0, 0.0, 0.123, 1e-3, -6e4] {
            let row = [constant; 100];
            let table = encode(&scheme, &row, 100).unwrap();
            let sparse = table.spec().parts().iter().any(crate::Part::counts_values);
            if sparse && table.spec().values() == 0 {
                // Values of one magnitude are kept together, or not at all.
                continue;
            }
            // A half is within 2^-11 of a number, and a scale of 2.5 over a power of two is one. Where all rows share a
            // basis, a row is as near as its sums are.
            let reference: Vec<f64> = (0..100).map(|column| table.reference(0, column)).collect();
            let shares = table.spec().parts().iter().any(crate::Part::is_shared);
            let rounded =
                if has_halves(&scheme) && constant != 2.5 { 2f64.powi(-10) * f64::from(constant.abs()) } else { 0.0 };
            let slack = if shares { 2.0 * scheme.codec().rounding(&reference) } else { 0.0 };
            assert!(error(&table, &row) <= rounded + slack, "{scheme} of {constant}");
        }
    }
}

#[test]
fn a09_what_is_not_finite_is_refused_by_row_and_column() {
    for scheme in variants() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            // In the first task, in the middle, and as the last value.
            for (row, column) in [(0, 0), (0, 99), (163, 7), (4_999, 99)] {
                let mut values = vec![0.5; 5_000 * 100];
                values[row * 100 + column] = bad;
                // A later one is not the one that is told.
                values[5_000 * 100 - 1] = bad;
                let error = encode(&scheme, &values, 100).unwrap_err();
                let EncodeError::NotFinite { row: r, column: c, value } = error else { panic!("{scheme}: {error}") };
                assert_eq!((r, c, value.to_bits()), (row as u64, column as u32, bad.to_bits()), "{scheme}");
            }
        }
    }
}

#[test]
fn a09_what_a_half_cannot_hold_is_refused() {
    let mut row = [1.0; 300];
    row[257] = -65520.0;
    let error = encode(&"f16".parse().unwrap(), &row, 100).unwrap_err().to_string();
    assert!(error.contains("row 2, column 57: -65520 does not fit scheme `f16`"), "{error}");
    row[257] = 65519.99;
    assert_bound(&"f16".parse().unwrap(), &row);
}

#[test]
fn the_report_is_what_the_reference_says() {
    let dim = 37;
    let values: Vec<f32> = (0..200 * dim).map(|index| (index as f32 * 0.7).sin() * (1 + index / dim) as f32).collect();
    for scheme in variants() {
        let (table, report) = EncodedTable::encode("test", &values, dim, &scheme).unwrap();
        let [mut most, mut error, mut norm] = [0f64; 3];
        let mut least = 1f64;
        for (index, value) in values.iter().enumerate() {
            let stored = table.reference((index / dim) as u32, (index % dim) as u32);
            let apart = stored - f64::from(*value);
            most = most.max(apart.abs());
            error += apart * apart;
            norm += f64::from(*value).powi(2);
        }
        for (row, values) in values.chunks(dim).enumerate() {
            let stored: Vec<f64> = (0..dim).map(|column| table.reference(row as u32, column as u32)).collect();
            let dot = |f: &dyn Fn(usize) -> f64| (0..dim).map(f).sum::<f64>();
            let norms = dot(&|at| stored[at] * stored[at]) * dot(&|at| f64::from(values[at]).powi(2));
            // A row of which nothing is stored has no direction.
            let cosine = if norms == 0.0 { 0.0 } else { dot(&|at| stored[at] * f64::from(values[at])) / norms.sqrt() };
            least = least.min(cosine);
        }
        // The report compares the f32 that is decoded, half a unit in the last place from the reference.
        let rounding = 200.0 * 2f64.powi(-23);
        assert!((report.max_error - most).abs() <= rounding, "{scheme}: {report}");
        assert!((report.relative_error - (error / norm).sqrt()).abs() <= 2f64.powi(-22), "{scheme}: {report}");
        assert!(report.min_cosine <= report.mean_cosine && report.mean_cosine <= 1.0 + 1e-12, "{scheme}: {report}");
        assert!((report.min_cosine - least).abs() < 1e-5, "{scheme}: {report}, {least}");
        assert_eq!(report.bytes_after, table.spec().bytes());
    }
}

/// Rows made when they are asked for, and parts that are counted and dropped.
struct Stream {
    shape: Shape,
    most_read: usize,
}

impl RowSource for Stream {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn read_rows(&mut self, first: u32, out: &mut [f32]) -> Result<(), SourceError> {
        self.most_read = self.most_read.max(out.len());
        for (index, value) in out.iter_mut().enumerate() {
            *value = ((first as usize * self.shape.dim() as usize + index) % 1_000) as f32;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Count {
    bytes: Vec<u64>,
    most: usize,
    shared: Vec<bool>,
}

impl PartSink for Count {
    fn write_part(&mut self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), SourceError> {
        self.bytes.resize(self.bytes.len().max(part + 1), 0);
        assert_eq!(self.bytes[part], offset, "parts come without a gap");
        self.bytes[part] += bytes.len() as u64;
        // A part that all rows share comes whole.
        if !self.shared.get(part).is_some_and(|shared| *shared) {
            self.most = self.most.max(bytes.len());
        }
        Ok(())
    }
}

#[test]
fn a16_tables_are_encoded_by_blocks() {
    for (rows, dim) in [(70_000, 100), (3, 1 << 20), (1 << 21, 1)] {
        for scheme in variants() {
            let mut source = Stream { shape: Shape::new(rows, dim).unwrap(), most_read: 0 };
            let spec = scheme.spec(source.shape).unwrap();
            if u64::from(spec.stored_rows()) > rows {
                // Most of what is stored would be of no row.
                continue;
            }
            let shared = spec.parts().iter().map(crate::Part::is_shared).collect();
            let mut sink = Count { shared, ..Count::default() };
            let report = Encoder::new(&scheme).run(&mut source, &mut sink).unwrap();
            assert_eq!(sink.bytes.iter().sum::<u64>(), report.spec.bytes().0, "{scheme}");
            // A block has whole starts, of up to 16 rows.
            let every = spec.parts().iter().find_map(crate::Part::starts_every).unwrap_or(1) as usize;
            assert!(source.most_read <= every << 20, "{scheme}: {} values at a time", source.most_read);
            // No part of a block takes more than the 4 MiB of its values, an affine step of one column apart.
            assert!(sink.most <= every * (8 << 20), "{scheme}: {} bytes at a time", sink.most);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rows_are_within_the_bound(
        bits in prop::collection::vec(any::<u32>(), 1..130),
        exponent in 0_u32..255,
        centre in any::<f32>(),
    ) {
        // Numbers of all magnitudes, of one magnitude, and close about one number.
        let finite = |bits: u32| f32::from_bits(if bits >> 23 & 255 == 255 { bits & !(1 << 23) } else { bits });
        let all: Vec<f32> = bits.iter().map(|bits| finite(*bits)).collect();
        let one: Vec<f32> = bits.iter().map(|bits| finite(bits & 0x807f_ffff | exponent << 23)).collect();
        let centre = finite(centre.to_bits());
        let close: Vec<f32> = bits.iter().map(|bits| finite((centre.to_bits() & !0xffff) | bits & 0xffff)).collect();
        for row in [all, one, close] {
            for scheme in variants() {
                match encode(&scheme, &row, row.len()) {
                    Ok(_) => assert_bound(&scheme, &row),
                    Err(error) => prop_assert!(may_refuse(&scheme, &row), "{scheme}: {error}"),
                }
            }
        }
    }
}
