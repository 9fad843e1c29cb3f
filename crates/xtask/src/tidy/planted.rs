//! The feature `planted` (deliberate defects for the simulator) can never reach a product build by accident.
//!
//! Promises: no package turns it on by default, directly or through another feature, and only `sim` passes it on to
//! another crate or asks for it in a dependency. Leaves out: what the defects are (each crate's `planted.rs`).

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Finding, line_of};
use crate::tree::Tree;

/// Looks at features and dependencies of every package.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, package) in tree.packages() {
        let path = format!("crates/{folder}/Cargo.toml");
        let line = tree.file(&path).map_or(1, |file| line_of(&file.text, "planted"));
        let mut report = |advice: &str| {
            findings.push(Finding {
                path: path.clone(),
                line,
                rule: "planted",
                advice: advice.to_owned(),
            });
        };
        if default_closure(&package["features"]).iter().any(|feature| is_planted(feature)) {
            report(
                "take `planted` out of the default features; planted defects are for the simulator only",
            );
        }
        let forwards = all_values(&package["features"]).any(|value| value.ends_with("/planted"));
        let asks = package["dependencies"].as_array().into_iter().flatten().any(|dependency| {
            let features = dependency["features"].as_array();
            features.into_iter().flatten().any(|feature| feature == "planted")
        });
        if folder != "sim" && forwards {
            report("only `sim` forwards the feature `planted`; remove the forward");
        }
        if asks {
            report(
                "a dependency never asks for `planted` outright; `sim` forwards it through its own feature of that name",
            );
        }
    }
    findings
}

fn is_planted(feature: &str) -> bool {
    feature == "planted" || feature.ends_with("/planted")
}

fn all_values(features: &Value) -> impl Iterator<Item = &str> {
    let lists = features.as_object().into_iter().flat_map(|table| table.values());
    lists.flat_map(|list| list.as_array().into_iter().flatten()).filter_map(Value::as_str)
}

/// Every feature that `default` turns on in the same package, and what those name elsewhere.
fn default_closure(features: &Value) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec!["default".to_owned()];
    while let Some(name) = open.pop() {
        for next in features[&name].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if reached.insert(next.to_owned()) {
                open.push(next.to_owned());
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn count(folder: &str, features: &Value, dependencies: &Value) -> usize {
        let metadata = json!({"packages": [{
            "manifest_path": format!("/x/crates/{folder}/Cargo.toml"),
            "features": features,
            "dependencies": dependencies,
        }]});
        check(&Tree::of(&[]).with_metadata(metadata)).len()
    }

    #[test]
    fn own_feature_and_sim_forward_pass() {
        assert_eq!(count("state", &json!({"planted": []}), &json!([])), 0);
        assert_eq!(count("sim", &json!({"planted": ["ikada-state/planted"]}), &json!([])), 0);
    }

    #[test]
    fn default_is_found_through_another_feature() {
        assert_eq!(count("state", &json!({"default": ["planted"], "planted": []}), &json!([])), 1);
        let features = json!({"default": ["extra"], "extra": ["planted"], "planted": []});
        assert_eq!(count("state", &features, &json!([])), 1);
        assert_eq!(count("sim", &json!({"default": ["ikada-state/planted"]}), &json!([])), 1);
    }

    #[test]
    fn forward_outside_sim_and_outright_request_are_found() {
        assert_eq!(count("cli", &json!({"planted": ["ikada-node/planted"]}), &json!([])), 1);
        assert_eq!(
            count("sim", &json!({}), &json!([{"name": "ikada-state", "features": ["planted"]}])),
            1
        );
    }
}
