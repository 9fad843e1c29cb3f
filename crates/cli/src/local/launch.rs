//! Starting nodes, for the first time and again.

use std::fs::File;
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

    fn launch(&mut self, position: usize) -> Result<(), Failure> {
        let binary = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("own program file: {error}")))?;
        let peers: Vec<String> = self.nodes.iter().map(|node| node.peer.clone()).collect();
        let shape = self.shape;
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
            .arg("--data")
            .arg(&node.folder)
            .arg("--until-stdin-closes");
        for peer in peers.iter().filter(|peer| **peer != node.peer) {
            command.args(["--peer", peer]);
        }
        // Settings meant for the caller's own servers must not reach these.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("IKADA_") && name != "IKADA_LOG" {
                command.env_remove(name);
            }
        }
        let folder = node.folder.parent().unwrap_or(Path::new("."));
        command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn();
        node.child = Some(child.map_err(|error| Failure::failed(format!("node: {error}")))?);
        Ok(())
    }
}

/// Ports that are free now. All are held until all are found, so that they differ.
pub(super) fn free_ports(count: usize) -> Result<Vec<u16>, Failure> {
    let no_port = |error| Failure::failed(format!("no free port: {error}"));
    let mut listeners = Vec::new();
    for _ in 0..count {
        listeners.push(TcpListener::bind("127.0.0.1:0").map_err(no_port)?);
    }
    listeners.iter().map(|held| Ok(held.local_addr().map_err(no_port)?.port())).collect()
}
