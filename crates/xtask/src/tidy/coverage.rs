//! Every security requirement X1 to X20 has a test that bears its number, so that `cargo nextest run x_` runs them all.
//!
//! Leaves out: whether a test is a good one. The tests say themselves what they stand for.

use super::Finding;
use crate::tree::Tree;

/// The last of the numbers.
const LAST: u32 = 20;
/// Where the requirements are told to readers.
const PATH: &str = "docs/threat-model.md";

/// Looks for a test of each number.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let has = |number: u32| {
        let name = format!("fn x_{number}_");
        tree.rust().any(|file| file.text.contains(&name))
    };
    let missing = (1..=LAST).filter(|number| !has(*number));
    missing
        .map(|number| Finding {
            path: PATH.to_owned(),
            line: 1,
            rule: "coverage",
            advice: format!("write a test whose name begins with `x_{number}_`"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_16_a_requirement_without_a_test_is_found() {
        let all: String =
            (1..=LAST).map(|number| format!("fn x_{number}_holds() {{}}\n")).collect();
        assert_eq!(check(&Tree::of(&[("crates/a/src/lib.rs", &all)])), []);
        // Put together here, since this file is looked at as well.
        let fewer = all.replace(&format!("fn x_{}_holds", 1), "fn holds");
        let found = check(&Tree::of(&[("crates/a/src/lib.rs", &fewer)]));
        assert_eq!(found.len(), 1, "x_10 to x_19 are no tests of X1: {found:?}");
        assert!(found[0].advice.contains("`x_1_`"));
    }
}
