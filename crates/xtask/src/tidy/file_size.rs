//! A file fits a sitting: at most 600 lines of code.
//!
//! Promises: counts code lines of Rust (not blank, not only a comment) and non-blank lines of scripts and the
//! dashboard. A source that does not parse is a finding of this rule, because no other rule could look at it. Leaves out:
//! documents, data and generated lock files.

use super::{Finding, syntax};
use crate::tree::{File, Tree};

const RULE: &str = "file-size";
const CODE_LINES_MAX: usize = 600;
const OTHER_SOURCES: &[&str] = &[".js", ".css", ".html", ".py", ".sh"];

/// Counts every source file.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter_map(judge).collect()
}

fn judge(file: &File) -> Option<Finding> {
    let finding = |advice: String| Finding { path: file.path.clone(), line: 1, rule: RULE, advice };
    let count = if file.path.ends_with(".rs") {
        match syntax::tokens(&file.text) {
            Ok(tokens) => syntax::code_lines(&tokens).len(),
            Err(error) => return Some(finding(format!("make the file parse: {error}"))),
        }
    } else if OTHER_SOURCES.iter().any(|ending| file.path.ends_with(ending)) {
        file.text.lines().filter(|line| !line.trim().is_empty()).count()
    } else {
        return None;
    };
    (count > CODE_LINES_MAX)
        .then(|| finding(format!("split the file: {count} code lines, at most {CODE_LINES_MAX}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_code_not_comments() {
        let code = "fn a() {}\n".repeat(600);
        let long = format!("{code}fn b() {{}}\n");
        let comments = format!("{code}{}", "// why\n\n".repeat(600));
        let script = "x\n".repeat(601);
        let tree = Tree::of(&[
            ("fits.rs", &code),
            ("long.rs", &long),
            ("comments.rs", &comments),
            ("page.js", &script),
            ("data.txt", &script),
        ]);
        let paths: Vec<String> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["long.rs", "page.js"]);
    }

    #[test]
    fn unreadable_source_is_found() {
        assert!(check(&Tree::of(&[("a.rs", "fn a( {")]))[0].advice.contains("parse"));
    }
}
