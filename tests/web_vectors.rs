//! Tables, and what this machine's host backend answers of them, for the tests in browsers: `web/test` asks the npm package for
//! the same and compares the bits. They lie in `target/tmp/web-vectors`, and are opened again here.

use std::{fs, path::Path};

use gatherum::{
    BagMode, Bags, EncodedTable, Encoder, Engine, IdPolicy, Metric, Scheme, Shape, Table, TableSource, TopKOptions,
    io::{self, TableFile, Vocabulary, save_table},
};
use serde_json::{Value, json};

/// A table of each dimension by each of these.
const PLAIN: [&str; 4] = ["f32", "f16", "int8", "int4"];
const DIMS: [usize; 7] = [1, 3, 7, 63, 257, 1025, 2048];

/// Rows of each table: the last shader word of a packed row is not full.
const ROWS: usize = 131;

/// Values of mixed size by a formula, as f32 holds them.
fn values(count: usize) -> Vec<f32> {
    let value = |at: usize| ((at * 7919 + at / 97 * 31) % 2003) as f32 / 1024.0 - 0.97;
    (0..count).map(|at| value(at) * [1.0, 0.03, 11.0][at / 50 % 3]).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn ids(count: usize, rows: usize) -> Vec<u32> {
    (0..count).map(|at| u32::try_from((at * 37 + at * at) % rows).unwrap()).chain([0, 0]).collect()
}

fn words(rows: usize) -> Vocabulary {
    Vocabulary::from_words((0..rows).map(|row| format!("word {row} é"))).unwrap()
}

fn bags(table: &Table, ids: &[u32]) -> Vec<Value> {
    let offsets = [0_u32, 0, 5, 6, 6, 30];
    let weights: Vec<f32> = (0..ids.len()).map(|at| (at % 9) as f32 / 4.0 - 1.0).collect();
    let mut cases = Vec::new();
    for (mode, name) in [(BagMode::Sum, "sum"), (BagMode::Mean, "mean"), (BagMode::Max, "max")] {
        for (weighted, padding, normalised) in [(false, None, false), (true, Some(0), false), (false, Some(37), true)] {
            if weighted && mode == BagMode::Max {
                continue;
            }
            let mut bags = Bags::offsets(&offsets, mode);
            if weighted {
                bags = bags.weights(&weights);
            }
            if let Some(id) = padding {
                bags = bags.padding_id(id);
            }
            if normalised {
                bags = bags.l2_normalised();
            }
            let rows = table.bag_blocking(ids, &bags, IdPolicy::Error).unwrap();
            cases.push(json!({
                "offsets": offsets, "mode": name, "weights": weighted.then(|| bits(&weights)), "paddingId": padding,
                "normalise": normalised, "bits": bits(&rows.values),
            }));
        }
    }
    cases
}

fn nearest(table: &Table, queries: &[f32]) -> Vec<Value> {
    let mut cases = Vec::new();
    for (metric, name) in [(Metric::Cosine, "cosine"), (Metric::Dot, "dot")] {
        let options = TopKOptions::default().rows(1..130).leave_out(&[Some(5), None, Some(7)]);
        let found = table.top_k_blocking(queries, 6, metric, options).unwrap();
        cases.push(json!({
            "queries": bits(queries), "k": 6, "metric": name, "rows": [1, 130], "leaveOut": [5, null, 7],
            "ids": found.ids, "scores": bits(&found.scores),
        }));
    }
    cases
}

fn table(folder: &Path, engine: &Engine, scheme: &str, dim: usize) -> Value {
    let name = format!("{}-{dim}", scheme.replace([':', '/', '=', ','], "_"));
    let (encoded, _) = EncodedTable::encode(&name, &values(ROWS * dim), dim, &scheme.parse().unwrap()).unwrap();
    let path = folder.join(format!("{name}.safetensors"));
    save_table(&encoded, Some(&words(ROWS)), &path).unwrap();
    let table = engine.load_blocking(&TableFile::open(&path).unwrap()).unwrap();
    let ids = ids(62, ROWS);
    let rows = table.gather_blocking(&ids, IdPolicy::Error).unwrap();
    json!({
        "name": name, "scheme": encoded.spec().scheme().to_string(), "rows": ROWS, "dim": dim, "bytes": encoded.spec().bytes().0, "ids": ids,
        "bits": bits(&rows.values), "bags": bags(&table, &ids), "nearest": nearest(&table, &values(3 * dim)),
    })
}

#[test]
fn they_are_written() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("web-vectors");
    // What another version left would be asked for too.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let engine = Engine::host();
    let fits = |scheme: &str| scheme.parse::<Scheme>().unwrap().spec(Shape::new(ROWS as u64, 100).unwrap()).is_ok();
    let variants = Scheme::all().iter().flat_map(|info| info.variants).copied().filter(|scheme| fits(scheme));
    let mut tables: Vec<Value> = variants.map(|scheme| table(&folder, &engine, scheme, 100)).collect();
    assert!(tables.len() >= Scheme::all().len(), "each scheme has a table");
    for scheme in PLAIN {
        tables.extend(DIMS.map(|dim| table(&folder, &engine, scheme, dim)));
    }
    fs::write(folder.join("tables.json"), serde_json::to_vec(&json!({ "tables": tables })).unwrap()).unwrap();

    // No rows.
    let scheme: Scheme = "int8".parse().unwrap();
    let (empty, _) = EncodedTable::encode("empty", &[], 5, &scheme).unwrap();
    save_table(&empty, None, folder.join("empty.safetensors")).unwrap();

    // Words with meaning.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut input = io::open_rows(root.join("data/glove-100d-10k.npy"), &io::OpenOptions::default()).unwrap();
    let words = Vocabulary::read(root.join("data/glove-100d-10k.words.txt"), 10_000).unwrap();
    let mut writer = io::TableWriter::create(
        folder.join("words.safetensors"),
        &scheme.spec(input.rows.shape()).unwrap(),
        Some(&words),
    );
    Encoder::new(&scheme).run(&mut *input.rows, writer.as_mut().unwrap()).unwrap();
    writer.unwrap().finish().unwrap();

    // One that is large beside the memory that loading it may take.
    let (rows, dim) = (98_304, 256);
    let large: Vec<f32> = (0..rows * dim).map(|at| (at % 4093) as f32 / 64.0).collect();
    let (encoded, _) = EncodedTable::encode("large", &large, dim, &"f16".parse().unwrap()).unwrap();
    save_table(&encoded, None, folder.join("large.safetensors")).unwrap();
}
