//! What the family promises of itself; the suites over the registry test the rest.

use pulp::WithSimd;

use super::encode::Encode;
use crate::{EncodeError, EncodedTable, Scheme, Shape};

fn encode(scheme: &str, values: &[f32], dim: usize) -> EncodedTable {
    EncodedTable::encode("test", values, dim, &scheme.parse().unwrap()).unwrap().0
}

fn parts(table: &EncodedTable) -> Vec<&[u8]> {
    table.parts().collect()
}

/// Values of which a few are much larger than the rest.
fn heavy_tailed(count: usize) -> Vec<f32> {
    let value = |at: usize| {
        let x = (at as f32 * 0.731).sin();
        if at % 29 == 7 { 2.0 * x.signum() + x } else { x * x * x }
    };
    (0..count).map(value).collect()
}

/// The sum of squared errors of a table of one row.
fn squares(table: &EncodedTable, values: &[f32]) -> f64 {
    let error = |(column, value): (u32, &f32)| table.reference(0, column) - f64::from(*value);
    (0..).zip(values).map(error).map(|error| error * error).sum()
}

#[test]
fn codes_lie_as_the_diagrams_say() {
    // Codes 0 to 15, an affine step of 1: the nibbles of a byte are the columns, the first one low.
    let values: Vec<f32> = (0..16).map(|code| code as f32).collect();
    let table = encode("int4:affine,clip=none", &values, 16);
    assert_eq!(parts(&table)[0], [0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe]);
    assert_eq!(parts(&table)[1], [0x00, 0x3c, 0x00, 0x00], "1.0 and 0.0 as halves");
    // Eleven columns: 5.5 bytes, and a nibble of 0. Symmetric: code 8 is 0.
    let values: Vec<f32> = (0..11).map(|code| 7.0 - code as f32).collect();
    let table = encode("int4:clip=none", &values, 11);
    assert_eq!(parts(&table)[0], [0x21, 0x43, 0x65, 0x87, 0xa9, 0x0b]);
    assert_eq!(parts(&table)[1], [0x00, 0xbc], "-1.0: the largest value is on the negative side");
    // Three bits: 7 6 5 4 3 2 1 0 is 0b000_001_010_011_100_101_110_111.
    let values: Vec<f32> = (0..9).map(|at| (7 - at % 8) as f32 * 0.5 + 10.0).collect();
    let table = encode("int3:affine,clip=none,scales=f32", &values, 9);
    assert_eq!(parts(&table)[0], [0b0111_0111, 0b0011_1001, 0b0000_0101, 0b111]);
    assert_eq!(parts(&table)[1], [0.5f32.to_le_bytes(), 10f32.to_le_bytes()].concat());
    // Two bits, four levels.
    let table = encode("int2", &[-2.0, -1.0, 0.0, 1.0, 1.0], 5);
    assert_eq!(parts(&table)[0], [0b1110_0100, 0b11]);
    assert_eq!(parts(&table)[1], [0x00, 0x3c]);
}

#[test]
fn bytes_are_what_was_promised() {
    let bytes = |scheme: &str, dim| {
        let spec = scheme.parse::<Scheme>().unwrap().spec(Shape::new(341_479, dim).unwrap()).unwrap();
        (spec.parts()[0].row_bytes(), spec.bytes().0)
    };
    assert_eq!(bytes("int4", 100), (50, 341_479 * 52));
    assert_eq!(bytes("int4:affine", 100), (50, 341_479 * 54));
    assert_eq!(bytes("int2:affine", 100), (25, 341_479 * 29));
    assert_eq!(bytes("int3:affine,group=32,scales=f32", 100), (38, 341_479 * (38 + 4 * 8)));
    assert_eq!(bytes("int4", 5), (3, 341_479 * 5));
}

#[test]
fn a_searched_range_is_never_worse_and_often_better() {
    for bits in [2, 3, 4] {
        for options in ["scales=f32", "scales=f16", "affine,scales=f32", "affine", "affine,group=16"] {
            for dim in [1, 2, 15, 16, 17, 100, 1000] {
                let tailed = heavy_tailed(dim);
                let plain: Vec<f32> = (0..dim).map(|at| (at as f32 * 0.37).sin() - 0.3).collect();
                for values in [&tailed, &plain] {
                    let searched = squares(&encode(&format!("int{bits}:{options}"), values, dim), values);
                    let whole = squares(&encode(&format!("int{bits}:{options},clip=none"), values, dim), values);
                    // The sums that are compared are rounded.
                    assert!(searched <= whole * (1.0 + 1e-4), "int{bits}:{options}, {dim}: {searched} over {whole}");
                }
            }
            let values = heavy_tailed(100);
            let searched = squares(&encode(&format!("int{bits}:{options}"), &values, 100), &values);
            let whole = squares(&encode(&format!("int{bits}:{options},clip=none"), &values, 100), &values);
            assert!(searched < whole, "int{bits}:{options}: {searched} and {whole}");
        }
    }
}

/// The baseline and the widest instruction set at hand: the same codes and steps.
#[test]
fn a11_instruction_sets_agree_on_codes() {
    fn agree<const BITS: usize>(affine: bool, group: Option<u32>, half: bool, values: &[f32], dim: usize) {
        let bits = u32::try_from(BITS).unwrap();
        let scheme = super::PackedInt { bits, affine, group, half, search: true };
        let made = |wide: bool| {
            let rows = values.len() / dim;
            let groups = dim.div_ceil(scheme.group(dim));
            let [mut codes, mut steps] =
                [vec![0; rows * scheme.row_bytes(dim)], vec![0; rows * groups * scheme.step_bytes()]];
            let encode = Encode::<BITS> { scheme: &scheme, dim, values, codes: &mut codes, steps: &mut steps };
            if wide { pulp::Arch::new().dispatch(encode) } else { encode.with_simd(pulp::Scalar::new()) }.unwrap();
            (codes, steps)
        };
        assert!(made(true) == made(false), "{scheme:?}");
    }
    let values = heavy_tailed(50 * 101);
    for affine in [false, true] {
        for group in [None, Some(32)] {
            for half in [false, true] {
                agree::<2>(affine, group, half, &values, 101);
                agree::<3>(affine, group, half, &values, 101);
                agree::<4>(affine, group, half, &values, 101);
            }
        }
    }
}

#[test]
fn a09_what_scales_do_not_hold_is_refused_with_a_way_out() {
    let max = f32::MAX;
    for (scheme, values, column, says) in [
        ("int4", [0.0, 1e6, 0.0, -1e5], 1, "over 65504"),
        ("int4:affine", [0.0, 1e6, 0.0, 3.0], 1, "over 65504"),
        ("int2:affine", [-7e4, -7.1e4, 0.0, 3.0], 1, "over 65504"),
        ("int3", [0.0, 1e-9, -2e-9, 0.0], 2, "under 2^-17"),
        ("int4:affine,scales=f32", [0.0, max, -max, 0.0], 1, "symmetric"),
    ] {
        let values = [[1.0; 4], values].concat();
        let error = EncodedTable::encode("test", &values, 4, &scheme.parse().unwrap()).unwrap_err();
        let EncodeError::Precision { row: 1, column: named, reason, .. } = error else { panic!("{scheme}: {error}") };
        assert_eq!(named, column, "{scheme}");
        assert!(reason.contains(says), "{scheme}: {reason}");
    }
}

/// A group of a few columns that are nearly the same has a range that halves do not see: no reason to refuse a table.
#[test]
fn a09_an_offset_costs_no_more_than_its_bound() {
    for scheme in ["int2:affine", "int3:affine", "int4:affine"].map(|text| text.parse::<Scheme>().unwrap()) {
        for (offset, range) in [(1000.0, 0.1), (-1000.0, 0.1), (0.7, 1e-7), (6e4, 1.0), (-3e-5, 1e-6)] {
            let values = [offset, offset + range, offset + range * 0.4];
            let (_, report) = EncodedTable::encode("test", &values, 3, &scheme).unwrap();
            let bound = scheme.error_bound(&values);
            assert!(report.max_error <= bound, "{scheme}, {offset}: {}, bound {bound}", report.max_error);
            // In shares of what one half rounds: at most a third of it, with the three steps of int2.
            assert!(bound <= (f64::from(offset).abs() * 2f64.powi(-10) + f64::from(range)) / 3.0 + 1e-7, "{bound}");
        }
    }
}

#[test]
fn constants_take_what_scales_hold() {
    for scheme in ["int4", "int4:affine", "int3", "int3:affine", "int2", "int2:affine", "int4:clip=none"] {
        let wide = format!("{scheme}{}scales=f32", if scheme.contains(':') { ',' } else { ':' });
        for constant in [2.5f32, -0.123, 1e-3] {
            let table = encode(scheme, &[constant; 20], 20);
            let apart = (table.reference(0, 7) - f64::from(constant)).abs();
            assert!(apart <= f64::from(constant.abs()) * 2f64.powi(-10), "{scheme}: {constant} by {apart}");
            assert!(constant != 2.5 || apart == 0.0, "{scheme}");
            let table = encode(&wide, &[constant; 20], 20);
            assert_eq!(table.reference(0, 7), f64::from(constant), "{wide}");
        }
        if !scheme.contains("affine") {
            let values = [1.7, -1.7, 0.0, 1.7];
            let table = encode(&wide, &values, 4);
            let stored = [0, 1, 2, 3].map(|column| super::step::nearest(table.reference(0, column)));
            assert_eq!(stored, values, "{wide}");
        }
    }
}

/// What was decoded once is encoded without loss, by whichever codes it was made.
#[test]
fn decoded_rows_are_encoded_to_the_same_values() {
    for scheme in ["int4:group=32", "int3", "int2", "int4:affine,group=32", "int3:affine", "int2:affine"] {
        let values = heavy_tailed(20 * 96);
        let once = encode(scheme, &values, 96);
        let decoded = |table: &EncodedTable| -> Vec<f64> {
            (0..20).flat_map(|row| (0..96).map(move |column| table.reference(row, column))).collect()
        };
        // Halves: each of these numbers is an f32.
        let rows: Vec<f32> = decoded(&once).iter().map(|value| super::step::nearest(*value)).collect();
        let twice = encode(scheme, &rows, 96);
        if scheme.contains("affine") {
            // c * s + b is rounded to f32 here, after which another step may be nearer.
            for (a, b) in decoded(&once).iter().zip(decoded(&twice)) {
                assert!((a - b).abs() <= a.abs() * 2f64.powi(-12), "{scheme}: {a} and {b}");
            }
        } else {
            assert_eq!(decoded(&once), decoded(&twice), "{scheme}");
        }
    }
}

#[test]
fn zero_has_no_sign() {
    for scheme in ["int4", "int3:scales=f32", "int2", "int4:scales=f32,clip=none", "int4:affine"] {
        let values = [0.5, 0.0, 0.0, -0.125, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let table = encode(scheme, &values, 10);
        let mut out = [f32::NAN; 10];
        scheme.parse::<Scheme>().unwrap().codec().decode_rows(10, &parts(&table), &[0], &mut out);
        for (column, value) in (0..).zip(out) {
            assert!(value != 0.0 || value.is_sign_positive(), "{scheme}");
            assert_eq!(f64::from(value).to_bits(), table.reference(0, column).to_bits(), "{scheme}");
        }
    }
}
