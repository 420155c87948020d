//! The fuzz entry points driven by seeded mutations of valid files: no panic, and no memory that a file's bytes do not
//! account for. The fuzz targets under `fuzz/` drive the same functions.
#![cfg(feature = "files")]

#[path = "files/formats.rs"]
mod formats;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fs,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Instant,
};

use gatherum::{
    EncodedTable, Scheme,
    io::{Vocabulary, fuzzing, save_table},
};

/// Counts what is allocated.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

#[expect(unsafe_code, reason = "the trait of an allocator is unsafe; this one only counts")]
// SAFETY: every call goes to the system's allocator with the arguments it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the trait's conditions.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the trait's conditions.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the trait's conditions.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What one call may take: buffers, some copies of the file, and 4 MiB, a row of the most columns there may be.
const MOST_BYTES: usize = 8 << 20;
/// Mutations of each seed by each entry point it is for.
const ROUNDS: u64 = 1500;
/// A generator whose numbers depend on its seed alone (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }
}

/// Valid files, and the entry points they are for beside `rows`.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let values: Vec<f32> = (0..24).map(|index| index as f32 - 7.5).collect();
    let words: [&[u8]; 6] = [b"the", b"of", b"\xff\xfe", b"to", b"a", b"in"];
    let f32s = formats::numbers("F32", &values);
    let big_endian = formats::swapped(&formats::numbers("F64", &formats::transposed(&values, 4)), 8);
    let text = formats::text(&words, &values, "\n");
    let headed = formats::headed(&words, &values, " \n");
    let binary = formats::word2vec_binary(&words, &values, true);
    let mut seeds = vec![
        ("npy", formats::npy(1, "<f4", false, "(6, 4)", &f32s)),
        ("npy", formats::npy(2, ">f8", true, "(6, 4)", &big_endian)),
        ("npz", include_bytes!("data/sparse-csr.npz").to_vec()),
        ("npz", include_bytes!("data/sparse-coo.npz").to_vec()),
        ("safetensors", formats::tensors(&[("weight", "F32", &[6, 4], f32s.clone())])),
        (
            "safetensors",
            formats::tensors(&[
                ("weight", "F16", &[6, 4], formats::numbers("F16", &values)),
                ("words", "U8", &[11], b"a\nb\nc\nd\ne\nf".to_vec()),
            ]),
        ),
        (
            "gguf",
            formats::gguf(
                &[
                    ("tokenizer.ggml.tokens", 9, formats::gguf_texts(&words)),
                    ("sizes", 9, [&9u32.to_le_bytes()[..], &[0; 8]].concat()),
                ],
                &[("bias", 0, &[4], vec![0; 16]), ("weight", 0, &[4, 6], f32s.clone())],
            ),
        ),
        ("gguf", formats::gguf(&[], &[("q", 2, &[64, 2], vec![0x5a; 2 * 2 * 18]), ("c", 12, &[256], vec![0; 144])])),
        (
            "index",
            br#"{"metadata":{"total_size":9},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}"#.to_vec(),
        ),
        ("word_vectors", formats::gzip(&text)),
        ("word_vectors", text),
        ("word_vectors", headed),
        ("word2vec_binary", formats::gzip(&binary)),
        ("word2vec_binary", binary),
        ("words", b"the\nof\r\n\nand".to_vec()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let vocabulary = Vocabulary::from_words(words).unwrap();
    for text in Scheme::all().iter().flat_map(|info| info.variants) {
        let scheme: Scheme = text.parse().unwrap();
        if let Ok((table, _)) = EncodedTable::encode("table", &values, 4, &scheme) {
            save_table(&table, Some(&vocabulary), &path).unwrap();
            seeds.push(("table", fs::read(&path).unwrap()));
        }
    }
    seeds
}

/// Numbers that readers stumble over, as text.
const NUMBERS: [&[u8]; 9] =
    [b"0", b"1", b"-1", b"4294967294", b"4294967296", b"1152921504606846976", b"18446744073709551615", b"1e39", b"nan"];

/// How many bytes at the begin are digits, or are none.
fn digits(bytes: &[u8], are: bool) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit() == are).count()
}

/// Changes a file in one to four places.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0 | 1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 if at < bytes.len() => bytes[at] = random.next().to_le_bytes()[0],
            3 => bytes.truncate(at),
            4 => {
                let (start, end) = (random.below(other.len()), random.below(other.len()));
                let piece = other[start.min(end)..start.max(end)].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => drop(bytes.drain(at..(at + random.below(16)).min(bytes.len()))),
            6 => {
                // A number in the text becomes another one: as often one of the first few, where headers are, as any.
                let mut start = [0, at][random.below(2)];
                for _ in 0..=random.below(4) {
                    start += digits(&bytes[start..], false);
                    let end = start + digits(&bytes[start..], true);
                    if end == start || random.below(2) == 0 {
                        bytes.splice(start..end, NUMBERS[random.below(NUMBERS.len())].iter().copied());
                        break;
                    }
                    start = end;
                }
            }
            _ => {
                // A length at the begin of the file becomes another one.
                let value = [0, 1, u64::MAX, 1 << 40, bytes.len() as u64, random.next() % 256][random.below(6)];
                let width = [1, 2, 4, 8][random.below(4)];
                let at = random.below(16);
                for (byte, new) in bytes.iter_mut().skip(at).zip(&value.to_le_bytes()[..width]) {
                    *byte = *new;
                }
            }
        }
    }
}

#[test]
fn a13_mutated_files_neither_panic_nor_take_memory() {
    let seeds = seeds();
    let mut random = Random(0x6761_7468_6572_756d);
    for (name, entry) in fuzzing::ENTRIES {
        let (start, mut most) = (Instant::now(), 0);
        let own: Vec<&Vec<u8>> =
            seeds.iter().filter(|(of, _)| of == name || *name == "rows").map(|(_, seed)| seed).collect();
        assert!(!own.is_empty(), "{name} has seeds");
        for seed in own {
            most = most.max(check(name, *entry, seed));
            for _ in 0..ROUNDS {
                let mut bytes = seed.clone();
                let other = &seeds[random.below(seeds.len())].1;
                mutate(&mut bytes, other, &mut random);
                most = most.max(check(name, *entry, &bytes));
            }
        }
        println!("{name}: {:?}, at most {most} bytes", start.elapsed());
    }
}

/// Runs an entry point, and gives the bytes it took at its peak.
fn check(name: &str, entry: fuzzing::Entry, bytes: &[u8]) -> usize {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    if std::panic::catch_unwind(|| entry(bytes)).is_err() {
        panic!("{name} panics on {:?}", String::from_utf8_lossy(bytes));
    }
    let taken = PEAK.load(Relaxed).saturating_sub(before);
    assert!(taken < MOST_BYTES, "{name} takes {taken} bytes on {:?}", String::from_utf8_lossy(bytes));
    taken
}

#[test]
fn every_entry_point_has_a_fuzz_target() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/fuzz_targets");
    let mut targets: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut entries: Vec<&str> = fuzzing::ENTRIES.iter().map(|(name, _)| *name).collect();
    targets.sort();
    entries.sort_unstable();
    assert_eq!(targets, entries);
}
