//! Nothing half-done is kept: no `todo!`, `unimplemented!`, `dbg!`, and no ignored test without a reason.
//!
//! Promises: looks at code only; the words may be written in comments and strings.

use super::{Finding, syntax};
use crate::tree::{File, Tree};

const MACROS: &[&str] = &["todo", "unimplemented", "dbg"];

/// Looks through every Rust file.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(judge).collect()
}

fn judge(file: &File) -> Vec<Finding> {
    let Ok(tokens) = syntax::tokens(&file.text) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for at in 0..tokens.len() {
        let text = |offset: usize| tokens.get(at + offset).map_or("", |token| token.text.as_str());
        let advice = if MACROS.contains(&text(0)) && text(1) == "!" && text(2) != "=" {
            format!("finish the work behind `{}!` or take it out", text(0))
        } else if [text(0), text(1), text(2), text(3)] == ["#", "[", "ignore", "]"] {
            "give the ignored test a reason: #[ignore = \"why, and who runs it\"]".to_owned()
        } else {
            continue;
        };
        findings.push(Finding {
            path: file.path.clone(),
            line: tokens[at].line,
            rule: "leftovers",
            advice,
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_macros_and_bare_ignores() {
        let source = "fn a() {\n    todo!()\n}\nfn b() { x(dbg!(1)); }\n#[ignore]\nfn c() {}\n";
        let lines: Vec<usize> =
            check(&Tree::of(&[("a.rs", source)])).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 4, 5]);
    }

    #[test]
    fn words_strings_and_reasons_pass() {
        let source = "//! no todo!() here\n#[ignore = \"needs a database\"]\nfn a() { let todo = \"dbg!\"; if todo != x {} }\n";
        assert!(check(&Tree::of(&[("a.rs", source)])).is_empty());
    }
}
