//! No name that the state takes can lead out of a folder, should anyone ever make a path of it (X8).

use ikada_state::*;
use proptest::prelude::*;

/// Known tricks: steps up, escapes, separators of other systems, ends of text, looks-alike, reserved and long names.
const TRICKS: &[&str] = &[
    "",
    ".",
    "..",
    "../x",
    "x/..",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "..\\x",
    "a\0b",
    "\0",
    "%2e%2e",
    "%2e%2e%2f",
    "..%2f",
    "..%c0%af",
    "a:b:c",
    "C:",
    "\u{ff0e}\u{ff0e}",
    "\u{2024}\u{2024}/",
    "\u{202e}txt",
    "a b",
    " ",
    "a\n",
    "a\r\nb",
    "~",
    "~root",
    "$HOME",
    "`id`",
    "$(id)",
    "*",
    "?",
    "-\u{301}",
    "\u{fe}",
    "CON\u{0}",
];

fn leads_nowhere(name: &str) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && name.len() <= 128
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Every kind of name reads a text and accepts only what leads nowhere.
fn check(text: &str) {
    let kinds = [
        Namespace::parse(text).is_ok(),
        QueueName::parse(text).is_ok(),
        WorkerId::parse(text).is_ok(),
        RequestId::parse(text).is_ok(),
        ScheduleName::parse(text).is_ok(),
        Label::parse(text).is_ok(),
        BucketName::parse(text).is_ok(),
        TokenId::parse(text).is_ok(),
        PrincipalName::parse(text).is_ok(),
    ];
    for accepted in kinds {
        assert!(!accepted || leads_nowhere(text), "{text:?}");
    }
    if TaskId::parse(text).is_ok() {
        assert!(text.split(':').count() <= 2 && text.split(':').all(leads_nowhere), "{text:?}");
    }
    if ObjectName::parse(text).is_ok() {
        let parts = text.split('/');
        assert!(parts.clone().all(|part| !matches!(part, "" | "." | "..")), "{text:?}");
        assert!(!text.contains('\0'), "{text:?}");
    }
}

#[test]
fn x_8_known_tricks_are_no_names() {
    for trick in TRICKS {
        check(trick);
        for twisted in [format!("{trick}x"), format!("x{trick}"), format!("x/{trick}/x")] {
            check(&twisted);
        }
    }
    check(&"a".repeat(129));
    check(&format!("{}/..", "a/".repeat(400)));
    assert!(QueueName::parse("a.b-c_D9").is_ok() && QueueName::parse("...").is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    // Texts of the bytes that tricks are made of, and of any characters at all.
    #[test]
    fn x_8_drawn_names_lead_nowhere(trick in "[./\\\\:%~a-c2eEfF\\x00]{0,12}", any in "\\PC{0,20}") {
        check(&trick);
        check(&any);
    }
}
