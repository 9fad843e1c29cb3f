//! The demo's node processes: started from this very binary, ended by handle.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ikada_api::Client;

use crate::failure::Failure;

/// How many nodes the demo has.
const NODES: u64 = 3;
/// A node that was asked to stop may take this long.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

struct Node {
    id: u64,
    client: String,
    peer: String,
    folder: PathBuf,
    /// Absent while it is killed.
    child: Option<Child>,
}

/// Three nodes.
pub(super) struct Nodes {
    nodes: Vec<Node>,
}

impl Nodes {
    /// Starts them in a folder, on free ports of this machine.
    pub(super) fn start(folder: &Path) -> Result<Nodes, Failure> {
        let ports = free_ports(NODES as usize * 2)?;
        let address = |port: &u16| format!("127.0.0.1:{port}");
        let pairs = ports.chunks_exact(2).zip(1..=NODES);
        let nodes = pairs.map(|(ports, id)| Node {
            id,
            client: address(&ports[0]),
            peer: address(&ports[1]),
            folder: folder.join(format!("node-{id}")),
            child: None,
        });
        let mut nodes = Nodes {
            nodes: nodes.collect(),
        };
        for position in 0..nodes.nodes.len() {
            nodes.launch(position)?;
        }
        Ok(nodes)
    }

    fn launch(&mut self, position: usize) -> Result<(), Failure> {
        let binary = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("own program file: {error}")))?;
        let peers: Vec<String> = self.nodes.iter().map(|node| node.peer.clone()).collect();
        let node = &mut self.nodes[position];
        let log = File::options()
            .create(true)
            .append(true)
            .open(node.folder.with_extension("log"))
            .map_err(|error| Failure::failed(format!("log file: {error}")))?;
        let mut command = Command::new(binary);
        command
            .arg("server")
            .args(["--node-id", &node.id.to_string()])
            .args(["--name", &format!("demo-{}", node.id)])
            .args(["--expect", &NODES.to_string()])
            .args(["--listen", &node.client, "--peer-listen", &node.peer])
            .arg("--data")
            .arg(&node.folder)
            .arg("--until-stdin-closes");
        for peer in peers.iter().filter(|peer| **peer != node.peer) {
            command.args(["--peer", peer]);
        }
        // Settings meant for the caller's own servers must not reach the demo's.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("IKADA_") && name != "IKADA_LOG" {
                command.env_remove(name);
            }
        }
        let folder = node.folder.parent().unwrap_or(Path::new("."));
        command
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn();
        node.child = Some(child.map_err(|error| Failure::failed(format!("node: {error}")))?);
        Ok(())
    }

    /// The nodes' URLs, in id order.
    pub(super) fn urls(&self) -> Vec<String> {
        self.nodes
            .iter()
            .map(|node| format!("http://{}", node.client))
            .collect()
    }

    /// The URLs of all but one.
    pub(super) fn survivors(&self, id: u64) -> Vec<String> {
        let others = self.nodes.iter().filter(|node| node.id != id);
        others
            .map(|node| format!("http://{}", node.client))
            .collect()
    }

    /// Waits until every node knows a leader of every shard.
    pub(super) async fn wait_for_leaders(&mut self, patience: Duration) -> Result<(), Failure> {
        let deadline = Instant::now() + patience;
        for url in self.urls() {
            let client = Client::new([&url])?.with_timeout(Duration::from_millis(500));
            loop {
                self.check_alive()?;
                match client.cluster().await {
                    Ok(seen) if seen.status == "healthy" => break,
                    _ if Instant::now() > deadline => {
                        let detail = format!("the node at {url} saw no healthy cluster in time");
                        return Err(Failure::failed_next(detail, self.where_logs_are()));
                    }
                    _ => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        }
        Ok(())
    }

    /// Fails if a node has ended by itself, with the end of its log.
    pub(super) fn check_alive(&mut self) -> Result<(), Failure> {
        for node in &mut self.nodes {
            let Some(child) = &mut node.child else {
                continue;
            };
            if let Ok(Some(status)) = child.try_wait() {
                let log = std::fs::read_to_string(node.folder.with_extension("log"));
                let log = log.unwrap_or_default();
                let lines: Vec<&str> = log.lines().rev().take(5).collect();
                let tail: Vec<&str> = lines.into_iter().rev().collect();
                let detail = format!(
                    "node {} ended by itself ({status}):\n{}",
                    node.id,
                    tail.join("\n")
                );
                return Err(Failure::failed(detail));
            }
        }
        Ok(())
    }

    /// Where to read more.
    pub(super) fn where_logs_are(&self) -> String {
        let log = self.nodes[0].folder.with_extension("log");
        format!(
            "run again with --keep and read the logs beside {}",
            log.display()
        )
    }

    /// Kills a node: no warning, no clean-up (SIGKILL).
    pub(super) fn kill(&mut self, id: u64) -> Result<(), Failure> {
        let node = self.nodes.iter_mut().find(|node| node.id == id);
        let Some(mut child) = node.and_then(|node| node.child.take()) else {
            return Err(Failure::failed(format!("node {id} is not running")));
        };
        let killed = child.kill().and_then(|()| child.wait());
        killed
            .map(drop)
            .map_err(|error| Failure::failed(format!("kill of node {id}: {error}")))
    }

    /// Starts every killed node again, on its old disk.
    pub(super) fn restart_dead(&mut self) -> Result<(), Failure> {
        for position in 0..self.nodes.len() {
            if self.nodes[position].child.is_none() {
                self.launch(position)?;
            }
        }
        Ok(())
    }

    /// Asks all to stop, and waits; what does not stop is killed.
    pub(super) async fn stop(&mut self) {
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

/// Ports that are free now. All are held until all are found, so that they differ.
fn free_ports(count: usize) -> Result<Vec<u16>, Failure> {
    let no_port = |error| Failure::failed(format!("no free port: {error}"));
    let mut listeners = Vec::new();
    for _ in 0..count {
        listeners.push(TcpListener::bind("127.0.0.1:0").map_err(no_port)?);
    }
    listeners
        .iter()
        .map(|held| Ok(held.local_addr().map_err(no_port)?.port()))
        .collect()
}
