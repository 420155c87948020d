//! The `gatherum` command from outside: answers, exit codes, and what it leaves behind.
#![cfg(feature = "cli")]

#[path = "cli/errors.rs"]
mod errors;
#[path = "cli/evaluate.rs"]
mod evaluate;
#[path = "cli/run.rs"]
mod run;

use run::{Sandbox, json};
use serde_json::json;

/// A table of 4 rows by hand: a dozen numbers that every scheme but the integers keeps exactly.
const VALUES: [[f32; 3]; 4] = [[1.0, 0.0, 0.5], [2.0, 0.0, 1.0], [-1.0, 0.25, 0.0], [0.0, 0.0, 0.0]];

#[test]
fn compress_inspect_lookup_and_neighbors_of_one_table() {
    let sandbox = Sandbox::new();
    sandbox.write_glove("in.txt", &["one", "two", "über", "nil"], &VALUES);
    let made = json(&sandbox.ok(&["compress", "in.txt", "--scheme", "int8", "-o", "t.safetensors", "--json"]));
    assert_eq!(made["rows"], 4);
    assert_eq!(made["dim"], 3);
    assert_eq!(made["scheme"], "int8");
    assert_eq!(made["format"], "GloVe text");
    assert_eq!(made["words"], 4);
    assert_eq!(made["bytes_before"], 48);
    assert_eq!(made["bytes_after"], 4 * 3 + 4 * 4);
    assert_eq!(made["file_bytes"], sandbox.path("t.safetensors").metadata().unwrap().len());

    let seen = json(&sandbox.ok(&["inspect", "t.safetensors", "--json"]));
    assert_eq!(seen["kind"], "table");
    assert_eq!(seen["checksums"], "verified");
    assert_eq!(seen["words"], 4);
    assert_eq!(seen["parts"][0]["name"], "codes");
    assert_eq!(seen["parts"][0]["shape"], json!([4, 3]));

    let answer = json(&sandbox.ok(&["lookup", "t.safetensors", "--ids", "1,0,1", "--word", "über", "--json"]));
    assert_eq!(answer["ids"], json!([1, 0, 1, 2]), "ids, then words");
    assert_eq!(answer["rows"].as_array().unwrap().len(), 4);
    assert_eq!(answer["rows"][0], answer["rows"][2]);
    assert_eq!(answer["rows"][0][0], 2.0);
    assert_eq!(answer.as_object().unwrap().len(), 2, "ids and rows, nothing else");

    let near = json(&sandbox.ok(&["neighbors", "t.safetensors", "--word", "one", "-k", "5", "--json"]));
    assert_eq!(near["query"], json!({ "id": 0, "word": "one" }));
    let ids: Vec<_> = near["neighbors"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    assert_eq!(ids, [json!(1), json!(2)], "neither the row itself nor the row of zeros");
    assert_eq!(near["neighbors"][0]["word"], "two");
    assert!(near["neighbors"][0]["cosine"].as_f64().unwrap() > 0.999);
}

/// A GGUF model with one block of Q4_0, of codes that ggml would not choose: read, and compressed without loss.
#[test]
fn quantised_rows_of_a_gguf_file_stay_as_they_are() {
    let sandbox = Sandbox::new();
    let mut file = [&b"GGUF\x03\0\0\0"[..], &1u64.to_le_bytes(), &0u64.to_le_bytes()].concat();
    file.extend([&17u64.to_le_bytes()[..], b"token_embd.weight", &2u32.to_le_bytes()].concat());
    file.extend([32u64, 1].iter().flat_map(|size| size.to_le_bytes()));
    file.extend([&2u32.to_le_bytes()[..], &0u64.to_le_bytes()].concat());
    file.resize(file.len().next_multiple_of(32), 0);
    // 0.25 times 10 - 8 and 5 - 8.
    file.extend([&[0x00, 0x34][..], &[0x5a; 16]].concat());
    std::fs::write(sandbox.path("model.gguf"), file).unwrap();
    let made = json(&sandbox.ok(&["compress", "model.gguf", "-s", "int4:group=32", "-o", "t.safetensors", "--json"]));
    assert_eq!((&made["format"], &made["max_error"]), (&json!("GGUF"), &json!(0.0)));
    let rows = json(&sandbox.ok(&["lookup", "t.safetensors", "--ids", "0", "--json"]))["rows"].clone();
    assert_eq!((&rows[0][0], &rows[0][15], &rows[0][16]), (&json!(0.5), &json!(0.5), &json!(-0.75)));
}

/// Rows 0 and 2 share a stored row; the second is asked for three times as often.
#[test]
fn frequencies_weigh_rows() {
    let sandbox = Sandbox::new();
    sandbox.write_npy("in.npy", &[[1.0], [7.0], [5.0]]);
    std::fs::write(sandbox.path("counts.txt"), "1\n0\n3\n").unwrap();
    let args = ["compress", "in.npy", "-s", "hash:rows=2/f32", "-o", "t.safetensors", "--json"];
    let made = json(&sandbox.ok(&[&args[..], &["--frequencies", "counts.txt"]].concat()));
    assert_eq!(made["fit"]["traffic_that_collides"], 1.0);
    let rows = json(&sandbox.ok(&["lookup", "t.safetensors", "--ids", "0,1", "--json"]))["rows"].clone();
    assert_eq!(rows, json!([[4.0], [0.0]]), "a row without traffic leaves zeros");
    for (text, says) in [
        ("1\n2\n", "2 frequencies are none of 3 rows"),
        ("1\n-2\n3", "frequency of row 1 is -2"),
        ("1\n2\nNaN", "frequency of row 2 is NaN"),
        ("0\n0\n0", "all 3 rows are 0"),
        ("1\ntwo\n3", "line 2: `two`"),
    ] {
        std::fs::write(sandbox.path("counts.txt"), text).unwrap();
        sandbox.fails(&[&args[..], &["--frequencies", "counts.txt"]].concat(), 3, &["counts.txt", says]);
    }
}

#[test]
fn values_are_written_so_that_the_same_f32_is_read_again() {
    let sandbox = Sandbox::new();
    let values = [[0.1_f32, f32::MIN_POSITIVE, -0.0], [1.0 / 3.0, 1e-45, f32::MAX]];
    sandbox.write_npy("in.npy", &values);
    sandbox.ok(&["compress", "in.npy", "--scheme", "f32", "-o", "t.safetensors"]);
    let text = sandbox.ok(&["lookup", "t.safetensors", "--ids", "0,1", "--json"]);
    assert!(text.contains("0.1,"), "shortest form: {text}");
    let rows = json(&text)["rows"].clone();
    for (row, values) in values.iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            let read: f32 = rows[row][column].to_string().parse().unwrap();
            assert_eq!(read.to_bits(), value.to_bits(), "row {row}, column {column}");
        }
    }
    let text = sandbox.ok(&["lookup", "t.safetensors", "--ids=1"]);
    let fields: Vec<&str> = text.trim_end().split(['\t', ' ']).collect();
    assert_eq!(fields[0], "1");
    assert_eq!(fields[1].parse::<f32>().unwrap(), values[1][0]);

    let said = sandbox.ok(&["lookup", "t.safetensors", "--ids", "1,0", "--npy", "rows.npy"]);
    assert_eq!(said, "rows.npy: 2 x 3 f32\n");
    let again = json(&sandbox.ok(&["lookup", "rows.npy", "--ids", "1,0", "--json"]));
    assert_eq!(again["rows"], rows, "a foreign file is looked up too");
}

#[test]
fn policies_and_wide_ids() {
    let sandbox = Sandbox::new();
    sandbox.write_npy("in.npy", &VALUES);
    sandbox.ok(&["compress", "in.npy", "--scheme", "f16", "-o", "t.safetensors"]);
    let rows = |policy: &str, ids: &str| {
        let ids = format!("--ids={ids}");
        json(&sandbox.ok(&["lookup", "t.safetensors", "--policy", policy, &ids, "--json"]))
    };
    let wrapped = rows("wrap", "-1,-4,-5,4,2");
    assert_eq!(wrapped["ids"], json!([-1, -4, -5, 4, 2]));
    let zeros = json!([0.0, 0.0, 0.0]);
    assert_eq!(wrapped["rows"], json!([zeros, [1.0, 0.0, 0.5], zeros, zeros, [-1.0, 0.25, 0.0]]));
    let wide = rows("zero", "4294967297,18446744073709551615,1");
    assert_eq!(wide["ids"], json!([4_294_967_297_u64, u64::MAX, 1]));
    assert_eq!(wide["rows"], json!([zeros, zeros, [2.0, 0.0, 1.0]]), "no id is cut to 32 bits");
    let negative = rows("zero", "-1,1");
    assert_eq!(negative["rows"], json!([zeros, [2.0, 0.0, 1.0]]));
}

#[test]
fn nothing_asked_for_is_answered_with_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write_npy("in.npy", &VALUES);
    sandbox.ok(&["compress", "in.npy", "--scheme", "f32", "-o", "t.safetensors"]);
    assert_eq!(sandbox.ok(&["lookup", "t.safetensors", "--ids", "", "--json"]), "{\"ids\": [], \"rows\": []}\n");
    assert_eq!(sandbox.ok(&["lookup", "t.safetensors", "--ids", ""]), "");
    assert_eq!(sandbox.ok(&["neighbors", "t.safetensors", "--id", "0", "-k", "0"]), "");
}

#[test]
fn a_table_of_no_rows() {
    let sandbox = Sandbox::new();
    sandbox.write_npy::<3>("in.npy", &[]);
    let made = json(&sandbox.ok(&["compress", "in.npy", "--scheme", "int8", "-o", "t.safetensors", "--json"]));
    assert_eq!((&made["rows"], &made["bytes_after"]), (&json!(0), &json!(0)));
    assert!(sandbox.ok(&["inspect", "t.safetensors"]).contains("0 x 3"));
    let answer = sandbox.ok(&["lookup", "t.safetensors", "--ids", "", "--json"]);
    assert_eq!(answer, "{\"ids\": [], \"rows\": []}\n");
    let zero = json(&sandbox.ok(&["lookup", "t.safetensors", "--ids", "7", "--policy", "zero", "--json"]));
    assert_eq!(zero["rows"], json!([[0.0, 0.0, 0.0]]));
    sandbox.fails(&["lookup", "t.safetensors", "--ids", "0"], 6, &["id 0", "0 rows"]);
}

#[test]
fn inspect_says_what_would_be_read_of_a_foreign_file() {
    let sandbox = Sandbox::new();
    sandbox.write_glove("in.txt", &["a", "b", "c", "d"], &VALUES);
    let seen = json(&sandbox.ok(&["inspect", "in.txt", "--json"]));
    assert_eq!((&seen["kind"], &seen["format"], &seen["rows"]), (&json!("rows"), &json!("GloVe text"), &json!(4)));
    assert!(sandbox.ok(&["inspect", "in.txt"]).contains("4 x 3"));
    sandbox.write_npy("in.npy", &VALUES);
    std::fs::write(sandbox.path("words.txt"), "w0\nw1\nw2\nw3\n").unwrap();
    let near = sandbox.ok(&["neighbors", "in.npy", "--words", "words.txt", "--word", "w1", "-k", "1"]);
    assert!(near.trim_end().ends_with("\t0\tw0"), "{near}");
}

#[test]
fn the_demo_measures_every_scheme_on_a_table_of_ones_own() {
    let sandbox = Sandbox::new();
    let words = ["tiger", "cat", "computer", "keyboard", "king"];
    let values: Vec<[f32; 8]> =
        (0..5).map(|row| std::array::from_fn(|column| ((row * 8 + column) as f32).sin())).collect();
    sandbox.write_glove("in.txt", &words, &values);
    let shown = json(&sandbox.ok(&["demo", "--table", "in.txt", "--json"]));
    let examples: Vec<&str> = gatherum::Scheme::all().iter().flat_map(|info| info.examples).copied().collect();
    let schemes: Vec<_> =
        shown["schemes"].as_array().unwrap().iter().map(|one| one["scheme"].as_str().unwrap()).collect();
    // A fitted scheme may say more than the one asked for.
    let name = |scheme: &&str| scheme.split([':', '/']).next().map(str::to_owned);
    assert!(schemes.iter().map(name).eq(examples.iter().map(name)), "{schemes:?}");
    assert_eq!(shown["wordsim"]["pairs"], 353);
    assert!(shown["wordsim"]["used"].as_u64().unwrap() >= 2, "tiger and cat, computer and keyboard, tiger and tiger");
    assert_eq!(
        shown["backends"],
        json!([{ "name": "host", "kind": "host", "interface": "", "driver": shown["backends"][0]["driver"] }])
    );
    assert!(shown["schemes"][0]["backends"][0]["lookups_per_second"].as_f64().unwrap() > 0.0);
    assert_eq!(shown["neighbors"]["words"][0]["word"], "king");
}

#[test]
fn the_demo_runs_on_what_is_built_in() {
    let sandbox = Sandbox::new();
    let shown = json(&sandbox.ok(&["demo", "--scheme", "f32", "--scheme", "int8", "--json"]));
    assert_eq!((&shown["table"]["rows"], &shown["table"]["dim"]), (&json!(10_000), &json!(100)));
    let wordsim = |scheme: usize| shown["schemes"][scheme]["backends"][0]["wordsim"].as_f64().unwrap();
    assert!(wordsim(0) > 0.5 && (wordsim(0) - wordsim(1)).abs() < 0.002, "{} {}", wordsim(0), wordsim(1));
    assert_eq!(shown["schemes"][0]["relative_error"], 0.0);
    assert!((shown["schemes"][1]["share"].as_f64().unwrap() - 0.26).abs() < 1e-9);
    let text = sandbox.ok(&["demo", "--scheme", "int8"]);
    assert!(text.contains("26.0 %") && text.contains("king"), "{text}");
}

#[test]
fn adapters_end_with_the_host() {
    let sandbox = Sandbox::new();
    let found = json(&sandbox.ok(&["adapters", "--json"]));
    assert_eq!(found["host"]["kind"], "host");
    assert_eq!(found["chosen"]["kind"], "host");
    for adapter in found["adapters"].as_array().unwrap() {
        assert!(adapter["limits"]["max_buffer_size"].as_u64().unwrap() > 0);
        assert!(!adapter["reason"].as_str().unwrap().is_empty());
    }
    assert!(sandbox.ok(&["adapters"]).contains("host ("));
}

#[test]
fn blocks_of_a_url_are_kept_in_a_folder() {
    let sandbox = Sandbox::new();
    sandbox.write_npy("rows.npy", &[[0.5, 1.0], [2.0, -3.0], [0.0, 4.0]]);
    sandbox.ok(&["compress", "rows.npy", "--scheme", "f32", "-o", "t.safetensors"]);
    let url = format!("file://{}", sandbox.path("t.safetensors").display());
    let lookup = |more: &[&str]| sandbox.ok(&[&["lookup", &url, "--ids", "2,0", "--json"], more].concat());
    let plain = lookup(&[]);
    let kept = ["--cache", "blocks", "--cache-size", "1MB"];
    assert_eq!((lookup(&kept), lookup(&kept)), (plain.clone(), plain));
    let tables: Vec<_> =
        std::fs::read_dir(sandbox.path("blocks")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let table = tables.iter().find(|path| path.is_dir()).expect("a folder for the table");
    assert_eq!(std::fs::read_dir(table).unwrap().count(), 1, "one block");
    assert_eq!(sandbox.output(&["lookup", &url, "--ids", "0", "--cache-size", "1MB"]).status.code(), Some(2));
    sandbox.write_npy("file", &[[1.0]]);
    sandbox.fails(&["lookup", &url, "--ids", "0", "--cache", "file"], 3, &["the disk cache file"]);
}
