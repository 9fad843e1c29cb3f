//! HyperQueue beside this, with the same command on the same cores.
//!
//! Its Python package brings server, workers and client along, so that whoever has the package can measure both in one run.
//! Leaves out: installing it (`pip install hyperqueue`).

use std::path::Path;
use std::time::Duration;

use crate::failure::Failure;

/// What it runs; prints `seconds N` in the end, among other words.
const SCRIPT: &str = include_str!("hyperqueue.py");
/// Longer than any run should take.
const PATIENCE: Duration = Duration::from_secs(600);
/// Its client looks once a second for the end: with fewer tasks that would be most of the figure.
pub(super) const TASKS_MIN: u64 = 20_000;

/// Runs so many tasks through two workers of so many cores; gives the seconds for all.
pub(super) async fn run(
    python: &Path,
    command: &str,
    tasks: u64,
    cores: u32,
) -> Result<f64, Failure> {
    let failed = |why: String| {
        let python = python.display();
        Failure::failed(format!(
            "HyperQueue did not run: {why}; it needs {python} with the package hyperqueue (pip install hyperqueue)"
        ))
    };
    let mut child = tokio::process::Command::new(python);
    child.args(["-c", SCRIPT, command, &tasks.to_string(), &cores.to_string()]).kill_on_drop(true);
    let ended = tokio::time::timeout(PATIENCE, child.output()).await;
    let output = ended
        .map_err(|_| failed(format!("no end after {} s", PATIENCE.as_secs())))?
        .map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    seconds(&said).ok_or_else(|| {
        let why = String::from_utf8_lossy(&output.stderr);
        failed(why.lines().last().unwrap_or("it said nothing").to_owned())
    })
}

/// The seconds that the script printed.
fn seconds(said: &str) -> Option<f64> {
    said.lines().rev().find_map(|line| line.strip_prefix("seconds ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seconds_are_found_among_other_words() {
        assert_eq!(seconds("| Pid | 7 |\nseconds 2.5\n"), Some(2.5));
        assert_eq!(seconds("seconds many\nthe end"), None);
    }

    #[tokio::test]
    async fn a_python_without_it_says_what_is_missing() {
        let failure =
            run(Path::new("/bin/false"), "/bin/true", 1, 1).await.expect_err("no seconds");
        assert!(failure.to_string().contains("pip install hyperqueue"), "{failure}");
    }
}
