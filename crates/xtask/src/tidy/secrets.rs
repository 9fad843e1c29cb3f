//! Secrets are compared in one place, which takes the same time wherever they differ (X17).
//!
//! Promises: outside `auth/secret.rs` no statement of shipped code both reveals a secret, or takes the digest of one, and
//! compares. The type itself has no equality, so that a secret must be revealed to be compared at all. Leaves out:
//! signatures, which the library that makes them verifies, and digests of what is no secret.

use super::syntax::{self, Token};
use super::{Finding, is_test_file};
use crate::tree::{File, Tree};

const RULE: &str = "secrets";
/// Where the one comparison is.
const HOME: &str = "crates/node/src/auth/secret.rs";
/// Where tests begin in a file.
const TESTS: &str = "#[cfg(test)]";

/// Looks at every source that ships.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let ours = |file: &&File| {
        ["crates/node/", "crates/api/", "crates/cli/"].iter().any(|at| file.path.starts_with(at))
            && file.path.contains("/src/")
            && file.path.ends_with(".rs")
            && file.path != HOME
            && !is_test_file(&file.path)
            && !file.path.contains("_test/")
    };
    tree.files.iter().filter(ours).flat_map(findings).collect()
}

fn findings(file: &File) -> Vec<Finding> {
    let shipped = file.text.split(TESTS).next().unwrap_or_default();
    // A source that does not parse is another rule's finding.
    let Ok(tokens) = syntax::tokens(shipped) else {
        return Vec::new();
    };
    let ends = |token: &Token| matches!(token.text.as_str(), ";" | "{" | "}" | ",");
    let statements = tokens.split(ends);
    let bad = statements.filter(|row| shows_secret(row) && compares(row));
    let lines = bad.filter_map(|row| row.first());
    let advice =
        "compare secrets with `auth::is_secret_of`, which takes the same time wherever they differ";
    lines
        .map(|token| Finding {
            path: file.path.clone(),
            line: token.line,
            rule: RULE,
            advice: advice.to_owned(),
        })
        .collect()
}

fn shows_secret(row: &[Token]) -> bool {
    row.windows(2).any(|pair| {
        matches!(pair[0].text.as_str(), "reveal" | "digest" | "s3_secret") && pair[1].text == "("
    })
}

fn compares(row: &[Token]) -> bool {
    row.windows(2).any(|pair| {
        matches!(
            (pair[0].text.as_str(), pair[1].text.as_str()),
            ("=" | "!", "=") | ("eq" | "ne" | "cmp" | "starts_with" | "ends_with", "(")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, body: &str) -> usize {
        check(&Tree::of(&[(path, &format!("fn f() {{ {body} }}\n"))])).len()
    }

    #[test]
    fn x_17_comparisons_of_secrets_elsewhere_are_found() {
        let path = "crates/node/src/auth/gatekeeper.rs";
        for bad in [
            "a.reveal() == b",
            "if text != secret.reveal() { 1 } else { 2 }",
            "let same = stored.0 == digest(&secret).0;",
            "known.eq(&secret.reveal())",
            "assert!(secret.reveal().starts_with(text));",
        ] {
            assert_eq!(count(path, bad), 1, "{bad}");
        }
        assert_eq!(count(HOME, "a.reveal() == b"), 0, "its home");
    }

    #[test]
    fn x_17_other_uses_pass() {
        let path = "crates/node/src/auth/gatekeeper.rs";
        for good in ["write(secret.reveal()); a == b", "digest_of(&bytes) == digest.0", "x == 1"] {
            assert_eq!(count(path, good), 0, "{good}");
        }
        assert_eq!(count("crates/node/src/http/http_test/a.rs", "a.reveal() == b"), 0);
        let tested = "#[cfg(test)]\nmod tests { fn f() { a.reveal() == b } }\n";
        assert_eq!(check(&Tree::of(&[(path, tested)])).len(), 0);
    }
}
