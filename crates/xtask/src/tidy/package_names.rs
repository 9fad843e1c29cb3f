//! A package is named `ikada-<folder>`, so that a name seen in a backtrace or a lock file names its folder.

use super::{Finding, line_of};
use crate::tree::Tree;

/// Compares each package's name with its folder.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, package) in tree.packages() {
        let name = package["name"].as_str().unwrap_or_default();
        if name != format!("ikada-{folder}") {
            let path = format!("crates/{folder}/Cargo.toml");
            let line = tree.file(&path).map_or(1, |file| line_of(&file.text, "name"));
            findings.push(Finding {
                path,
                line,
                rule: "package-names",
                advice: format!("rename package `{name}` to `ikada-{folder}`"),
            });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn name_follows_folder() {
        let metadata = json!({"packages": [
            {"name": "ikada-state", "manifest_path": "/x/crates/state/Cargo.toml"},
            {"name": "storage", "manifest_path": "/x/crates/store/Cargo.toml"},
        ]});
        let tree = Tree::of(&[("crates/store/Cargo.toml", "[package]\nname = \"storage\"\n")])
            .with_metadata(metadata);
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/store/Cargo.toml", 2));
    }
}
