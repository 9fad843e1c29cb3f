//! `ikada audit verify`: the files of one node, each by itself and each going on from the one before.

use std::path::PathBuf;

use ikada_node::audit::{AUDIT_FOLDER, verify};
use serde::Serialize;

use crate::args::{AuditCommand, AuditVerifyArgs};
use crate::failure::Failure;
use crate::render::{Document, Grid, Screen};

/// What was found.
#[derive(Serialize)]
struct Checked {
    files: Vec<CheckedFile>,
}

#[derive(Serialize)]
struct CheckedFile {
    file: String,
    records: usize,
}

pub(crate) fn audit(command: &AuditCommand, screen: &mut Screen) -> Result<(), Failure> {
    let AuditCommand::Verify(args) = command;
    let mut checked = Checked { files: Vec::new() };
    let mut end = None;
    for path in files(args)? {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
        let whole = without_torn_end(&text);
        let (records, before, after) =
            verify(whole).map_err(|broken| Failure::failed(format!("{shown}: {broken}")))?;
        if end.is_some_and(|end| end != before) {
            return Err(Failure::failed(format!("{shown} does not go on from the file before it")));
        }
        end = Some(after);
        checked.files.push(CheckedFile { file: shown, records });
    }
    screen.show(&checked)
}

/// A crash may cut off the last line; the file after it goes on from the one before.
fn without_torn_end(text: &str) -> &str {
    text.rfind('\n').map_or(text, |end| &text[..=end])
}

fn files(args: &AuditVerifyArgs) -> Result<Vec<PathBuf>, Failure> {
    let folder = args.data.join(AUDIT_FOLDER);
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.sort();
    Ok(files)
}

impl Document for Checked {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let row = |file: &CheckedFile| vec![file.file.clone(), file.records.to_string()];
        vec![Grid { headings: &["file", "records"], rows: self.files.iter().map(row).collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.files.iter().map(|file| file.file.clone()).collect()
    }
}
