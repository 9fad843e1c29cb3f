//! Every figure that a node shows is explained in docs/operations.md.

use std::collections::BTreeSet;
use std::path::Path;

/// Names of figures in a source: texts that begin so and are nothing but a name.
fn names(source: &str) -> impl Iterator<Item = &str> {
    let texts = source.split('"').skip(1).step_by(2);
    texts.filter(|text| {
        let is_name = |one: char| one.is_ascii_lowercase() || one == '_';
        text.starts_with("ikada_") && text.chars().all(is_name)
    })
}

#[test]
fn every_figure_is_explained_on_the_page_of_operations() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/operations.md")).unwrap();
    let explained = |name: &str| {
        page.match_indices(name).any(|(place, _)| {
            let after = page[place + name.len()..].chars().next();
            after.is_some_and(|one| one == '`' || one == '{')
        })
    };
    let mut shown = BTreeSet::new();
    for entry in std::fs::read_dir(root.join("src/metrics")).unwrap().flatten() {
        if !entry.file_name().to_string_lossy().ends_with("_test.rs") {
            let source = std::fs::read_to_string(entry.path()).unwrap();
            shown.extend(names(&source).map(str::to_owned));
        }
    }
    let missing: Vec<&String> = shown.iter().filter(|name| !explained(name)).collect();
    assert!(missing.is_empty(), "docs/operations.md does not say what these are: {missing:?}");
    assert!(shown.len() >= 90, "only {} figures were found", shown.len());
}
