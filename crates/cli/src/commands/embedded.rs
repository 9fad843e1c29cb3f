//! `ikada server --worker-slots N`: a worker of the server's own, as a process beside it, so that programs never run inside a
//! node. It drains before the server stops, and ends with it in any case.

use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::process::{Child, Command};

/// The server waits this long for its worker to leave.
const LEAVE_PATIENCE: Duration = Duration::from_secs(35);

/// The worker of a server; none before it began.
#[derive(Debug, Default)]
pub(super) struct Embedded {
    child: Mutex<Option<Child>>,
}

impl Embedded {
    /// Starts the worker. A failure is told, and the server goes on.
    pub(super) fn begin(&self, url: &str, slots: u32, arguments: Option<&str>) {
        let further = arguments.unwrap_or_default().split_whitespace();
        let spawned = std::env::current_exe().and_then(|program| {
            Command::new(program)
                .args(["worker", "--url", url, "--slots", &slots.to_string()])
                .arg("--until-stdin-closes")
                .args(further)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .kill_on_drop(true)
                .spawn()
        });
        match spawned {
            Ok(child) => {
                tracing::info!(slots, "a worker runs beside this server");
                *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
            }
            Err(error) => tracing::error!(%error, "the worker could not be started"),
        }
    }

    /// Lets the worker finish what it has.
    pub(super) async fn leave(&self) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut child) = child {
            drop(child.stdin.take());
            if tokio::time::timeout(LEAVE_PATIENCE, child.wait()).await.is_err() {
                tracing::warn!("the worker did not leave in time and is killed");
            }
        }
    }
}
