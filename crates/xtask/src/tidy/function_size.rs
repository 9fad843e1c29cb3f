//! A function fits a screen: at most 70 lines of code, 120 in tests and in tables.
//!
//! Promises: counts from the signature to the closing brace, comment and blank lines left out, so that explaining never
//! costs. Methods, trait defaults and nested functions count each for itself. A table is one `match` whose arms do one line
//! each: cut in two it would need a catch-all, and a new variant without a rule would no longer fail to compile.

use super::{Finding, is_test_file, syntax};
use crate::tree::{File, Tree};

const CODE_LINES_MAX: usize = 70;
const TEST_CODE_LINES_MAX: usize = 120;
const TABLE_CODE_LINES_MAX: usize = 120;

/// Measures every function.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(judge).collect()
}

fn judge(file: &File) -> Vec<Finding> {
    // What is not even tokens is reported by `file_size`.
    let Ok(tokens) = syntax::tokens(&file.text) else {
        return Vec::new();
    };
    let finding = |line: usize, advice: String| Finding {
        path: file.path.clone(),
        line,
        rule: "function-size",
        advice,
    };
    let functions = match syntax::functions(&file.text) {
        Ok(functions) => functions,
        Err(error) => return vec![finding(1, format!("make the file parse: {error}"))],
    };
    let code_lines = syntax::code_lines(&tokens);
    let mut findings = Vec::new();
    for function in functions {
        let is_test = function.is_test || is_test_file(&file.path);
        let limit = match (is_test, function.is_table) {
            (true, _) => TEST_CODE_LINES_MAX,
            (false, true) => TABLE_CODE_LINES_MAX,
            (false, false) => CODE_LINES_MAX,
        };
        let count = code_lines.range(function.first_line..=function.last_line).count();
        if count > limit {
            let advice = format!("split `{}`: {count} code lines, at most {limit}", function.name);
            findings.push(finding(function.first_line, advice));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(body_lines: usize, line: &str) -> String {
        format!("fn a() {{\n{}}}\n", format!("    {line}\n").repeat(body_lines))
    }

    #[test]
    fn limit_counts_code_lines() {
        let fits = function(68, "b();");
        let long = format!("\n{}", function(69, "b();"));
        let explained = function(200, "// why");
        let tree =
            Tree::of(&[("fits.rs", &fits), ("long.rs", &long), ("explained.rs", &explained)]);
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("long.rs", 2));
        assert!(found[0].advice.contains("71 code lines"));
    }

    #[test]
    fn source_that_does_not_parse_is_found() {
        assert!(check(&Tree::of(&[("a.rs", "fn fn")]))[0].advice.contains("parse"));
    }

    #[test]
    fn tables_may_be_longer_while_their_arms_are_lines() {
        let table = |arms: usize, arm: &str| {
            format!("fn a() {{\n    match b {{\n{}    }}\n}}\n", format!("{arm}\n").repeat(arms))
        };
        let tree = Tree::of(&[
            ("fits.rs", &table(116, "C => d(),")),
            ("long.rs", &table(117, "C => d(),")),
            ("busy.rs", &table(40, "C => {\n d()\n}")),
            (
                "more.rs",
                &table(80, "C => d(),")
                    .replace("match b {", "let e = match b {")
                    .replace("    }\n}", "};\n}"),
            ),
        ]);
        let paths: Vec<String> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["long.rs", "busy.rs", "more.rs"]);
    }

    #[test]
    fn tests_may_be_longer() {
        let test = format!("#[test]\n{}", function(118, "b();"));
        let long = format!("#[test]\n{}", function(119, "b();"));
        let plain = function(118, "b();");
        let tree = Tree::of(&[
            ("a.rs", &test),
            ("b.rs", &long),
            ("x/tests/c.rs", &plain),
            ("d_test.rs", &plain),
        ]);
        let paths: Vec<String> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["b.rs"]);
    }
}
