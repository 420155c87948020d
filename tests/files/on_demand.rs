//! Table files read piece by piece, from sources that count, fail, hang, cut short and lie.

use std::{
    ops::Range,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gatherum::{
    Bytes, EncodedTable, Engine, GatherError, IdPolicy, OnDemand, ShardCause, SourceError, Table, TableSource,
    io::{self, FileError, StoredTable, Vocabulary},
    store::{ByteSource, FileSource, MemorySource, Retry},
};

/// What a source does in place of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Fails,
    Hangs,
    CutShort,
    Flips,
}

/// A file in memory that counts what is read, and does as it is told with reads that touch some bytes.
#[derive(Debug)]
pub(crate) struct Odd {
    bytes: MemorySource,
    reads: Mutex<Vec<Range<u64>>>,
    fault: Mutex<Option<(Fault, Range<u64>, usize)>>,
    /// Reads under way, and the most of them that there were.
    running: AtomicUsize,
    most: AtomicUsize,
}

impl Odd {
    pub(crate) fn new(bytes: Vec<u8>) -> Arc<Self> {
        Arc::new(Self {
            bytes: MemorySource::new("odd.safetensors", bytes),
            reads: Mutex::default(),
            fault: Mutex::default(),
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        })
    }

    /// The next `times` reads that touch `range` do this.
    fn set(&self, fault: Fault, range: Range<u64>, times: usize) {
        *self.fault.lock().unwrap() = Some((fault, range, times));
    }

    pub(crate) fn reads(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.reads.lock().unwrap())
    }

    fn fault(&self, read: &Range<u64>) -> Option<Fault> {
        let mut fault = self.fault.lock().unwrap();
        let (fault, range, times) = fault.as_mut()?;
        let touches = *times > 0 && read.start < range.end && range.start < read.end;
        touches.then(|| {
            *times -= 1;
            *fault
        })
    }
}

impl ByteSource for Odd {
    fn name(&self) -> &str {
        self.bytes.name()
    }

    async fn size(&self) -> Result<u64, SourceError> {
        self.bytes.size().await
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        self.reads.lock().unwrap().push(range.clone());
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        futures_timer::Delay::new(Duration::from_millis(2)).await;
        let fault = self.fault(&range);
        if fault == Some(Fault::Hangs) {
            futures_timer::Delay::new(Duration::from_secs(1000)).await;
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        if fault == Some(Fault::Fails) {
            return Err(SourceError::Invalid("the source is down".to_owned()));
        }
        let mut bytes = self.bytes.read(range).await?;
        match fault {
            Some(Fault::CutShort) => bytes.truncate(bytes.len() / 2),
            Some(Fault::Flips) => *bytes.last_mut().unwrap() ^= 4,
            _ => {}
        }
        Ok(bytes)
    }
}

const ROWS: u32 = 20_000;
const DIM: usize = 32;

fn numbers() -> EncodedTable {
    let values: Vec<f32> = (0..ROWS as usize * DIM).map(|at| (at as f32 * 0.37).sin()).collect();
    EncodedTable::encode("numbers", &values, DIM, &"int8".parse().unwrap()).unwrap().0
}

fn words() -> Vocabulary {
    Vocabulary::from_words((0..ROWS).map(|row| format!("word{row}"))).unwrap()
}

/// The file of a table: 640,000 bytes of codes behind 80,000 of scales.
pub(crate) fn file() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.safetensors");
    io::save_table(&numbers(), Some(&words()), &path).unwrap();
    std::fs::read(path).unwrap()
}

/// Shards of about 1,800 rows, and little patience.
pub(crate) fn options() -> OnDemand {
    let retry = Retry { attempts: 3, wait: Duration::from_millis(1), deadline: Duration::from_secs(20) };
    OnDemand { shard: Bytes(64 << 10), at_once: 3, retry, ..OnDemand::default() }
}

fn open(source: &Arc<Odd>) -> Table {
    let stored = pollster::block_on(StoredTable::open(source.clone())).unwrap();
    Engine::host().load_on_demand(stored, &options()).unwrap()
}

pub(crate) fn same(table: &Table, ids: &[u32]) {
    let there = Engine::host().load_blocking(&numbers()).unwrap();
    let got = table.gather_blocking(ids, IdPolicy::Error).unwrap();
    assert_eq!(got, there.gather_blocking(ids, IdPolicy::Error).unwrap());
}

#[test]
fn opening_reads_the_header_alone() {
    let bytes = file();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let source = Odd::new(bytes);
    let stored = pollster::block_on(StoredTable::open(source.clone())).unwrap();
    assert_eq!(source.reads(), [0..9, 8..header]);
    assert_eq!((stored.name(), stored.spec()), ("odd", numbers().spec()));
    assert_eq!(stored.read_so_far(), Bytes(header + 1));
    assert!(stored.has_words() && stored.metadata("dim") == Some("32"));
    let found = pollster::block_on(stored.words()).unwrap().unwrap();
    assert_eq!(found.find("word19999"), Some(19_999));
    assert_eq!(source.reads().len(), 1);

    // A row is read with the blocks that its shard touches.
    let table = open(&source);
    source.reads();
    same(&table, &[7]);
    let read: u64 = source.reads().iter().map(|range| range.end - range.start).sum();
    // Blocks of a table of this size are small.
    assert!(read <= (64 << 10) + 2 * 4096, "{read} bytes of {}", table.bytes());
    let shards = table.shard_rows();
    assert_eq!(shards.iter().map(|shard| shard.rows.len()).sum::<usize>(), ROWS as usize);
    assert!(shards.windows(2).all(|two| two[0].rows.end == two[1].rows.start));
    let resident: Vec<_> = shards.iter().map(|shard| shard.resident).collect();
    assert!(resident[0] && !resident[1..].contains(&true), "{resident:?}");
    same(&table, &[7]);
    assert_eq!(source.reads(), [], "what is there is not read again");
    same(&table, &(0..ROWS).rev().collect::<Vec<_>>());
    assert!(source.most.load(Ordering::SeqCst) <= 3, "three shards are loaded at a time");
    assert_eq!(table.residency().share(), 1.0);
}

#[test]
fn a_table_on_demand_is_loaded_whole_as_well() {
    let stored = pollster::block_on(StoredTable::open(Odd::new(file()))).unwrap();
    let table = Engine::host().load_blocking(&stored).unwrap();
    same(&table, &[0, 19_999, 5]);
}

#[test]
fn what_fails_is_tried_again() {
    let source = Odd::new(file());
    for fault in [Fault::Fails, Fault::CutShort, Fault::Flips] {
        let table = open(&source);
        source.set(fault, 0..u64::MAX, 2);
        same(&table, &[3, 19_000]);
        assert_eq!(table.residency().failures, 0, "{fault:?}");
    }
    source.set(Fault::Fails, 0..u64::MAX, 2);
    pollster::block_on(StoredTable::open(source.clone())).unwrap();
    source.set(Fault::Fails, 0..u64::MAX, 10);
    let error = pollster::block_on(StoredTable::open(source)).unwrap_err();
    assert!(error.to_string().contains("the source is down"), "{error}");
}

#[test]
fn a_shard_that_fails_fails_those_that_need_it() {
    let source = Odd::new(file());
    for (fault, says) in [
        (Fault::Fails, "the source is down"),
        (Fault::CutShort, "bytes came for the"),
        (Fault::Flips, "is damaged: its checksum is another"),
    ] {
        let table = open(&source);
        let end = 8 + u64::from_le_bytes(file()[..8].try_into().unwrap()) + 80_000 + 640_000;
        source.set(fault, end - 1..end, 1000);
        same(&table, &[0, 5]);
        let error = table.gather_blocking(&[0_u32, 19_999, 5], IdPolicy::Error).unwrap_err();
        let GatherError::Shard(error) = error else { panic!("{error}") };
        assert!((&*error.table, error.shard) == ("odd", Some(table.shards() - 1)) && error.rows.contains(&19_999));
        assert!(matches!(&*error.cause, ShardCause::Source { attempts: 3, .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(says) && text.contains("rows ") && text.contains("table `odd`"), "{text}");
        same(&table, &[1, 5, 9_000]);
        let score = table.score_blocking(&[1.0; DIM], gatherum::Metric::Dot, ..).unwrap_err();
        assert!(matches!(score, gatherum::ScoreError::Shard(_)), "{score}");
        assert!(table.warm_blocking().is_err());
        assert!(table.residency().failures >= 3);
        source.set(fault, 0..0, 0);
        same(&table, &[0, 19_999, 5]);
    }
}

#[test]
fn a_source_that_hangs_is_given_up() {
    let source = Odd::new(file());
    let stored = pollster::block_on(StoredTable::open(source.clone())).unwrap();
    let retry = Retry { deadline: Duration::from_millis(60), ..options().retry };
    let table = Engine::host().load_on_demand(stored, &OnDemand { retry, ..options() }).unwrap();
    source.set(Fault::Hangs, 0..u64::MAX, 1);
    let GatherError::Shard(error) = table.gather_blocking(&[1_u32], IdPolicy::Error).unwrap_err() else { panic!() };
    assert!(matches!(&*error.cause, ShardCause::Deadline { attempts: 0, .. }), "{error}");
    same(&table, &[1]);
}

#[test]
fn lookups_that_need_one_shard_load_it_once() {
    let source = Odd::new(file());
    let table = open(&source);
    source.reads();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| table.gather_blocking(&[77_u32], IdPolicy::Error).unwrap());
        }
    });
    let residency = table.residency();
    assert_eq!((residency.misses, residency.hits + residency.joined), (1, 7), "{residency:?}");
    assert_eq!(source.reads().len(), 2, "one read for each part");
}

/// A lookup that is dropped leaves neither a shard half there nor a place taken.
#[test]
fn a_lookup_that_is_dropped_leaves_nothing() {
    let source = Odd::new(file());
    let table = open(&source);
    for _ in 0..10 {
        let mut lookup = std::pin::pin!(table.gather(&[1_u32, 9_000, 19_000, 15_000], IdPolicy::Error));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(lookup.as_mut().poll(&mut context).is_pending());
    }
    let residency = table.residency();
    assert_eq!((residency.resident_shards, residency.resident_bytes), (0, Bytes(0)));
    same(&table, &[1, 9_000, 19_000, 15_000]);
}

/// Files of before blocks had checksums, and such as say something wrong of them.
#[test]
fn what_cannot_be_believed_in_pieces_is_refused() {
    let bytes = file();
    let length = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let changed = |change: &dyn Fn(&mut serde_json::Map<String, serde_json::Value>)| {
        let mut json = json.clone();
        change(json["__metadata__"].as_object_mut().unwrap());
        let mut text = json.to_string().into_bytes();
        text.resize(text.len().next_multiple_of(8), b' ');
        let mut file = (text.len() as u64).to_le_bytes().to_vec();
        file.extend(text);
        file.extend(&bytes[8 + length..]);
        file
    };
    let open = |file: Vec<u8>| {
        (
            pollster::block_on(StoredTable::open(MemorySource::new("t", file.clone()))).map(drop),
            io::TableFile::from_reader("t", std::io::Cursor::new(file)).map(drop),
        )
    };
    let (pieces, whole) = open(changed(&|metadata| {
        metadata.retain(|key, _| key != "block_bytes" && key != "checksum.blocks" && !key.starts_with("blocks."));
    }));
    assert!(matches!(pieces, Err(FileError::NoBlocks { .. })) && whole.is_ok(), "an older file is read whole");
    for (key, value, says) in [
        ("block_bytes", "65537", "power of two"),
        ("block_bytes", "32768", "digits"),
        ("blocks.codes", "00", "digits"),
        ("checksum.blocks", "xxh3:0", "checksums of blocks"),
        ("checksum", "xxh3:0", "description"),
    ] {
        let (pieces, whole) = open(changed(&|metadata| drop(metadata.insert(key.to_owned(), value.into()))));
        for error in [pieces.unwrap_err(), whole.unwrap_err()] {
            assert!(error.to_string().contains(says), "{key}: {error}");
        }
    }
    let (pieces, whole) = open(changed(&|metadata| drop(metadata.remove("block_bytes"))));
    assert!(pieces.is_err() && whole.is_err(), "checksums of blocks of no size");
    let digits = |digit: &str| digit.repeat(16 * 10);
    for value in [digits("g"), digits("0"), digits("+")] {
        let (pieces, whole) =
            open(changed(&|metadata| drop(metadata.insert("blocks.codes".to_owned(), value.clone().into()))));
        assert!(pieces.is_err() && whole.is_err(), "{value}");
    }
    for length in [0, 5, 8, 9, 100, bytes.len() - 1] {
        let (pieces, _) = open(bytes[..length].to_vec());
        assert!(matches!(pieces, Err(FileError::Length { .. })), "{length}");
    }
    let (foreign, _) = open(b"GGUF is no table, whatever it has behind".to_vec());
    assert!(matches!(foreign, Err(FileError::NotTable { .. })));
}

/// A made file of which most is a hole: what a lookup reads does not grow with the table.
#[test]
fn a_first_lookup_reads_little_of_a_large_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.safetensors");
    let read = sparse(&path, 1_000_000);
    assert!(read.0 * 100 < 256_000_000, "{read:#} of 256 MB");
}

/// Makes a table of zeros with 64 columns of f32 and looks one row up; says what was read.
fn sparse(path: &Path, rows: u64) -> Bytes {
    let spec = "f32".parse::<gatherum::Scheme>().unwrap().spec(gatherum::Shape::new(rows, 64).unwrap()).unwrap();
    let mut writer = io::TableWriter::create(path, &spec, None).unwrap();
    let zeros = vec![0; 4 << 20];
    let mut at = 0;
    while at < spec.bytes().0 {
        let length = usize::try_from(spec.bytes().0 - at).unwrap().min(zeros.len());
        gatherum::PartSink::write_part(&mut writer, 0, at, &zeros[..length]).unwrap();
        at += length as u64;
    }
    writer.finish().unwrap();
    let stored = pollster::block_on(StoredTable::open(FileSource::open(path).unwrap())).unwrap();
    let table = Engine::host().load_on_demand(stored, &OnDemand::default()).unwrap();
    assert_eq!(table.gather_blocking(&[rows / 2], IdPolicy::Error).unwrap().values, [0.0; 64]);
    table.residency().read
}

#[cfg(feature = "remote")]
mod remote {
    use std::{
        io::{BufRead, BufReader, Write},
        net::TcpListener,
        path::PathBuf,
        sync::atomic::AtomicU64,
    };

    use gatherum::store::ObjectSource;

    use super::*;

    /// A web server on this machine with one file, which it gives by ranges. `flaky`: of each three answers one is an error.
    fn serve(bytes: Vec<u8>, flaky: bool, sent: Arc<AtomicU64>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let bytes: Arc<[u8]> = bytes.into();
        let asked = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (bytes, sent, asked) = (bytes.clone(), sent.clone(), asked.clone());
                std::thread::spawn(move || -> std::io::Result<()> {
                    let mut stream = stream?;
                    let mut lines = BufReader::new(stream.try_clone()?).lines();
                    loop {
                        let mut request = Vec::new();
                        loop {
                            match lines.next() {
                                None => return Ok(()),
                                Some(line) if line.as_ref().is_ok_and(String::is_empty) => break,
                                Some(line) => request.push(line?.to_ascii_lowercase()),
                            }
                        }
                        if flaky && asked.fetch_add(1, Ordering::SeqCst) % 3 == 1 {
                            stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")?;
                            continue;
                        }
                        let range = request.iter().find_map(|line| {
                            let (from, to) = line.strip_prefix("range: bytes=")?.split_once('-')?;
                            Some(from.parse().ok()?..to.parse::<usize>().ok()? + 1)
                        });
                        let all = bytes.len();
                        let (status, range) = match range {
                            Some(range) => ("206 Partial Content", range.start..range.end.min(all)),
                            None => ("200 OK", 0..all),
                        };
                        let part = &bytes[range.clone()];
                        let head = request[0].starts_with("head");
                        write!(
                            stream,
                            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nAccept-Ranges: bytes\r\nETag: \"1\"\r\n\
                             Last-Modified: Tue, 01 Jan 2030 00:00:00 GMT\r\n\
                             Content-Range: bytes {}-{}/{all}\r\n\r\n",
                            part.len(),
                            range.start,
                            range.end.max(1) - 1,
                        )?;
                        if !head {
                            stream.write_all(part)?;
                            sent.fetch_add(part.len() as u64, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        format!("http://{address}/tables/numbers.safetensors?version=3")
    }

    #[test]
    fn tables_behind_a_web_server() {
        for flaky in [false, true] {
            let sent = Arc::new(AtomicU64::new(0));
            let url = serve(file(), flaky, sent.clone());
            let stored = pollster::block_on(StoredTable::open(ObjectSource::open(&url).unwrap())).unwrap();
            assert_eq!(stored.name(), "numbers");
            let table = Engine::host().load_on_demand(stored, &options()).unwrap();
            same(&table, &[7]);
            let first = sent.load(Ordering::SeqCst);
            assert!(first < 250_000, "{first} bytes for one row");
            assert_eq!(table.residency().read, Bytes(first));
            same(&table, &[7, 19_999, 0, 12_345]);
            same(&table, &(0..ROWS).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        for url in ["no url", "gopher://x/y", "http://127.0.0.1:1/t.safetensors"] {
            let opened = ObjectSource::open(url).map_err(FileError::from).and_then(|source| {
                let retry = Retry { attempts: 1, deadline: Duration::from_secs(5), ..Retry::default() };
                pollster::block_on(StoredTable::open_with(source, retry)).map(drop)
            });
            assert!(opened.is_err(), "{url}");
        }
    }

    /// A local file by the object store's own way.
    #[test]
    fn files_by_url() {
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join("numbers.safetensors");
        io::save_table(&numbers(), None, &path).unwrap();
        let source = ObjectSource::open(&format!("file://{}", path.display())).unwrap();
        let stored = pollster::block_on(StoredTable::open(source)).unwrap();
        same(&Engine::host().load_on_demand(stored, &options()).unwrap(), &[1, 2, 19_998]);
    }
}
