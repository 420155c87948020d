//! Running the command in a folder of its own, on the host backend.

use std::{
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Names of the files there are.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatherum"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("GATHERUM_BACKEND", "host").env_remove("RUST_LOG");
        // Where it is not set, EGL's driver complains on standard error.
        command.env("XDG_RUNTIME_DIR", self.folder.path());
        command
    }

    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Standard output of a call that must succeed and say nothing else.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.output(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {}\n{said}", output.status);
        assert!(said.is_empty() || said.starts_with("note: "), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A call that must fail with `code`, in one line that has all of `says`, and a next step.
    pub(crate) fn fails(&self, args: &[&str], code: i32, says: &[&str]) -> String {
        let output = self.output(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
        let lines: Vec<&str> = said.lines().collect();
        let [what, next] = lines[..] else { panic!("{args:?}: two lines are wanted: {said}") };
        assert!(what.starts_with("error: ") && next.starts_with("next step: "), "{args:?}: {said}");
        for words in says {
            assert!(what.contains(words), "{args:?}: no {words:?} in {said}");
        }
        said
    }

    pub(crate) fn write_npy<const DIM: usize>(&self, name: &str, values: &[[f32; DIM]]) {
        let mut file = std::fs::File::create(self.path(name)).unwrap();
        if values.is_empty() {
            // `write_npy` takes the number of rows from the values.
            let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': (0, {DIM}), }}");
            let bytes = [b"\x93NUMPY\x01\x00\x76\x00", format!("{header:117}\n").as_bytes()].concat();
            std::fs::write(self.path(name), bytes).unwrap();
        } else {
            gatherum::io::write_npy(&mut file, values.as_flattened(), DIM).unwrap();
        }
    }

    pub(crate) fn write_glove<const DIM: usize>(&self, name: &str, words: &[&str], values: &[[f32; DIM]]) {
        let line = |(word, row): (&&str, &[f32; DIM])| {
            let numbers: Vec<String> = row.iter().map(f32::to_string).collect();
            format!("{word} {}\n", numbers.join(" "))
        };
        let text: String = words.iter().zip(values).map(line).collect();
        std::fs::write(self.path(name), text).unwrap();
    }
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
