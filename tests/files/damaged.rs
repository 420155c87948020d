//! A13: damaged tables are refused with a typed error that names what is wrong, and are not altered.

use std::{fs, io::Cursor};

use gatherum::{
    EncodedTable, Scheme, TableSource,
    io::{self, FileError, TableFile, Vocabulary, save_table},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::formats;

/// A table file's bytes, and where each tensor of it ends.
fn table(scheme: &str) -> (Vec<u8>, Vec<usize>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.safetensors");
    let values: Vec<f32> = (0..5 * 36).map(|index| (index % 17) as f32 - 8.0).collect();
    let (table, _) = EncodedTable::encode("table", &values, 36, &scheme.parse().unwrap()).unwrap();
    let words = Vocabulary::from_words(["the", "of", "and", "to", "a"]).unwrap();
    save_table(&table, Some(&words), &path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let (header, data) = header(&bytes);
    let tensors = header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__");
    let ends = tensors.map(|(_, info)| data + usize::try_from(info["data_offsets"][1].as_u64().unwrap()).unwrap());
    let ends = ends.chain([8, data]).collect();
    (bytes, ends)
}

fn header(bytes: &[u8]) -> (Value, usize) {
    let data = 8 + usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    (serde_json::from_slice(&bytes[8..data]).unwrap(), data)
}

/// The table with an edited header.
fn edited(bytes: &[u8], edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    let (mut json, data) = header(bytes);
    edit(&mut json);
    formats::safetensors(&json.to_string(), &bytes[data..])
}

fn open(bytes: &[u8]) -> Result<TableFile<Cursor<&[u8]>>, FileError> {
    TableFile::from_reader("table", Cursor::new(bytes))
}

fn refused(bytes: &[u8]) -> FileError {
    let error = open(bytes).expect_err("a damaged table");
    assert!(error.to_string().starts_with("table: "), "{error} names the file");
    error
}

fn schemes() -> impl Iterator<Item = &'static str> {
    let fits = |text: &&str| text.parse::<Scheme>().unwrap().spec(gatherum::Shape::new(5, 36).unwrap()).is_ok();
    Scheme::all().iter().flat_map(|info| info.variants).copied().filter(fits)
}

#[test]
fn a13_cut_files() {
    for scheme in schemes() {
        let (bytes, ends) = table(scheme);
        assert!(open(&bytes).is_ok());
        for cut in
            ends.iter().flat_map(|end| [end - 1, *end, end + 1]).chain([0, 1, 7]).filter(|cut| *cut < bytes.len())
        {
            let error = refused(&bytes[..cut]);
            assert!(matches!(error, FileError::Length { has, .. } if has.0 == cut as u64), "{scheme}, {cut}: {error}");
        }
        let longer = [&bytes[..], b"\0"].concat();
        assert!(matches!(refused(&longer), FileError::Length { .. }));
    }
}

#[test]
fn a13_flipped_bits_of_parts() {
    for scheme in schemes() {
        let (bytes, _) = table(scheme);
        let (json, data) = header(&bytes);
        for (name, info) in json.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__") {
            let range = |end: usize| usize::try_from(info["data_offsets"][end].as_u64().unwrap()).unwrap() + data;
            for at in range(0)..range(1) {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << (at % 8);
                match refused(&bytes) {
                    FileError::Checksum { part, .. } => assert_eq!(part, format!("part `{name}`")),
                    error => panic!("{scheme}: {error}"),
                }
            }
        }
    }
}

#[test]
fn a13_every_flipped_bit_of_the_header() {
    let (mut bytes, _) = table("int8:group=32");
    let (_, data) = header(&bytes);
    for bit in 0..data * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        refused(&bytes);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(open(&bytes).is_ok());
}

#[test]
fn a13_headers_that_lie() {
    let (bytes, _) = table("int8");
    for (claimed, typed) in [
        (bytes.len() as u64, "Length"),
        (1 << 26, "Length"),
        (1 << 60, "HeaderTooLarge"),
        (u64::MAX, "HeaderTooLarge"),
        (1, "Header"),
    ] {
        let mut bytes = bytes.clone();
        bytes[..8].copy_from_slice(&claimed.to_le_bytes());
        let error = refused(&bytes);
        let name = format!("{error:?}");
        assert!(name.split([' ', '{']).next() == Some(typed), "{claimed}: {name}");
    }
}

type Edit = fn(&mut Value);

#[test]
fn a13_edited_headers() {
    let (bytes, _) = table("int8");
    let cases: [(&str, Edit); 24] = [
        ("invalid offset", |json| json["codes"]["data_offsets"] = json!([0, 180])),
        ("invalid offset for tensor `codes`", |json| json["codes"]["data_offsets"] = json!([21, 201])),
        ("invalid shape, data type, or offset", |json| json["words"]["data_offsets"] = json!([200, 1u64 << 40])),
        ("-1", |json| json["words"]["data_offsets"] = json!([-1, 5])),
        ("the file has", |json| json["words"] = json!({"dtype": "U8", "shape": [1000], "data_offsets": [200, 1200]})),
        ("version `2`; this library reads version `1`", |json| json["__metadata__"]["format_version"] = json!("2")),
        ("version ``", |json| json["__metadata__"]["format_version"] = json!("")),
        ("unknown scheme `int9`", |json| json["__metadata__"]["scheme"] = json!("int9")),
        ("is no whole number", |json| json["__metadata__"]["rows"] = json!("-5")),
        ("is no whole number", |json| json["__metadata__"]["dim"] = json!("99999999999999999999")),
        ("rows; at most", |json| json["__metadata__"]["rows"] = json!("18446744073709551615")),
        ("0 columns", |json| json["__metadata__"]["dim"] = json!("0")),
        ("part `codes` is I8 [5, 36]", |json| json["__metadata__"]["rows"] = json!("6")),
        ("has I8 [4294967294, 1048576]", |json| {
            json["__metadata__"]["rows"] = json!("4294967294");
            json["__metadata__"]["dim"] = json!("1048576");
        }),
        ("part `values` is missing", |json| json["__metadata__"]["scheme"] = json!("f32")),
        ("verflow", |json| json["codes"]["shape"] = json!([1u64 << 63, 4])),
        ("part `codes` is U8", |json| json["codes"]["dtype"] = json!("U8")),
        ("part `scales` is F32 [1, 5]", |json| json["scales"]["shape"] = json!([1, 5])),
        ("part `scales` is missing", |json| rename(json, "scales", "scale")),
        ("part `wards` is not one", |json| rename(json, "words", "wards")),
        ("part `words` is I8", |json| json["words"]["dtype"] = json!("I8")),
        ("no `checksum.codes`", |json| drop(json["__metadata__"].as_object_mut().unwrap().remove("checksum.codes"))),
        ("no `checksum`", |json| drop(json["__metadata__"].as_object_mut().unwrap().remove("checksum"))),
        ("the header's description is damaged", |json| json["__metadata__"]["checksum.codes"] = json!("xxh3:0")),
    ];
    for (number, (says, edit)) in cases.into_iter().enumerate() {
        let error = refused(&edited(&bytes, edit)).to_string();
        assert!(error.contains(says), "{number}: {error:?} says not {says:?}");
    }
    // A key that nobody knows is no harm.
    let noted = edited(&bytes, |json| json["__metadata__"]["note"] = json!("mine"));
    assert_eq!(open(&noted).unwrap().metadata("note"), Some("mine"));
}

fn rename(json: &mut Value, from: &str, to: &str) {
    let object = json.as_object_mut().unwrap();
    let value = object.remove(from).unwrap();
    object.insert(to.to_owned(), value);
}

#[test]
fn a13_other_files_are_not_taken_for_tables() {
    let foreign = formats::tensors(&[("weight", "F32", &[2, 1], vec![0; 8])]);
    assert!(matches!(refused(&foreign), FileError::NotTable { .. }));
    for bytes in [&b"the 0.1 0.2\nof 0.3 0.4\n"[..], b"\x93NUMPY\x01\0\x10\0{}"] {
        let error = refused(bytes);
        assert!(matches!(error, FileError::NotTable { .. }), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for bytes in [foreign, Vec::new(), b"text".to_vec(), b"\x10\0\0\0\0\0\0\0{".to_vec()] {
        fs::write(&path, bytes).unwrap();
        assert!(!io::is_table(&path).unwrap());
    }
    assert!(matches!(io::is_table(folder.path().join("none")), Err(FileError::Io { .. })));
    assert!(matches!(TableFile::open(folder.path().join("none")), Err(FileError::Io { .. })));
}

#[test]
fn a13_a_table_of_unknown_version_is_still_told_from_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.safetensors");
    let later = edited(&table("f32").0, |json| json["__metadata__"]["format_version"] = json!("2"));
    fs::write(&path, &later).unwrap();
    assert!(io::is_table(&path).unwrap());
    let error = TableFile::open(&path).unwrap_err();
    assert!(matches!(&error, FileError::Version { version, .. } if version == "2"), "{error}");
    assert!(error.to_string().contains("table.safetensors"), "{error}");
}

#[test]
fn a13_reading_alters_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.safetensors");
    let (bytes, ends) = table("int8");
    for end in ends {
        let mut damaged = bytes[..end].to_vec();
        if let Some(last) = damaged.last_mut() {
            *last ^= 4;
        }
        fs::write(&path, &damaged).unwrap();
        assert!(TableFile::open(&path).is_err());
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
    fs::write(&path, &bytes).unwrap();
    TableFile::open(&path).unwrap().words().unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a run of bytes is replaced with, the table is the same or refused.
    #[test]
    fn a13_replaced_bytes(at in any::<prop::sample::Index>(), with in prop::collection::vec(any::<u8>(), 1..40)) {
        let (bytes, _) = table("int8:affine");
        let mut damaged = bytes.clone();
        let at = at.index(bytes.len());
        let end = (at + with.len()).min(bytes.len());
        damaged[at..end].copy_from_slice(&with[..end - at]);
        match open(&damaged) {
            Ok(table) => prop_assert!(damaged == bytes, "{}", table.spec().scheme()),
            Err(error) => prop_assert!(error.to_string().starts_with("table: "), "{}", error),
        }
    }
}
