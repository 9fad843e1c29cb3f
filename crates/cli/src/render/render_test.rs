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
    let table = table::Table::default().render(&item()).unwrap();
    assert!(table.contains("OUTCOME") && table.contains("cancelled"), "{table}");
    assert!(!table.contains('\u{1b}'), "terminal codes do not pass: {table:?}");
    let json = json::Json.render(&item()).unwrap();
    let read: ItemOutcome = serde_json::from_str(&json).unwrap();
    assert_eq!(read, item());
    assert_eq!(quiet::Quiet.render(&item()).unwrap(), "a\u{1b}[31m\n");
}

#[test]
fn a_page_of_nothing_says_so_to_people_alone() {
    let page = ikada_api::v1::QueuePage::default();
    let seen = table::Table { is_terminal: true, ..table::Table::default() };
    assert!(seen.render(&page).unwrap().ends_with("\n(none)\n"));
    assert_eq!(table::Table::default().render(&page).unwrap().lines().count(), 1);
}

#[test]
fn nothing_quiet_is_nothing_at_all() {
    let page = ikada_api::v1::QueuePage::default();
    assert_eq!(quiet::Quiet.render(&page).unwrap(), "");
}

fn rows(width: usize, cells: [&str; 3]) -> String {
    struct One(Vec<String>);
    impl Document for One {
        fn json(&self) -> Result<String, serde_json::Error> {
            Ok(String::new())
        }
        fn grids(&self) -> Vec<Grid> {
            vec![Grid { headings: &["id", "state", "payload"], rows: vec![self.0.clone()] }]
        }
        fn names(&self) -> Vec<String> {
            Vec::new()
        }
    }
    let table = table::Table { width: Some(width), ..table::Table::default() };
    table.render(&One(cells.map(str::to_owned).to_vec())).unwrap()
}

#[test]
fn a_table_fits_its_terminal_and_cuts_the_widest_cells() {
    let long = "x".repeat(1 << 20);
    for width in [40, 80, 120] {
        let table = rows(width, ["report-7", "claimed", &long]);
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert_eq!(widest, Some(width), "{table}");
        assert!(table.contains("report-7") && table.contains("claimed"), "{table}");
        assert!(table.contains("xxx\u{2026}"), "{table}");
    }
    // What fits is left alone, and a name is cut only when there is nothing else.
    assert!(!rows(80, ["a", "done", "{}"]).contains('\u{2026}'));
    let name = "n".repeat(60);
    let table = rows(80, [&name, "done", &long]);
    assert!(table.contains(&name), "{table}");
    // Narrower than its columns can be: wider than the terminal, but whole.
    assert!(rows(5, ["a", "done", &long]).lines().all(|line| line.chars().count() < 40));
}
