//! `cargo xtask fix`: the only command here that edits files.
//!
//! Promises: runs the formatter last, so that what clippy rewrote is formatted too. Works on a tree with uncommitted
//! changes, because that is when it is wanted. Leaves out: rules that need judgement (tidy names those).

use std::path::Path;
use std::process::Command;

use anyhow::Context;

/// Applies clippy's suggestions, then formats; says whether both succeeded.
pub fn run(root: &Path) -> anyhow::Result<bool> {
    let clippy =
        ["clippy", "--fix", "--allow-dirty", "--allow-staged", "--workspace", "--all-targets"];
    let mended = cargo(root, &clippy)?;
    let formatted = cargo(root, &["fmt", "--all"])?;
    Ok(mended && formatted)
}

fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<bool> {
    eprintln!("cargo {}", arguments.join(" "));
    let status = Command::new("cargo")
        .args(arguments)
        .current_dir(root)
        .status()
        .with_context(|| format!("cargo {} could not be started", arguments.join(" ")))?;
    Ok(status.success())
}
