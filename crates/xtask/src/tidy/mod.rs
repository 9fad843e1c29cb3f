//! The house rules that a machine can check, one module per rule.
//!
//! Promises: every rule is a pure function of a [`Tree`]; a finding names file, line, rule and what to do about it; each
//! rule has a test that feeds it a violation. There is no list of exceptions: a new repository can keep the rules fully.
//! Leaves out: taste, and whatever rustfmt, clippy and cargo-deny already check.

mod arrows;
mod book;
mod clippy_config;
mod contents;
mod coverage;
mod dependencies;
mod file_size;
mod function_size;
mod header;
mod leftovers;
mod links;
mod package_names;
mod places;
mod planted;
mod purity;
mod secrets;
mod syntax;
mod unsafe_code;
mod waivers;

use std::fmt;
use std::path::Path;

use crate::tree::Tree;

/// One broken rule at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the workspace root.
    pub path: String,
    /// 1-based; 1 when the whole file is meant.
    pub line: usize,
    /// Name of the rule, as in its module.
    pub rule: &'static str,
    /// What to do, in one sentence.
    pub advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { path, line, rule, advice } = self;
        write!(f, "{path}:{line}: {rule}: {advice}")
    }
}

type Check = fn(&Tree) -> Vec<Finding>;

const RULES: &[Check] = &[
    arrows::check,
    book::check,
    clippy_config::check,
    contents::check,
    coverage::check,
    dependencies::check,
    file_size::check,
    function_size::check,
    header::check,
    leftovers::check,
    links::check,
    package_names::check,
    places::check,
    planted::check,
    purity::check,
    secrets::check,
    unsafe_code::check,
    waivers::check,
];

/// All findings in a tree, sorted by place.
pub fn findings(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|check| check(tree)).collect();
    findings.sort();
    findings.dedup();
    findings
}

/// Checks the workspace, prints the findings, and says whether there were none.
pub fn run(root: &Path) -> anyhow::Result<bool> {
    let tree = Tree::load(root)?;
    let findings = findings(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    eprintln!("tidy: {} files, {} findings", tree.files.len(), findings.len());
    Ok(findings.is_empty())
}

/// Whether a Rust file holds only test, bench or example code.
fn is_test_file(path: &str) -> bool {
    let in_folder =
        ["/tests/", "/benches/", "/examples/"].iter().any(|folder| path.contains(folder));
    in_folder || path.ends_with("_test.rs") || path.ends_with("/tests.rs")
}

/// The 1-based line of a byte offset.
fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The 1-based line where `needle` first stands, or 1.
fn line_of(text: &str, needle: &str) -> usize {
    text.find(needle).map_or(1, |offset| line_at(text, offset))
}
