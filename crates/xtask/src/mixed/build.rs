//! The other version: which it is, and its binary.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// The commit of the wished revision, or of the newest tag.
pub fn revision(root: &Path, wish: Option<&str>) -> anyhow::Result<String> {
    let name = match wish {
        Some(name) => name.to_owned(),
        None => {
            let tags = git(root, &["tag", "--sort=-creatordate"])?;
            let newest = tags.lines().next().map(str::to_owned);
            newest.context("nothing is tagged yet: name the other version with --from REV")?
        }
    };
    let commit = format!("{name}^{{commit}}");
    git(root, &["rev-parse", "--verify", "--quiet", &commit])
        .with_context(|| format!("{name:?} is no revision of this repository"))
}

/// Builds a commit in a worktree and a target folder of its own; what was built before is used again.
pub fn other(root: &Path, commit: &str) -> anyhow::Result<PathBuf> {
    let folder = root.join("target").join("mixed");
    std::fs::create_dir_all(&folder).context("target/mixed")?;
    let source = folder.join(format!("source-{}", &commit[..12.min(commit.len())]));
    let target = folder.join("build");
    if !source.exists() {
        let path = source.to_str().context("the path of the worktree")?;
        // A worktree whose folder was deleted is still on git's list.
        git(root, &["worktree", "prune"])?;
        git(root, &["worktree", "add", "--detach", path, commit])?;
    }
    let built = Command::new("cargo")
        .args(["build", "--release", "-p", "ikada-cli"])
        .current_dir(&source)
        .env("CARGO_TARGET_DIR", &target)
        // Set by the cargo that runs us, for another workspace.
        .env_remove("CARGO_MANIFEST_DIR")
        .status()
        .context("cargo build")?;
    if !built.success() {
        bail!("{commit} could not be built");
    }
    // The next version to be built writes to the same place.
    let binary = source.with_extension("ikada");
    std::fs::copy(target.join("release").join("ikada"), &binary).context("the other binary")?;
    Ok(binary)
}

fn git(root: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").args(args).current_dir(root).output().context("git")?;
    if !output.status.success() {
        bail!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
