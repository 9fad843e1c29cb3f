//! Every Rust file opens with a `//!` header: what it promises, what it leaves out, its invariants.
//!
//! Promises: the first line is a header line with text. Leaves out: whether the header is any good.

use super::Finding;
use crate::tree::Tree;

/// Looks at the first line of every Rust file.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|file| {
            let first = file.text.lines().next().unwrap_or_default();
            first.strip_prefix("//!").is_none_or(|header| header.trim().is_empty())
        })
        .map(|file| Finding {
            path: file.path.clone(),
            line: 1,
            rule: "header",
            advice: "open the file with a `//!` header that says what it promises and what it leaves out".to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_comes_first_and_has_text() {
        let tree = Tree::of(&[
            ("a.rs", "//! Says what it does.\nfn a() {}\n"),
            ("b.rs", "use x;\n//! late\n"),
            ("c.rs", "//!\n"),
            ("d.rs", ""),
            ("e.md", "no header needed"),
        ]);
        let paths: Vec<String> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["b.rs", "c.rs", "d.rs"]);
    }
}
