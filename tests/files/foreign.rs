//! A14: matrices that others wrote: safetensors and NumPy.

use std::{fs, path::PathBuf};

use gatherum::io::{FileError, Format, OpenOptions, Vocabulary, open_rows, write_npy};
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::{formats, read, read_by};

/// Exact in every type that is read: 5 rows of 3 columns.
pub(crate) const VALUES: [f32; 15] =
    [0.0, 1.0, -2.0, 0.5, -0.25, 3.0, 1024.0, -0.0078125, 7.5, -1.0, 96.0, 0.125, 2.5, -6.0, 100.0];

pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// The error of opening or reading a file of that name and bytes; it names the file.
pub(crate) fn refused(name: &str, bytes: &[u8]) -> String {
    let folder = Folder::new();
    let path = folder.file(name, bytes);
    let error = match open_rows(&path, &OpenOptions::default()) {
        Ok(mut input) => read_by(&mut input, 2).expect_err(name).to_string(),
        Err(error) => error.to_string(),
    };
    assert!(error.contains(&path.display().to_string()), "{error:?} names {name}");
    error
}

fn tensor(name: &str) -> OpenOptions {
    OpenOptions { tensor: Some(name.into()), words: None }
}

#[test]
fn a14_npy_of_every_type_order_and_version() {
    let folder = Folder::new();
    for (kind, dtype, size) in [("f2", "F16", 2), ("f4", "F32", 4), ("f8", "F64", 8)] {
        for (order, fortran, version) in [("<", false, 1), ("<", true, 2), (">", false, 3), (">", true, 1)] {
            let values = if fortran { formats::transposed(&VALUES, 3) } else { VALUES.to_vec() };
            let mut data = formats::numbers(dtype, &values);
            if order == ">" {
                data = formats::swapped(&data, size);
            }
            let file = formats::npy(version, &format!("{order}{kind}"), fortran, "(5, 3)", &data);
            let mut input = open_rows(folder.file("a.npy", &file), &OpenOptions::default()).unwrap();
            assert_eq!((input.format, input.gzip, &input.words), (Format::Npy, false, &None));
            for block in [1, 2, 5] {
                assert_eq!(read_by(&mut input, block).unwrap(), VALUES, "{order}{kind} {fortran} {block}");
            }
        }
    }
}

#[test]
fn a14_npy_larger_than_the_chunks_it_is_read_by() {
    let folder = Folder::new();
    let values: Vec<f32> = (0..300_000).map(|index| index as f32 * 0.5).collect();
    for (dim, fortran) in [(3, false), (3, true), (100_000, false), (100_000, true), (1, true)] {
        let stored = if fortran { formats::transposed(&values, dim) } else { values.clone() };
        let shape = format!("({}, {dim})", values.len() / dim);
        let file = formats::npy(1, "<f8", fortran, &shape, &formats::numbers("F64", &stored));
        let mut input = open_rows(folder.file("a.npy", &file), &OpenOptions::default()).unwrap();
        assert!(read_by(&mut input, 299_999).unwrap() == values, "{dim} {fortran}");
    }
}

#[test]
fn a14_npy_headers_that_are_refused() {
    let data = formats::numbers("F32", &VALUES);
    let npy = |descr: &str, shape: &str| formats::npy(1, descr, false, shape, &data);
    for (file, says) in [
        (npy("<i4", "(5, 3)"), "holds <i4; rows are read from f2, f4 or f8"),
        (npy("<f4", "(15,)"), "has shape [15]; a table has 2 dimensions"),
        (npy("<f4", "(5, 3, 1)"), "has shape [5, 3, 1]"),
        (npy("<f4", "()"), "has shape []"),
        (npy("<f4", "(5, 0)"), "0 columns"),
        (npy("<f4", "(4611686018427387904, 4)"), "at most 4294967294 are supported"),
        (npy("<f4", "(99999999999999999999, 4)"), "no Python literal (at byte"),
        (npy("<f4", "(4, 3)"), "its header describes"),
        (npy("<f4", "(4294967294, 1048576)"), "it is cut short"),
        (npy("<f4", "(5, -3)"), "no Python literal"),
        (npy("<f4", "(5, True)"), "`shape` holds something other than sizes"),
        (npy("<f4", "5"), "`shape` is no tuple"),
        (formats::npy_header(1, b"{'descr': '<f4', 'shape': (5, 3)}", &data), "it has no `fortran_order`"),
        (
            formats::npy_header(1, b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (5, 3)}", &data),
            "a structure",
        ),
        (formats::npy_header(1, b"[1]", &data), "it is no dictionary"),
        (formats::npy_header(4, b"{}", &data), "version 4.0"),
        (b"\x93NUMPY\x01\0".to_vec(), "has 8 B"),
        (b"\x93NUMPY\x01\0\xff\xffabc".to_vec(), "its header describes 65545 B"),
        (b"\x93NUMPY\x02\0\xff\xff\xff\xff".to_vec(), "the header claims 4294967295 B"),
    ] {
        let error = refused("a.npy", &file);
        assert!(error.contains(says), "{error:?} says not {says:?}");
    }
}

#[test]
fn a14_doubles_beyond_f32_are_named_by_row_and_column() {
    let mut values = [0f64; 15];
    values[11] = -1e300;
    for (fortran, place) in [(false, "row 3, column 2: -1e300"), (true, "row 1, column 2: -1e300")] {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let error = refused("a.npy", &formats::npy(1, "<f8", fortran, "(5, 3)", &data));
        assert!(error.contains(place), "{error}");
    }
    // Infinity and NaN pass here: the encoder refuses them, with row and column too.
    values[11] = f64::INFINITY;
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let folder = Folder::new();
    let path = folder.file("a.npy", &formats::npy(1, "<f8", false, "(5, 3)", &data));
    assert_eq!(read(&mut open_rows(path, &OpenOptions::default()).unwrap())[11], f32::INFINITY);
}

#[test]
fn a14_safetensors_of_every_type() {
    let folder = Folder::new();
    for dtype in ["F16", "BF16", "F32", "F64"] {
        let bias = ("bias", "F32", &[3u64][..], vec![0; 12]);
        let ids = ("ids", "I64", &[5u64, 1][..], vec![0; 40]);
        let file = formats::tensors(&[bias, ids, ("emb.weight", dtype, &[5, 3], formats::numbers(dtype, &VALUES))]);
        // Told by the content, whatever the name.
        for name in ["a.safetensors", "model.dat"] {
            let path = folder.file(name, &file);
            for options in [OpenOptions::default(), tensor("emb.weight")] {
                let mut input = open_rows(&path, &options).unwrap();
                assert_eq!(input.format, Format::Safetensors);
                assert_eq!(input.tensor.as_deref(), Some("emb.weight"));
                assert_eq!(read(&mut input), VALUES, "{dtype}");
            }
        }
    }
}

#[test]
fn a14_a_tensor_is_chosen_by_name_or_because_it_is_the_only_one() {
    let folder = Folder::new();
    let data = || formats::numbers("F32", &VALUES);
    let words = ("words", "U8", &[9u64][..], b"a\nb\nc\nd\ne".to_vec());
    let two =
        [("in", "F32", &[5u64, 3][..], data()), ("out", "F32", &[3, 5], data()), ("b", "U8", &[1], vec![1]), words];
    let path = folder.file("a.safetensors", &formats::tensors(&two));
    let error = open_rows(&path, &OpenOptions::default()).unwrap_err();
    assert!(matches!(error, FileError::Ambiguous { .. }));
    assert!(error.to_string().contains("`in` F32 [5, 3], `out` F32 [3, 5]"), "{error}");

    let mut input = open_rows(&path, &tensor("in")).unwrap();
    assert_eq!(read(&mut input), VALUES);
    assert_eq!(input.words.unwrap().find("d"), Some(3));
    let error = open_rows(&path, &tensor("out")).unwrap_err();
    assert!(matches!(error, FileError::WordCount { words: 5, rows: 3, .. }), "{error}");
    for (name, says) in [("none", "no tensor `none`; there are: `b` U8 [1], `in`"), ("b", "tensor `b` holds U8")] {
        let error = open_rows(&path, &tensor(name)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let none = formats::tensors(&[("b", "U8", &[1], vec![1])]);
    assert!(refused("a.safetensors", &none).contains("no tensor of 2 dimensions"));
    let cube = formats::tensors(&[("c", "F32", &[1, 1, 1], vec![0; 4])]);
    let error = open_rows(folder.file("c.safetensors", &cube), &tensor("c")).unwrap_err();
    assert!(error.to_string().contains("has shape [1, 1, 1]"), "{error}");
}

#[test]
fn a14_safetensors_headers_that_are_refused() {
    let good = formats::tensors(&[("w", "F32", &[5, 3], formats::numbers("F32", &VALUES))]);
    for (file, says) in [
        (good[..good.len() - 1].to_vec(), "it is cut short"),
        ([&good[..], b"x"].concat(), "it has bytes too many"),
        (Vec::new(), "its header describes 8 B"),
        (formats::safetensors("{\"w\":", &[]), "damaged header"),
        (formats::safetensors(r#"{"w":{"dtype":"F31","shape":[1,1],"data_offsets":[0,4]}}"#, &[0; 4]), "F31"),
        (formats::safetensors(r#"{"w":{"dtype":"F32","shape":[1,1],"data_offsets":[4,0]}}"#, &[0; 4]), "`w`"),
        (
            formats::safetensors(
                r#"{"w":{"dtype":"F32","shape":[9223372036854775808,4],"data_offsets":[0,4]}}"#,
                &[0; 4],
            ),
            "verflow",
        ),
        (
            formats::safetensors(r#"{"w":{"dtype":"F32","shape":[0,2000000],"data_offsets":[0,0]}}"#, &[]),
            "2000000 columns",
        ),
    ] {
        let error = refused("a.safetensors", &file);
        assert!(error.contains(says), "{error:?} says not {says:?}");
    }
}

#[test]
fn a14_models_of_several_files() {
    let folder = Folder::new();
    folder.file("m-1.safetensors", &formats::tensors(&[("bias", "F32", &[3], vec![0; 12])]));
    let weight = ("weight", "BF16", &[5u64, 3][..], formats::numbers("BF16", &VALUES));
    folder.file("m-2.safetensors", &formats::tensors(&[weight, ("other", "F32", &[1, 1], vec![0; 4])]));
    let index = |map: serde_json::Value| folder.file("m.safetensors.index.json", map.to_string().as_bytes());
    let map =
        json!({"metadata": {"total_size": 46}, "weight_map": {"bias": "m-1.safetensors", "weight": "m-2.safetensors"}});
    let path = index(map.clone());
    for options in [OpenOptions::default(), tensor("weight")] {
        let mut input = open_rows(&path, &options).unwrap();
        assert_eq!((input.format, input.tensor.as_deref()), (Format::Safetensors, Some("weight")));
        assert_eq!(read(&mut input), VALUES);
    }
    let says = |map: serde_json::Value, options: &OpenOptions, says: &str| {
        let error = open_rows(index(map), options).unwrap_err().to_string();
        assert!(error.contains(says), "{error:?} says not {says:?}");
    };
    says(map.clone(), &tensor("none"), "no tensor `none`; there are: bias, weight");
    let mut two = map.clone();
    two["weight_map"]["other"] = json!("m-2.safetensors");
    says(two, &OpenOptions::default(), "name one: `other` F32 [1, 1], `weight` BF16 [5, 3]");
    says(json!({"weight_map": {"weight": "m-1.safetensors"}}), &tensor("weight"), "no tensor `weight`");
    says(json!({"weight_map": {"weight": "m-3.safetensors"}}), &OpenOptions::default(), "m-3.safetensors");
    for outside in ["../m-1.safetensors", "/etc/passwd", "a\\b", "..", ""] {
        says(json!({"weight_map": {"weight": outside}}), &OpenOptions::default(), "no plain file name");
    }
    says(json!({}), &OpenOptions::default(), "no object `weight_map`");
    says(json!({"weight_map": {"weight": 1}}), &OpenOptions::default(), "is no string");
}

#[test]
fn a14_words_from_a_file_beside() {
    let folder = Folder::new();
    let npy = folder.file("a.npy", &formats::npy(1, "<f4", false, "(5, 3)", &formats::numbers("F32", &VALUES)));
    let with = |bytes: &[u8]| OpenOptions { tensor: None, words: Some(folder.file("words.txt", bytes)) };
    let plain = b"the\nof\r\n\nto be\n\xff";
    for bytes in [plain.to_vec(), [plain, &b"\n"[..]].concat(), formats::gzip(plain)] {
        let words = open_rows(&npy, &with(&bytes)).unwrap().words.unwrap();
        assert_eq!(words, Vocabulary::from_words([&b"the"[..], b"of", b"", b"to be", b"\xff"]).unwrap());
    }
    for (bytes, count) in
        [(&b"a\nb\nc\nd"[..], 4), (b"a\nb\nc\nd\ne\nf\ng\nh", 8), (b"a\nb\nc\nd\ne\nf\n", 6), (b"", 0)]
    {
        let error = open_rows(&npy, &with(bytes)).unwrap_err();
        assert!(matches!(error, FileError::WordCount { words, rows: 5, .. } if words == count), "{error}");
        assert!(error.to_string().contains("words.txt"), "{error}");
    }
    let long = [b"a\n".to_vec(), vec![b'x'; 1 << 17]].concat();
    let error = open_rows(&npy, &with(&long)).unwrap_err();
    assert!(matches!(error, FileError::BadLine { line: 2, .. }), "{error}");
}

#[test]
fn files_of_other_kinds_are_told_what_to_do() {
    for (name, bytes, says) in [
        ("a.npz", &b"PK\x03\x04...."[..], "zip archive"),
        ("a.pkl", b"\x80\x04\x95...", "Python pickle"),
        ("a.bin", b"\xba\x16\x4f\x2f....", "fastText model"),
        ("a.txt", b"", "is empty"),
        ("a.txt", b"Hello, world\nthis is prose\n", "no format that is read"),
        ("a.dat", b"\0\0\0\0", "no format that is read"),
    ] {
        let error = refused(name, bytes);
        assert!(error.contains(says), "{error:?} says not {says:?}");
    }
    let folder = Folder::new();
    let error = open_rows(folder.0.path(), &OpenOptions::default()).unwrap_err();
    assert!(error.to_string().contains("is a folder"), "{error}");
    let error = open_rows(folder.file("a.txt", b"the 1 2\n"), &tensor("w")).unwrap_err();
    assert!(error.to_string().contains("no tensor `w` to choose"), "{error}");
    assert!(matches!(open_rows(folder.0.path().join("none"), &OpenOptions::default()), Err(FileError::Io { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a14_written_npy_reads_back(dim in 1usize..9, bits in prop::collection::vec(any::<u32>(), 0..60), block in 1usize..5) {
        let values: Vec<f32> = bits[..bits.len() / dim * dim].iter().map(|bits| f32::from_bits(*bits)).collect();
        let mut file = Vec::new();
        write_npy(&mut file, &values, dim).unwrap();
        prop_assert_eq!((file.len() - values.len() * 4) % 64, 0);
        let folder = Folder::new();
        let mut input = open_rows(folder.file("a.npy", &file), &OpenOptions::default()).unwrap();
        let read: Vec<u32> = read_by(&mut input, block).unwrap().iter().map(|value| value.to_bits()).collect();
        prop_assert_eq!(read, &bits[..values.len()]);
    }
}
