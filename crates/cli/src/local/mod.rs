//! A cluster on this machine: node processes started from this very binary, in a temporary folder, on free loopback
//! ports.
//!
//! Promise: it ends only processes that it started, by handle when it goes out of scope, and by their closed standard
//! input should this process itself be killed. The folder goes with it, unless a failure makes the logs worth reading.

mod compare;
mod interrupt;
mod launch;
mod secure;
mod settle;
mod stop;

use std::path::PathBuf;
use std::process::Child;

use tempfile::TempDir;

pub(crate) use compare::compare_copies;
pub(crate) use interrupt::{NODES_STOPPED, until_interrupted};
pub(crate) use launch::free_ports;
pub(crate) use secure::Guard;
pub(crate) use settle::LedShard;

use crate::failure::Failure;

/// What the cluster looks like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Prefix of folder and node names.
    pub(crate) name: &'static str,
    /// How many nodes.
    pub(crate) nodes: u16,
    /// How many shards.
    pub(crate) shards: u16,
}

struct Node {
    id: u64,
    client: String,
    peer: String,
    folder: PathBuf,
    /// Absent while it is not running.
    child: Option<Child>,
}

/// The nodes of one cluster. Dropped, they end at once and their folder is removed.
pub(crate) struct Nodes {
    shape: Shape,
    nodes: Vec<Node>,
    /// What they turn away under load.
    shed: Vec<String>,
    /// What stands before their ports.
    guard: Guard,
    /// The Postgres that holds their logs; in their folders if there is none.
    log: Option<String>,
    folder: TempDir,
}

impl Nodes {
    /// Makes the folder and chooses the ports. Nothing runs yet.
    pub(crate) fn prepare(shape: Shape) -> Result<Nodes, Failure> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("ikada-{}-", shape.name))
            .tempdir()
            .map_err(|error| Failure::failed(format!("temporary folder: {error}")))?;
        let ports = launch::free_ports(usize::from(shape.nodes) * 2)?;
        let address = |port: &u16| format!("127.0.0.1:{port}");
        let pairs = ports.chunks_exact(2).zip(1..);
        let nodes = pairs.map(|(ports, id)| Node {
            id,
            client: address(&ports[0]),
            peer: address(&ports[1]),
            folder: folder.path().join(format!("node-{id}")),
            child: None,
        });
        // All nodes and their load share one machine; its CPU says nothing about any of them.
        let shed = vec!["off".to_owned()];
        let guard = Guard::Open;
        Ok(Nodes { shape, nodes: nodes.collect(), shed, guard, log: None, folder })
    }

    /// Lets the nodes turn calls away by these rules; by their defaults if there are none.
    pub(crate) fn shed(&mut self, rules: &[String]) {
        self.shed = rules.to_vec();
    }

    /// Lets the nodes keep their logs in a Postgres.
    pub(crate) fn log_in(&mut self, url: Option<String>) {
        self.log = url;
    }

    /// The folder of all nodes.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The nodes' data folders, in id order.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        self.nodes.iter().map(|node| node.folder.clone()).collect()
    }

    /// The nodes' URLs, in id order.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| self.url(node)).collect()
    }

    /// The URLs of those that run.
    pub(crate) fn urls_running(&self) -> Vec<String> {
        let running = self.nodes.iter().filter(|node| node.child.is_some());
        running.map(|node| self.url(node)).collect()
    }

    /// The process ids of those that run.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.nodes.iter().filter_map(|node| node.child.as_ref()).map(Child::id).collect()
    }

    /// Keeps the folder beyond the end, and says where it is.
    pub(crate) fn keep_logs(&mut self) -> String {
        self.folder.disable_cleanup(true);
        format!("the nodes' logs and data are kept in {}", self.folder.path().display())
    }
}
