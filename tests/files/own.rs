//! Own tables: saved, loaded, and left alone when saving fails.

use std::{fs, path::Path};

use gatherum::{
    EncodedTable, Encoder, PartSink, RowSource, Scheme, Shape, SliceSource, SourceError, TableSource,
    io::{self, FileError, OpenOptions, TableFile, TableWriter, Vocabulary, open_rows, save_table},
};
use proptest::prelude::*;

use super::{now, read};

fn values(rows: usize, dim: usize) -> Vec<f32> {
    (0..rows * dim).map(|index| ((index * 7919 % 1013) as f32 - 500.0) / 64.0).collect()
}

/// Every scheme variant, at shapes that it takes.
fn every_table(mut test: impl FnMut(&str, EncodedTable)) {
    let mut tables = 0;
    for text in Scheme::all().iter().flat_map(|info| info.variants) {
        let scheme: Scheme = text.parse().unwrap();
        for (rows, dim) in [(0, 64), (1, 13), (5, 100), (37, 64)] {
            if scheme.spec(Shape::new(rows as u64, dim as u64).unwrap()).is_ok() {
                tables += 1;
                test(text, EncodedTable::encode("table", &values(rows, dim), dim, &scheme).unwrap().0);
            }
        }
    }
    assert!(tables >= 2 * Scheme::all().len(), "each scheme has tables to test");
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a12_saved_tables_load_byte_equal() {
    let folder = tempfile::tempdir().unwrap();
    every_table(|scheme, table| {
        for with_words in [false, true] {
            let rows = table.spec().shape().rows();
            let words = Vocabulary::from_words((0..rows).map(|row| format!("word {row}"))).unwrap();
            let words = with_words.then_some(&words);
            let path = folder.path().join("saved.safetensors");
            save_table(&table, words, &path).unwrap();

            assert!(io::is_table(&path).unwrap());
            let file = TableFile::open(&path).unwrap();
            assert_eq!(file.name(), "saved");
            assert_eq!(file.spec(), table.spec());
            assert_eq!(file.metadata("scheme"), Some(&*table.spec().scheme().to_string()));
            assert_eq!(file.words().unwrap().as_ref(), words);
            let loaded = now(EncodedTable::read(&file)).unwrap();
            assert!(loaded.parts().eq(table.parts()), "{scheme}: bytes of the parts");

            // Nothing but the parts, the words and a header: no table is expanded on the way.
            let bytes = fs::read(&path).unwrap();
            let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap());
            let words =
                words.map_or(0, |words| words.iter().map(|word| word.len() + 1).sum::<usize>().saturating_sub(1));
            assert_eq!(bytes.len() as u64, header + table.spec().bytes().0 + words as u64);
        }
    });
}

#[test]
fn a12_a_table_written_while_it_is_encoded_is_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one.safetensors"), folder.path().join("other.safetensors"));
    // More than one of the encoder's blocks.
    let values = values(3000, 400);
    for text in Scheme::all().iter().flat_map(|info| info.variants) {
        let scheme: Scheme = text.parse().unwrap();
        let mut source = SliceSource::new(&values, 400).unwrap();
        let Ok(encoder) = Encoder::new(&scheme).fit(&mut source) else { continue };
        let Ok(spec) = encoder.scheme().spec(source.shape()) else { continue };
        let mut writer = TableWriter::create(&one, &spec, None).unwrap();
        encoder.run(&mut source, &mut writer).unwrap();
        writer.finish().unwrap();
        save_table(&EncodedTable::encode("table", &values, 400, &scheme).unwrap().0, None, &other).unwrap();
        assert!(fs::read(&one).unwrap() == fs::read(&other).unwrap(), "{text}");
        TableFile::open(&one).unwrap();
    }
}

#[test]
fn tensors_are_aligned_and_read_from_any_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.safetensors");
    every_table(|scheme, table| {
        save_table(&table, None, &path).unwrap();
        let bytes = fs::read(&path).unwrap();
        let data = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap());
        let json: serde_json::Value = serde_json::from_slice(&bytes[8..usize::try_from(data).unwrap()]).unwrap();
        let file = TableFile::open(&path).unwrap();
        for (number, part) in table.spec().parts().iter().enumerate() {
            let start = data + json[part.name()]["data_offsets"][0].as_u64().unwrap();
            assert_eq!(start % part.dtype().bytes(), 0, "{scheme}: {}", part.name());
            let expected = table.parts().nth(number).unwrap();
            let mut piece = vec![0; expected.len() / 3];
            let offset = expected.len() - piece.len();
            now(file.read_part(number, offset as u64, &mut piece)).unwrap();
            assert_eq!(piece, expected[offset..]);
            let error = now(file.read_part(number, offset as u64 + 1, &mut [0; 1 << 14])).unwrap_err();
            assert!(error.to_string().contains(part.name()), "{error}");
            assert!(now(file.read_part(number, u64::MAX, &mut [0; 2])).is_err());
        }
    });
}

/// Rows that cannot be read from some row on.
struct Failing(Shape, u32);

impl RowSource for Failing {
    fn shape(&self) -> Shape {
        self.0
    }

    fn read_rows(&mut self, first: u32, out: &mut [f32]) -> Result<(), SourceError> {
        out.fill(if first >= self.1 { f32::NAN } else { 1.0 });
        Ok(())
    }
}

#[test]
fn a13_a_failed_save_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.safetensors");
    let scheme: Scheme = "int8".parse().unwrap();
    let (table, _) = EncodedTable::encode("table", &values(4, 3), 3, &scheme).unwrap();
    save_table(&table, None, &path).unwrap();
    let before = fs::read(&path).unwrap();
    let unharmed = || {
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(names(folder.path()), ["table.safetensors"]);
    };

    // The encoder fails after blocks are written.
    let mut source = Failing(Shape::new(20_000, 128).unwrap(), 10_000);
    let mut writer = TableWriter::create(&path, &scheme.spec(source.shape()).unwrap(), None).unwrap();
    Encoder::new(&scheme).run(&mut source, &mut writer).unwrap_err();
    drop(writer);
    unharmed();

    // A caller that finishes too early, and one that writes out of turn.
    let mut writer = TableWriter::create(&path, table.spec(), None).unwrap();
    writer.write_part(0, 0, &[0; 6]).unwrap();
    assert!(writer.write_part(0, 7, &[0; 1]).unwrap_err().to_string().contains("part `codes`"));
    assert!(writer.write_part(0, 6, &[0; 7]).is_err());
    let error = writer.finish().unwrap_err();
    assert!(matches!(error, FileError::Unfinished { .. }), "{error}");
    unharmed();

    // Words for other rows.
    let words = Vocabulary::from_words(["one"]).unwrap();
    let error = save_table(&table, Some(&words), &path).unwrap_err();
    assert!(matches!(error, FileError::WordCount { words: 1, rows: 4, .. }), "{error}");
    unharmed();

    // A target that cannot be replaced: the rename fails.
    let taken = folder.path().join("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("file"), "").unwrap();
    assert!(matches!(save_table(&table, None, &taken), Err(FileError::Io { .. })));
    fs::remove_dir_all(&taken).unwrap();
    unharmed();

    let error = save_table(&table, None, folder.path().join("no/folder.safetensors")).unwrap_err();
    assert!(matches!(error, FileError::Io { .. }), "{error}");
}

#[test]
#[cfg(unix)]
fn a_saved_table_has_the_permissions_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (table, _) = EncodedTable::encode("table", &[1.0], 1, &"f32".parse().unwrap()).unwrap();
    save_table(&table, None, folder.path().join("table")).unwrap();
    fs::write(folder.path().join("plain"), "").unwrap();
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("table"), mode("plain"));
}

#[test]
fn a_table_is_no_input_unless_a_tensor_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.safetensors");
    let (table, _) = EncodedTable::encode("table", &values(3, 4), 4, &"int8".parse().unwrap()).unwrap();
    let words = Vocabulary::from_words(["a", "b", "c"]).unwrap();
    save_table(&table, Some(&words), &path).unwrap();
    let error = open_rows(&path, &OpenOptions::default()).unwrap_err();
    assert!(matches!(error, FileError::IsTable { .. }), "{error}");
    let mut input = open_rows(&path, &OpenOptions { tensor: Some("scales".into()), words: None }).unwrap();
    assert_eq!(read(&mut input).len(), 3);
    assert_eq!(input.words, Some(words));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a12_any_words_come_back(words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6), 1..20)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.safetensors");
        let (table, _) = EncodedTable::encode("t", &values(words.len(), 3), 3, &"f16".parse().unwrap()).unwrap();
        let newline = words.iter().position(|word| word.contains(&b'\n'));
        match (Vocabulary::from_words(&words), newline) {
            (Err(FileError::Word { row, .. }), Some(first)) => prop_assert_eq!(row, first as u64),
            (Ok(vocabulary), None) => {
                save_table(&table, Some(&vocabulary), &path).unwrap();
                let loaded = TableFile::open(&path).unwrap().words().unwrap().unwrap();
                prop_assert!(loaded.iter().eq(words.iter().map(Vec::as_slice)));
                for word in &words {
                    let first = words.iter().position(|other| other == word).unwrap();
                    prop_assert_eq!(loaded.find(word), Some(u32::try_from(first).unwrap()));
                }
            }
            (other, _) => prop_assert!(false, "{:?}", other),
        }
    }
}
