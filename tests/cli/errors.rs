//! What goes wrong: exit codes, messages, and files that stay as they were.

use std::fs;

use crate::{VALUES, run::Sandbox};

/// A sandbox with `in.npy`, `in.txt` and a table `t.safetensors` of 4 rows with words.
fn with_table() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_npy("in.npy", &VALUES);
    sandbox.write_glove("in.txt", &["one", "two", "three", "nil"], &VALUES);
    sandbox.ok(&["compress", "in.txt", "--scheme", "int8", "-o", "t.safetensors"]);
    sandbox
}

#[test]
fn usage_is_2() {
    let sandbox = with_table();
    for args in [
        &[][..],
        &["frobnicate"],
        &["lookup", "t.safetensors"],
        &["lookup", "t.safetensors", "--ids", "1", "--policy", "guess"],
        &["lookup", "t.safetensors", "--ids", "1", "--json", "--npy", "o.npy"],
        &["neighbors", "t.safetensors"],
        &["neighbors", "t.safetensors", "--id", "1", "--word", "one"],
        &["neighbors", "t.safetensors", "--id", "-1"],
        &["neighbors", "t.safetensors", "--id", "1", "-k", "many"],
        &["compress", "in.npy", "-o", "o.safetensors"],
        &["inspect", "t.safetensors", "--memory-budget", "lots"],
    ] {
        let output = sandbox.output(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{args:?}");
    }
    let out = ["-o", "o.safetensors"];
    let known =
        sandbox.fails(&[&["compress", "in.npy", "--scheme", "int9"], &out[..]].concat(), 2, &["`int9`", "int8"]);
    assert!(known.contains("gatherum compress --help"));
    sandbox.fails(
        &[&["compress", "in.npy", "--scheme", "int8:group=6"], &out[..]].concat(),
        2,
        &["group=6", "multiple of 4"],
    );
    sandbox.fails(&["lookup", "t.safetensors", "--ids", "1,x,3"], 2, &["id 1", "\"x\""]);
    sandbox.fails(&["lookup", "t.safetensors", "--ids", "1,,3"], 2, &["id 1", "\"\""]);
    sandbox.fails(&["lookup", "t.safetensors", "--ids", "99999999999999999999"], 2, &["99999999999999999999"]);
    sandbox.fails(
        &["lookup", "t.safetensors", "--policy", "zero", "--ids=-1,18446744073709551615"],
        2,
        &["negative ids"],
    );
    assert!(!sandbox.path("o.safetensors").exists());
    for args in [&["--help"][..], &["--version"], &["compress", "--help"], &["lookup", "-h"]] {
        assert!(sandbox.output(args).status.success(), "{args:?}");
    }
    assert!(sandbox.ok(&["--help"]).contains("Exit codes:"));
    assert!(sandbox.ok(&["compress", "--help"]).contains("int8:affine"));
}

#[test]
fn input_files_are_3() {
    let sandbox = with_table();
    fs::write(sandbox.path("empty"), "").unwrap();
    fs::write(sandbox.path("noise"), [0xff, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).unwrap();
    fs::write(sandbox.path("short.txt"), "only\nthree\nwords\n").unwrap();
    fs::create_dir(sandbox.path("folder")).unwrap();
    for command in [&["inspect"][..], &["lookup", "--ids", "0"], &["neighbors", "--id", "0"], &["demo", "--table"]] {
        for (file, says) in
            [("absent.npy", "No such file"), ("empty", "empty"), ("noise", "noise"), ("folder", "folder")]
        {
            sandbox.fails(&[command, &[file]].concat(), 3, &[file, says]);
        }
    }
    for file in ["absent.npy", "empty", "noise", "folder"] {
        sandbox.fails(&["compress", file, "--scheme", "f16", "-o", "o.safetensors"], 3, &[file]);
    }
    let words = ["--words", "short.txt", "-o", "o.safetensors"];
    sandbox.fails(&[&["compress", "in.npy", "--scheme", "f32"], &words[..]].concat(), 3, &["short.txt", "3 words"]);
    let again = ["compress", "t.safetensors", "--scheme", "f16", "-o", "o.safetensors"];
    sandbox.fails(&again, 3, &["t.safetensors", "already"]);
    assert!(!sandbox.path("o.safetensors").exists());
}

#[test]
fn a_damaged_table_is_3_and_not_altered() {
    let sandbox = with_table();
    let whole = fs::read(sandbox.path("t.safetensors")).unwrap();
    for (name, bytes) in [
        ("cut.safetensors", whole[..whole.len() - 1].to_vec()),
        ("flipped.safetensors", {
            let mut bytes = whole.clone();
            *bytes.last_mut().unwrap() ^= 1;
            bytes
        }),
    ] {
        fs::write(sandbox.path(name), &bytes).unwrap();
        for command in [&["inspect"][..], &["lookup", "--ids", "0"], &["neighbors", "--id", "0"]] {
            sandbox.fails(&[command, &[name]].concat(), 3, &[name]);
        }
        assert_eq!(fs::read(sandbox.path(name)).unwrap(), bytes);
    }
}

#[test]
fn nan_is_3_with_its_place_and_leaves_the_old_output() {
    let sandbox = with_table();
    let old = fs::read(sandbox.path("t.safetensors")).unwrap();
    let mut values = VALUES;
    values[2][1] = f32::NAN;
    sandbox.write_npy("nan.npy", &values);
    values[2][1] = f32::NEG_INFINITY;
    sandbox.write_npy("inf.npy", &values);
    for (file, value) in [("nan.npy", "NaN"), ("inf.npy", "-inf")] {
        let args = ["compress", file, "--scheme", "int8", "-o", "t.safetensors"];
        sandbox.fails(&args, 3, &[file, "row 2", "column 1", value]);
    }
    assert_eq!(fs::read(sandbox.path("t.safetensors")).unwrap(), old);
    assert_eq!(sandbox.files(), ["in.npy", "in.txt", "inf.npy", "nan.npy", "t.safetensors"], "no temporary file stays");
}

#[test]
fn an_output_that_cannot_be_is_1_or_2() {
    let sandbox = with_table();
    let compress = ["compress", "in.npy", "--scheme", "int8", "-o"];
    sandbox.fails(&[&compress[..], &["absent/t.safetensors"]].concat(), 1, &["absent/t.safetensors"]);
    fs::create_dir(sandbox.path("folder")).unwrap();
    sandbox.fails(&[&compress[..], &["folder"]].concat(), 1, &["folder"]);
    sandbox.fails(&["lookup", "t.safetensors", "--ids", "1", "--npy", "absent/r.npy"], 1, &["absent/r.npy"]);

    let before = sandbox.files();
    sandbox.fails(&[&compress[..], &["in.npy"]].concat(), 2, &["in.npy"]);
    sandbox.fails(&[&compress[..], &["./folder/../in.npy"]].concat(), 2, &["in.npy"]);
    fs::hard_link(sandbox.path("in.npy"), sandbox.path("other-name.npy")).unwrap();
    sandbox.fails(&[&compress[..], &["other-name.npy"]].concat(), 2, &["in.npy"]);
    fs::remove_file(sandbox.path("other-name.npy")).unwrap();
    sandbox.fails(&["lookup", "t.safetensors", "--ids", "1", "--npy", "t.safetensors"], 2, &["t.safetensors"]);
    fs::write(sandbox.path("m.safetensors.index.json"), r#"{"weight_map": {"w": "t.safetensors"}}"#).unwrap();
    let sharded = ["compress", "m.safetensors.index.json", "--scheme", "f32", "-o", "t.safetensors"];
    sandbox.fails(&sharded, 2, &["t.safetensors"]);
    fs::remove_file(sandbox.path("m.safetensors.index.json")).unwrap();
    assert_eq!(sandbox.files(), before);
    sandbox.ok(&["inspect", "t.safetensors"]);
}

#[test]
fn memory_is_4() {
    let sandbox = with_table();
    for file in ["t.safetensors", "in.npy"] {
        let args = ["lookup", file, "--ids", "1", "--memory-budget", "27"];
        let said = sandbox.fails(&args, 4, &["budget of 27 B"]);
        assert!(said.contains("--memory-budget"));
    }
    sandbox.ok(&["lookup", "t.safetensors", "--ids", "1", "--memory-budget", "28B"]);
}

#[test]
fn backends_are_5() {
    let sandbox = with_table();
    let absent = "no such adapter";
    sandbox.fails(&["lookup", "t.safetensors", "--ids", "1", "--backend", absent], 5, &[absent]);
    let mut command = sandbox.command(&["neighbors", "t.safetensors", "--id", "1"]);
    let output = command.env("GATHERUM_BACKEND", absent).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&output.stderr).contains("gatherum adapters"));
}

#[test]
fn ids_and_words_that_are_not_there_are_6() {
    let sandbox = with_table();
    for ids in ["4", "0,1,4", "-1", "4294967296", "18446744073709551615"] {
        let last = ids.rsplit(',').next().unwrap();
        let said = sandbox.fails(&["lookup", "t.safetensors", "--ids", ids], 6, &[&format!("id {last} "), "4 rows"]);
        assert!(said.contains("0 to 3"), "{said}");
    }
    sandbox.fails(&["lookup", "t.safetensors", "--policy", "zero", "--word", "four"], 6, &["t.safetensors", "`four`"]);
    let said = sandbox.fails(&["lookup", "t.safetensors", "--word", "ONE"], 6, &["`ONE`"]);
    assert!(said.contains("there is `one`"), "{said}");
    sandbox.fails(&["lookup", "in.npy", "--word", "one"], 6, &["in.npy", "no words"]);
    sandbox.fails(&["neighbors", "t.safetensors", "--id", "4"], 6, &["id 4 "]);
    sandbox.fails(&["neighbors", "t.safetensors", "--word", "four"], 6, &["`four`"]);
    sandbox.fails(&["neighbors", "t.safetensors", "--word", "nil"], 1, &["row 3", "zeros"]);
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let sandbox = Sandbox::new();
    let values: Vec<[f32; 64]> = vec![[1.5; 64]; 4000];
    sandbox.write_npy("in.npy", &values);
    let ids: Vec<String> = (0..4000).map(|id| id.to_string()).collect();
    let ids = ids.join(",");
    for args in [&["lookup", "in.npy", "--json", "--ids", &ids][..], &["lookup", "in.npy", "--ids", &ids]] {
        let mut child = sandbox
            .command(args)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}
