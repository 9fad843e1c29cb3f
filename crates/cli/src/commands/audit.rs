//! `ikada audit show|verify`: the files of one node, each by itself and each going on from the one before.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use ikada_node::audit::{AUDIT_FOLDER, Record, records, verify, whole_lines};
use serde::Serialize;

use crate::args::{AuditCommand, AuditShowArgs, AuditVerifyArgs};
use crate::failure::Failure;
use crate::render::{Document, Grid, Screen, moment};

/// What callers are told who are not let in.
const DENIED: [u16; 3] = [401, 403, 429];

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

/// Lines that were asked for.
#[derive(Serialize)]
struct Lines {
    records: VecDeque<Record>,
}

pub(crate) fn audit(command: &AuditCommand, screen: &mut Screen) -> Result<(), Failure> {
    match command {
        AuditCommand::Show(args) => show(args, screen),
        AuditCommand::Verify(args) => check(args, screen),
    }
}

fn check(args: &AuditVerifyArgs, screen: &mut Screen) -> Result<(), Failure> {
    let mut checked = Checked { files: Vec::new() };
    let mut end = None;
    for path in files(&args.data)? {
        let shown = path.display().to_string();
        let bytes = read(&path)?;
        let (records, before, after) = whole_lines(&bytes)
            .and_then(verify)
            .map_err(|broken| Failure::failed(format!("{shown}: {broken}")))?;
        if end.is_some_and(|end| end != before) {
            return Err(Failure::failed(format!("{shown} does not go on from the file before it")));
        }
        end = Some(after);
        checked.files.push(CheckedFile { file: shown, records });
    }
    screen.show(&checked)
}

fn show(args: &AuditShowArgs, screen: &mut Screen) -> Result<(), Failure> {
    let mut lines = Lines { records: VecDeque::new() };
    for path in files(&args.log.data)? {
        let bytes = read(&path)?;
        if let Err(broken) = whole_lines(&bytes).and_then(verify) {
            eprintln!("{}: {broken}; not all lines are what was written", path.display());
        }
        for record in records(&String::from_utf8_lossy(&bytes)).filter(|one| fits(args, one)) {
            if lines.records.len() >= args.last as usize {
                lines.records.pop_front();
            }
            lines.records.push_back(record);
        }
    }
    screen.show(&lines)
}

/// Whether a line is asked for.
fn fits(args: &AuditShowArgs, record: &Record) -> bool {
    let same = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
    };
    let object = record.object.as_deref().unwrap_or_default();
    same(&args.principal, record.principal.as_deref())
        && same(&args.action, Some(&record.action))
        && args.object.as_ref().is_none_or(|wanted| object.contains(wanted.as_str()))
        && (!args.denied || DENIED.contains(&record.status))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

fn files(data: &Path) -> Result<Vec<PathBuf>, Failure> {
    let folder = data.join(AUDIT_FOLDER);
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

impl Document for Lines {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let row = |line: &Record| {
            vec![
                moment(line.time_ms),
                or_dash(&line.principal),
                line.action.clone(),
                or_dash(&line.namespace),
                or_dash(&line.object),
                line.status.to_string(),
                or_dash(&line.source),
            ]
        };
        let headings = &["time", "principal", "action", "namespace", "object", "status", "source"];
        vec![Grid { headings, rows: self.records.iter().map(row).collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.records.iter().map(|line| line.action.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(change: impl FnOnce(&mut AuditShowArgs)) -> AuditShowArgs {
        let log = AuditVerifyArgs { data: PathBuf::new() };
        let (principal, action, object) = (None, None, None);
        let mut args = AuditShowArgs { log, principal, action, object, denied: false, last: 9 };
        change(&mut args);
        args
    }

    #[test]
    fn x_15_lines_are_found_by_caller_action_object_and_denial() {
        let record = Record {
            principal: Some("ann".into()),
            action: "SetQueue".into(),
            object: Some("mail".into()),
            status: 200,
            ..Record::default()
        };
        let fit = |change: fn(&mut AuditShowArgs)| fits(&args(change), &record);
        assert!(fit(|_| {}));
        assert!(fit(|args| args.principal = Some("ann".into())));
        assert!(!fit(|args| args.principal = Some("an".into())));
        assert!(!fit(|args| args.action = Some("Enqueue".into())));
        assert!(fit(|args| args.object = Some("ai".into())));
        assert!(!fit(|args| args.object = Some("no".into())));
        assert!(!fit(|args| args.denied = true));
        let stranger = Record { status: 401, ..Record::default() };
        assert!(fits(&args(|args| args.denied = true), &stranger));
        assert!(!fits(&args(|args| args.principal = Some("ann".into())), &stranger));
    }
}
