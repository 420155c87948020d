//! Table files whose bytes come in pieces.

use std::{fs, io::Cursor};

use gatherum::{
    Bytes, EncodedTable, Engine, IdPolicy, Scheme, Shape, Table, TableError,
    io::{FileError, StreamError, TableFile, TableStream, Vocabulary, save_table},
};

use super::now;

/// A table file, with words where there are rows.
fn file(scheme: &str, rows: usize, dim: usize) -> Option<Vec<u8>> {
    let scheme: Scheme = scheme.parse().unwrap();
    scheme.spec(Shape::new(rows as u64, dim as u64).unwrap()).ok()?;
    let values: Vec<f32> = (0..rows * dim).map(|at| ((at * 7919 % 1013) as f32 - 500.0) / 64.0).collect();
    let (table, _) = EncodedTable::encode("table", &values, dim, &scheme).unwrap();
    let words = Vocabulary::from_words((0..rows).map(|row| format!("w{row}"))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.safetensors");
    save_table(&table, (rows > 0).then_some(&words), &path).unwrap();
    Some(fs::read(path).unwrap())
}

fn push(engine: &Engine, bytes: &[u8], piece: usize) -> Result<(Table, Option<Vocabulary>), StreamError> {
    let mut stream = TableStream::new(engine, "table");
    for piece in bytes.chunks(piece) {
        now(stream.push(piece))?;
    }
    stream.finish()
}

#[test]
fn tables_are_as_those_of_files() {
    let engine = Engine::host();
    for scheme in Scheme::all().iter().flat_map(|info| info.variants) {
        for (rows, dim) in [(0, 64), (1, 100), (77, 36)] {
            let Some(bytes) = file(scheme, rows, dim) else { continue };
            let whole = TableFile::from_reader("table", Cursor::new(&bytes)).unwrap();
            let expected = now(engine.load(&whole)).unwrap();
            let ids: Vec<u32> = (0..u32::try_from(rows).unwrap()).collect();
            let values = now(expected.gather(&ids, IdPolicy::Error)).unwrap();
            for piece in [1, 7, 1000, bytes.len()] {
                let (table, words) = push(&engine, &bytes, piece).unwrap();
                assert_eq!((table.name(), table.spec()), ("table", expected.spec()));
                assert_eq!(now(table.gather(&ids, IdPolicy::Error)).unwrap(), values, "{scheme}, pieces of {piece}");
                assert_eq!(words, whole.words().unwrap());
            }
        }
    }
    assert_eq!(engine.memory().live, Bytes(0));
}

#[test]
fn a13_what_is_damaged_leaves_nothing() {
    let engine = Engine::host();
    let bytes = file("int8", 77, 36).unwrap();
    let data = 8 + usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    for end in [0, 1, 7, 8, 9, data - 1, data, data + 1, bytes.len() - 1] {
        let error = push(&engine, &bytes[..end], 13).expect_err("it is cut short");
        assert!(
            matches!(error, StreamError::File(FileError::Length { has, .. }) if has.0 == end as u64),
            "{end}: {error}"
        );
    }
    let longer = [&bytes[..], b"\0"].concat();
    assert!(matches!(push(&engine, &longer, 13), Err(StreamError::File(FileError::Length { .. }))));
    for at in (0..bytes.len()).filter(|at| *at < 40 || at % 17 == 0) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        // A flipped space or a digit of no meaning is no damage to a table; it is to its description otherwise.
        let streamed = push(&engine, &flipped, 64).map(|_| ()).map_err(|error| error.to_string());
        let whole =
            TableFile::from_reader("table", Cursor::new(&flipped)).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(streamed.is_ok(), whole.is_ok(), "byte {at}: {streamed:?}, {whole:?}");
        if at >= data {
            assert_eq!(streamed, whole, "byte {at}");
        }
    }
    let page = push(&engine, b"<!doctype html>", 4).expect_err("a page");
    assert!(matches!(page, StreamError::File(FileError::NotTable { .. })), "{page}");
    assert_eq!(engine.memory().live, Bytes(0));
}

#[test]
fn a15_a_refusal_places_nothing() {
    let bytes = file("int8", 77, 36).unwrap();
    let engine = Engine::builder().backend(gatherum::BackendChoice::Host).memory_budget(Bytes(1000));
    let engine = engine.build_blocking().unwrap();
    let mut stream = TableStream::new(&engine, "table");
    assert_eq!((stream.spec(), stream.file_bytes()), (None, None));
    let error = now(stream.push(&bytes)).expect_err("over the budget");
    assert!(matches!(error, StreamError::Table(TableError::OverBudget(_))), "{error}");
    assert!(now(stream.push(&bytes)).is_err(), "it goes no further");
    assert!(stream.finish().is_err());
    assert_eq!(engine.memory().peak, Bytes(0));
}
