//! No crate of ours has unsafe code, and none can take leave to have it (X16).
//!
//! Promises: the workspace forbids `unsafe_code` (a forbidden lint cannot be allowed again further down), and every
//! package below `crates` is under that lint. Leaves out: dependencies, whose advisories cargo-deny looks at, and packages
//! elsewhere, which are in no binary.

use toml::{Table, Value};

use super::{Finding, line_of};
use crate::tree::{File, Tree};

const RULE: &str = "unsafe-code";
const ROOT: &str = "Cargo.toml";

/// Looks at every manifest.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files.iter().filter(|file| {
        file.path == ROOT
            || (file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml"))
    });
    manifests.filter_map(finding).collect()
}

fn finding(file: &File) -> Option<Finding> {
    let table: Table = file.text.parse().unwrap_or_default();
    let forbids = |lints: Option<&Value>| {
        let level =
            lints.and_then(|lints| lints.get("rust")).and_then(|rust| rust.get("unsafe_code"));
        let level = level.map(|level| level.get("level").unwrap_or(level));
        level.and_then(Value::as_str) == Some("forbid")
    };
    let workspace = table.get("workspace");
    let own = table.get("lints");
    let inherits = own.and_then(|lints| lints.get("workspace")).and_then(Value::as_bool);
    let advice = match file.path == ROOT {
        true if !forbids(workspace.and_then(|workspace| workspace.get("lints"))) => {
            "set `unsafe_code = \"forbid\"` in [workspace.lints.rust]"
        }
        false if table.contains_key("package") && inherits != Some(true) && !forbids(own) => {
            "put `workspace = true` into [lints], or forbid `unsafe_code` there"
        }
        _ => return None,
    };
    let line = line_of(&file.text, "lints");
    Some(Finding { path: file.path.clone(), line, rule: RULE, advice: advice.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(root: &str, package: &str) -> usize {
        check(&Tree::of(&[(ROOT, root), ("crates/a/Cargo.toml", package)])).len()
    }

    const FORBIDS: &str = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n";
    const UNDER: &str = "[package]\nname = \"a\"\n[lints]\nworkspace = true\n";

    #[test]
    fn x_16_forbidden_everywhere_passes() {
        assert_eq!(count(FORBIDS, UNDER), 0);
        let levelled = "[workspace.lints.rust]\nunsafe_code = { level = \"forbid\" }\n";
        assert_eq!(count(levelled, UNDER), 0);
        let own = "[package]\nname = \"a\"\n[lints.rust]\nunsafe_code = \"forbid\"\n";
        assert_eq!(count(FORBIDS, own), 0);
    }

    #[test]
    fn x_16_leave_to_be_unsafe_is_found() {
        assert_eq!(count("[workspace.lints.rust]\nunsafe_code = \"deny\"\n", UNDER), 1);
        assert_eq!(count("[workspace]\n", UNDER), 1);
        assert_eq!(count(FORBIDS, "[package]\nname = \"a\"\n"), 1);
        assert_eq!(count(FORBIDS, "[package]\nname = \"a\"\n[lints]\nworkspace = false\n"), 1);
        assert_eq!(
            count(FORBIDS, "[package]\nname = \"a\"\n[lints.rust]\nunsafe_code = \"allow\"\n"),
            1
        );
    }

    #[test]
    fn x_16_this_repository_is_under_the_rule() {
        let text = include_str!("../../../../Cargo.toml");
        assert_eq!(count(text, include_str!("../../Cargo.toml")), 0);
    }
}
