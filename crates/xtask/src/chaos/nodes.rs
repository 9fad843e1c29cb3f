//! The processes: started, killed, stopped and continued, by the ids of children of our own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::network::Network;

/// Nodes must agree within this time after their start.
const PATIENCE: Duration = Duration::from_secs(60);
/// First port when all nodes share this machine's loopback.
const PORT: u16 = 27_400;

/// All nodes; ended when dropped.
pub struct Nodes {
    /// What each node runs.
    binaries: Vec<PathBuf>,
    folder: PathBuf,
    hosts: Vec<(String, u16)>,
    children: Vec<Option<Child>>,
    kept: bool,
}

impl Nodes {
    /// Starts so many nodes in a fresh folder.
    pub fn start(binary: &Path, count: u64, network: Option<&Network>) -> anyhow::Result<Nodes> {
        let folder = std::env::temp_dir().join(format!("ikada-chaos-{}", std::process::id()));
        std::fs::create_dir_all(&folder).context("a folder for the nodes")?;
        let host = |id: u64| match network {
            Some(network) => (network.address(id), 7_400),
            None => ("127.0.0.1".to_owned(), PORT + 2 * id as u16),
        };
        let hosts = (1..=count).map(host).collect();
        let children = (0..count).map(|_| None).collect();
        let binaries = (0..count).map(|_| binary.to_owned()).collect();
        let mut nodes = Nodes { binaries, folder, hosts, children, kept: false };
        for id in 1..=count {
            nodes.launch(id, network)?;
        }
        Ok(nodes)
    }

    /// Starts a node that does not run.
    pub fn launch(&mut self, id: u64, network: Option<&Network>) -> anyhow::Result<()> {
        let (host, port) = &self.hosts[id as usize - 1];
        let log = self.folder.join(format!("{id}.log"));
        let log = File::options().create(true).append(true).open(log).context("a log file")?;
        let binary = &self.binaries[id as usize - 1];
        let mut command = match network {
            Some(network) => network.command(id, binary),
            None => Command::new(binary),
        };
        command.arg("server").args(["--node-id", &id.to_string(), "--shed", "off"]);
        command.args(["--expect", &self.hosts.len().to_string(), "--shards", "2"]);
        command.args(["--listen", &format!("{host}:{port}")]);
        command.args(["--peer-listen", &format!("{host}:{}", port + 1)]);
        command.arg("--data").arg(self.folder.join(id.to_string())).arg("--until-stdin-closes");
        if network.is_some() {
            command.arg("--insecure-listen-anywhere");
        }
        for (other, (host, port)) in (1..).zip(&self.hosts) {
            if other != id {
                command.args(["--peer", &format!("{host}:{}", port + 1)]);
            }
        }
        // A node refuses settings it does not know, such as what `.ci/run` sets for tests.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("IKADA_") {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).current_dir(&self.folder);
        self.children[id as usize - 1] = Some(command.spawn().context("a node")?);
        Ok(())
    }

    /// From its next start on a node runs this.
    pub fn use_binary(&mut self, id: u64, binary: &Path) {
        self.binaries[id as usize - 1] = binary.to_owned();
    }

    /// What a node has said so far.
    pub fn log(&self, id: u64) -> anyhow::Result<String> {
        let bytes = std::fs::read(self.folder.join(format!("{id}.log"))).context("a log file")?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Asks a node to stop, and waits until it has, as it should.
    pub fn stop(&mut self, id: u64, patience: Duration) -> anyhow::Result<()> {
        self.signal(id, "TERM")?;
        let deadline = Instant::now() + patience;
        let Some(child) = &mut self.children[id as usize - 1] else { return Ok(()) };
        loop {
            match child.try_wait().context("a child")? {
                Some(status) if status.success() => break,
                Some(status) => bail!("node {id} ended with {status}"),
                None if Instant::now() > deadline => bail!("node {id} does not stop"),
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        self.children[id as usize - 1] = None;
        Ok(())
    }

    /// Ends a node without warning.
    pub fn kill(&mut self, id: u64) -> anyhow::Result<()> {
        if let Some(mut child) = self.children[id as usize - 1].take() {
            child.kill().context("kill")?;
            child.wait().context("wait")?;
        }
        Ok(())
    }

    /// Sends a signal to one node.
    pub fn signal(&self, id: u64, name: &str) -> anyhow::Result<()> {
        if let Some(child) = &self.children[id as usize - 1] {
            let order = format!("kill -{name} {}", child.id());
            Command::new("sh").args(["-c", &order]).status().context("kill")?;
        }
        Ok(())
    }

    /// Whether all processes live.
    pub fn are_running(&mut self) -> anyhow::Result<bool> {
        for child in self.children.iter_mut().flatten() {
            if child.try_wait().context("a child")?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where clients reach the nodes.
    pub fn urls(&self) -> Vec<String> {
        self.hosts.iter().map(|(host, port)| format!("http://{host}:{port}")).collect()
    }

    /// Waits until every shard has a leader.
    pub fn wait_until_well(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let url = self.urls()[0].clone();
        loop {
            let mut status = Command::new(&self.binaries[0]);
            status.args(["cluster", "status", "--output", "quiet", "--url", &url]);
            let seen = status.stderr(Stdio::null()).output().context("ikada cluster status")?;
            if seen.status.success() && seen.stdout.starts_with(b"healthy") {
                return Ok(());
            }
            if !self.are_running()? {
                bail!("a node ended by itself; see {}", self.keep().display());
            }
            if Instant::now() > deadline {
                bail!("the cluster did not come up; see {}", self.keep().display());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Keeps the folder for a look at it.
    pub fn keep(&mut self) -> PathBuf {
        self.kept = true;
        self.folder.clone()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            // One that has ended by itself is as good as killed.
            let _ = child.kill();
            let _ = child.wait();
        }
        if !self.kept {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
