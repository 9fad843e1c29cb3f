//! The driver `exec`: a program of the operator's is told how many workers there should be.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use super::{OWN_LABEL, Wish};

/// The program may take this long.
const PATIENCE: Duration = Duration::from_secs(60);
/// How much of its words is repeated.
const WORDS_MAX: usize = 200;

/// Runs a program: `program DESIRED CURRENT`, with `IKADA_DESIRED`, `IKADA_CURRENT` and `IKADA_REASON` in its environment,
/// and `IKADA_WORKER_LABEL`, by which workers that it starts bear the autoscaler's label.
#[derive(Debug)]
pub struct ExecDriver {
    /// The program.
    pub program: PathBuf,
}

impl ExecDriver {
    /// Tells the program; it failed unless it ends with 0.
    pub async fn scale(&self, wish: &Wish) -> Result<(), String> {
        let (desired, current) = (wish.desired.to_string(), wish.current.to_string());
        let running = tokio::process::Command::new(&self.program)
            .args([&desired, &current])
            .env("IKADA_DESIRED", &desired)
            .env("IKADA_CURRENT", &current)
            .env("IKADA_REASON", &wish.reason)
            .env("IKADA_WORKER_LABEL", format!("{}={}", OWN_LABEL.0, OWN_LABEL.1))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .output();
        let program = self.program.display();
        match tokio::time::timeout(PATIENCE, running).await {
            Err(_) => Err(format!("{program} took longer than {} s", PATIENCE.as_secs())),
            Ok(Err(error)) => Err(format!("{program} could not be started: {error}")),
            Ok(Ok(output)) if output.status.success() => Ok(()),
            Ok(Ok(output)) => {
                let words = String::from_utf8_lossy(&output.stderr);
                let words: String = words.trim().chars().take(WORDS_MAX).collect();
                Err(format!("{program} ended with {}: {words}", output.status))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(folder: &std::path::Path, text: &str) -> ExecDriver {
        let program = folder.join("hook");
        std::fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        ExecDriver { program }
    }

    #[tokio::test]
    async fn b4_23_a_hook_is_told_and_its_failure_is_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let wish = Wish { desired: 4, current: 2, reason: "much to do".into() };
        let out = folder.path().join("out");
        let text = format!(
            "echo \"$1 $2 $IKADA_DESIRED $IKADA_REASON $IKADA_WORKER_LABEL\" > {}",
            out.display()
        );
        let good = script(folder.path(), &text);
        good.scale(&wish).await.unwrap();
        assert_eq!(
            std::fs::read_to_string(out).unwrap().trim(),
            "4 2 4 much to do ikada.autoscaled=true"
        );
        let bad = script(folder.path(), "echo no room >&2; exit 3");
        let error = bad.scale(&wish).await.unwrap_err();
        assert!(error.contains("no room") && error.contains('3'), "{error}");
        let none = ExecDriver { program: folder.path().join("nothing") };
        assert!(none.scale(&wish).await.unwrap_err().contains("could not be started"));
    }
}
