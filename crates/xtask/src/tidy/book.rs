//! The pages in `docs` make a book that stands alone: each is in its table of contents, and no link leaves it.
//!
//! Promises: looks at `docs/SUMMARY.md` and at all Markdown below `docs`; what a page says of files elsewhere, it says as
//! code. Leaves out: whether a link inside the book leads anywhere, which `links` looks at.

use super::Finding;
use super::links::{lines_with_targets, resolve};
use crate::tree::Tree;

const RULE: &str = "book";
const FOLDER: &str = "docs/";
const CONTENTS: &str = "docs/SUMMARY.md";

/// Compares the table of contents with the pages, and looks where their links go.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(contents) = tree.file(CONTENTS) else {
        return Vec::new();
    };
    let finding =
        |path: &str, line, advice| Finding { path: path.into(), line, rule: RULE, advice };
    let listed: Vec<String> = lines_with_targets(&contents.text)
        .filter_map(|(_, target)| resolve(CONTENTS, target))
        .collect();
    let mut findings = Vec::new();
    let pages = tree.files.iter().filter(|file| {
        file.path.starts_with(FOLDER) && file.path.ends_with(".md") && file.path != CONTENTS
    });
    for page in pages {
        if !listed.contains(&page.path) {
            let advice = format!("add the page to {CONTENTS}, or no reader of the book finds it");
            findings.push(finding(&page.path, 1, advice));
        }
        for (line, target) in lines_with_targets(&page.text) {
            let path = resolve(&page.path, target).unwrap_or_default();
            if !path.starts_with(FOLDER) || tree.file(&path).is_none() {
                let advice = format!(
                    "name `{target}` as code: a link out of the book, or to a folder, leads nowhere in it"
                );
                findings.push(finding(&page.path, line, advice));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<(String, usize)> {
        let tree = Tree::of(&[
            ("docs/SUMMARY.md", "- [A](a.md)\n- [B](b/b.md)\n"),
            ("docs/a.md", page),
            ("docs/b/b.md", "[a](../a.md)\n"),
            ("docs/rules.yml", ""),
            ("README.md", "[docs](docs/SUMMARY.md)\n"),
            ("crates/x.rs", ""),
        ]);
        check(&tree).into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    #[test]
    fn a_book_that_stands_alone_passes() {
        assert_eq!(
            found("[b](b/b.md#part) [r](rules.yml) [w](https://x.org/) `[x](../README.md)`\n"),
            []
        );
    }

    #[test]
    fn links_out_of_the_book_and_to_folders_are_found() {
        let page = "\n[x](../README.md)\n[y](../crates/x.rs)\n[z](b)\n";
        let lines: Vec<usize> = found(page).into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, [2, 3, 4]);
    }

    #[test]
    fn a_page_that_nobody_lists_is_found() {
        let tree =
            Tree::of(&[("docs/SUMMARY.md", "- [A](a.md)\n"), ("docs/a.md", ""), ("docs/c.md", "")]);
        let found: Vec<String> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["docs/c.md"]);
    }
}
