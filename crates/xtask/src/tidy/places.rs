//! Tracked files name no place of one machine: no absolute paths of a developer's disk, no package registry hosts.
//!
//! Why: a clone must build anywhere, through whatever registry or mirror its owner has set up outside the repository.
//! Promises: looks at every text file; in the lock file every package comes from cargo's default registry.
//! Leaves out: links to web pages, which are no registries.

use super::{Finding, line_at};
use crate::tree::{File, Tree};

const RULE: &str = "places";

/// Written in two halves, so that this file passes its own check.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/", "target")];

const REGISTRIES: &[&str] = &[
    concat!("sparse+", "http"),
    concat!("index.cra", "tes.io"),
    concat!("static.cra", "tes.io"),
    concat!("registry.np", "mjs.org"),
    concat!("pypi.org/", "simple"),
    concat!("replace-", "with"),
    concat!("index-", "url"),
];

const DEFAULT_REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Looks through every file.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().flat_map(judge).collect()
}

fn judge(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |offset: usize, advice: String| {
        findings.push(Finding {
            path: file.path.clone(),
            line: line_at(&file.text, offset),
            rule: RULE,
            advice,
        });
    };
    for needle in MACHINE_PATHS {
        for (offset, _) in file.text.match_indices(needle) {
            // In the middle of a longer path or address the folder's name is not the machine's.
            let before = file.text[..offset].chars().next_back();
            let is_inside = before.is_some_and(|c| c.is_alphanumeric() || "._-/}$".contains(c));
            if !is_inside {
                report(
                    offset,
                    format!(
                        "`{needle}` is a place on one machine; use a relative path or a setting"
                    ),
                );
            }
        }
    }
    for needle in REGISTRIES {
        for (offset, _) in file.text.match_indices(needle) {
            report(
                offset,
                format!("`{needle}` chooses a registry; that belongs outside the repository"),
            );
        }
    }
    if file.path.ends_with("Cargo.lock") {
        for (offset, _) in file.text.match_indices("source = \"") {
            let line = file.text[offset..].lines().next().unwrap_or_default();
            if line != format!("source = \"{DEFAULT_REGISTRY}\"") {
                report(offset, "take the package from the default registry".to_owned());
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn machine_paths_are_found() {
        for needle in MACHINE_PATHS {
            assert_eq!(count("a.md", &format!("\nsee `{needle}x`")), 1, "{needle}");
        }
        let found = check(&Tree::of(&[("a.md", &format!("\n\n{}x", MACHINE_PATHS[0]))]));
        assert_eq!(found[0].line, 3);
    }

    #[test]
    fn longer_paths_pass() {
        assert_eq!(count("a.md", &format!("src{0}b and ${{x}}{0}c", MACHINE_PATHS[0])), 0);
        assert_eq!(count("a.md", "a worker works in its private folder"), 0);
    }

    #[test]
    fn registries_are_found() {
        for needle in REGISTRIES {
            assert_eq!(count(".cargo/config.toml", needle), 1, "{needle}");
        }
        let good = format!("source = \"{DEFAULT_REGISTRY}\"\n");
        assert_eq!(count("Cargo.lock", &good), 0);
        assert_eq!(
            count("Cargo.lock", &format!("{good}source = \"git+https://example.org/x\"\n")),
            1
        );
    }
}
