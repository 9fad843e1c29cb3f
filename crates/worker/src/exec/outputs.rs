//! What a program left: files in its output folder, and the small result.
//!
//! Looked at only when none of its processes lives any more, and through the handle of a folder that was opened before it
//! began: neither a link nor a renamed folder leads elsewhere (X8).

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use ikada_api::client::OpenSource;

use super::folder::{Folder, OUTPUTS, RESULT};
use crate::beneath::{Beneath, Kind};
use crate::run::{TaskError, TaskResult};

/// Most files of one attempt.
const OUTPUTS_MAX: usize = 1_000;
/// Deepest folder in the output folder.
const DEPTH_MAX: usize = 8;
/// Largest result; the cluster takes no larger one.
const RESULT_BYTES_MAX: u64 = 64 << 10;

/// A file to publish.
#[derive(Debug, Clone)]
pub struct FoundOutput {
    /// Its path below the output folder, with `/`.
    pub name: String,
    /// Its length.
    pub size: u64,
    outputs: Arc<Beneath>,
}

impl OpenSource for FoundOutput {
    fn open(&self) -> io::Result<File> {
        self.outputs.open(&self.name)
    }
}

/// All files in the output folder, by name. Anything that is no plain file or folder is an error: a link would publish what
/// it points at.
pub(super) fn find(folder: &Folder) -> Result<Vec<FoundOutput>, TaskError> {
    let mut found = Vec::new();
    let outputs = Arc::new(folder.handle().folder(OUTPUTS)?);
    gather(&outputs, &outputs, "", 0, &mut found)?;
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn gather(
    outputs: &Arc<Beneath>,
    folder: &Beneath,
    below: &str,
    depth: usize,
    found: &mut Vec<FoundOutput>,
) -> Result<(), TaskError> {
    for entry in folder.entries()? {
        let entry = entry?;
        let Some(bare) = entry.name.to_str().filter(|name| is_good(name)) else {
            return Err(TaskError::new(format!(
                "output {below}{:?} has a name that is no good",
                entry.name
            )));
        };
        let name = format!("{below}{bare}");
        match entry.kind {
            Kind::Folder if depth < DEPTH_MAX => {
                gather(outputs, &folder.folder(bare)?, &format!("{name}/"), depth + 1, found)?;
            }
            Kind::File => {
                let outputs = outputs.clone();
                found.push(FoundOutput { name, size: entry.size, outputs });
            }
            _ => return Err(TaskError::new(format!("output {name} is no plain file"))),
        }
        if found.len() > OUTPUTS_MAX {
            return Err(TaskError::new(format!("there are more than {OUTPUTS_MAX} outputs")));
        }
    }
    Ok(())
}

/// Names that are good in an object's name.
fn is_good(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-=+@,".contains(letter);
    name.len() <= 128 && name.chars().all(plain)
}

/// The small result; none is empty.
pub(super) fn result(folder: &Folder) -> Result<TaskResult, TaskError> {
    let rule = || {
        let rule = format!("the result must be a plain file of at most {RESULT_BYTES_MAX} bytes");
        TaskError::new(rule)
    };
    let file = match folder.handle().open(RESULT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(().into()),
        other => other.map_err(|_| rule())?,
    };
    if file.metadata()?.len() > RESULT_BYTES_MAX {
        return Err(rule());
    }
    let mut text = String::new();
    file.take(RESULT_BYTES_MAX).read_to_string(&mut text)?;
    let text = text.trim();
    let value: Result<serde::de::IgnoredAny, _> = serde_json::from_str(text);
    value.map_err(|error| TaskError::new(format!("the result is no JSON: {error}")))?;
    Ok(text.as_bytes().to_vec().into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_are_found_and_links_are_refused() {
        let work = tempfile::tempdir().unwrap();
        let folder = Folder::make(work.path(), None).unwrap();
        assert!(result(&folder).unwrap() == ().into());
        fs::create_dir(folder.outputs().join("deep")).unwrap();
        fs::write(folder.outputs().join("deep/b"), "bb").unwrap();
        fs::write(folder.outputs().join("a"), "a").unwrap();
        let names: Vec<_> =
            find(&folder).unwrap().into_iter().map(|one| (one.name, one.size)).collect();
        assert_eq!(names, [("a".to_owned(), 1), ("deep/b".to_owned(), 2)]);
        std::os::unix::fs::symlink("/etc/passwd", folder.outputs().join("c")).unwrap();
        assert!(find(&folder).unwrap_err().message().contains("c is no plain file"));
        fs::write(folder.result(), "{\"n\": 1}\n").unwrap();
        assert!(result(&folder).unwrap() == b"{\"n\": 1}".to_vec().into());
        fs::write(folder.result(), "{").unwrap();
        assert!(result(&folder).is_err());
        fs::remove_file(folder.result()).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.result()).unwrap();
        assert!(result(&folder).is_err());
    }
}
