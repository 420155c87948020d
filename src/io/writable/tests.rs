//! A merge that ends after any of its steps.

use std::{fs, path::Path};

use super::{journal::EMPTY, *};
use crate::{EncodedTable, io};

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_merge_ends_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let [files, copies] = ["files", "copies"].map(|name| folder.path().join(name));
    fs::create_dir(&files).unwrap();
    fs::create_dir(&copies).unwrap();
    let path = files.join("table.safetensors");
    let values: Vec<f32> = (0..4000).map(|value| f32::from(i16::try_from(value).unwrap())).collect();
    let (encoded, _) = EncodedTable::encode("table", &values, 8, &"int8".parse().unwrap()).unwrap();
    io::save_table(&encoded, None, &path).unwrap();
    let mut written = values;
    written[8 * 77..8 * 78].fill(5.0);
    let (want, _) = EncodedTable::encode("table", &written, 8, &"int8".parse().unwrap()).unwrap();

    let mut table = WritableTable::open(&path, &Writable::default()).unwrap();
    table.write(&[77_u32], &[5.0; 8]).unwrap();
    table.publish_blocking().unwrap();
    let step = |name: &str| copy(&files, &copies.join(name));
    step("0 published");
    let sealed = table.sealed().unwrap();
    step("1 written");
    table.shared.journal().expect(&sealed.checksum).unwrap();
    step("2 expected");
    sealed.persist().unwrap();
    step("3 renamed");
    table.unsettled = true;
    table.settle().unwrap();
    step("4 settled");
    assert_eq!(table.status().journaled, 0);
    drop(table);
    let merged = fs::read(&path).unwrap();

    let mut names: Vec<_> = fs::read_dir(&copies).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert_eq!(names.len(), 5);
    for (number, folder) in names.iter().enumerate() {
        let path = folder.join("table.safetensors");
        for again in [false, true] {
            let mut table = WritableTable::open(&path, &Writable::default()).unwrap();
            let read = pollster::block_on(EncodedTable::read(&table.reader())).unwrap();
            assert!(read.parts().eq(want.parts()), "{folder:?} {again}");
            assert_eq!(table.status().journaled, usize::from(number < 3 && !again), "{folder:?} {again}");
            let left = fs::read_dir(folder)
                .unwrap()
                .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".tmp"));
            assert_eq!(left.count(), 0, "{folder:?}");
            table.merge_blocking().unwrap();
            assert_eq!(fs::read(&path).unwrap(), merged, "{folder:?}");
        }
    }
}

#[test]
fn what_a_row_takes_is_within_the_estimate() {
    for (dim, rows) in [(1_u64, 3000_u32), (8, 2000), (100, 1000), (250, 600), (300, 400), (1100, 200), (5000, 40)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.safetensors");
        let dim_values = usize::try_from(dim).unwrap();
        let values = vec![1.0; rows as usize * dim_values];
        let (encoded, _) = EncodedTable::encode("table", &values, dim_values, &"f32".parse().unwrap()).unwrap();
        io::save_table(&encoded, None, &path).unwrap();
        let mut table = WritableTable::open(&path, &Writable::default()).unwrap();
        // In the order that splits pages most.
        let mut ids: Vec<u32> = (0..rows).collect();
        ids.sort_by_key(|row| row.wrapping_mul(0x9e37_79b1));
        for ids in ids.chunks(97) {
            let before = table.status().journal.0;
            table.write(ids, &values[..ids.len() * dim_values]).unwrap();
            table.flush().unwrap();
            let (grown, most) = (table.status().journal.0 - before, ids.len() as u64 * most_bytes(dim * 4));
            assert!(grown <= most + EMPTY, "{grown} bytes for {} rows of {dim}; {most} at most", ids.len());
        }
        let (took, most) = (table.status().journal.0, u64::from(rows) * most_bytes(dim * 4) + EMPTY);
        assert!(took <= most, "{took} bytes for {rows} rows of {dim}; {most} at most");
    }
}
