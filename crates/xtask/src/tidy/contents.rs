//! Every page of the documentation is in its table of contents, so that the book holds it and a reader can find it.
//!
//! Leaves out: whether the entries lead somewhere (`links.rs` follows them), and their order.

use super::Finding;
use crate::tree::Tree;

const CONTENTS: &str = "docs/SUMMARY.md";

/// Looks for each page in the table.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(contents) = tree.file(CONTENTS) else { return Vec::new() };
    let pages = tree.files.iter().filter_map(|file| file.path.strip_prefix("docs/"));
    let missing = |page: &&str| {
        page.ends_with(".md")
            && *page != "SUMMARY.md"
            && !contents.text.contains(&format!("]({page})"))
    };
    pages
        .filter(missing)
        .map(|page| Finding {
            path: CONTENTS.to_owned(),
            line: 1,
            rule: "contents",
            advice: format!("name the page `{page}`, so that readers of the book find it"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_not_listed_is_found() {
        let pages = [
            ("docs/SUMMARY.md", "- [A](a.md)\n- [B](guides/b.md)\n"),
            ("docs/a.md", ""),
            ("docs/guides/b.md", ""),
            ("docs/guides/c.md", ""),
            ("docs/pictures/p.png", ""),
            ("README.md", ""),
        ];
        let found = check(&Tree::of(&pages));
        assert_eq!(found.len(), 1);
        assert!(found[0].advice.contains("guides/c.md"));
        assert!(check(&Tree::of(&pages[1..])).is_empty(), "no book, no rule");
    }
}
