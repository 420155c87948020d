//! Blocks of tables that a local disk keeps: read once from afar, within a capacity, and believed by their checksums alone.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gatherum::{
    Bytes, EncodedTable, Engine, OnDemand, SourceError, Table,
    io::{self, StoredTable},
    store::DiskCache,
};

use super::on_demand::{Odd, file, options, same};

const ALL: [u32; 4] = [0, 19_999, 7, 9_000];

fn open(source: &Arc<Odd>, cache: &DiskCache) -> Table {
    let stored = pollster::block_on(StoredTable::open(source.clone())).unwrap().kept_in(cache);
    pollster::block_on(stored.words()).unwrap().unwrap();
    Engine::host().load_on_demand(stored, &options()).unwrap()
}

/// All files below a folder, but for the lock.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => files.extend(self::files(&entry)),
            false if entry.ends_with("lock") => {}
            false => files.push(entry),
        }
    }
    files.sort();
    files
}

/// Bytes of whole pages.
fn size(folder: &Path) -> u64 {
    files(folder).iter().map(|path| fs::metadata(path).unwrap().len().next_multiple_of(4096)).sum()
}

#[test]
fn what_was_read_once_comes_from_the_disk() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Odd::new(file()));
    let cache = DiskCache::open(folder.path(), Bytes(4 << 20)).unwrap();
    same(&open(&source, &cache), &ALL);
    let first = source.reads();
    assert!(first.len() > 5 && cache.stats().hits == 0);
    // Another table of the same file, in the same process and in the next.
    let table = open(&source, &cache);
    same(&table, &ALL);
    assert_eq!(source.reads().len(), 2, "only the header");
    let stats = cache.stats();
    assert!(stats.hits > 0 && stats.evictions == 0 && stats.used == Bytes(size(folder.path())), "{stats:?}");
    drop((table, cache));
    let cache = DiskCache::open(folder.path(), Bytes(4 << 20)).unwrap();
    assert_eq!(cache.stats().used, stats.used);
    same(&open(&source, &cache), &ALL);
    assert_eq!((source.reads().len(), cache.stats().misses), (2, 0));
    // What is not there yet is read beside what is.
    same(&open(&source, &cache), &(0..20_000).collect::<Vec<_>>());
    assert!(source.reads().len() > 2);
    same(&open(&source, &cache), &(0..20_000).rev().collect::<Vec<_>>());
    assert_eq!(source.reads().len(), 2);
}

#[test]
fn a_disk_cache_holds_its_capacity() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Odd::new(file()));
    let capacity = Bytes(5 * 65_536);
    let cache = DiskCache::open(folder.path(), capacity).unwrap();
    for first in (0..20_000).step_by(500) {
        same(&open(&source, &cache), &[first, 19_999 - first]);
        let used = size(folder.path());
        assert!(used <= capacity.0 && cache.stats().used == Bytes(used), "{used} bytes");
    }
    assert!(cache.stats().evictions > 0);
    drop(cache);
    // Less than there is: the oldest go.
    let cache = DiskCache::open(folder.path(), Bytes(2 * 65_536)).unwrap();
    assert!(size(folder.path()) <= 2 * 65_536 && !files(folder.path()).is_empty());
    same(&open(&source, &cache), &ALL);
    drop(cache);
    let cache = DiskCache::open(folder.path(), Bytes(0)).unwrap();
    same(&open(&source, &cache), &ALL);
    assert!(files(folder.path()).is_empty());
}

#[test]
fn damaged_blocks_are_read_again() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Odd::new(file()));
    let cache = DiskCache::open(folder.path(), Bytes(4 << 20)).unwrap();
    let all: Vec<u32> = (0..20_000).collect();
    same(&open(&source, &cache), &all);
    let whole = files(folder.path()).len();
    for (number, path) in files(folder.path()).iter().enumerate() {
        let mut bytes = fs::read(path).unwrap();
        match number % 4 {
            0 => bytes.truncate(bytes.len() / 4 * (number / 4 % 4)),
            1 => {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
            }
            2 => bytes.push(0),
            _ => {
                fs::remove_file(path).unwrap();
                continue;
            }
        }
        fs::write(path, bytes).unwrap();
    }
    source.reads();
    same(&open(&source, &cache), &all);
    assert!(source.reads().len() > 2);
    assert_eq!((cache.stats().damaged, files(folder.path()).len()), (whole as u64, whole));
    same(&open(&source, &cache), &all);
    assert_eq!(source.reads().len(), 2, "all is whole again");
}

#[test]
fn another_table_of_that_name_has_blocks_of_its_own() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let cache = DiskCache::open(cache.path(), Bytes(4 << 20)).unwrap();
    for value in [0.25_f32, 0.75] {
        let path = folder.path().join("t.safetensors");
        let (encoded, _) = EncodedTable::encode("t", &vec![value; 40_000], 8, &"f32".parse().unwrap()).unwrap();
        io::save_table(&encoded, None, &path).unwrap();
        let source = Odd::new(fs::read(&path).unwrap());
        let stored = pollster::block_on(StoredTable::open(source)).unwrap().kept_in(&cache);
        let table = Engine::host().load_on_demand(stored, &OnDemand::default()).unwrap();
        assert_eq!(table.gather_blocking(&[4999_u32], gatherum::IdPolicy::Error).unwrap().values, [value; 8]);
    }
}

#[test]
fn a_folder_is_of_one_process_and_files_of_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("0123456789abcdef0123456789abcdef");
    fs::create_dir(&table).unwrap();
    let foreign = [folder.path().join("notes.txt"), table.join("readme"), table.join("1.x"), folder.path().join("0.0")];
    foreign.iter().for_each(|path| fs::write(path, "mine").unwrap());
    fs::write(table.join(".new-abc"), "what a kill left").unwrap();
    let cache = DiskCache::open(folder.path(), Bytes(1 << 20)).unwrap();
    let error = DiskCache::open(folder.path(), Bytes(1 << 20)).unwrap_err();
    let SourceError::Io { what, error } = error else { panic!("{error}") };
    assert!(error.kind() == std::io::ErrorKind::ResourceBusy && what.contains("the disk cache"), "{what}: {error}");
    assert_eq!(cache.stats().used, Bytes(0));
    let mut left = foreign.to_vec();
    left.sort();
    assert_eq!(files(folder.path()), left);
    drop(cache);
    DiskCache::open(folder.path(), Bytes(1 << 20)).unwrap();
}

#[test]
fn a_disk_that_fails_costs_no_answer() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Odd::new(file()));
    let blocks = folder.path().join("blocks");
    let cache = DiskCache::open(&blocks, Bytes(4 << 20)).unwrap();
    // A file stands where the folder was.
    fs::remove_dir_all(&blocks).unwrap();
    fs::write(&blocks, "in the way").unwrap();
    same(&open(&source, &cache), &ALL);
    let stats = cache.stats();
    assert!(stats.misses > 0 && stats.used == Bytes(0), "{stats:?}");
    assert!(DiskCache::open(&blocks, Bytes(1)).is_err());
}
