//! What the rules look at: the text files that git knows or would add, and the packages cargo knows.
//!
//! Promises: a value loaded once; rules are functions of it and touch no disk, so that a test can feed each rule a
//! violation as a literal. Files that are not UTF-8 are listed without text. Ignored files are left out, new files that are
//! not yet added are taken in, so that a rule speaks before the commit and not after it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

/// One tracked (or about to be tracked) file.
pub struct File {
    /// Path from the workspace root, with forward slashes.
    pub path: String,
    /// Empty when the file is not UTF-8 text.
    pub text: String,
}

/// All files and packages of the workspace.
pub struct Tree {
    /// Sorted by path.
    pub files: Vec<File>,
    /// The answer of `cargo metadata --no-deps`.
    pub metadata: Value,
}

impl Tree {
    /// Reads the workspace at `root` with the help of git and cargo.
    pub fn load(root: &Path) -> anyhow::Result<Tree> {
        let listing =
            output(root, "git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
        let mut paths: Vec<String> = String::from_utf8_lossy(&listing)
            .split('\0')
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect();
        paths.sort_unstable();
        paths.dedup();
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            // A file that is deleted but still in the index has nothing to check.
            let Ok(bytes) = std::fs::read(root.join(&path)) else {
                continue;
            };
            let text = String::from_utf8(bytes).unwrap_or_default();
            files.push(File { path, text });
        }
        Ok(Tree { files, metadata: metadata(root)? })
    }

    /// The file at exactly this path.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether a file or a folder with files stands at this path.
    pub fn holds(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
    }

    /// All Rust sources.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The workspace's packages as (folder under `crates/`, package description).
    pub fn packages(&self) -> Vec<(String, &Value)> {
        let packages = self.metadata["packages"].as_array();
        packages
            .into_iter()
            .flatten()
            .map(|package| {
                let manifest = package["manifest_path"].as_str().unwrap_or_default();
                let folder =
                    Path::new(manifest).parent().and_then(Path::file_name).unwrap_or_default();
                (folder.to_string_lossy().into_owned(), package)
            })
            .collect()
    }
}

/// Asks cargo for the workspace's own packages; needs no network and resolves nothing.
pub fn metadata(root: &Path) -> anyhow::Result<Value> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let answer = output(root, "cargo", &arguments)?;
    serde_json::from_slice(&answer).context("cargo metadata did not answer with JSON")
}

fn output(root: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let answer = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .with_context(|| format!("{program} could not be started"))?;
    ensure!(
        answer.status.success(),
        "{program} {} failed: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&answer.stderr).trim()
    );
    Ok(answer.stdout)
}

#[cfg(test)]
impl Tree {
    /// A tree of literals, for the rules' tests.
    pub fn of(files: &[(&str, &str)]) -> Tree {
        let files = files
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        Tree { files, metadata: Value::Null }
    }

    /// The same tree with this answer of `cargo metadata`.
    pub fn with_metadata(mut self, metadata: Value) -> Tree {
        self.metadata = metadata;
        self
    }
}
