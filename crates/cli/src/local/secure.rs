//! What stands before the nodes' ports: nothing, since all is loopback, or TLS and tokens as in the guide.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ikada_api::client::{AccessToken, ClientOptions, TrustedAuthority};

use super::{Node, Nodes};
use crate::failure::Failure;

/// How often a file that a node should write is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What stands before the ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Nothing.
    Open,
    /// TLS with certificates on both sides between nodes, TLS and tokens for clients.
    Secure {
        /// Whether every change leaves a line in the audit log, which is the default, or only what operators do.
        audit_all: bool,
    },
}

impl Nodes {
    /// Chooses what stands before the ports of nodes that are not started yet.
    pub(crate) fn guard(&mut self, guard: Guard) {
        self.guard = guard;
    }

    /// Starts all nodes. Behind TLS the first one is the authority, and the others join with the token that it writes.
    pub(crate) async fn start_guarded(&mut self, patience: Duration) -> Result<(), Failure> {
        if self.guard == Guard::Open {
            return self.start_missing();
        }
        let deadline = Instant::now() + patience;
        self.launch(0)?;
        self.written("join-token", deadline).await?;
        self.start_missing()?;
        self.written("admin-token", deadline).await
    }

    /// How a client reaches the nodes: behind TLS with the cluster's authority and its first token.
    pub(crate) fn options(&self) -> Result<ClientOptions, Failure> {
        if self.guard == Guard::Open {
            return Ok(ClientOptions::default());
        }
        let pem = read(&self.first("tls/ca.pem"))?;
        let authority = TrustedAuthority::from_pem(&pem);
        let authority = authority.map_err(|error| Failure::failed(error.to_string()))?;
        let token = String::from_utf8_lossy(&read(&self.first("admin-token"))?).into_owned();
        let token = AccessToken::parse(token.trim());
        let token = token.map_err(|error| Failure::failed(error.to_string()))?;
        Ok(ClientOptions {
            token: Some(token),
            authority: Some(authority),
            ..ClientOptions::default()
        })
    }

    /// The authority's certificate and the first token; none where nothing stands before the ports.
    pub(crate) fn papers(&self) -> Result<Option<(Vec<u8>, String)>, Failure> {
        if self.guard == Guard::Open {
            return Ok(None);
        }
        let token = String::from_utf8_lossy(&read(&self.first("admin-token"))?).trim().to_owned();
        Ok(Some((read(&self.first("tls/ca.pem"))?, token)))
    }

    pub(super) fn url(&self, node: &Node) -> String {
        let scheme = if self.guard == Guard::Open { "http" } else { "https" };
        format!("{scheme}://{}", node.client)
    }

    /// What every node is told about it.
    pub(super) fn guard_args(&self) -> Vec<OsString> {
        let Guard::Secure { audit_all } = self.guard else {
            return Vec::new();
        };
        let mut args = vec!["--tls".into(), "--audit".into()];
        args.push(if audit_all { "all" } else { "operations" }.into());
        let token = self.first("join-token");
        if token.exists() {
            args.extend(["--join-token-file".into(), token.into_os_string()]);
        }
        args
    }

    /// A file of the node that founds the cluster.
    fn first(&self, file: &str) -> PathBuf {
        self.nodes[0].folder.join(file)
    }

    async fn written(&mut self, file: &str, deadline: Instant) -> Result<(), Failure> {
        let path = self.first(file);
        while !path.metadata().is_ok_and(|found| found.len() > 0) {
            self.check_alive()?;
            if Instant::now() > deadline {
                let detail = format!("the first node did not write {file} in time");
                return Err(Failure::failed_next(detail, self.keep_logs()));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}
