//! Three servers of a peer in a folder of their own; ended and removed when dropped.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{NODES, PeerKind};
use crate::failure::Failure;
use crate::local::free_ports;

/// The servers.
pub(in crate::bench) struct Servers {
    kind: PeerKind,
    version: String,
    clients: Vec<String>,
    peers: Vec<String>,
    children: Vec<Option<Child>>,
    folder: TempDir,
}

impl Servers {
    /// Starts all, from nothing.
    pub(in crate::bench) fn start(kind: PeerKind) -> Result<Servers, Failure> {
        let version = version(kind)?;
        let folder = tempfile::tempdir().map_err(|error| Failure::failed(error.to_string()))?;
        let ports = free_ports(NODES * 2)?;
        let mut addresses = ports.iter().map(|port| format!("127.0.0.1:{port}"));
        let clients = addresses.by_ref().take(NODES).collect();
        let peers = addresses.collect();
        let children = (0..NODES).map(|_| None).collect();
        let mut servers = Servers { kind, version, clients, peers, children, folder };
        for server in 0..NODES {
            servers.launch(server)?;
        }
        Ok(servers)
    }

    /// Where clients reach them.
    pub(in crate::bench) fn addresses(&self) -> &[String] {
        &self.clients
    }

    /// The processes that run.
    pub(in crate::bench) fn pids(&self) -> Vec<u32> {
        self.children.iter().flatten().map(Child::id).collect()
    }

    /// What the program calls itself.
    pub(in crate::bench) fn version(&self) -> &str {
        &self.version
    }

    /// Ends one without warning.
    pub(super) fn kill(&mut self, server: usize) -> Result<(), Failure> {
        let Some(mut child) = self.children[server].take() else { return Ok(()) };
        let ended = child.kill().and_then(|()| child.wait());
        ended.map(drop).map_err(|error| Failure::failed(format!("kill: {error}")))
    }

    /// Starts one on its own data.
    pub(super) fn launch(&mut self, server: usize) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::failed(format!("server {server}: {error}"));
        let mut command = Command::new(self.kind.program());
        match self.kind {
            PeerKind::Etcd => self.tell_etcd(server, &mut command),
            PeerKind::Nats => self.tell_nats(server, &mut command).map_err(failed)?,
        }
        let log = self.folder.path().join(format!("{server}.log"));
        let log = File::options().create(true).append(true).open(log).map_err(failed)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.children[server] = Some(command.spawn().map_err(failed)?);
        Ok(())
    }

    fn tell_etcd(&self, server: usize, command: &mut Command) {
        let (client, peer) = (&self.clients[server], &self.peers[server]);
        let all = self.peers.iter().enumerate();
        let all: Vec<String> =
            all.map(|(at, peer)| format!("{}=http://{peer}", name(at))).collect();
        command.args(["--name", &name(server), "--log-level", "error", "--logger", "zap"]);
        command.arg("--data-dir").arg(self.folder.path().join(name(server)));
        for flag in ["--listen-client-urls", "--advertise-client-urls"] {
            command.args([flag, &format!("http://{client}")]);
        }
        for flag in ["--listen-peer-urls", "--initial-advertise-peer-urls"] {
            command.args([flag, &format!("http://{peer}")]);
        }
        command.args(["--initial-cluster", &all.join(","), "--initial-cluster-state", "new"]);
    }

    fn tell_nats(&self, server: usize, command: &mut Command) -> std::io::Result<()> {
        let routes: Vec<String> = self.peers.iter().map(|peer| format!("nats://{peer}")).collect();
        let data = self.folder.path().join(name(server));
        let settings = format!(
            "server_name: {}\nlisten: {}\njetstream {{ store_dir: {:?} }}\ncluster {{ name: bench, listen: {}, routes: [{}] }}\n",
            name(server),
            self.clients[server],
            data.display().to_string(),
            self.peers[server],
            routes.join(", "),
        );
        let file = data.with_extension("conf");
        std::fs::write(&file, settings)?;
        command.arg("-c").arg(file);
        Ok(())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The name of a server among the others.
pub(in crate::bench) fn name(server: usize) -> String {
    format!("s{server}")
}

/// What the program says about itself; refused with advice if it is not installed.
fn version(kind: PeerKind) -> Result<String, Failure> {
    let (program, package) = (kind.program(), kind.package());
    let asked = Command::new(program).arg("--version").output().map_err(|error| {
        Failure::usage(format!(
            "{program} cannot be started ({error}); install it, on Debian with: apt-get install {package}"
        ))
    })?;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    let first = said.lines().next().unwrap_or_default();
    let number = first.rsplit([' ', ':']).next().unwrap_or_default();
    Ok(format!("{program} {}", number.trim_start_matches('v')))
}
