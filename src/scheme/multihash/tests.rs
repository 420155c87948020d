//! What is stored of rows that share several, and what is told of it.

#![expect(clippy::cast_possible_truncation, reason = "f32 values, and small numbers")]

use crate::{EncodeReport, EncodedTable, Encoder, Scheme, SliceSource, TableSource, scheme::Buckets};

fn encode(scheme: &str, values: &[f32], dim: usize) -> (EncodedTable, EncodeReport) {
    EncodedTable::encode("t", values, dim, &scheme.parse().unwrap()).unwrap()
}

fn values(rows: usize, dim: usize) -> Vec<f32> {
    (0..rows * dim).map(|at| ((at * at % 7919) as f32 * 0.37).sin() * (1 + at % 5) as f32).collect()
}

/// The weighted squares of what is not as the table says.
fn error(table: &EncodedTable, values: &[f32], dim: usize, weight: impl Fn(usize) -> f64) -> f64 {
    let of = |at: usize| table.reference((at / dim) as u32, (at % dim) as u32) - f64::from(values[at]);
    (0..values.len()).map(|at| weight(at / dim) * of(at) * of(at)).sum()
}

/// The least squares of any stored rows, column by column, by elimination of the normal equations.
fn least_error(buckets: Buckets, values: &[f32], dim: usize, weight: impl Fn(usize) -> f64) -> f64 {
    let (rows, stored) = (values.len() / dim, buckets.rows() as usize);
    let read = |row: usize| (0..buckets.each()).map(move |table| buckets.row(row as u64, table) as usize);
    let mut left = 0.0;
    for column in 0..dim {
        let mut matrix = vec![vec![0.0; stored + 1]; stored];
        let value = |row: usize| f64::from(values[row * dim + column]);
        for row in 0..rows {
            for one in read(row) {
                read(row).for_each(|other| matrix[one][other] += weight(row));
                matrix[one][stored] += weight(row) * value(row);
            }
        }
        let mut found = vec![0.0; stored];
        // Tables are told apart up to a number: pivots that vanish are such, and their unknowns 0.
        let mut pivots = Vec::new();
        let mut next = 0;
        for unknown in 0..stored {
            let best = (next..stored).max_by(|a, b| matrix[*a][unknown].abs().total_cmp(&matrix[*b][unknown].abs()));
            let Some(best) = best.filter(|best| matrix[*best][unknown].abs() > 1e-9) else { continue };
            matrix.swap(next, best);
            let pivot = matrix[next].clone();
            for line in (0..stored).filter(|line| *line != next) {
                let factor = matrix[line][unknown] / pivot[unknown];
                matrix[line].iter_mut().zip(&pivot).for_each(|(value, pivot)| *value -= factor * pivot);
            }
            pivots.push(unknown);
            next += 1;
        }
        for (line, unknown) in pivots.into_iter().enumerate() {
            found[unknown] = matrix[line][stored] / matrix[line][unknown];
        }
        for row in 0..rows {
            let apart = read(row).map(|at| found[at]).sum::<f64>() - value(row);
            left += weight(row) * apart * apart;
        }
    }
    left
}

#[test]
fn sums_are_the_least_squares() {
    let (rows, dim) = (400, 3);
    let values = values(rows, dim);
    for scheme in
        ["multihash:k=2,rows=31/f32", "multihash:k=3,rows=50/f32", "multihash:k=4,rows=26/f32", "qr:rows=21/f32"]
    {
        let energy = |weight: &dyn Fn(usize) -> f64| -> f64 {
            (0..rows * dim).map(|at| weight(at / dim) * f64::from(values[at]).powi(2)).sum()
        };
        let given: Vec<f32> = (0..rows).map(|row| if row % 10 == 3 { 0.0 } else { (row % 7 + 1) as f32 }).collect();
        let equal = scheme.replace("/f32", ",weights=equal/f32");
        type Weight<'a> = &'a dyn Fn(usize) -> f64;
        let ways: [(&str, Option<&[f32]>, Weight<'_>); 3] = [
            (scheme, None, &|row| 1.0 / (row as f64 + 1.0)),
            (&equal, Some(&given), &|_| 1.0),
            (scheme, Some(&given), &|row| f64::from(given[row])),
        ];
        for (scheme, frequencies, weight) in ways {
            let parsed: Scheme = scheme.parse().unwrap();
            let mut encoder = Encoder::new(&parsed);
            if let Some(frequencies) = frequencies {
                encoder = encoder.frequencies(frequencies);
            }
            let (table, report) = encoder.table("t", &mut SliceSource::new(&values, dim).unwrap()).unwrap();
            let got = error(&table, &values, dim, weight);
            let least = least_error(table.spec().buckets().unwrap(), &values, dim, weight);
            assert!(got >= least * 0.999_999, "{scheme}: {got} under the least there is, {least}");
            assert!(got <= least * 1.002, "{scheme}: {got}, and the least is {least}");
            let residual = report.fit[3];
            assert_eq!(residual.name, "residual energy");
            assert!((residual.value - got / energy(weight)).abs() < 1e-5, "{scheme}: {residual:?}, {got}");
        }
    }
}

#[test]
fn rows_without_company_are_kept() {
    // Three rows of 1,000 share no stored one, whatever their size.
    let values = [1e30, -2.5, 3.0, 1e-20, 65504.0, 0.1];
    for scheme in
        ["multihash:k=2,rows=1000/f32", "multihash:k=4,rows=1000/f32", "qr:rows=9/f32", "qr:rows=9,op=mul/f32"]
    {
        let (table, report) = encode(scheme, &values, 2);
        assert_eq!(report.max_error, 0.0, "{scheme}: {report}");
        assert!((0..6).all(|at| table.reference(at / 2, at % 2) == f64::from(values[at as usize])), "{scheme}");
        assert_eq!((report.fit[2].value, report.fit[3].value), (0.0, 0.0), "{scheme}");
    }
}

#[test]
fn what_is_told_of_collisions() {
    // Each of two tables has one row: all rows are one.
    let (_, report) = encode("multihash:k=2,rows=2/f32", &values(40, 1), 1);
    let figures: Vec<_> = report.fit.iter().map(|figure| (figure.name, figure.value)).collect();
    let want = [("rows a bucket", 40.0), ("longest chain", 40.0), ("traffic that collides", 1.0)];
    assert_eq!(figures[..3], want);
    // Of many rows few have both in common with another: those are counted, by what the hashes say.
    let rows = 3000;
    let (table, report) = encode("multihash:k=2,rows=300,weights=equal/f32", &values(rows, 1), 1);
    let buckets = table.spec().buckets().unwrap();
    let read = |row: usize| [0, 1].map(|table| buckets.row(row as u64, table));
    let traffic = |row: usize| 1.0 / (row as f64 + 1.0);
    let collides = |row: &usize| (0..rows).any(|other| other != *row && read(other) == read(*row));
    let want = (0..rows).filter(collides).map(traffic).sum::<f64>() / (0..rows).map(traffic).sum::<f64>();
    assert!(want > 0.02 && (report.fit[2].value - want).abs() < 1e-12, "{}, not {want}", report.fit[2].value);
}

#[test]
fn more_tables_leave_less() {
    let values = values(2000, 4);
    let left =
        |scheme: &str| encode(scheme, &values, 4).1.fit.iter().find(|f| f.name == "residual energy").unwrap().value;
    let one = left("hash:rows=400,fn=mix/f32");
    assert!(left("multihash:k=2,rows=400/f32") < one, "{one}");
}
