//! What the README says of the code, compared with the code.

use gatherum::Scheme;

#[test]
fn the_table_of_schemes_is_the_registrys() {
    let readme = include_str!("../README.md");
    let rows: Vec<String> = Scheme::all()
        .iter()
        .map(|info| {
            let options = if info.options.is_empty() { "none".to_owned() } else { format!("`{}`", info.options) };
            format!("| `{}` | {} | {options} |", info.name, info.summary)
        })
        .collect();
    let table = format!("| scheme | stores | options |\n|---|---|---|\n{}\n", rows.join("\n"));
    assert!(readme.contains(&table), "README.md should have this table:\n{table}");
}
