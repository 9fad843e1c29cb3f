//! Workers of the bench: processes of this very binary, which end with it.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::failure::Failure;

/// Some workers. Dropped, they end at once.
pub(super) struct Crew(Vec<Child>);

impl Crew {
    /// Starts workers of these names that take from one queue.
    pub(super) fn start(
        folder: &Path,
        urls: &[String],
        (queue, slots): (&str, u32),
        names: &[&str],
        more: &[&str],
    ) -> Result<Crew, Failure> {
        let mut crew = Crew(Vec::new());
        for name in names {
            let name = format!("{queue}-{name}");
            let failed = |error: std::io::Error| Failure::failed(format!("worker {name}: {error}"));
            let log = File::create(folder.join(format!("{name}.log"))).map_err(failed)?;
            let mut command = Command::new(std::env::current_exe().map_err(failed)?);
            // Settings meant for the caller's own workers must not reach these.
            for (variable, _) in std::env::vars_os() {
                if variable.to_string_lossy().starts_with("IKADA_") && variable != "IKADA_LOG" {
                    command.env_remove(variable);
                }
            }
            command
                .args(["worker", "--name", &name, "--url", &urls.join(","), "--queue", queue])
                .args(["--slots", &slots.to_string(), "--until-stdin-closes", "--work-dir"])
                .arg(folder.join(&name))
                .args(more)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(log);
            crew.0.push(command.spawn().map_err(failed)?);
        }
        Ok(crew)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            // One that has ended is as good.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}
