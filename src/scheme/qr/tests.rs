//! What is stored of remainders and quotients.

use crate::{EncodedTable, Shape, TableSource, units::MAX_ROWS};

fn encode(scheme: &str, values: &[f32], dim: usize) -> (EncodedTable, crate::EncodeReport) {
    EncodedTable::encode("t", values, dim, &scheme.parse().unwrap()).unwrap()
}

#[test]
fn sizes_are_those_of_both_tables() {
    for (rows, dim, scheme, stored, bytes) in [
        (1_000_000, 128, "qr:rows=1000/f32", 2000, 2000 * 128 * 4),
        (1_000_001, 128, "qr:rows=1000/int8", 2001, 2001 * 132),
        (10, 5, "qr:rows=64/f16", 65, 65 * 10),
        (10, 5, "qr:rows=4,op=concat/f16", 7, 7 * 6),
        (MAX_ROWS, 1, "qr:rows=2147483648/int8", (1 << 31) + 2, ((1 << 31) + 2) * 5),
        (MAX_ROWS, 1, "qr:rows=2/f16", (1 << 31) + 1, ((1 << 31) + 1) * 2),
        (0, 5, "qr:rows=4/f32", 0, 0),
    ] {
        let spec = scheme.parse::<crate::Scheme>().unwrap().spec(Shape::new(rows, dim).unwrap()).unwrap();
        assert_eq!((u64::from(spec.stored_rows()), spec.bytes().0), (stored, bytes), "{scheme}");
    }
}

/// A table that is made of products or of halves is found again.
#[test]
fn what_was_joined_comes_apart() {
    let (rows, dim, remainders) = (119, 5, 10);
    let number = |at: usize, by: usize| ((at * at + by) % 89) as f32 / 64.0 + 0.5;
    let product: Vec<f32> = (0..rows * dim)
        .map(|at| {
            let (row, column) = (at / dim, at % dim);
            number(row % remainders * dim + column, 1) * number(row / remainders * dim + column, 2)
        })
        .collect();
    let (_, report) = encode("qr:rows=10,op=mul,weights=equal/f32", &product, dim);
    assert!(report.fit[3].value < 1e-12 && report.relative_error < 1e-6, "{report}");
    let halves: Vec<f32> = (0..rows * dim)
        .map(|at| {
            let (row, column) = (at / dim, at % dim);
            if column < 3 { number(row % remainders, column) } else { number(row / remainders, column) }
        })
        .collect();
    let (table, report) = encode("qr:rows=10,op=concat/f32", &halves, dim);
    assert!(report.relative_error < 1e-7, "{report}");
    assert_eq!(table.spec().parts()[0].shape(), [10 + 12, 3]);
    assert_eq!((report.fit[0].value, report.fit[1].value), (238.0 / 22.0, 12.0));
}

/// Quotients begin at ones, and no sweep makes it worse: a product leaves no more than the remainders alone.
#[test]
fn a_product_leaves_less_than_remainders() {
    let values: Vec<f32> = (0..300 * 4).map(|at| ((at * at % 7919) as f32 * 0.37).sin()).collect();
    let left = |scheme: &str| encode(scheme, &values, 4).1.fit[3].value;
    let alone = left("hash:rows=30/f32");
    for scheme in ["qr:rows=30/f32", "qr:rows=30,op=mul/f32"] {
        assert!(left(scheme) < alone, "{scheme}: {}, {alone}", left(scheme));
    }
}
