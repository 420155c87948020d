//! Tables that are written to: what is read when, what is refused, and what damage does.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gatherum::{
    Bytes, EncodeError, EncodedTable, Scheme, TableSource,
    io::{self, Vocabulary, Writable, WritableError, WritableTable},
};

const ROWS: u32 = 300;
const DIM: usize = 12;

/// A table in a folder of its own.
struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new(scheme: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.safetensors");
        io::save_table(&encoded(scheme, &values()), Some(&words()), &path).unwrap();
        Self { _folder: folder, path }
    }

    fn open(&self) -> Result<WritableTable, WritableError> {
        WritableTable::open(&self.path, &Writable::default())
    }

    fn journal(&self) -> PathBuf {
        self.path.with_extension("safetensors.journal")
    }

    /// The bytes of both files.
    fn bytes(&self) -> [Vec<u8>; 2] {
        [fs::read(&self.path).unwrap(), fs::read(self.journal()).unwrap_or_default()]
    }
}

fn words() -> Vocabulary {
    Vocabulary::from_words((0..ROWS).map(|row| format!("word{row}"))).unwrap()
}

fn values() -> Vec<f32> {
    (0..ROWS * 12).map(|at| (at as f32 * 0.7).sin()).collect()
}

/// The values of row `row` as turn `turn` writes it.
fn row(row: u32, turn: u32) -> Vec<f32> {
    (0..12).map(|column| ((row * 31 + turn * 7 + column) as f32 * 0.3).cos()).collect()
}

fn encoded(scheme: &str, values: &[f32]) -> EncodedTable {
    EncodedTable::encode("table", values, DIM, &scheme.parse::<Scheme>().unwrap()).unwrap().0
}

fn read(table: &WritableTable) -> EncodedTable {
    super::now(EncodedTable::read(&table.reader())).unwrap()
}

fn same(table: &WritableTable, scheme: &str, values: &[f32]) -> bool {
    read(table).parts().eq(encoded(scheme, values).parts())
}

/// Writes rows of a turn, and notes them in `values`.
fn write(table: &mut WritableTable, rows: &[u32], turn: u32, values: &mut [f32]) {
    let written: Vec<f32> = rows.iter().flat_map(|at| row(*at, turn)).collect();
    table.write(rows, &written).unwrap();
    for at in rows {
        values[*at as usize * DIM..][..DIM].copy_from_slice(&row(*at, turn));
    }
}

#[test]
fn what_is_written_is_read_when_it_is_published() {
    let schemes =
        ["f32", "f16", "int8", "int8:affine,group=4", "int4", "int3", "int2", "bands:0.1=f32,0.5=int8,rest=int4"];
    for scheme in schemes {
        let place = Place::new(scheme);
        let mut table = place.open().unwrap();
        assert_eq!((table.name(), table.spec().scheme().to_string().as_str()), ("table", scheme));
        let (old, mut new) = (values(), values());
        write(&mut table, &[0, 299, 17, 18, 150], 1, &mut new);
        assert_eq!((table.status().staged, table.status().version), (5, 0));
        assert!(same(&table, scheme, &old), "{scheme}: staged");
        table.flush().unwrap();
        assert_eq!((table.status().staged, table.status().flushed), (0, 5));
        assert!(same(&table, scheme, &old), "{scheme}: flushed");
        assert_eq!(table.publish_blocking().unwrap(), 1);
        assert!(same(&table, scheme, &new), "{scheme}: published");
        assert_eq!(table.publish_blocking().unwrap(), 1, "nothing to publish");

        // Flushed twice before it is published, and published as it was.
        let before = new.clone();
        write(&mut table, &[17, 200], 2, &mut new);
        table.flush().unwrap();
        write(&mut table, &[17, 201], 3, &mut new);
        table.flush().unwrap();
        assert!(same(&table, scheme, &before), "{scheme}: flushed again");
        assert_eq!(table.status().flushed, 3);
        // What was flushed is there when it is opened again, and read.
        drop(table);
        let mut table = place.open().unwrap();
        assert_eq!((table.status().version, table.status().journaled), (2, 7));
        assert!(same(&table, scheme, &new), "{scheme}: opened again");

        // The merged file is that of the same rows encoded at once, words and all.
        table.merge_blocking().unwrap();
        assert_eq!((table.status().journaled, table.status().version), (0, 2));
        assert!(same(&table, scheme, &new), "{scheme}: merged");
        let other = place.path.with_file_name("whole.safetensors");
        io::save_table(&encoded(scheme, &new), Some(&words()), &other).unwrap();
        assert_eq!(fs::read(&place.path).unwrap(), fs::read(other).unwrap(), "{scheme}");
        // And it goes on.
        write(&mut table, &[17, 299], 4, &mut new);
        assert_eq!(table.publish_blocking().unwrap(), 3);
        drop(table);
        assert!(same(&place.open().unwrap(), scheme, &new), "{scheme}: at last");
        let names: Vec<_> =
            fs::read_dir(place.path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.len() <= 4 && names.iter().all(|name| !name.to_string_lossy().ends_with("tmp")), "{names:?}");
    }
}

#[test]
fn rows_that_have_something_in_common_are_refused() {
    for (scheme, reason) in [
        ("hash:rows=10/f32", "ids share its stored rows"),
        ("qr:rows=10,op=mul/int8", "ids share its stored rows"),
        ("lowrank:k=4/f32", "its rows share a part that was fitted to all of them"),
        ("csr:density=0.5/f16", "its rows have different numbers of values"),
    ] {
        let place = Place::new(scheme);
        let error = place.open().expect_err(scheme);
        assert!(matches!(&error, WritableError::NotWritable { reason: got, .. } if *got == reason), "{error}");
        assert!(error.to_string().contains("table.safetensors"), "{error}");
        assert!(!place.journal().exists());
    }
}

#[test]
fn what_is_no_row_is_refused_whole() {
    let place = Place::new("int8");
    let mut table = place.open().unwrap();
    let good = [1.0; DIM];
    let error = table.write(&[1_u32, 2], &[0.5; 2 * DIM - 1]).unwrap_err();
    assert!(matches!(error, WritableError::Length { ids: 2, dim: 12, needed: 24, got: 23, .. }), "{error}");
    for (ids, position, id) in
        [(vec![5, 300], 1, 300), (vec![-1, 2], 0, -1), (vec![0, i64::MAX], 1, i128::from(i64::MAX))]
    {
        let error = table.write(&ids, &[0.5; 2 * DIM]).unwrap_err();
        assert!(
            matches!(error, WritableError::NoRow { position: at, id: got, rows: 300, .. } if (at, got) == (position, id)),
            "{error}"
        );
    }
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = [good, good, good].concat();
        values[2 * DIM + 3] = bad;
        let error = table.write(&[9_u64, 8, 7], &values).unwrap_err();
        let WritableError::Encode { position: 2, error: EncodeError::NotFinite { row: 7, column: 3, .. }, .. } = error
        else {
            panic!("{error}")
        };
    }
    let place = Place::new("bands:0.5=f32,rest=f16");
    let mut halves = place.open().unwrap();
    let mut values = [good, good, good].concat();
    values[DIM] = 1e9;
    let error = halves.write(&[3_u32, 290, 200], &values).unwrap_err();
    let WritableError::Encode { position: 1, error: EncodeError::Precision { row: 290, column: 0, .. }, .. } = error
    else {
        panic!("{error}")
    };
    assert_eq!((table.status().staged, halves.status().staged), (0, 0));
    table.write(&[] as &[u32], &[]).unwrap();
    assert_eq!(table.publish_blocking().unwrap(), 0);
    // Of the same id twice the last row is taken.
    let mut new = values_with(7, 2);
    let twice: Vec<f32> = [row(7, 1), row(7, 2)].concat();
    table.write(&[7_u32, 7], &twice).unwrap();
    table.publish_blocking().unwrap();
    assert!(same(&table, "int8", &new));
    table.write(&[7_u32], &row(7, 3)).unwrap();
    table.write(&[7_u32], &row(7, 4)).unwrap();
    table.publish_blocking().unwrap();
    new[7 * DIM..8 * DIM].copy_from_slice(&row(7, 4));
    assert!(same(&table, "int8", &new));
}

fn values_with(at: u32, turn: u32) -> Vec<f32> {
    let mut values = values();
    values[at as usize * DIM..][..DIM].copy_from_slice(&row(at, turn));
    values
}

#[test]
fn there_is_one_writer() {
    let place = Place::new("f32");
    let table = place.open().unwrap();
    let locked = |result: Result<WritableTable, WritableError>| matches!(result, Err(WritableError::Locked { .. }));
    assert!(locked(place.open()));
    let reader = table.reader();
    drop(table);
    assert!(locked(place.open()), "a reader is left");
    drop(reader);
    place.open().unwrap();
}

/// A journal with rows of several versions, and the values that are to be read.
fn journaled(scheme: &str) -> (Place, Vec<f32>) {
    let place = Place::new(scheme);
    let mut new = values();
    let mut table = place.open().unwrap();
    for turn in 0..4 {
        let rows: Vec<u32> = (0..90).map(|at| (at * 7 + turn) % ROWS).collect();
        write(&mut table, &rows, turn, &mut new);
        table.publish_blocking().unwrap();
    }
    drop(table);
    (place, new)
}

/// Opens what was damaged: refused, with both files as they were, or all rows are right.
fn opens(place: &Place, scheme: &str, want: &EncodedTable) -> Option<WritableError> {
    let before = place.bytes();
    match place.open() {
        Ok(table) => {
            assert!(read(&table).parts().eq(want.parts()), "{scheme}: a wrong row");
            None
        }
        Err(error) => {
            assert!(place.bytes() == before, "{error}: and a file was changed");
            Some(error)
        }
    }
}

#[test]
fn damaged_journals_are_refused_or_right() {
    let (place, new) = journaled("int8");
    let (good, want) = (fs::read(place.journal()).unwrap(), encoded("int8", &new));
    let (mut refused, mut right) = (0, 0);
    // The first pages bit by bit, the others here and there.
    let dense = (0..200).flat_map(|at| (0..8).map(move |bit| (at, bit)));
    let sparse = (0..good.len()).step_by(23).map(|at| (at, at % 8));
    for (at, bit) in dense.chain(sparse) {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << bit;
        fs::write(place.journal(), &bytes).unwrap();
        match opens(&place, "int8", &want) {
            None => right += 1,
            Some(
                WritableError::Damaged { .. }
                | WritableError::NotJournal { .. }
                | WritableError::Version { .. }
                | WritableError::Journal { .. },
            ) => refused += 1,
            Some(other) => panic!("byte {at}, bit {bit}: {other}"),
        }
    }
    println!("{} bytes: {refused} flips refused, {right} without effect", good.len());
    // Most bits of the first page say nothing, and no page is full.
    assert!(refused > 500);
    for at in (0..good.len()).step_by(7).chain([good.len() - 1]) {
        fs::write(place.journal(), &good[..at]).unwrap();
        let error = opens(&place, "int8", &want).unwrap_or_else(|| panic!("{at} bytes of {}", good.len()));
        assert!(!matches!(error, WritableError::Locked { .. } | WritableError::File(_)), "{at} bytes: {error}");
    }
    fs::write(place.journal(), &good).unwrap();
    assert!(opens(&place, "int8", &want).is_none());
}

#[test]
fn damage_while_it_is_open_is_no_wrong_row() {
    let (place, new) = journaled("f32");
    let good = fs::read(place.journal()).unwrap();
    for at in (4096..good.len()).step_by(211) {
        fs::write(place.journal(), &good).unwrap();
        let table = place.open().unwrap();
        // In place, as a disk does it, and behind the back of SQLite's pages in memory.
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        fs::write(place.journal(), &bytes).unwrap();
        for (number, want) in new.chunks(DIM).enumerate() {
            let mut out = [0; DIM * 4];
            let read = super::now(table.reader().read_part(0, (number * DIM * 4) as u64, &mut out));
            let want: Vec<u8> = want.iter().flat_map(|value| value.to_le_bytes()).collect();
            assert!(read.is_err() || out == *want, "byte {at}: row {number} is wrong");
        }
    }
}

fn refused(place: &Place, is: impl Fn(&WritableError) -> bool) {
    let before = place.bytes();
    let error = place.open().unwrap_err();
    assert!(is(&error), "{error}");
    assert!(place.bytes() == before, "{error}: and a file was changed");
    assert!(error.to_string().contains("table.safetensors"), "{error}");
}

#[test]
fn foreign_and_newer_files_are_refused() {
    let (place, _) = journaled("int8");
    let [table, journal] = place.bytes();
    // A later format.
    let mut newer = journal.clone();
    newer[60..64].copy_from_slice(&2_u32.to_be_bytes());
    fs::write(place.journal(), &newer).unwrap();
    refused(&place, |error| matches!(error, WritableError::Version { version: 2, known: 1, .. }));
    // No journal.
    for other in [&b""[..], b"words of somebody", &table] {
        fs::write(place.journal(), other).unwrap();
        refused(&place, |error| matches!(error, WritableError::NotJournal { .. }));
    }
    let mut other = journal.clone();
    other[68..72].fill(0);
    fs::write(place.journal(), other).unwrap();
    refused(&place, |error| matches!(error, WritableError::NotJournal { .. }));
    // A journal of a table of another scheme, another shape, other rows.
    fs::write(place.journal(), &journal).unwrap();
    let (mut changed, fewer) = (values(), values()[..DIM * 299].to_vec());
    changed[0] += 1.0;
    for (scheme, values) in [("f32", values()), ("int8", fewer), ("int8", changed)] {
        io::save_table(&encoded(scheme, &values), None, &place.path).unwrap();
        refused(&place, |error| matches!(error, WritableError::OtherTable { .. }));
    }
    // A table that is damaged or cut short.
    for at in [0, 9, 200, table.len() / 4] {
        let mut flipped = table.clone();
        flipped[at] ^= 4;
        fs::write(&place.path, flipped).unwrap();
        let before = place.bytes();
        match place.open() {
            // Where it is in the rows, it is found when they are read.
            Ok(mut open) => {
                assert!(at > 200);
                let mut unread = values();
                write(&mut open, &[1], 9, &mut unread);
                open.publish_blocking().unwrap();
                let error = open.merge_blocking().unwrap_err();
                assert!(matches!(&error, WritableError::File(_)) && error.to_string().contains("damaged"), "{error}");
                assert_eq!(fs::read(&place.path).unwrap(), before[0]);
                assert!(open.status().journaled > 0);
                open.flush().unwrap();
            }
            Err(error) => {
                assert!(matches!(error, WritableError::File(_)), "{error}");
                assert!(place.bytes() == before, "{error}: and a file was changed");
            }
        }
        fs::write(place.journal(), &journal).unwrap();
        fs::write(&place.path, &table[..at]).unwrap();
        refused(&place, |error| matches!(error, WritableError::File(_)));
    }
    let missing = WritableTable::open(Path::new("nowhere.safetensors"), &Writable::default()).unwrap_err();
    assert!(matches!(missing, WritableError::File(_)) && missing.to_string().contains("nowhere"), "{missing}");
}

#[test]
fn the_cap_of_the_disk_holds() {
    const WIDE: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.safetensors");
    // All values of a row are the turn that wrote it.
    let zeros = vec![0.0; ROWS as usize * WIDE];
    let (encoded, _) = EncodedTable::encode("table", &zeros, WIDE, &"f32".parse().unwrap()).unwrap();
    io::save_table(&encoded, None, &path).unwrap();
    let base = fs::metadata(&path).unwrap().len();
    let journal = path.with_extension("safetensors.journal");
    let open = |disk| WritableTable::open(&path, &Writable { disk: Some(Bytes(disk)) });
    let told = |error: &WritableError, used: u64, cap: u64| match error {
        WritableError::DiskCap { needed, used: found, cap: told, .. } => {
            (found.0, told.0) == (used, cap) && used + needed.0 > cap
        }
        _ => false,
    };
    let error = open(2 * base + 1000).unwrap_err();
    assert!(told(&error, base, 2 * base + 1000), "{error}");
    assert!(!journal.exists());

    let cap = 2 * base + 400_000;
    let mut table = open(cap).unwrap();
    let holds = |table: &WritableTable, turns: &[u32]| {
        let all = read(table);
        let rows = all.parts().next().unwrap().chunks(WIDE * 4).zip(turns);
        rows.for_each(|(row, turn)| assert!(row.chunks(4).all(|value| *value == (*turn as f32).to_le_bytes())));
    };
    let (mut turns, mut refused, mut turn) = (vec![0; ROWS as usize], 0, 0);
    while refused < 5 {
        turn += 1;
        assert!(turn < 200, "the cap is never reached");
        let rows: Vec<u32> = (0..60).map(|at| (at * 5 + turn * 11) % ROWS).collect();
        let (before, old) = ([&path, &journal].map(|path| fs::read(path).unwrap()), turns.clone());
        table.write(&rows, &vec![turn as f32; rows.len() * WIDE]).unwrap();
        match table.publish_blocking() {
            Ok(_) => rows.iter().for_each(|row| turns[*row as usize] = turn),
            Err(error) => {
                let used = table.status().table.0 + table.status().journal.0;
                assert!(told(&error, used, cap), "{error}");
                assert!([&path, &journal].map(|path| fs::read(path).unwrap()) == before, "refused, and written");
                assert_eq!(table.status().staged, rows.len());
                refused += 1;
                // What was flushed can be merged whenever it could be flushed.
                drop(table);
                table = open(cap).unwrap();
                table.merge_blocking().unwrap();
            }
        }
        holds(&table, if turns == old { &old } else { &turns });
        let files = fs::read_dir(folder.path()).unwrap();
        let taken: u64 = files.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
        assert!(taken + base <= cap, "{taken} bytes of the disk, and a merge's {base}: over {cap}");
    }
}

#[test]
#[ignore = "a measurement: run it by name, with --nocapture"]
fn what_a_flush_costs() {
    const WIDE: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.safetensors");
    let (encoded, _) =
        EncodedTable::encode("table", &vec![0.0; 100_000 * WIDE], WIDE, &"f32".parse().unwrap()).unwrap();
    io::save_table(&encoded, None, &path).unwrap();
    let mut table = WritableTable::open(&path, &Writable::default()).unwrap();
    let mut times = Vec::new();
    for turn in 0..30_u32 {
        let rows: Vec<u32> = (0..1000).map(|at: u32| (at * 97 + turn).wrapping_mul(0x9e37_79b1) % 100_000).collect();
        table.write(&rows, &vec![turn as f32; rows.len() * WIDE]).unwrap();
        let start = std::time::Instant::now();
        table.flush().unwrap();
        times.push(start.elapsed());
        table.publish_blocking().unwrap();
    }
    times.sort();
    println!("a flush of 1,000 rows of 400 bytes: {:?} (least {:?}, most {:?})", times[15], times[0], times[29]);
}
