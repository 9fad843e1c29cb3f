//! The other version: which it is, and its binary.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::chaos::output_folder;

/// A version that was asked for, or the newest tag.
pub struct Version {
    /// As it was named.
    pub name: String,
    commit: String,
}

impl Version {
    /// The wished revision, or the newest tag; none if nothing is tagged.
    pub fn find(root: &Path, wish: Option<&str>) -> anyhow::Result<Option<Version>> {
        let name = match wish {
            Some(name) => name.to_owned(),
            None => {
                let tags = git(root, &["tag", "--sort=-creatordate"])?;
                let Some(newest) = tags.lines().next() else { return Ok(None) };
                newest.to_owned()
            }
        };
        let wanted = format!("{name}^{{commit}}");
        let commit = git(root, &["rev-parse", "--verify", "--quiet", &wanted])
            .with_context(|| format!("{name:?} is no revision of this repository"))?;
        Ok(Some(Version { name, commit }))
    }

    /// Where its binary is kept, once built.
    pub fn binary(&self, root: &Path, profile: &str) -> PathBuf {
        let short = &self.commit[..12.min(self.commit.len())];
        folder(root).join(format!("ikada-{short}-{profile}"))
    }

    /// Builds it in a worktree and a target folder of its own, unless its binary is there. Of both only the binary stays.
    pub fn build(&self, root: &Path, profile: &str) -> anyhow::Result<PathBuf> {
        let binary = self.binary(root, profile);
        if binary.exists() {
            return Ok(binary);
        }
        std::fs::create_dir_all(folder(root)).context("target/mixed")?;
        let place = Place { root, source: folder(root).join("source") };
        // Left by a run that was interrupted.
        place.clear();
        let source = place.source.to_str().context("the path of the worktree")?;
        git(root, &["worktree", "add", "--detach", source, &self.commit])?;
        let target = folder(root).join("build");
        let built = Command::new("cargo")
            .args(["build", "--locked", "-p", "ikada-cli", "--profile", profile])
            .current_dir(&place.source)
            .env("CARGO_TARGET_DIR", &target)
            // Set by the cargo that runs us, for another workspace.
            .env_remove("CARGO_MANIFEST_DIR")
            .status()
            .context("cargo build")?;
        if !built.success() {
            bail!("{} could not be built", self.name);
        }
        let made = target.join(output_folder(profile)).join("ikada");
        std::fs::copy(made, &binary).context("the other binary")?;
        let _ = std::fs::remove_dir_all(&target);
        Ok(binary)
    }
}

fn folder(root: &Path) -> PathBuf {
    root.join("target").join("mixed")
}

/// The worktree, removed when it is of no use any more.
struct Place<'a> {
    root: &'a Path,
    source: PathBuf,
}

impl Place<'_> {
    fn clear(&self) {
        let _ = std::fs::remove_dir_all(&self.source);
        // A worktree whose folder was deleted is still on git's list.
        let _ = git(self.root, &["worktree", "prune"]);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

fn git(root: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").args(args).current_dir(root).output().context("git")?;
    if !output.status.success() {
        bail!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
