//! Every requirement of a list has a test that bears its number, so that `cargo nextest run b4_26` runs all of B4-26.
//!
//! Leaves out: whether a test is a good one. The tests say themselves what they stand for.

use super::Finding;
use crate::tree::Tree;

/// A list: how names of tests cite it, its last number, and where it is told to readers.
struct List {
    prefix: &'static str,
    last: u32,
    path: &'static str,
}

/// The lists: security, jobs and elections, queues, leases.
const LISTS: [List; 5] = [
    List { prefix: "x", last: 20, path: "docs/threat-model.md" },
    List { prefix: "b4", last: 61, path: "ARCHITECTURE.md" },
    List { prefix: "tq", last: 29, path: "ARCHITECTURE.md" },
    List { prefix: "ch", last: 32, path: "ARCHITECTURE.md" },
    List { prefix: "ls", last: 19, path: "ARCHITECTURE.md" },
];

/// Looks for a test of each number.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let names: Vec<&str> =
        tree.rust().flat_map(|file| file.text.lines()).filter_map(name_of).collect();
    let missing = |list: &'static List| {
        let is_missing = |number: &u32| {
            let cited = format!("_{}_{number}_", list.prefix);
            !names.iter().any(|name| format!("_{name}_").contains(&cited))
        };
        (1..=list.last).filter(is_missing).map(move |number| (list, number)).collect::<Vec<_>>()
    };
    LISTS
        .iter()
        .flat_map(missing)
        .map(|(list, number)| Finding {
            path: list.path.to_owned(),
            line: 1,
            rule: "coverage",
            advice: format!("write a test whose name begins with `{}_{number}_`", list.prefix),
        })
        .collect()
}

/// The name of the function that a line begins.
fn name_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
    rest.split('(').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_16_a_requirement_without_a_test_is_found() {
        let cites = |list: &List| {
            let prefix = list.prefix;
            (1..=list.last)
                .map(move |number| format!("fn {prefix}_{number}_holds() {{}}\n"))
                .collect()
        };
        let all: String = LISTS.iter().map(cites).collect::<Vec<String>>().concat();
        assert_eq!(check(&Tree::of(&[("crates/a/src/lib.rs", &all)])), []);
        // Put together here, since this file is looked at as well.
        for (prefix, number) in [("x", 1), ("b4", 2), ("ls", 19)] {
            let fewer = all.replace(&format!("fn {prefix}_{number}_holds"), "fn holds");
            let found = check(&Tree::of(&[("crates/a/src/lib.rs", &fewer)]));
            assert_eq!(found.len(), 1, "x_10 to x_19 are no tests of X1: {found:?}");
            assert!(found[0].advice.contains(&format!("`{prefix}_{number}_`")));
        }
        // One test may stand for several.
        let fewer = all.replace(&format!("fn b4_{}_holds", 7), &format!("fn b4_1_b4_{}_holds", 7));
        assert_eq!(check(&Tree::of(&[("crates/a/src/lib.rs", &fewer)])), []);
    }
}
