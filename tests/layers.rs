//! What ARCHITECTURE.md promises about the source, checked on the source.

#[path = "layers/text.rs"]
mod text;

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use text::{Code, crate_names};

/// Files of `folder` and below with that ending, in order.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The source without files of unit tests, which may name any layer.
fn library_files() -> Vec<PathBuf> {
    files("src", "rs").into_iter().filter(|path| !path.ends_with("tests.rs")).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A path as messages show it.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The layers, lowest first, from the line of ARCHITECTURE.md that lists them.
fn layers() -> Vec<Vec<String>> {
    let text = read(&root().join("ARCHITECTURE.md"));
    let line = text.lines().find(|line| line.starts_with("units, error < ")).expect("ARCHITECTURE.md lists the layers");
    line.split(" < ").map(|layer| layer.split(", ").map(str::to_owned).collect()).collect()
}

/// Which module each name that lib.rs re-exports comes from.
fn re_exports() -> BTreeMap<String, String> {
    let code = Code::of(&read(&root().join("src/lib.rs"))).text;
    let mut names = BTreeMap::new();
    for statement in code.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        let Some((module, list)) = statement.trim_start_matches("crate::").split_once("::") else { continue };
        for name in list.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '*')).filter(|name| !name.is_empty())
        {
            names.insert(name.to_owned(), module.trim().to_owned());
        }
    }
    names
}

#[test]
fn dependencies_point_one_way() {
    let layers = layers();
    let rank = |module: &str| layers.iter().position(|layer| layer.iter().any(|name| name == module));
    let exports = re_exports();
    let mut wrong = String::new();
    for path in library_files() {
        let inside = path.strip_prefix(root().join("src")).unwrap();
        let module = inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let Some(own) = rank(module) else {
            writeln!(wrong, "{}: `{module}` is in no layer of ARCHITECTURE.md", shown(&path)).unwrap();
            continue;
        };
        if module == "bin" {
            continue;
        }
        // A file's own depth says how many `super` lead to the crate's root.
        let depth = inside.components().count() - usize::from(inside.ends_with("mod.rs"));
        for (line, name) in crate_names(Code::of(&read(&path)).without_tests(), depth) {
            let name = exports.get(&name).cloned().unwrap_or(name);
            let other =
                if name.starts_with(char::is_uppercase) { exports.get("*").cloned().unwrap_or(name) } else { name };
            let allowed = other == module || rank(&other).is_some_and(|other| other < own || (other == 0 && own == 0));
            if !allowed {
                writeln!(wrong, "{}:{line}: `{module}` names `{other}`", shown(&path)).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "against the order in ARCHITECTURE.md:\n{wrong}");
}

#[test]
fn only_the_registry_tells_schemes_apart() {
    let schemes: Vec<&str> = gatherum::Scheme::all().iter().map(|info| info.name).collect();
    let mut wrong = String::new();
    for path in library_files() {
        if path.starts_with(root().join("src/scheme")) {
            continue;
        }
        let code = Code::of(&read(&path));
        let text = code.without_tests();
        for string in code.strings.iter().filter(|string| string.end <= text.len()) {
            let word = string.value.split([':', '/']).next().unwrap_or_default();
            let (before, after) = (text[..string.start].trim_end(), text[string.end..].trim_start());
            let compared = after.starts_with("=>")
                || after.starts_with('|')
                || ["==", "!=", "starts_with(", "matches!("].iter().any(|sign| before.ends_with(sign));
            if schemes.contains(&word) && compared {
                writeln!(wrong, "{}:{}: {:?}", shown(&path), string.line, string.value).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "scheme names compared outside of src/scheme:\n{wrong}");
}

#[test]
fn shaders_stand_in_files_of_their_own() {
    let signs = ["@compute", "@workgroup_size", "@group(", "var<storage", "var<uniform", "fn load16"];
    let mut wrong = String::new();
    for path in ["src", "benches", "tests"].iter().flat_map(|folder| files(folder, "rs")) {
        if path == root().join(file!()) {
            continue;
        }
        for string in Code::of(&read(&path)).strings {
            if let Some(sign) = signs.iter().find(|sign| string.value.contains(**sign)) {
                writeln!(wrong, "{}:{}: a string with `{sign}`", shown(&path), string.line).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "WGSL in Rust strings:\n{wrong}");
}

#[test]
fn files_stay_small() {
    let mut wrong = String::new();
    let folders = ["src", "shaders", "tests", "benches", "fuzz/fuzz_targets"];
    let web = ["web/src", "web/bind/src", "web/ts", "web/demo", "web/test"];
    for (ending, most) in [("rs", 500), ("wgsl", 150), ("ts", 400), ("js", 400)] {
        for path in folders.iter().chain(&web).flat_map(|folder| files(folder, ending)) {
            let lines = read(&path).lines().count();
            if lines >= most {
                writeln!(wrong, "{}: {lines} lines, under {most} are wanted", shown(&path)).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A scheme's Rust file, which is its own or its family's, and the WGSL file of the same name.
#[test]
fn each_scheme_has_a_shader_of_its_name() {
    for info in gatherum::Scheme::all() {
        let line = format!("name: \"{}\",", info.name);
        let mut stems = Vec::new();
        for path in files("src/scheme", "rs") {
            if read(&path).contains(&line) {
                stems.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
            }
        }
        let [stem] = &*stems else { panic!("scheme {}: its `{line}` is in {stems:?}", info.name) };
        // One that is made of others has none.
        if !read(&root().join(format!("src/scheme/{stem}.rs"))).contains("/shaders/") {
            continue;
        }
        let shaders = ["codec", "factor", "index"].map(|kind| format!("shaders/{kind}/{stem}.wgsl"));
        assert!(shaders.iter().any(|file| root().join(file).is_file()), "scheme {}: none of {shaders:?}", info.name);
    }
}

#[test]
fn the_stated_rust_version_covers_the_dependencies() {
    let cargo = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--all-features", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(cargo.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&cargo.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&cargo.stdout).unwrap();
    let version = |text: &str| -> Vec<u64> { text.split('.').map(|number| number.parse().unwrap()).collect() };
    let ours = version(env!("CARGO_PKG_RUST_VERSION"));
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 1, "cargo metadata lists no dependency");
    let mut wrong = String::new();
    for package in packages {
        if let Some(theirs) = package["rust_version"].as_str().filter(|theirs| version(theirs) > ours) {
            writeln!(wrong, "{} {} needs Rust {theirs}", package["name"], package["version"]).unwrap();
        }
    }
    assert!(wrong.is_empty(), "the package promises Rust {}:\n{wrong}", env!("CARGO_PKG_RUST_VERSION"));
}
