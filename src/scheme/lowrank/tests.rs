#![expect(clippy::cast_possible_truncation, reason = "numbers made here, of known size")]

use pulp::WithSimd;

use super::*;
use crate::{EncodedTable, Encoder, Scheme, SliceSource, TableSource};

/// Values that look random.
fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_769).wrapping_add(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (f64::from(state) / f64::from(u32::MAX) - 0.5) as f32
    };
    (0..count).map(|_| next()).collect()
}

/// A table of that rank, and a little noise.
fn table(rows: usize, dim: usize, rank: usize, level: f32) -> Vec<f32> {
    let (left, right) = (noise(rows * rank, 1), noise(rank * dim, 2));
    let mut values = noise(rows * dim, 3);
    for (row, values) in values.chunks_mut(dim).enumerate() {
        for (column, value) in values.iter_mut().enumerate() {
            let sum: f32 = (0..rank).map(|j| left[row * rank + j] * right[j * dim + column]).sum();
            *value = sum + level * *value;
        }
    }
    values
}

fn figure(report: &crate::EncodeReport, name: &str) -> f64 {
    report.fit.iter().find(|figure| figure.name == name).unwrap().value
}

#[test]
fn a_table_of_low_rank_comes_back() {
    // By the eigenvectors of the Gram matrix, and by subspace iteration.
    for dim in [60, 700] {
        let values = table(300, dim, 5, 0.0);
        let (stored, report) = EncodedTable::encode("t", &values, dim, &"lowrank:k=5/f32".parse().unwrap()).unwrap();
        assert!(report.relative_error < 1e-6, "{dim}: {}", report.relative_error);
        assert!(figure(&report, "energy kept") > 1.0 - 1e-9);
        let parts: Vec<_> = stored.spec().parts().iter().map(Part::name).collect();
        assert_eq!(parts, ["values", "basis"]);
        assert_eq!(stored.spec().bytes().0, (300 * 5 + 5 * dim as u64) * 4);
    }
}

/// The energy that is not kept is the squared error, and no basis of that rank keeps more (Eckart and Young): both ways find
/// the same.
#[test]
fn the_energy_is_what_the_error_says() {
    for dim in [60, 700] {
        let values = table(400, dim, 6, 0.2);
        let (_, report) = EncodedTable::encode("t", &values, dim, &"lowrank:k=6/f32".parse().unwrap()).unwrap();
        let lost = 1.0 - figure(&report, "energy kept");
        assert!((report.relative_error.powi(2) - lost).abs() < 1e-5, "{lost} {}", report.relative_error);
    }
}

#[test]
fn energy_asks_for_the_least_rank() {
    let dim = 60;
    let values = table(300, dim, 5, 0.01);
    let scheme: Scheme = "lowrank:energy=0.99/f32".parse().unwrap();
    assert!(scheme.spec(Shape::new(300, 60).unwrap()).unwrap_err().to_string().contains("Encoder::fit"));
    let mut source = SliceSource::new(&values, dim).unwrap();
    let encoder = Encoder::new(&scheme).fit(&mut source).unwrap();
    let fitted = encoder.scheme().to_string();
    let k: usize = fitted.strip_prefix("lowrank:k=").unwrap().strip_suffix("/f32").unwrap().parse().unwrap();
    assert!((2..=5).contains(&k), "{fitted}");
    let (stored, report) = encoder.table("t", &mut source).unwrap();
    assert!(figure(&report, "energy kept") >= 0.99);
    assert_eq!(stored.spec().scheme().to_string(), fitted);
    let one_less: Scheme = format!("lowrank:k={}/f32", k - 1).parse().unwrap();
    let (_, report) = EncodedTable::encode("t", &values, dim, &one_less).unwrap();
    assert!(figure(&report, "energy kept") < 0.99);
}

#[test]
fn odd_strings_are_refused_with_the_reason() {
    for (text, says) in [
        ("lowrank", "a codec stands behind it"),
        ("lowrank:k=4", "a codec stands behind it"),
        ("lowrank/f32", "must be given"),
        ("lowrank:k=0/f32", "from 1 to 16384"),
        ("lowrank:k=16385/f32", "from 1 to 16384"),
        ("lowrank:energy=0/f32", "a share over 0"),
        ("lowrank:energy=nan/f32", "is no number"),
        ("lowrank:k=2,energy=0.5/f32", "exclude each other"),
        ("lowrank:k=2/lowrank:k=2/f32", "is no codec"),
        ("lowrank:k=2/", "unknown scheme ``"),
        ("int8/f32", "nothing may"),
    ] {
        let error = text.parse::<Scheme>().unwrap_err().to_string();
        assert!(error.contains(says), "{text:?}: {error}");
    }
}

/// The baseline and the widest instruction set at hand, whole tiles and single rows: the same bits.
#[test]
fn a11_instruction_sets_agree() {
    let (dim, columns, rows) = (77, 13, 7);
    let (basis, factor) = (noise(columns * dim, 4), noise(rows * columns, 5));
    let [mut wide, mut narrow] = [(); 2].map(|()| vec![f32::NAN; rows * dim]);
    pulp::Arch::new().dispatch(decode::Product { dim, columns, basis: &basis, factor: &factor, out: &mut wide });
    decode::Product { dim, columns, basis: &basis, factor: &factor, out: &mut narrow }.with_simd(pulp::Scalar::new());
    let naive = |row: usize, column: usize| {
        (0..columns).fold(0f32, |sum, j| sum + factor[row * columns + j] * basis[j * dim + column])
    };
    for (at, (wide, narrow)) in wide.iter().zip(&narrow).enumerate() {
        assert_eq!(wide.to_bits(), narrow.to_bits());
        assert_eq!(wide.to_bits(), naive(at / dim, at % dim).to_bits());
    }
}
