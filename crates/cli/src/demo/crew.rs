//! Workers: processes of this very binary, started, killed and started again.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::failure::Failure;

/// Slots of each worker.
pub(super) const SLOTS: u32 = 2;

/// Some workers. Dropped, they end at once.
pub(super) struct Crew {
    folder: PathBuf,
    urls: String,
    workers: Vec<(String, Child)>,
    started: u32,
}

impl Crew {
    /// Starts so many workers.
    pub(super) fn start(folder: &Path, urls: &[String], count: u32) -> Result<Crew, Failure> {
        let folder = folder.to_path_buf();
        let mut crew = Crew { folder, urls: urls.join(","), workers: Vec::new(), started: 0 };
        for _ in 0..count {
            crew.add()?;
        }
        Ok(crew)
    }

    /// Starts one more.
    pub(super) fn add(&mut self) -> Result<(), Failure> {
        self.started += 1;
        let name = format!("demo-worker-{}", self.started);
        let failed = |error: std::io::Error| Failure::failed(format!("worker {name}: {error}"));
        let log = File::create(self.folder.join(format!("{name}.log"))).map_err(failed)?;
        let binary = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(binary);
        // Settings meant for the caller's own workers must not reach these.
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("IKADA_") && variable != "IKADA_LOG" {
                command.env_remove(variable);
            }
        }
        command
            .args(["worker", "--name", &name, "--url", &self.urls, "--slots", &SLOTS.to_string()])
            .args(["--isolation", "best", "--until-stdin-closes", "--work-dir"])
            .arg(self.folder.join(&name))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log);
        let worker = command.spawn().map_err(failed)?;
        self.workers.push((name, worker));
        Ok(())
    }

    /// Kills the one that was started first, as `kill -9` does; gives its process and its name.
    pub(super) fn kill_one(&mut self) -> Result<(u32, String), Failure> {
        if self.workers.is_empty() {
            return Err(Failure::failed("there is no worker to kill"));
        }
        let (name, mut worker) = self.workers.remove(0);
        let id = worker.id();
        let ended = worker.kill().and_then(|()| worker.wait());
        ended.map_err(|error| Failure::failed(format!("worker {id}: {error}")))?;
        Ok((id, name))
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for (_, worker) in &mut self.workers {
            // One that has ended is as good.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}
