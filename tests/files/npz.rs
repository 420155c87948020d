//! A14: sparse matrices that SciPy has written. `scripts/sparse-reference.py` made the files under `tests/data/`.

use std::io::{Cursor, Write};

use gatherum::{
    EncodedTable, Encoder, Scheme, TableSource,
    io::{Format, OpenOptions, open_rows},
};
use zip::{ZipWriter, write::SimpleFileOptions};

use super::{
    foreign::{Folder, refused},
    formats::npy,
    read, read_by,
};

/// The matrix of the script.
const ROWS: [[f32; 5]; 7] = [
    [0.0, -1.0, 0.0, 0.0, 0.0],
    [0.0; 5],
    [2.0, 0.0, 0.0, 3.25, 0.0],
    [0.0, 0.0, -0.125, 0.0, 0.0],
    [0.0; 5],
    [0.0; 5],
    [4.0, 0.0, 0.0, 0.0, 0.5],
];

fn opened(bytes: &[u8]) -> gatherum::io::Input {
    open_rows(Folder::new().file("a.npz", bytes), &OpenOptions::default()).unwrap()
}

#[test]
fn a14_npz_of_every_format_that_is_read() {
    let all: [&[u8]; 3] = [
        include_bytes!("../data/sparse-csr.npz"),
        include_bytes!("../data/sparse-csc.npz"),
        include_bytes!("../data/sparse-coo.npz"),
    ];
    for bytes in all {
        let mut input = opened(bytes);
        assert_eq!((input.format, input.rows.shape().rows()), (Format::Npz, 7));
        assert_eq!(read(&mut input), ROWS.as_flattened());
        assert_eq!(read_by(&mut input, 3).unwrap(), ROWS.as_flattened());
        for text in ["csr/f32", "coo/f16"] {
            let scheme: Scheme = text.parse().unwrap();
            let (table, report): (EncodedTable, _) = Encoder::new(&scheme).table("t", &mut *input.rows).unwrap();
            assert_eq!((report.max_error, table.spec().values()), (0.0, 6), "{text}");
            assert_eq!(table.reference(6, 4), 0.5);
        }
    }
}

#[test]
fn a14_npz_in_no_order_and_of_whole_numbers() {
    let mut unsorted = opened(include_bytes!("../data/sparse-unsorted.npz"));
    assert_eq!(read(&mut unsorted), [0.0, 0.0, 0.0, 1.0, 0.0, 3.0, 0.0, 0.0, 0.0, 2.25], "one place has two values");
    let mut counts = opened(include_bytes!("../data/sparse-counts.npz"));
    assert_eq!(read(&mut counts), [0.0, 3.0, 200.0, 0.0]);
}

/// An archive of arrays: name, type, dimensions, bytes.
fn archive(arrays: &[(&str, &str, &str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, descr, shape, bytes) in arrays {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(&npy(1, descr, false, shape, bytes)).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn longs(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A matrix of 2 x 3 with values at [0, 1] and [1, 0], but for one array in place of that of its name.
fn but_for(name: &'static str, descr: &'static str, shape: &'static str, bytes: Vec<u8>) -> Vec<u8> {
    let mut arrays = vec![
        ("format.npy", "|S3", "()", b"csr".to_vec()),
        ("shape.npy", "<i8", "(2,)", longs(&[2, 3])),
        ("indptr.npy", "<i8", "(3,)", longs(&[0, 1, 2])),
        ("indices.npy", "<i8", "(2,)", longs(&[1, 0])),
        ("data.npy", "<f8", "(2,)", [1f64.to_le_bytes(), 2f64.to_le_bytes()].concat()),
    ];
    if let Some(array) = arrays.iter_mut().find(|array| array.0 == name) {
        *array = (name, descr, shape, bytes);
    }
    archive(&arrays)
}

#[test]
fn a13_npz_whose_numbers_do_not_go_together() {
    assert_eq!(read(&mut opened(&but_for("", "", "", Vec::new()))), [0.0, 1.0, 0.0, 2.0, 0.0, 0.0]);
    let large = [1e300f64.to_le_bytes(), 0f64.to_le_bytes()].concat();
    for (bytes, says) in [
        (include_bytes!("../data/sparse-bsr.npz").to_vec(), "of format \"bsr\": save it as csr, csc or coo"),
        (
            archive(&[("table.npy", "<f4", "(1, 1)", vec![0; 4])]),
            "no sparse matrix of SciPy's `save_npz`; it holds table.npy",
        ),
        (archive(&[("format.npy", "|S3", "()", b"csr".to_vec())]), "shape.npy"),
        (but_for("shape.npy", "<i8", "(3,)", longs(&[2, 3, 1])), "has shape [2, 3, 1]"),
        (but_for("shape.npy", "<i8", "(2,)", longs(&[2, 0])), "0 columns"),
        (but_for("shape.npy", "<i8", "(2,)", longs(&[-2, 3])), "shape.npy: damaged header: item 0 is -2"),
        (but_for("shape.npy", "<f8", "(2,)", vec![0; 16]), "holds <f8"),
        (but_for("shape.npy", "<i8", "(2,)", longs(&[1 << 40, 3])), "at most 4294967294"),
        (but_for("shape.npy", "<i8", "(2,)", longs(&[4_000_000_000, 3])), "it has 3 items, not 4000000001"),
        (but_for("indptr.npy", "<i8", "(3,)", longs(&[0, 2, 1])), "row 1: its values begin at 2 and end at 1, of 2"),
        (but_for("indptr.npy", "<i8", "(3,)", longs(&[0, 1, 1 << 60])), "row 1: its values begin at 1 and end at 1152"),
        (but_for("indptr.npy", "<i8", "(3,)", longs(&[0, 1, 1])), "it ends with 1, and there are 2 values"),
        (but_for("indptr.npy", "<i8", "(3,)", longs(&[1, 1, 2])), "it begins with 1, not 0"),
        (but_for("indptr.npy", "<i8", "(3, 1)", longs(&[0, 1, 2])), "one dimension is wanted"),
        (but_for("indices.npy", "<i8", "(2,)", longs(&[3, 0])), "row 0: value 0 is in column 3 of 3"),
        (but_for("indices.npy", "<i8", "(2,)", longs(&[1 << 32, 0])), "row 0: value 0 is in column 4294967295 of 3"),
        (but_for("indices.npy", "<i8", "(3,)", longs(&[1, 0])), "it is cut short"),
        (but_for("indices.npy", "<i8", "(4611686018427387904,)", longs(&[1, 0])), "it is cut short"),
        (but_for("data.npy", "<f8", "(3,)", vec![0; 24]), "`values` has 3 items, not 2"),
        (but_for("data.npy", "<c8", "(2,)", vec![0; 16]), "holds <c8"),
        (but_for("data.npy", "<f8", "(2,)", large), "item 0 is 1e300, which does not fit f32"),
    ] {
        let error = refused("a.npz", &bytes);
        assert!(error.contains(says), "{error}, not {says}");
    }
    let whole = but_for("", "", "", Vec::new());
    for length in (4..whole.len()).step_by(13) {
        refused("a.npz", &whole[..length]);
    }
    let mut flipped = whole.clone();
    flipped[but_for("", "", "", Vec::new()).len() / 3] ^= 4;
    refused("a.npz", &flipped);
}
