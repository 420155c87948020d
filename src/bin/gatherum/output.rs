//! Answers: to standard output, or to a file that is whole or not there.

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use comfy_table::{CellAlignment, Table, presets};
use gatherum::{BackendInfo, io::Vocabulary};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};

/// Writes `value` on lines of its own.
pub(crate) fn write_json(out: &mut dyn Write, value: &Value) -> Outcome {
    serde_json::to_writer_pretty(&mut *out, value)?;
    Ok(writeln!(out)?)
}

/// A word as text; bytes that are no UTF-8 are replaced.
pub(crate) fn word_text(words: &Vocabulary, row: u32) -> String {
    String::from_utf8_lossy(words.get(row)).into_owned()
}

/// A row's word for JSON: null where the table has none.
pub(crate) fn word_json(words: Option<&Vocabulary>, row: u32) -> Value {
    words.map_or(Value::Null, |words| word_text(words, row).into())
}

pub(crate) fn backend_json(backend: &BackendInfo) -> Value {
    json!({
        "name": backend.name,
        "kind": backend.kind,
        "interface": backend.interface,
        "driver": backend.driver,
    })
}

/// A table whose columns are right-aligned, but for the first.
pub(crate) fn table(header: &[String]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header.to_vec());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Numbers with a unit of thousands: `812`, `34.1 k`, `2.6 M`.
pub(crate) fn short(number: f64) -> String {
    match number {
        _ if number < 1e3 => format!("{number:.0}"),
        _ if number < 1e6 => format!("{:.1} k", number / 1e3),
        _ if number < 1e9 => format!("{:.1} M", number / 1e6),
        _ => format!("{:.1} G", number / 1e9),
    }
}

/// A bar on standard error, where that is a terminal.
pub(crate) fn progress(what: &'static str, steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps).with_message(what);
    // The template is checked by a test.
    if let Ok(style) = ProgressStyle::with_template(BAR) {
        bar.set_style(style);
    }
    bar
}

const BAR: &str = "{msg} {bar:40} {human_pos}/{human_len} ({eta} left)";

/// The same for work whose end is not known.
pub(crate) fn spinner(what: String) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(what);
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

/// Writes a file of that name in one step: where `write` fails, a file that had the name stays as it was.
pub(crate) fn save(path: &Path, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Outcome {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".gatherum-").suffix(".tmp");
    // As any new file: the umask takes from it what it does.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let saved = builder.tempfile_in(folder).and_then(|mut file| {
        let mut buffered = std::io::BufWriter::new(file.as_file_mut());
        write(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|error| error.error)
    });
    saved.map_err(|error| Failure::writing(path, &error))
}

/// Whether two paths lead to the same file; false where one leads to none.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| -> Option<PathBuf> { path.canonicalize().ok() };
    if real(one).is_some() && real(one) == real(other) {
        return true;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let key = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
        key(one).is_some() && key(one) == key(other)
    }
    #[cfg(not(unix))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bars_template_is_one() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
    }

    #[test]
    fn numbers_are_short() {
        for (number, text) in [(0.0, "0"), (999.0, "999"), (34_120.0, "34.1 k"), (2_600_000.0, "2.6 M")] {
            assert_eq!(short(number), text);
        }
    }
}
