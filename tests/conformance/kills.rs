//! A writer that is killed, and one whose disk is full: each row is as it was or as it was written, and what was acknowledged is
//! there.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use gatherum::{
    EncodedTable, Scheme, TableSource,
    io::{self, Writable, WritableError, WritableTable},
};

use crate::{
    case::{Case, Stamp},
    child::{self, TASK},
    fixture::hash,
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "k01_kills", operation: "write", stamp: Stamp::Once(k01_kills) },
    Case { name: "k02_a_full_disk", operation: "write", stamp: Stamp::Where(mounts, k02_a_full_disk) },
];

const ROWS: u32 = 64;
const DIM: usize = 20;
const KILLS: u64 = 200;

fn scheme() -> Scheme {
    "int8".parse().expect("a scheme")
}

/// Row `row` as step `step` writes it.
fn values(row: u32, step: u64) -> Vec<f32> {
    (0..DIM as u64).map(|column| (hash(step << 20 | u64::from(row) << 8 | column) % 20_001) as f32 - 10_000.0).collect()
}

/// The rows that a step writes.
fn rows(step: u64) -> Vec<u32> {
    let count = 1 + hash(step) % 40;
    (0..count).map(|at| u32::try_from(hash(step << 8 | at | 1 << 60) % u64::from(ROWS)).expect("a row")).collect()
}

fn make(folder: &Path) -> PathBuf {
    let path = folder.join("table.safetensors");
    let all: Vec<f32> = (0..ROWS).flat_map(|row| values(row, 0)).collect();
    let (encoded, _) = EncodedTable::encode("table", &all, DIM, &scheme()).expect("a table");
    io::save_table(&encoded, None, &path).expect("a file");
    path
}

fn open(path: &Path) -> WritableTable {
    WritableTable::open(path, &Writable::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// In a child: writes, and says what it does, until it is killed.
pub(crate) fn write(path: &str, first: &str) {
    let mut table = open(Path::new(path));
    let first: u64 = first.parse().expect("a step");
    let mut out = std::io::stdout();
    let mut say = move |word: &str, step: u64| {
        writeln!(out, "{word} {step}").expect("somebody listens");
        out.flush().expect("somebody listens");
    };
    say("ready", first);
    for step in first.. {
        let rows = rows(step);
        let values: Vec<f32> = rows.iter().flat_map(|row| values(*row, step)).collect();
        table.write(&rows, &values).expect("rows");
        match hash(step ^ 77) % 8 {
            0..3 => continue,
            3..6 => table.flush().expect("a flush"),
            6 => drop(table.publish_blocking().expect("a version")),
            _ => {
                say("merging", step);
                table.merge_blocking().expect("a merge");
                say("merged", step);
            }
        }
        say("flushed", step);
    }
}

/// Runs the writer from step `first` on, kills it after `wait`, and gives the last step that it acknowledged, and whether it was
/// merging.
fn killed(path: &Path, first: u64, wait: Duration) -> (Option<u64>, bool) {
    let program = std::env::current_exe().expect("this program");
    let task = format!("write {} {first}", path.display());
    let mut child = Command::new(program).env(TASK, task).stdout(Stdio::piped()).spawn().expect("a child");
    let mut lines = BufReader::new(child.stdout.take().expect("its words")).lines();
    let ready = lines.next().expect("a word").expect("text");
    assert!(ready.starts_with("ready"), "{ready}");
    std::thread::sleep(wait);
    child.kill().expect("it runs still");
    let (mut last, mut merging) = (None, false);
    for line in lines.map_while(Result::ok) {
        let (word, step) = line.split_once(' ').unwrap_or((&line, ""));
        merging = word == "merging";
        // A last line may have been cut short, and then says a step too low or none.
        if word == "flushed" {
            last = step.parse().ok().max(last);
        }
    }
    child.wait().expect("it has ended");
    (last, merging)
}

fn k01_kills() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = make(folder.path());
    let start = Instant::now();
    // The step that wrote each row, as it was found last.
    let mut found: BTreeMap<u32, u64> = (0..ROWS).map(|row| (row, 0)).collect();
    let (mut first, mut acknowledged, mut merging, mut newer) = (1, 0, 0, 0);
    for kill in 0..KILLS {
        let wait = Duration::from_micros(hash(kill | 1 << 50) % 120_000);
        let (last, in_merge) = killed(&path, first, wait);
        merging += u32::from(in_merge);
        acknowledged += last.map_or(0, |last| last + 1 - first);
        let table = open(&path);
        let read = pollster::block_on(EncodedTable::read(&table.reader())).expect("all rows are whole");
        // Steps that the writer may have come to.
        let end = last.unwrap_or(first) + 200;
        for row in 0..ROWS {
            let sure = (first..=last.unwrap_or(0)).rev().find(|step| rows(*step).contains(&row));
            let least = sure.unwrap_or(found[&row]);
            let later = (first.max(least + 1)..end).filter(|step| rows(*step).contains(&row));
            let is = [least].into_iter().chain(later).find(|step| holds(&read, row, *step));
            let is = is.unwrap_or_else(|| {
                let old = (0..first + 1).find(|step| holds(&read, row, *step));
                panic!(
                    "kill {kill}: row {row} is of no step from {least} on (acknowledged: {last:?}, it is of {old:?})"
                )
            });
            newer += u32::from(is > least);
            found.insert(row, is);
        }
        first = end;
    }
    println!(
        "{KILLS} kills in {:?}: {acknowledged} steps acknowledged, {merging} kills in a merge, {newer} rows newer than those",
        start.elapsed()
    );
    assert!(acknowledged > 50 && merging > 3, "{acknowledged} steps and {merging} merges are too few to tell");
}

/// Whether a row of a table is that of a step, bit by bit.
fn holds(table: &EncodedTable, row: u32, step: u64) -> bool {
    let (one, _) = EncodedTable::encode("row", &values(row, step), DIM, &scheme()).expect("a row");
    let parts = table.spec().parts().iter().zip(table.parts().zip(one.parts()));
    let mut own = parts.map(|(part, (all, one))| {
        let length = usize::try_from(part.row_bytes()).expect("bytes");
        all[row as usize * length..][..length] == *one
    });
    own.all(|same| same)
}

/// A command with mounts of its own.
fn unshared() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]);
    command
}

/// Whether a small disk can be had: a tmpfs of Linux, that nobody else sees.
fn mounts() -> Result<(), String> {
    match unshared().args(["mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("no tmpfs: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("no tmpfs by `unshare`: {error}")),
    }
}

fn k02_a_full_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let script = "mount -t tmpfs -o size=400k tmpfs \"$0\" && exec \"$1\"";
    let mut command = unshared();
    command.args(["sh", "-c", script]).arg(folder.path()).arg(program);
    child::run_to_end(command.env(TASK, format!("full {}", folder.path().display())));
}

/// In a child, whose disk is small.
pub(crate) fn full(folder: &str) {
    let path = make(Path::new(folder));
    let mut table = open(&path);
    // Somebody else's file grows.
    let other = std::fs::File::create(Path::new(folder).join("other")).expect("a file");
    let fill = |bytes: usize| (&other).write_all(&vec![7; bytes]);
    while fill(4096).is_ok() {}
    let leave = |bytes: u64| other.set_len(other.metadata().expect("its length").len() - bytes).expect("less");
    let mut known: BTreeMap<u32, u64> = (0..ROWS).map(|row| (row, 0)).collect();
    let mut refused = 0;
    for step in 1..60 {
        let rows = rows(step);
        let written: Vec<f32> = rows.iter().flat_map(|row| values(*row, step)).collect();
        table.write(&rows, &written).expect("rows");
        // A flush that fails leaves them staged, and what was flushed as it was.
        while let Err(error) = table.publish_blocking() {
            assert!(matches!(error, WritableError::DiskFull { .. }), "{error}");
            check(&table, &known);
            refused += 1;
            if refused % 3 == 0 {
                // A reader elsewhere, after a kill that this is as good as.
                drop(table);
                table = open(&path);
                check(&table, &known);
                table.write(&rows, &written).expect("rows");
            }
            leave(4096);
        }
        known.extend(rows.iter().map(|row| (*row, step)));
        check(&table, &known);
    }
    assert!(refused > 3, "{refused} flushes were refused");
    while fill(512).is_ok() {}
    // A merge needs the table once more.
    let error = table.merge_blocking().expect_err("no room");
    assert!(matches!(error, WritableError::DiskFull { .. }), "{error}");
    check(&table, &known);
    leave(96 << 10);
    table.merge_blocking().expect("there is room now");
    check(&table, &known);
    drop(table);
    check(&open(&path), &known);
}

fn check(table: &WritableTable, known: &BTreeMap<u32, u64>) {
    let read = pollster::block_on(EncodedTable::read(&table.reader())).expect("rows");
    known.iter().for_each(|(row, step)| assert!(holds(&read, *row, *step), "row {row} is not that of step {step}"));
}
