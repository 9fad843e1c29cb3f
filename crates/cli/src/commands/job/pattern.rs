//! Files by pattern: `*` and `?` within one part of a path, `**` for any number of folders.
//!
//! Promises: `**` enters no folder by a link, so that it ends and finds each file once, and none whose name begins with a dot;
//! what a part names or matches itself is entered even so. A folder that cannot be read is an error that names it: less than
//! what was asked for is never taken for all of it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Stands for any number of folders.
const ANY: &str = "**";

/// Files that a pattern means, in order of their paths. None is a mistake, and so is a file that is not there.
pub(super) fn files(pattern: &str) -> Result<Vec<PathBuf>, Failure> {
    if !pattern.contains(['*', '?']) {
        let path = PathBuf::from(pattern);
        return match std::fs::metadata(&path) {
            Ok(about) if about.is_file() => Ok(vec![path]),
            Ok(_) => {
                Err(Failure::usage(format!("--input {pattern}: is a folder; give {pattern}/*")))
            }
            Err(error) => Err(Failure::usage(format!("--input {pattern}: {error}"))),
        };
    }
    let mut parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    // Twice any number is any number; walked one by one, each would walk all folders anew.
    parts.dedup_by(|next, before| *next == ANY && *before == ANY);
    if parts.last() == Some(&ANY) {
        parts.push("*");
    }
    let root = if pattern.starts_with('/') { PathBuf::from("/") } else { PathBuf::from(".") };
    let mut found = Vec::new();
    let unread = |(path, error): Unread| {
        let path = bare(path);
        Failure::usage(format!("--input {pattern}: {}: {error}", path.display()))
    };
    walk(&root, &parts, &mut found).map_err(unread)?;
    let mut found: Vec<PathBuf> = found.into_iter().map(bare).collect();
    found.sort();
    found.dedup();
    match found.is_empty() {
        true => Err(Failure::usage(format!("--input {pattern}: no file is named so"))),
        false => Ok(found),
    }
}

/// What could not be read, and why.
type Unread = (PathBuf, std::io::Error);

fn bare(path: PathBuf) -> PathBuf {
    path.strip_prefix(".").map(Path::to_path_buf).unwrap_or(path)
}

fn walk(folder: &Path, parts: &[&str], found: &mut Vec<PathBuf>) -> Result<(), Unread> {
    let Some((part, rest)) = parts.split_first() else {
        return Ok(());
    };
    if *part == ANY {
        walk(folder, rest, found)?;
        for (path, name) in entries(folder)? {
            let about = path.symlink_metadata().map_err(|error| (path.clone(), error))?;
            if about.is_dir() && !is_hidden(&name) {
                walk(&path, parts, found)?;
            }
        }
        return Ok(());
    }
    if !part.contains(['*', '?']) {
        let path = folder.join(part);
        return match rest.is_empty() {
            true if path.is_file() => {
                found.push(path);
                Ok(())
            }
            true => Ok(()),
            false => walk(&path, rest, found),
        };
    }
    for (path, name) in entries(folder)? {
        if !matches_part(part, &name) {
            continue;
        }
        // What a link leads to: a link to nothing was asked for, and is not there.
        let about = path.metadata().map_err(|error| (path.clone(), error))?;
        match rest.is_empty() {
            true if about.is_file() => found.push(path),
            false if about.is_dir() => walk(&path, rest, found)?,
            _ => {}
        }
    }
    Ok(())
}

/// Whether a path is as a pattern says: part by part, as files are found.
pub(super) fn matches_path(pattern: &str, path: &str) -> bool {
    let patterns: Vec<&str> = pattern.split('/').collect();
    let parts: Vec<&str> = path.split('/').collect();
    matches_parts(&patterns, &parts)
}

fn matches_parts(patterns: &[&str], parts: &[&str]) -> bool {
    // Where the last pattern for any number of folders stood, and how many parts it took.
    let (mut at, mut place, mut any) = (0, 0, None);
    while place < parts.len() {
        match patterns.get(at) {
            Some(&ANY) => {
                any = Some((at, place));
                at += 1;
            }
            Some(pattern) if matches_part(pattern, parts[place]) => {
                at += 1;
                place += 1;
            }
            _ => match any {
                // Hidden folders are entered by name only.
                Some((before, taken)) if !is_hidden(parts[taken]) => {
                    (at, place) = (before + 1, taken + 1);
                    any = Some((before, taken + 1));
                }
                _ => return false,
            },
        }
    }
    patterns[at..].iter().all(|pattern| *pattern == ANY)
}

fn matches_part(pattern: &str, part: &str) -> bool {
    (!is_hidden(part) || pattern.starts_with('.')) && matches(pattern, part)
}

/// A dot at the beginning hides a file unless the pattern has it, too.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

/// What is in a folder, with names; nothing if there is no such folder, which another may well have.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, String)>, Unread> {
    let unread = |error| (folder.to_path_buf(), error);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(unread(error)),
    };
    let named = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (entry.path(), name)
    };
    entries.map(|entry| entry.map(named).map_err(unread)).collect()
}

/// Whether a name is as a part of a pattern says.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Where the last star stood, and how much of the name it took.
    let (mut at, mut place, mut star) = (0, 0, None);
    while place < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == name[place] => {
                at += 1;
                place += 1;
            }
            _ => match star {
                Some((before, taken)) => {
                    (at, place) = (before + 1, taken + 1);
                    star = Some((before, taken + 1));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_marks_stand_for_letters() {
        for (pattern, name) in [("*.txt", "a.txt"), ("a*b*c", "aXXbYc"), ("?", "x"), ("*", "")] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("*.txt", "a.txt2"), ("a?c", "ac"), ("a*b", "acd")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn b4_35_names_in_a_store_match_as_paths_do() {
        for (pattern, path) in [
            ("texts/*.txt", "texts/a.txt"),
            ("**/*", "a"),
            ("**/*", "a/b/c"),
            ("texts/**/*.txt", "texts/a.txt"),
            ("texts/**/*.txt", "texts/1/2/a.txt"),
            ("*/a?.txt", "x/ab.txt"),
            (".a/*", ".a/b"),
            ("**", "a/b/c"),
            ("**/.b/*", "a/.b/c"),
            ("**/.b/**/d", "a/.b/c/d"),
            ("**/**/b/**/c", "a/b/x/c/c"),
            ("**/a/*/b", "a/a/x/b"),
        ] {
            assert!(matches_path(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("texts/*.txt", "texts/deep/a.txt"),
            ("texts/*.txt", "texts/.a.txt"),
            ("texts/*", "texts"),
            ("texts/*.txt", "other/a.txt"),
            ("**/*", "a/.b"),
            ("**", "a/.b/c"),
            ("**/c", ".git/c"),
            ("**/.b/**", "a/.b/.c/d"),
            ("texts/**/*.txt", "texts/1/2/a.csv"),
            ("**/b", "b/a"),
        ] {
            assert!(!matches_path(pattern, path), "{pattern} {path}");
        }
        // In a moment, not in the age of the world.
        let (pattern, path) = (format!("{}b", "**/a/".repeat(100)), "a/".repeat(400) + "c");
        assert!(!matches_path(&pattern, &path));
    }

    // B4-2
    #[test]
    fn b4_2_a_pattern_that_means_nothing_is_a_mistake() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display();
        for name in ["b.txt", "a.txt", "c.md", ".d.txt"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        std::fs::create_dir(folder.path().join("deep")).unwrap();
        std::fs::write(folder.path().join("deep/e.txt"), "x").unwrap();
        let names = |pattern: String| -> Vec<String> {
            let found = files(&pattern).unwrap();
            found
                .iter()
                .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(names(format!("{place}/*.txt")), ["a.txt", "b.txt"]);
        assert_eq!(names(format!("{place}/**/*.txt")), ["a.txt", "b.txt", "e.txt"]);
        assert_eq!(names(format!("{place}/c.md")), ["c.md"]);
        for bad in [format!("{place}/*.csv"), format!("{place}/none.txt"), format!("{place}/deep")]
        {
            assert!(matches!(files(&bad), Err(Failure::Usage { .. })), "{bad}");
        }
    }
    // B4-2
    #[test]
    fn b4_2_any_folders_are_neither_linked_nor_hidden_and_all_can_be_read() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (place, name) in [("a/b", "x.txt"), (".git/c", "y.txt"), ("a/.h", "z.txt")] {
            std::fs::create_dir_all(root.join(place)).unwrap();
            std::fs::write(root.join(place).join(name), "x").unwrap();
        }
        symlink(root, root.join("a/up")).unwrap();
        symlink(root.join("a/b/x.txt"), root.join("a/one.txt")).unwrap();
        let found = |pattern: &str| -> Result<Vec<String>, String> {
            let found = files(&format!("{}/{pattern}", root.display()));
            let found = found.map_err(|error| error.to_string())?;
            let inside = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
            Ok(found.iter().map(inside).collect())
        };
        for pattern in ["**/*.txt", "**"] {
            assert_eq!(found(pattern).unwrap(), ["a/b/x.txt", "a/one.txt"], "{pattern}");
        }
        assert_eq!(found("**/.h/*").unwrap(), ["a/.h/z.txt"]);
        assert_eq!(found(".git/**/*").unwrap(), [".git/c/y.txt"]);
        assert_eq!(found("a/up/a/b/*").unwrap(), ["a/up/a/b/x.txt"], "a link that is named");
        assert!(found("none/*").unwrap_err().contains("no file is named so"));
        // A name that leads to itself cannot be read, whoever asks; nor can a link to nothing.
        symlink("gone", root.join("a/two.txt")).unwrap();
        let error = found("**/*.txt").unwrap_err();
        assert!(error.contains("a/two.txt: "), "{error}");
        assert_eq!(found("a/b/*.txt").unwrap(), ["a/b/x.txt"]);
        symlink("loop", root.join("loop")).unwrap();
        let error = found("loop/*.txt").unwrap_err();
        assert!(error.contains("loop: "), "{error}");
    }
}
