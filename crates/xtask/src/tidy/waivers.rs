//! A waived advisory says why it does not touch us, and until when that was thought through.
//!
//! Promises: every entry of `ignore` in `deny.toml` has an id and a reason with `until YYYY-MM-DD`. Leaves out: comparing that
//! date with today, because a commit that passed must pass again when somebody bisects.

use toml::{Table, Value};

use super::{Finding, line_of};
use crate::tree::Tree;

const PATH: &str = "deny.toml";

/// Looks at the waivers of the dependency check.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(PATH) else {
        return Vec::new();
    };
    let table: Table = file.text.parse().unwrap_or_default();
    let waivers = table
        .get("advisories")
        .and_then(|advisories| advisories.get("ignore"))
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let mut findings = Vec::new();
    for waiver in waivers {
        let word = |key: &str| waiver.get(key).and_then(Value::as_str).unwrap_or_default();
        if word("id").is_empty() || !has_date(word("reason")) {
            let id = waiver.as_str().unwrap_or_else(|| word("id"));
            findings.push(Finding {
                path: PATH.to_owned(),
                line: line_of(&file.text, id),
                rule: "waivers",
                advice: format!(
                    "write the waiver of `{id}` as {{ id, reason }} with `until YYYY-MM-DD` in the reason"
                ),
            });
        }
    }
    findings
}

/// Whether the text says `until` and a date.
fn has_date(reason: &str) -> bool {
    reason.split("until ").skip(1).any(|rest| {
        let date: Vec<&str> = rest.get(..10).unwrap_or_default().split('-').collect();
        let lengths: Vec<usize> = date.iter().map(|part| part.len()).collect();
        let digits = date.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        lengths == [4, 2, 2] && digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(ignore: &str) -> usize {
        let text = format!("[advisories]\nignore = [{ignore}]\n");
        check(&Tree::of(&[(PATH, &text)])).len()
    }

    #[test]
    fn dated_reason_passes() {
        assert_eq!(count(""), 0);
        assert_eq!(count("{ id = \"A-1\", reason = \"until 2027-05-15: not reachable\" }"), 0);
    }

    #[test]
    fn bare_and_undated_waivers_are_found() {
        assert_eq!(count("\"A-1\""), 1);
        assert_eq!(count("{ id = \"A-1\", reason = \"fine until later\" }"), 1);
        assert_eq!(count("{ id = \"A-1\" }, { id = \"A-2\", reason = \"\" }"), 2);
    }
}
