//! Starting nodes, for the first time and again.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Nodes;
use crate::failure::Failure;

impl Nodes {
    /// Starts every node that does not run, each on its own disk.
    pub(crate) fn start_missing(&mut self) -> Result<(), Failure> {
        for position in 0..self.nodes.len() {
            if self.nodes[position].child.is_none() {
                self.launch(position)?;
            }
        }
        Ok(())
    }

    pub(super) fn launch(&mut self, position: usize) -> Result<(), Failure> {
        let binary = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("own program file: {error}")))?;
        let peers: Vec<String> = self.nodes.iter().map(|node| node.peer.clone()).collect();
        let (shape, guarded) = (self.shape, self.guard_args());
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
            .args(["--name", &format!("{}-{}", shape.name, node.id)])
            .args(["--expect", &shape.nodes.to_string(), "--shards", &shape.shards.to_string()])
            .args(["--listen", &node.client, "--peer-listen", &node.peer])
            .args(guarded)
            .args(self.shed.iter().flat_map(|rule| ["--shed", rule]))
            .arg("--data")
            .arg(&node.folder)
            .arg("--until-stdin-closes");
        // Where logs live in a database the nodes find each other there.
        for peer in peers.iter().filter(|peer| **peer != node.peer && self.log.is_none()) {
            command.args(["--peer", peer]);
        }
        // Settings meant for the caller's own servers must not reach these.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("IKADA_") && name != "IKADA_LOG" {
                command.env_remove(name);
            }
        }
        if let Some(url) = &self.log {
            command.env("IKADA_LOG_URL", url);
        }
        let folder = node.folder.parent().unwrap_or(Path::new("."));
        command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn();
        node.child = Some(child.map_err(|error| Failure::failed(format!("node: {error}")))?);
        Ok(())
    }
}

/// Below the ports that the system hands out for outgoing connections: a killed node must find its own free again.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// So many are tried before giving up.
const PORT_TRIES: usize = 1_000;

/// Ports that are free now. All are held until all are found, so that they differ.
pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>, Failure> {
    let span = u64::from(PORTS.end - PORTS.start);
    let mut held: Vec<(u16, TcpListener)> = Vec::new();
    for _ in 0..PORT_TRIES {
        if held.len() == count {
            break;
        }
        let port = PORTS.start + (RandomState::new().hash_one(held.len()) % span) as u16;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            held.push((port, listener));
        }
    }
    if held.len() < count {
        return Err(Failure::failed(format!(
            "no free ports on 127.0.0.1 between {} and {}",
            PORTS.start, PORTS.end
        )));
    }
    Ok(held.into_iter().map(|(port, _)| port).collect())
}
