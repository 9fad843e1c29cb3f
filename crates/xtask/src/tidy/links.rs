//! Relative links in Markdown lead to a tracked file or folder.
//!
//! Promises: looks at `[text](target)` outside of code; anchors are cut off, addresses with a scheme are not followed.
//! Leaves out: whether a heading with the anchor's name exists, and reference-style links.

use super::Finding;
use crate::tree::{File, Tree};

/// Follows every relative link.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.files
        .iter()
        .filter(|file| file.path.ends_with(".md"))
        .flat_map(|file| judge(tree, file))
        .collect()
}

fn judge(tree: &Tree, file: &File) -> Vec<Finding> {
    let leads_nowhere =
        |target: &str| !resolve(&file.path, target).is_some_and(|path| tree.holds(&path));
    let broken = lines_with_targets(&file.text).filter(|(_, target)| leads_nowhere(target));
    let finding = |(line, target): (usize, &str)| Finding {
        path: file.path.clone(),
        line,
        rule: "links",
        advice: format!("mend the link to `{target}`: no such tracked file"),
    };
    broken.map(finding).collect()
}

/// The relative targets of a page's links outside of code, each with its 1-based line.
pub(super) fn lines_with_targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_fence = false;
    let prose = text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        !in_fence && !is_fence
    });
    prose.flat_map(|(number, line)| {
        targets(line).into_iter().map(move |target| (number + 1, target))
    })
}

/// The relative targets of a line's links, without title and anchor.
fn targets(line: &str) -> Vec<&str> {
    // Odd parts between backticks are code.
    let prose = line.split('`').step_by(2);
    let mut targets = Vec::new();
    // A link's text may itself hold code, so that the closing bracket opens the next part.
    for part in prose {
        for (offset, _) in part.match_indices("](") {
            let rest = &part[offset + 2..];
            let Some((target, _)) = rest.split_once(')') else {
                continue;
            };
            let target = target.split_whitespace().next().unwrap_or_default();
            let target = target.split('#').next().unwrap_or_default();
            let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !target.is_empty() && !is_elsewhere {
                targets.push(target);
            }
        }
    }
    targets
}

/// The path from the root that a link in `from` means; none when it leaves the repository.
pub(super) fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        return None;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b/c.md", ""), ("README.md", "")]);
        check(&tree).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn good_links_pass() {
        let text = "[x](b/c.md#part) [y](../README.md \"title\") [z](b) [w](#here) [v](https://x.org/) [`u`](b/c.md)\n";
        assert!(lines(text).is_empty());
    }

    #[test]
    fn broken_links_are_found() {
        assert_eq!(lines("\n[x](missing.md)\n[y](../../up.md)\n[`z`](/abs.md)\n"), [2, 3, 4]);
    }

    #[test]
    fn code_is_not_followed() {
        assert!(lines("```\n[x](missing.md)\n```\n`[x](missing.md)`\n").is_empty());
    }
}
