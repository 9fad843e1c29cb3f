//! Where the advisory database comes from.
//!
//! Promises: a copy on this machine is used without any network; else it is fetched if that works; else the step is skipped
//! aloud. cargo-deny wants a git clone in a folder named after the database's address, so a plain copy is dressed as
//! one: `<db-path>/<name>/crates` links to the copy, and the time stamp of `.git/FETCH_HEAD` tells its age (a copy older than
//! 90 days is refused by cargo-deny itself). Everything is written below `target/`.
//! Leaves out: judging advisories, which is `deny.toml`'s work.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

/// Names a folder with a copy of the database; wins over the folders beside the checkout.
const VARIABLE: &str = "IKADA_ADVISORY_DB";

/// Looked for relative to the workspace root.
const BESIDE: &[&str] = &["../advisory-db", "../shared/advisory-db"];

/// `db-path` of `deny.toml`.
const DB_PATH: &str = "target/advisory-db";

/// cargo-deny's folder name for its default database: last word of the address and a hash of it.
const DB_NAME: &str = "advisory-db-3157b0e258782691";

/// What `cargo deny check advisories` will find.
pub enum Database {
    /// A copy on this machine: check offline.
    Local,
    /// Fetched a moment ago.
    Fetched,
    /// Neither; says why and what to do.
    Absent(String),
}

/// Lays out a database for cargo-deny.
pub fn prepare(root: &Path) -> anyhow::Result<Database> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    if let Some(copy) = find_copy(root, named)? {
        dress(&copy, &root.join(DB_PATH).join(DB_NAME))?;
        eprintln!("advisory database: the copy in {}", copy.display());
        return Ok(Database::Local);
    }
    undress(&root.join(DB_PATH).join(DB_NAME))?;
    // No terminal: a machine without network must not wait for a password.
    let answer = Command::new("cargo")
        .args(["deny", "fetch", "db"])
        .current_dir(root)
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .output()
        .context("cargo deny could not be started")?;
    if answer.status.success() {
        return Ok(Database::Fetched);
    }
    eprint!("{}", String::from_utf8_lossy(&answer.stderr));
    Ok(Database::Absent(format!(
        "no copy of the advisory database, and fetching it failed; set {VARIABLE} to a copy"
    )))
}

/// The first folder that holds a database. A folder that was named but holds none is an error, not a reason to skip.
fn find_copy(root: &Path, named: Option<PathBuf>) -> anyhow::Result<Option<PathBuf>> {
    let holds_database = |folder: &PathBuf| folder.join("crates").is_dir();
    if let Some(folder) = named {
        let folder = root.join(folder);
        anyhow::ensure!(
            holds_database(&folder),
            "{VARIABLE}: {} has no folder `crates`",
            folder.display()
        );
        return Ok(Some(folder));
    }
    Ok(BESIDE.iter().map(|folder| root.join(folder)).find(holds_database))
}

/// Makes `target` look like a clone of the database whose files are in `copy`.
fn dress(copy: &Path, target: &Path) -> anyhow::Result<()> {
    let copy = copy.canonicalize().with_context(|| format!("{} cannot be read", copy.display()))?;
    if target.exists() {
        fs::remove_dir_all(target)
            .with_context(|| format!("{} cannot be replaced", target.display()))?;
    }
    fs::create_dir_all(target.join(".git"))
        .with_context(|| format!("{} cannot be made", target.display()))?;
    std::os::unix::fs::symlink(copy.join("crates"), target.join("crates"))
        .context("no symbolic links here")?;
    let stamp = fs::File::create(target.join(".git/FETCH_HEAD"))?;
    stamp.set_modified(fs::metadata(&copy)?.modified()?)?;
    Ok(())
}

/// Removes a dressed copy, which git could not fetch into; a real clone stays.
fn undress(target: &Path) -> anyhow::Result<()> {
    if target.join("crates").is_symlink() {
        fs::remove_dir_all(target)
            .with_context(|| format!("{} cannot be removed", target.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("ikada-xtask-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn deny_configuration_looks_where_we_lay_it_out() {
        let configuration = include_str!("../../../../deny.toml");
        assert!(configuration.contains(&format!("db-path = \"{DB_PATH}\"")));
    }

    #[test]
    fn copy_is_dressed_as_a_clone_and_taken_off_again() {
        let folder = scratch("dress");
        let copy = folder.join("advisory-db");
        fs::create_dir_all(copy.join("crates/some")).unwrap();
        let target = folder.join("main/target/db");
        for _ in 0..2 {
            dress(&copy, &target).unwrap();
            assert!(target.join("crates/some").is_dir());
            let stamp = fs::metadata(target.join(".git/FETCH_HEAD")).unwrap().modified().unwrap();
            assert_eq!(stamp, fs::metadata(&copy).unwrap().modified().unwrap());
        }
        undress(&target).unwrap();
        assert!(!target.exists() && copy.join("crates/some").is_dir());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn copy_is_found_beside_the_checkout_or_by_name() {
        let folder = scratch("find");
        let root = folder.join("main");
        fs::create_dir_all(&root).unwrap();
        assert_eq!(find_copy(&root, None).unwrap(), None);
        assert!(find_copy(&root, Some(PathBuf::from("nowhere"))).is_err());
        fs::create_dir_all(folder.join("advisory-db/crates")).unwrap();
        assert_eq!(find_copy(&root, None).unwrap(), Some(root.join("../advisory-db")));
        fs::remove_dir_all(folder).unwrap();
    }
}
