//! Ending nodes: killed like a power cut, or asked to stop; and noticing one that ended by itself.

use std::process::Child;
use std::time::{Duration, Instant};

use super::Nodes;
use crate::failure::Failure;

/// A node that was asked to stop may take this long.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// How much of a log is shown.
const LOG_LINES: usize = 5;

impl Nodes {
    /// Kills a node: no warning, no clean-up (SIGKILL).
    pub(crate) fn kill(&mut self, id: u64) -> Result<(), Failure> {
        let node = self.nodes.iter_mut().find(|node| node.id == id);
        let Some(mut child) = node.and_then(|node| node.child.take()) else {
            return Err(Failure::failed(format!("node {id} is not running")));
        };
        let killed = child.kill().and_then(|()| child.wait());
        killed.map(drop).map_err(|error| Failure::failed(format!("kill of node {id}: {error}")))
    }

    /// Asks a node to stop, and counts it as gone from now on.
    pub(crate) fn dismiss(&mut self, id: u64) -> Result<Leaving, Failure> {
        let node = self.nodes.iter_mut().find(|node| node.id == id);
        let Some(mut child) = node.and_then(|node| node.child.take()) else {
            return Err(Failure::failed(format!("node {id} is not running")));
        };
        drop(child.stdin.take());
        Ok(Leaving { id, child })
    }

    /// Fails if a node has ended by itself, with the end of its log.
    pub(crate) fn check_alive(&mut self) -> Result<(), Failure> {
        for node in &mut self.nodes {
            let Some(child) = &mut node.child else {
                continue;
            };
            if let Ok(Some(status)) = child.try_wait() {
                let log = std::fs::read_to_string(node.folder.with_extension("log"));
                let log = log.unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
                let detail = format!("node {} ended by itself ({status}):\n{tail}", node.id);
                let next = self.keep_logs();
                return Err(Failure::failed_next(detail, next));
            }
        }
        Ok(())
    }

    /// Asks all to stop, and waits; what does not stop in time is killed when this is dropped.
    pub(crate) async fn stop(&mut self) {
        for node in &mut self.nodes {
            if let Some(child) = &mut node.child {
                drop(child.stdin.take());
            }
        }
        let deadline = Instant::now() + STOP_PATIENCE;
        for node in &mut self.nodes {
            let Some(child) = &mut node.child else {
                continue;
            };
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// A node that was asked to stop. Dropped before it has ended, it is killed.
pub(crate) struct Leaving {
    id: u64,
    child: Child,
}

impl Leaving {
    /// Waits until it has ended, as it should.
    pub(crate) async fn ended(mut self, patience: Duration) -> Result<(), Failure> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => tokio::time::sleep(Duration::from_millis(20)).await,
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    return Err(Failure::failed(format!("node {} ended with {status}", self.id)));
                }
                Err(error) => return Err(Failure::failed(format!("node {}: {error}", self.id))),
            }
        }
        Err(Failure::failed(format!("node {} did not stop in {patience:?}", self.id)))
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        // Already ended is as good as killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(mut child) = node.child.take() {
                // Already ended is as good as killed.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
