//! What a program left: files in its output folder, and the small result.
//!
//! Looked at only when none of its processes lives any more, so that nothing changes under our hands.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Folder;
use crate::run::{TaskError, TaskResult};

/// Most files of one attempt.
const OUTPUTS_MAX: usize = 1_000;
/// Deepest folder in the output folder.
const DEPTH_MAX: usize = 8;
/// Largest result; the cluster takes no larger one.
const RESULT_BYTES_MAX: u64 = 64 << 10;

/// A file to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundOutput {
    /// Its path below the output folder, with `/`.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Its length.
    pub size: u64,
}

/// All files in the output folder, by name. Anything that is no plain file or folder is an error: a link would publish what
/// it points at.
pub(super) fn find(folder: &Folder) -> Result<Vec<FoundOutput>, TaskError> {
    let mut found = Vec::new();
    gather(&folder.outputs(), "", 0, &mut found)?;
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn gather(
    folder: &Path,
    below: &str,
    depth: usize,
    found: &mut Vec<FoundOutput>,
) -> Result<(), TaskError> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_good(name)) else {
            return Err(TaskError::new(format!(
                "output {below}{name:?} has a name that is no good"
            )));
        };
        let name = format!("{below}{name}");
        let about = fs::symlink_metadata(entry.path())?;
        if about.is_dir() && depth < DEPTH_MAX {
            gather(&entry.path(), &format!("{name}/"), depth + 1, found)?;
        } else if about.is_file() {
            found.push(FoundOutput { name, path: entry.path(), size: about.len() });
        } else {
            return Err(TaskError::new(format!("output {name} is no plain file")));
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
    let path = folder.result();
    let about = match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(().into()),
        Err(error) => return Err(error.into()),
        Ok(about) => about,
    };
    if !about.is_file() || about.len() > RESULT_BYTES_MAX {
        let rule = format!("the result must be a plain file of at most {RESULT_BYTES_MAX} bytes");
        return Err(TaskError::new(rule));
    }
    let mut text = String::new();
    fs::File::open(&path)?.take(RESULT_BYTES_MAX).read_to_string(&mut text)?;
    let text = text.trim();
    let value: Result<serde::de::IgnoredAny, _> = serde_json::from_str(text);
    value.map_err(|error| TaskError::new(format!("the result is no JSON: {error}")))?;
    Ok(text.as_bytes().to_vec().into())
}

#[cfg(test)]
mod tests {
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
