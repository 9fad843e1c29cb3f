//! The pure crates and the worker's agent decide; they never look at the world.
//!
//! Promises: in `state`, `consensus`, `replica` and `worker/src/agent` no clock, randomness of the machine, file, socket,
//! thread, environment, async, console or map with unstable order is named, be it by full path, through `use`, or inside a
//! macro call. Inline `#[cfg(test)]` modules are held to the same; test files, benches and examples are not.
//! Leaves out: what hides behind another crate's type (the pure crates' clippy configuration resolves names).

use super::{Finding, is_test_file, syntax};
use crate::tree::{File, Tree};

const PURE_FOLDERS: &[&str] = &[
    "crates/state/src/",
    "crates/consensus/src/",
    "crates/replica/src/",
    "crates/worker/src/agent/",
    "crates/worker/src/agent.rs",
];

const CLOCK: &str = "pass the time in as an argument; a pure crate reads no clock";
const RANDOM: &str = "draw from the seeded generator that the caller owns";
const INPUT_OUTPUT: &str = "return a value that asks for it; input and output belong to the driver";
const ORDER: &str = "use BTreeMap, BTreeSet, Vec or a hashbrown::HashTable that is never iterated; this one has no stable order";
const ASYNC: &str = "write a step function; a pure crate has no async";

/// Paths that may not be named, whole or as the beginning of a longer path.
const PATHS: &[(&str, &str)] = &[
    ("std::time::Instant", CLOCK),
    ("std::time::SystemTime", CLOCK),
    ("std::time::UNIX_EPOCH", CLOCK),
    ("time::Instant", CLOCK),
    ("time::SystemTime", CLOCK),
    ("std::fs", INPUT_OUTPUT),
    ("std::net", INPUT_OUTPUT),
    ("std::thread", INPUT_OUTPUT),
    ("std::env", INPUT_OUTPUT),
    ("std::process", INPUT_OUTPUT),
    ("std::os", INPUT_OUTPUT),
    ("std::io::stdin", INPUT_OUTPUT),
    ("std::io::stdout", INPUT_OUTPUT),
    ("std::io::stderr", INPUT_OUTPUT),
    ("std::collections::hash_map", ORDER),
    ("std::collections::hash_set", ORDER),
    ("std::hash::RandomState", ORDER),
    ("tokio", ASYNC),
    ("futures", ASYNC),
    ("rand", RANDOM),
    ("getrandom", RANDOM),
    ("Rng::new", RANDOM),
    ("Rng::default", RANDOM),
];

/// Single words that may not be used as identifiers.
const WORDS: &[(&str, &str)] = &[
    ("HashMap", ORDER),
    ("HashSet", ORDER),
    ("RandomState", ORDER),
    ("DefaultHasher", ORDER),
    ("SystemTime", CLOCK),
    ("thread_rng", RANDOM),
    ("async", ASYNC),
    ("await", ASYNC),
];

/// Macros that write to the console.
const CONSOLE_MACROS: &[&str] = &["print", "println", "eprint", "eprintln"];

/// Looks through the pure folders.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|file| PURE_FOLDERS.iter().any(|folder| file.path.starts_with(folder)))
        .filter(|file| !is_test_file(&file.path))
        .flat_map(judge)
        .collect()
}

fn judge(file: &File) -> Vec<Finding> {
    let Ok(tokens) = syntax::tokens(&file.text) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut report = |line: usize, what: &str, advice: &str| {
        findings.push(Finding {
            path: file.path.clone(),
            line,
            rule: "purity",
            advice: format!("`{what}`: {advice}"),
        });
    };
    for (at, token) in tokens.iter().enumerate() {
        let followed_by = |mark: &str| tokens.get(at + 1).is_some_and(|next| next.text == mark);
        if let Some((word, advice)) = WORDS.iter().find(|(word, _)| *word == token.text) {
            report(token.line, word, advice);
        }
        if CONSOLE_MACROS.contains(&token.text.as_str()) && followed_by("!") {
            report(token.line, &format!("{}!", token.text), INPUT_OUTPUT);
        }
    }
    for (path, line) in paths(&tokens) {
        if let Some((banned, advice)) = PATHS.iter().find(|(banned, _)| begins_with(&path, banned))
        {
            report(line, banned, advice);
        } else if path.starts_with("fastrand::") && !begins_with(&path, "fastrand::Rng") {
            report(line, &path, RANDOM);
        } else if path.ends_with("::*")
            && ["std::*", "std::time::*", "std::collections::*"].contains(&path.as_str())
        {
            report(line, &path, "name what is imported, so that this check can see it");
        }
    }
    findings
}

fn begins_with(path: &str, banned: &str) -> bool {
    path.strip_prefix(banned).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// All paths of at least two segments, groups of a `use` spelled out, each with the line of its last segment.
///
/// A path is also given from its second last segment on, so that `fastrand::Rng::new` is seen as `Rng::new` too.
fn paths(tokens: &[syntax::Token]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_word(&tokens[at].text) {
            at = read_path(tokens, at, "", &mut found).max(at + 1);
        } else {
            at += 1;
        }
    }
    found
}

/// Reads one path (or a group after it) and returns the position behind it.
fn read_path(
    tokens: &[syntax::Token],
    start: usize,
    prefix: &str,
    found: &mut Vec<(String, usize)>,
) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut path = prefix.to_owned();
    let mut at = start;
    loop {
        if text(at) == "{" && !path.is_empty() {
            at += 1;
            while at < tokens.len() && text(at) != "}" {
                at = if text(at) == "," {
                    at + 1
                } else {
                    read_path(tokens, at, &path, found).max(at + 1)
                };
            }
            return at + 1;
        }
        if !path.is_empty() && text(at) != "self" {
            path.push_str("::");
        }
        if text(at) != "self" || path.is_empty() {
            path.push_str(text(at));
        }
        let line = tokens.get(at).map_or(1, |token| token.line);
        let goes_on = text(at + 1) == ":"
            && text(at + 2) == ":"
            && (is_word(text(at + 3)) || ["{", "*"].contains(&text(at + 3)));
        if goes_on {
            at += 3;
            continue;
        }
        note(&path, line, found);
        // A rename (`as name`) in a group belongs to the path before it.
        return if text(at + 1) == "as" { at + 3 } else { at + 1 };
    }
}

fn note(path: &str, line: usize, found: &mut Vec<(String, usize)>) {
    let segments: Vec<&str> = path.split("::").collect();
    if segments.len() > 2 {
        found.push((segments[segments.len() - 2..].join("::"), line));
    }
    if segments.len() > 1 {
        found.push((path.to_owned(), line));
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, source: &str) -> Vec<usize> {
        let mut lines: Vec<usize> =
            check(&Tree::of(&[(path, source)])).iter().map(|finding| finding.line).collect();
        lines.dedup();
        lines
    }

    fn is_banned(source: &str) -> bool {
        !lines("crates/state/src/a.rs", source).is_empty()
    }

    #[test]
    fn each_way_out_is_found() {
        for source in [
            "use std::time::Instant;",
            "use std::{fmt, time::{Duration, Instant as Clock}};",
            "use std::time;\nfn a() { time::Instant::now(); }",
            "use std::time::SystemTime;",
            "use std::time::*;",
            "use std::{fs, fmt};",
            "use std::fs::{self, File};",
            "fn a() { std::fs::read(\"x\"); }",
            "fn a() { assert!(std::env::var(\"x\").is_ok()); }",
            "use std::net::TcpStream;",
            "fn a() { std::thread::sleep(x); }",
            "use tokio::sync::mpsc;",
            "fn a() { rand::random::<u8>(); }",
            "use rand::thread_rng;",
            "fn a() { fastrand::u64(..); }",
            "fn a() { fastrand::Rng::new(); }",
            "use fastrand::Rng;\nfn a() { Rng::new(); }",
            "use std::collections::{BTreeMap, HashMap};",
            "use hashbrown::HashSet;",
            "use std::hash::RandomState;",
            "async fn a() {}",
            "fn a() { println!(\"x\"); }",
            "#[cfg(test)]\nmod tests {\n    use std::collections::HashSet;\n}",
        ] {
            assert!(is_banned(source), "not found: {source}");
        }
    }

    #[test]
    fn pure_code_passes() {
        for source in [
            "//! HashMap and std::fs in words\nuse std::collections::BTreeMap;",
            "use std::time::Duration;",
            "use hashbrown::HashTable;",
            "use std::{fmt, io};\nfn a() { let fs = \"std::fs\"; }",
            "fn a(rng: &mut fastrand::Rng) { fastrand::Rng::with_seed(1); rng.u64(..); }",
            "thread_local! { static A: u8 = 1; }",
            "fn a(brand: u8) { self.time.instant(); writeln!(f, \"x\"); }",
        ] {
            assert!(!is_banned(source), "found: {source}");
        }
    }

    #[test]
    fn only_pure_folders_and_no_test_files() {
        let source = "\nuse std::fs;";
        assert_eq!(lines("crates/worker/src/agent/step.rs", source), [2]);
        assert_eq!(lines("crates/replica/src/replica.rs", source), [2]);
        assert!(lines("crates/worker/src/run/process.rs", source).is_empty());
        assert!(lines("crates/store/src/disk.rs", source).is_empty());
        assert!(lines("crates/state/tests/a.rs", source).is_empty());
        assert!(lines("crates/state/benches/a.rs", source).is_empty());
        assert!(lines("crates/consensus/src/shard/step_test.rs", source).is_empty());
    }
}
