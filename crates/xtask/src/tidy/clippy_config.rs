//! The pure crates' `clippy.toml` files are present, complete and identical.
//!
//! Why: clippy reads only the nearest configuration and does not merge, so each pure crate needs its own copy. Promises:
//! each copy bans every name below, each ban says why, and the copies are equal byte for byte. Leaves out: further bans,
//! which the files may add.

use toml::{Table, Value};

use super::{Finding, line_of};
use crate::tree::{File, Tree};

const RULE: &str = "clippy-config";
const PURE_CRATES: &[&str] = &["state", "consensus", "replica"];

const METHODS: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::spawn",
    "std::thread::sleep",
    "std::fs::read",
    "std::fs::write",
    "std::env::var",
    "fastrand::Rng::new",
];

const TYPES: &[&str] = &[
    "std::time::Instant",
    "std::time::SystemTime",
    "std::collections::HashMap",
    "std::collections::HashSet",
    "hashbrown::HashMap",
    "hashbrown::HashSet",
    "std::hash::RandomState",
    "std::fs::File",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::net::UdpSocket",
];

/// Compares the three files with the lists and with one another.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut first: Option<&File> = None;
    for folder in PURE_CRATES {
        let path = format!("crates/{folder}/clippy.toml");
        let mut report = |line: usize, advice: String| {
            findings.push(Finding { path: path.clone(), line, rule: RULE, advice });
        };
        let Some(file) = tree.file(&path) else {
            report(
                1,
                "add the file: a pure crate bans clock, randomness, hash maps, files and sockets"
                    .to_owned(),
            );
            continue;
        };
        match file.text.parse::<Table>() {
            Ok(table) => {
                for (line, advice) in gaps(&table, &file.text) {
                    report(line, advice);
                }
            }
            Err(error) => report(1, format!("make the file valid TOML: {error}")),
        }
        match first {
            None => first = Some(file),
            Some(other) if other.text != file.text => {
                report(1, format!("make the file equal to {}", other.path));
            }
            Some(_) => {}
        }
    }
    findings
}

/// What is missing from one file.
fn gaps(table: &Table, text: &str) -> Vec<(usize, String)> {
    let mut gaps = Vec::new();
    for (key, required) in [("disallowed-methods", METHODS), ("disallowed-types", TYPES)] {
        let entries = table.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let paths: Vec<&str> =
            entries.iter().filter_map(|entry| entry.get("path").and_then(Value::as_str)).collect();
        for name in required.iter().filter(|name| !paths.contains(name)) {
            gaps.push((line_of(text, key), format!("ban `{name}` in `{key}`")));
        }
        for entry in entries {
            let reason = entry.get("reason").and_then(Value::as_str).unwrap_or_default();
            if reason.trim().is_empty() {
                let path = entry.get("path").and_then(Value::as_str).unwrap_or("every entry");
                gaps.push((line_of(text, path), format!("give the ban of `{path}` a reason")));
            }
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE: &str = include_str!("../../../state/clippy.toml");

    fn advice(state: &str, consensus: &str, replica: Option<&str>) -> Vec<String> {
        let mut files =
            vec![("crates/state/clippy.toml", state), ("crates/consensus/clippy.toml", consensus)];
        files.extend(replica.map(|text| ("crates/replica/clippy.toml", text)));
        check(&Tree::of(&files)).into_iter().map(|finding| finding.advice).collect()
    }

    #[test]
    fn complete_and_equal_files_pass() {
        assert_eq!(advice(COMPLETE, COMPLETE, Some(COMPLETE)), Vec::<String>::new());
    }

    #[test]
    fn missing_differing_and_broken_files_are_found() {
        assert!(advice(COMPLETE, COMPLETE, None)[0].contains("add the file"));
        let longer = format!("{COMPLETE}\n# more\n");
        assert!(advice(COMPLETE, &longer, Some(COMPLETE))[0].contains("equal to crates/state"));
        assert!(advice("x = [", COMPLETE, Some(COMPLETE))[0].contains("valid TOML"));
    }

    #[test]
    fn missing_ban_and_missing_reason_are_found() {
        let without_clock =
            COMPLETE.replace("std::time::Instant::now", "std::time::Instant::later");
        let found = advice(&without_clock, &without_clock, Some(&without_clock));
        assert_eq!(
            found.iter().filter(|line| line.contains("ban `std::time::Instant::now`")).count(),
            3
        );
        let bare = "disallowed-types = [{ path = \"std::fs::File\" }]";
        assert!(
            advice(bare, bare, Some(bare))
                .iter()
                .any(|line| line.contains("`std::fs::File` a reason"))
        );
    }
}
