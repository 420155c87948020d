//! `evaluate`: figures of each scheme, in each form.

use std::fs;

use serde_json::json;

use crate::run::{Sandbox, json};

/// Five words whose analogy holds, and some more.
fn with_words() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut words = vec!["man", "woman", "king", "queen"];
    let mut rows = vec![[1.0, 0.0, 0.1, 0.3], [1.0, 1.0, 0.1, 0.3], [3.0, 0.0, 2.0, 0.2], [3.0, 3.0, 2.0, 0.1]];
    let more: Vec<String> = (0..40).map(|row| format!("w{row}")).collect();
    words.extend(more.iter().map(String::as_str));
    rows.extend((0..40).map(|row| std::array::from_fn(|column| ((row * 4 + column) as f32 * 1.7).sin())));
    sandbox.write_glove("in.txt", &words, &rows);
    fs::write(sandbox.path("pairs.txt"), "# word word score\nman woman 8\nKing queen 9\nman w1 1\nking missing 3\n")
        .unwrap();
    fs::write(
        sandbox.path("questions.txt"),
        ": family\nman woman king queen\nman woman king w3\nman woman king lost\n",
    )
    .unwrap();
    sandbox
}

#[test]
fn what_is_built_in_is_evaluated_by_default() {
    let sandbox = Sandbox::new();
    let args = ["evaluate", "--scheme", "f32", "--scheme", "int8"];
    let shown = json(&sandbox.ok(&[&args[..], &["--json"]].concat()));
    assert_eq!((&shown["table"]["rows"], &shown["pairs"][0]["used"]), (&json!(10_000), &json!(278)));
    let [exact, coded] = [&shown["schemes"][0], &shown["schemes"][1]];
    assert_eq!(exact["neighbors_kept"], json!({ "frequent": 1.0, "traffic": 1.0, "rare": 1.0 }));
    for sample in ["frequent", "traffic", "rare"] {
        let kept = coded["neighbors_kept"][sample].as_f64().unwrap();
        assert!((0.95..1.0).contains(&kept), "{sample}: {kept}");
    }
    assert!((coded["pairs"]["WordSim-353"].as_f64().unwrap() - 0.5687).abs() < 0.001);
    assert_eq!((&coded["analogies"], &coded["bytes"]), (&json!(null), &json!(1_040_000)));
    let text = sandbox.ok(&args);
    assert!(text.contains("nn10 frequent") && text.contains("WordSim-353") && text.contains("26.0 %"), "{text}");
}

#[test]
fn a_table_of_ones_own_with_pairs_and_analogies() {
    let sandbox = with_words();
    let args = ["evaluate", "--table", "in.txt", "--pairs", "pairs.txt", "--analogies", "questions.txt"];
    let shown = json(&sandbox.ok(&[&args[..], &["--json", "--plot", "p.svg"]].concat()));
    let examples: Vec<&str> = gatherum::Scheme::all().iter().flat_map(|info| info.examples).copied().collect();
    let schemes: Vec<_> =
        shown["schemes"].as_array().unwrap().iter().map(|one| one["scheme"].as_str().unwrap()).collect();
    // A fitted scheme may say more than the one asked for.
    let name = |scheme: &&str| scheme.split([':', '/']).next().map(str::to_owned);
    assert!(schemes.iter().map(name).eq(examples.iter().map(name)), "{schemes:?}");
    assert_eq!(shown["pairs"], json!([{ "name": "pairs", "pairs": 4, "used": 3 }]));
    assert_eq!(shown["analogies"], json!({ "questions": 3, "used": 2, "rows": 44 }));
    let exact = &shown["schemes"][0];
    assert_eq!(exact["analogies"], json!({ "share": 0.5, "sections": [{ "name": "family", "asked": 2, "right": 1 }] }));
    assert!(exact["pairs"]["pairs"].is_number());
    let drawn = fs::read_to_string(sandbox.path("p.svg")).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"), "{drawn}");
    assert!(schemes.iter().all(|scheme| drawn.contains(scheme)), "each scheme is in the legend");

    let csv = sandbox.ok(&[&args[..], &["--csv", "--scheme", "int8:affine,group=16"]].concat());
    let lines: Vec<&str> = csv.lines().collect();
    let header = "scheme,bytes,of f32,rel. error,cosine,nn10 frequent,nn10 traffic,nn10 rare,pairs,analogies";
    assert_eq!((lines.len(), lines[0]), (2, header));
    assert!(lines[1].starts_with("\"int8:affine,group=16\","), "{csv}");

    let few = json(&sandbox.ok(&[&args[..], &["--json", "--scheme", "f32", "--analogy-words", "3"]].concat()));
    assert_eq!(few["analogies"]["used"], 0, "queen is the fourth word");
    assert_eq!(few["schemes"][0]["analogies"]["share"], json!(null));
}

#[test]
fn what_cannot_be_evaluated_is_said() {
    let sandbox = with_words();
    sandbox.fails(&["evaluate", "--pairs", "nowhere.txt"], 3, &["nowhere.txt"]);
    fs::write(sandbox.path("none.txt"), "nothing to see\n").unwrap();
    sandbox.fails(&["evaluate", "--pairs", "none.txt"], 3, &["none.txt", "no pairs"]);
    sandbox.fails(&["evaluate", "--analogies", "none.txt"], 3, &["none.txt", "line 1", "four words"]);
    fs::write(sandbox.path("none.txt"), ": empty\n").unwrap();
    sandbox.fails(&["evaluate", "--analogies", "none.txt"], 3, &["none.txt", "no analogies"]);
    sandbox.fails(&["evaluate", "--scheme", "int9"], 2, &["int9"]);
    sandbox.fails(&["evaluate", "--table", "nowhere.npy"], 3, &["nowhere.npy"]);
    sandbox.write_npy("rows.npy", &[[1.0, 2.0], [2.0, 1.0]]);
    sandbox.fails(&["evaluate", "--table", "rows.npy", "--pairs", "pairs.txt"], 6, &["rows.npy", "no words"]);
    let shown = json(&sandbox.ok(&["evaluate", "--table", "rows.npy", "--scheme", "f32", "--json"]));
    assert_eq!(shown["schemes"][0]["pairs"], json!({ "WordSim-353": null }));
    sandbox.write_npy::<3>("empty.npy", &[]);
    sandbox.fails(&["evaluate", "--table", "empty.npy"], 3, &["empty.npy", "0 rows"]);
    for args in [&["evaluate", "--json", "--csv"][..], &["evaluate", "--analogy-words", "0"]] {
        assert_eq!(sandbox.output(args).status.code(), Some(2), "{args:?}");
    }
    let scheme = ["evaluate", "--table", "rows.npy", "--scheme", "f32"];
    sandbox.fails(&[&scheme[..], &["--plot", "no/such/folder.svg"]].concat(), 1, &["no/such/folder.svg"]);
}
