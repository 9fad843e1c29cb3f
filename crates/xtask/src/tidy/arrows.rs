//! Arrows between our crates: exactly the ones the design allows, dev- and build-dependencies too.
//!
//! Promises: a new arrow, or a new crate without a row here, fails; nothing may depend on `sim`; `sim` takes `worker`
//! without its default features, so that the simulator never links the sandbox. Leaves out: third-party crates (see
//! `dependencies` and cargo-deny).

use serde_json::Value;

use super::{Finding, line_of};
use crate::tree::Tree;

const RULE: &str = "arrows";

/// Folder of a crate, and the folders it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("api", &["state"]),
    ("cli", &["node", "worker", "api", "store"]),
    ("consensus", &[]),
    ("node", &["replica", "store", "api"]),
    ("replica", &["state", "consensus"]),
    ("sim", &["replica", "store", "worker", "state", "consensus"]),
    ("state", &[]),
    ("store", &[]),
    ("worker", &["api"]),
    ("xtask", &[]),
];

/// Compares the packages' dependencies with the table.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, package) in tree.packages() {
        let manifest = format!("crates/{folder}/Cargo.toml");
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == folder) else {
            findings.push(Finding {
                path: manifest,
                line: 1,
                rule: RULE,
                advice: format!("crate `{folder}` has no row in the table of arrows; add one with its reason, or merge the crate"),
            });
            continue;
        };
        let text = tree.file(&manifest).map_or("", |file| file.text.as_str());
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let name = dependency["name"].as_str().unwrap_or_default();
            let Some(target) = name.strip_prefix("ikada-") else {
                continue;
            };
            if let Some(advice) = judge(&folder, allowed, target, dependency) {
                findings.push(Finding {
                    path: manifest.clone(),
                    line: line_of(text, name),
                    rule: RULE,
                    advice,
                });
            }
        }
    }
    findings
}

fn judge(folder: &str, allowed: &[&str], target: &str, dependency: &Value) -> Option<String> {
    if !allowed.contains(&target) {
        let kind = dependency["kind"].as_str().unwrap_or("normal");
        return Some(format!(
            "{folder} -> {target} ({kind} dependency) is not an allowed arrow; {folder} may use {}",
            if allowed.is_empty() { "none of our crates".to_owned() } else { allowed.join(", ") }
        ));
    }
    let takes_default = dependency["uses_default_features"].as_bool() != Some(false);
    (folder == "sim" && target == "worker" && takes_default).then(|| {
        "sim takes worker with `default-features = false`, so that it never links the sandbox"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn advice(folder: &str, dependency: &Value) -> Vec<String> {
        let metadata = json!({"packages": [{
            "name": format!("ikada-{folder}"),
            "manifest_path": format!("/x/crates/{folder}/Cargo.toml"),
            "dependencies": [dependency],
        }]});
        let tree = Tree::of(&[]).with_metadata(metadata);
        check(&tree).into_iter().map(|finding| finding.advice).collect()
    }

    #[test]
    fn allowed_arrow_passes() {
        assert!(advice("replica", &json!({"name": "ikada-state", "kind": null})).is_empty());
        assert!(advice("state", &json!({"name": "thiserror", "kind": null})).is_empty());
    }

    #[test]
    fn forbidden_arrow_is_found_in_dev_dependencies_too() {
        assert!(
            advice("state", &json!({"name": "ikada-store", "kind": null}))[0]
                .contains("none of our crates")
        );
        assert!(
            advice("store", &json!({"name": "ikada-sim", "kind": "dev"}))[0]
                .contains("dev dependency")
        );
        assert_eq!(advice("node", &json!({"name": "ikada-state", "kind": null})).len(), 1);
    }

    #[test]
    fn unknown_crate_is_found() {
        assert!(advice("helpers", &json!({"name": "thiserror"}))[0].contains("no row"));
    }

    #[test]
    fn sim_takes_worker_without_the_sandbox() {
        assert_eq!(
            advice("sim", &json!({"name": "ikada-worker", "uses_default_features": true})).len(),
            1
        );
        assert!(
            advice("sim", &json!({"name": "ikada-worker", "uses_default_features": false}))
                .is_empty()
        );
    }

    #[test]
    fn nobody_may_use_sim() {
        assert!(ALLOWED.iter().all(|(_, targets)| !targets.contains(&"sim")));
    }
}
