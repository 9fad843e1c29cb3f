//! The three forms of one document.

use ikada_api::v1::{ItemOutcome, OutcomeKind};

use super::*;

fn item() -> ItemOutcome {
    ItemOutcome {
        id: "a\u{1b}[31m".into(),
        outcome: OutcomeKind::Cancelled,
        lsn: None,
        ttl_ms: None,
        retry_at_ms: None,
        problem: None,
    }
}

#[test]
fn a_document_has_three_forms() {
    let table = table::Table.render(&item()).unwrap();
    assert!(table.contains("OUTCOME") && table.contains("cancelled"), "{table}");
    assert!(!table.contains('\u{1b}'), "terminal codes do not pass: {table:?}");
    let json = json::Json.render(&item()).unwrap();
    let read: ItemOutcome = serde_json::from_str(&json).unwrap();
    assert_eq!(read, item());
    assert_eq!(quiet::Quiet.render(&item()).unwrap(), "a\u{1b}[31m\n");
}

#[test]
fn nothing_quiet_is_nothing_at_all() {
    let page = ikada_api::v1::QueuePage { queues: Vec::new() };
    assert_eq!(quiet::Quiet.render(&page).unwrap(), "");
}
