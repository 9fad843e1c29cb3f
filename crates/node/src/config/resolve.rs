//! From raw settings to a checked configuration, all problems at once.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use super::limits::{SHARDS_MAX, VOTERS_MAX};
use super::raw::RawConfig;

/// A server's settings, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// Data folder.
    pub data: PathBuf,
    /// Where clients are served.
    pub listen: SocketAddr,
    /// Where peers are served.
    pub peer_listen: SocketAddr,
    /// What clients are told; `None`: the address actually bound.
    pub advertise: Option<String>,
    /// What peers are told; `None`: the address actually bound.
    pub peer_advertise: Option<String>,
    /// Whom to ask when founding.
    pub peers: Vec<String>,
    /// Nodes of a cluster to join instead of founding one.
    pub join: Vec<String>,
    /// How many nodes found the cluster.
    pub expect: u16,
    /// How many shards it is founded with.
    pub shards: u16,
    /// This node's id, if given.
    pub node_id: Option<u64>,
    /// A name for people.
    pub name: String,
    /// Whether an open address was asked for without TLS.
    pub insecure: bool,
    /// Whether clients must show tokens.
    pub auth: bool,
    /// Election priority.
    pub priority: i64,
    /// Things worth saying that do not keep the server from starting.
    pub warnings: Vec<String>,
}

/// Everything wrong with the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblems(pub Vec<String>);

impl fmt::Display for ConfigProblems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the settings have {} problem(s):", self.0.len())?;
        for problem in &self.0 {
            write!(out, "\n  - {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigProblems {}

/// Checks the settings; sources come highest rank first.
pub fn resolve(sources: Vec<RawConfig>) -> Result<Config, ConfigProblems> {
    let raw = sources.into_iter().reduce(RawConfig::or).unwrap_or_default();
    let mut problems = Vec::new();
    let insecure = raw.insecure_listen_anywhere.unwrap_or(false);
    let listen =
        address("listen", raw.listen.as_deref().unwrap_or("127.0.0.1:7400"), &mut problems);
    let peer_listen = address(
        "peer-listen",
        raw.peer_listen.as_deref().unwrap_or("127.0.0.1:7401"),
        &mut problems,
    );
    for (what, addr) in [("listen", listen), ("peer-listen", peer_listen)] {
        if !insecure && !addr.ip().is_loopback() {
            problems.push(format!(
                "{what} {addr} is not a loopback address, and this version has no TLS: anyone who reaches it could run \
                 jobs here; bind to 127.0.0.1, or accept that with --insecure-listen-anywhere"
            ));
        }
    }
    if listen == peer_listen && listen.port() != 0 {
        problems
            .push(format!("listen and peer-listen are both {listen}; give them different ports"));
    }
    let peers = raw.peer.unwrap_or_default();
    for peer in &peers {
        if !peer.contains(':') {
            problems.push(format!("peer {peer} has no port; write host:port of its --peer-listen"));
        }
    }
    let join = raw.join.unwrap_or_default();
    check_join(&join, raw.expect, raw.shards, &peers, &mut problems);
    let expect = raw.expect.unwrap_or(1);
    let shards = raw.shards.unwrap_or(4);
    check_counts(expect, shards, &peers, &mut problems);
    if raw.node_id == Some(0) {
        problems.push("node-id 0 is reserved; use 1 or more".to_owned());
    }
    if !problems.is_empty() {
        return Err(ConfigProblems(problems));
    }
    Ok(Config {
        data: raw.data.unwrap_or_else(|| PathBuf::from("ikada-data")),
        listen,
        peer_listen,
        advertise: raw.advertise,
        peer_advertise: raw.peer_advertise,
        peers,
        join,
        expect,
        shards,
        node_id: raw.node_id,
        name: raw.name.unwrap_or_default(),
        insecure,
        auth: raw.auth.unwrap_or(false),
        priority: raw.priority.unwrap_or(0),
        warnings: warnings(expect, insecure),
    })
}

fn check_join(
    join: &[String],
    expect: Option<u16>,
    shards: Option<u16>,
    peers: &[String],
    problems: &mut Vec<String>,
) {
    for addr in join.iter().filter(|addr| !addr.contains(':')) {
        problems
            .push(format!("join {addr} has no port; write host:port of a member's --peer-listen"));
    }
    if !join.is_empty() && (expect.is_some() || shards.is_some() || !peers.is_empty()) {
        problems.push(
            "join does not go together with expect, shards or peer: those found a new cluster"
                .to_owned(),
        );
    }
}

fn check_counts(expect: u16, shards: u16, peers: &[String], problems: &mut Vec<String>) {
    if expect == 0 || expect > VOTERS_MAX {
        problems.push(format!("expect {expect} is not between 1 and {VOTERS_MAX}"));
    }
    if shards == 0 || shards > SHARDS_MAX {
        problems.push(format!("shards {shards} is not between 1 and {SHARDS_MAX}"));
    }
    if expect > 1 && peers.is_empty() {
        problems.push(format!(
            "expect {expect} needs at least one --peer host:port to find the other nodes"
        ));
    }
}

fn warnings(expect: u16, insecure: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if expect > 1 && expect.is_multiple_of(2) {
        // B4-43
        warnings.push(format!(
            "{expect} voters tolerate no more failures than {}: an odd number is better",
            expect - 1
        ));
    }
    if insecure {
        warnings.push(
            "INSECURE: listening beyond loopback without TLS; anyone who reaches this port can run jobs".to_owned(),
        );
    }
    warnings
}

fn address(what: &str, text: &str, problems: &mut Vec<String>) -> SocketAddr {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.unwrap_or_else(|| {
        problems.push(format!("{what} {text:?} is not an address like 127.0.0.1:7400"));
        SocketAddr::from(([127, 0, 0, 1], 0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(toml: &str) -> RawConfig {
        RawConfig::from_toml(toml).expect("valid")
    }

    #[test]
    fn flags_win_over_environment_over_file() {
        let env = RawConfig::from_env([
            ("IKADA_SHARDS".to_owned(), "2".to_owned()),
            ("IKADA_URL".to_owned(), "http://x".to_owned()),
            ("HOME".to_owned(), "/".to_owned()),
        ]);
        let file = raw("shards = 8\nname = \"north\"\nlisten = \"127.0.0.1:1\"");
        let flags = RawConfig { listen: Some("127.0.0.1:9".into()), ..RawConfig::default() };
        let config = resolve(vec![flags, env.expect("valid"), file]).expect("valid");
        assert_eq!((config.shards, config.name.as_str()), (2, "north"));
        assert_eq!(config.listen.port(), 9);
    }

    #[test]
    fn unknown_keys_are_named() {
        let error = RawConfig::from_toml("shard = 4").unwrap_err();
        assert!(error.contains("unknown field `shard`"), "{error}");
        let problems =
            RawConfig::from_env([("IKADA_SHRADS".to_owned(), "4".to_owned())]).unwrap_err();
        assert!(problems[0].contains("IKADA_SHRADS"), "{problems:?}");
    }

    #[test]
    fn all_problems_are_reported_together() {
        // X1: another address than loopback is refused unless asked for loudly.
        let bad = raw(
            "listen = \"0.0.0.0:7400\"\nexpect = 3\nshards = 0\nnode-id = 0\npeer-listen = \"nonsense\"",
        );
        let ConfigProblems(problems) = resolve(vec![bad]).unwrap_err();
        for part in ["0.0.0.0", "--peer", "shards 0", "node-id 0", "nonsense"] {
            assert!(problems.iter().any(|problem| problem.contains(part)), "{part}: {problems:?}");
        }
        let open = raw("listen = \"0.0.0.0:7400\"\ninsecure-listen-anywhere = true");
        let config = resolve(vec![open]).expect("asked for");
        assert!(config.warnings.iter().any(|warning| warning.contains("INSECURE")));
    }

    #[test]
    fn an_even_number_of_voters_is_warned_about() {
        let config = resolve(vec![raw("expect = 4\npeer = [\"127.0.0.1:1\"]")]).expect("valid");
        assert!(config.warnings[0].contains("odd number"), "{:?}", config.warnings);
    }
}
