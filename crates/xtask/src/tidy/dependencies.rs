//! Every third-party crate has a row in `docs/dependencies.md` and one version, named in the workspace manifest.
//!
//! Promises: a dependency without a row, a row without a dependency, and a member that names a version of its own are
//! found. Leaves out: licences, advisories and duplicates (cargo-deny).

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::{Finding, line_of};
use crate::tree::{File, Tree};

const RULE: &str = "dependencies";
const PAPER: &str = "docs/dependencies.md";
const TABLES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// Compares manifests with the paper.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = rows_against_manifest(tree);
    let members = tree
        .files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml"));
    findings.extend(members.flat_map(own_versions));
    findings
}

fn finding(path: &str, line: usize, advice: String) -> Finding {
    Finding { path: path.to_owned(), line, rule: RULE, advice }
}

fn rows_against_manifest(tree: &Tree) -> Vec<Finding> {
    let manifest = tree.file("Cargo.toml").map_or("", |file| file.text.as_str());
    let paper = tree.file(PAPER).map_or("", |file| file.text.as_str());
    let table: Table = manifest.parse().unwrap_or_default();
    let named: BTreeSet<&str> = table
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"))
        .and_then(Value::as_table)
        .into_iter()
        .flat_map(|dependencies| dependencies.keys())
        .map(String::as_str)
        .filter(|name| !name.starts_with("ikada-"))
        .collect();
    let rows: BTreeSet<&str> = paper.lines().filter_map(row_name).collect();
    let missing = named.difference(&rows).map(|name| {
        let line = line_of(manifest, &format!("\n{name} = ")) + 1;
        finding(
            "Cargo.toml",
            line,
            format!("give `{name}` a row in {PAPER}: what for, why this one, how well kept, size"),
        )
    });
    let stale = rows.difference(&named).map(|name| {
        let line = line_of(paper, &format!("| `{name}` |"));
        finding(
            PAPER,
            line,
            format!("remove the row of `{name}`, which is no workspace dependency"),
        )
    });
    missing.chain(stale).collect()
}

/// The crate a table row speaks of: its first cell, when that is one word in backticks.
fn row_name(line: &str) -> Option<&str> {
    let cell = line.strip_prefix("| `")?;
    let (name, rest) = cell.split_once('`')?;
    rest.starts_with(" |").then_some(name)
}

fn own_versions(file: &File) -> Vec<Finding> {
    let table: Table = file.text.parse().unwrap_or_default();
    let mut findings = Vec::new();
    for key in TABLES {
        for (name, value) in table.get(*key).and_then(Value::as_table).into_iter().flatten() {
            let inherits = value.get("workspace").and_then(Value::as_bool) == Some(true);
            if !inherits {
                let line = line_of(&file.text, &format!("\n{name}")) + 1;
                findings.push(finding(&file.path, line, format!("name `{name}` in the workspace manifest and inherit it: `{name}.workspace = true`")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str =
        "[workspace.dependencies]\nikada-state = { path = \"x\" }\nbytes = \"1\"\n";

    #[test]
    fn row_and_inheritance_pass() {
        let tree = Tree::of(&[
            ("Cargo.toml", MANIFEST),
            ("crates/a/Cargo.toml", "[dependencies]\nbytes.workspace = true\n"),
            (PAPER, "| crate | for |\n|---|---|\n| `bytes` | buffers |\n"),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn missing_and_stale_rows_are_found() {
        let tree = Tree::of(&[("Cargo.toml", MANIFEST), (PAPER, "\n| `serde` | old |\n")]);
        let found = check(&tree);
        assert_eq!((found[0].path.as_str(), found[0].line), ("Cargo.toml", 3));
        assert_eq!((found[1].path.as_str(), found[1].line), (PAPER, 2));
    }

    #[test]
    fn version_in_a_member_is_found() {
        let tree = Tree::of(&[("crates/a/Cargo.toml", "[dev-dependencies]\nbytes = \"2\"\n")]);
        let found = check(&tree);
        assert_eq!((found.len(), found[0].line), (1, 2));
    }
}
