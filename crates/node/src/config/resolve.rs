//! From raw settings to a checked configuration, all problems at once.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use ikada_store::postgres::Target;

use super::autoscale::{ScaleConfig, read_autoscale};
use super::limits::{HOSTS_MAX, SHARDS_MAX, VOTERS_MAX};
use super::raw::RawConfig;
use crate::admission::Rules;
use crate::traces;

/// A server's settings, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// Data folder.
    pub data: PathBuf,
    /// Where clients are served.
    pub listen: SocketAddr,
    /// Where programs that speak S3 are served, if they are.
    pub s3_listen: Option<SocketAddr>,
    /// Where peers are served.
    pub peer_listen: SocketAddr,
    /// What clients are told; `None`: the address actually bound.
    pub advertise: Option<String>,
    /// What peers are told; `None`: the address actually bound.
    pub peer_advertise: Option<String>,
    /// Names under which clients reach this node, beside those that are advertised: as given, and those of the listeners.
    pub hosts: Vec<String>,
    /// Whom to ask when founding.
    pub peers: Vec<String>,
    /// Nodes of a cluster to join instead of founding one.
    pub join: Vec<String>,
    /// The database that holds the logs, if one does.
    pub log: Option<Target>,
    /// Whether this node takes the place of its own lost data folder.
    pub new_folder: bool,
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
    /// Whether the audit log holds every change, and not only what operators do.
    pub audit_all: bool,
    /// How many workers there should be, and how they come and go; none if nobody asked for that.
    pub autoscale: Option<ScaleConfig>,
    /// Whether both ports speak TLS.
    pub tls: bool,
    /// File with the join token by which this node gets its certificate.
    pub join_token_file: Option<PathBuf>,
    /// Whether clients must show tokens.
    pub auth: bool,
    /// What is turned away under load.
    pub shedding: Rules,
    /// Collector of traces, if any.
    pub otlp: Option<String>,
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
    let listen =
        address("listen", raw.listen.as_deref().unwrap_or("127.0.0.1:7400"), &mut problems);
    let peer_listen = address(
        "peer-listen",
        raw.peer_listen.as_deref().unwrap_or("127.0.0.1:7401"),
        &mut problems,
    );
    let s3_listen = raw.s3_listen.as_deref().map(|text| address("s3-listen", text, &mut problems));
    let Guard { tls, auth, audit_all, insecure } =
        guard(&raw, listen, s3_listen, peer_listen, &mut problems);
    if listen == peer_listen && listen.port() != 0 {
        problems
            .push(format!("listen and peer-listen are both {listen}; give them different ports"));
    }
    let autoscale = read_autoscale(&raw, &mut problems);
    let hosts = read_hosts(&raw, &mut problems);
    let peers = raw.peer.unwrap_or_default();
    check_peers(&peers, &mut problems);
    let join = raw.join.unwrap_or_default();
    check_join(&join, raw.expect, raw.shards, &peers, &mut problems);
    let expect = raw.expect.unwrap_or(1);
    let shards = raw.shards.unwrap_or(4);
    let new_folder = raw.new_folder.unwrap_or(false);
    let log = read_log(raw.log.as_deref(), &join, &mut problems);
    check_new_folder(new_folder, log.is_some(), raw.node_id, &mut problems);
    check_counts(expect, shards, raw.log.is_some() || !peers.is_empty(), &mut problems);
    if let Some(url) = &raw.otlp
        && let Err(why) = traces::collector(url, "")
    {
        problems.push(format!("otlp {why}"));
    }
    if raw.node_id == Some(0) {
        problems.push("node-id 0 is reserved; use 1 or more".to_owned());
    }
    let shedding = Rules::parse(raw.shed.as_deref().unwrap_or_default());
    let shedding = shedding.map_err(|bad| problems.push(bad.to_string())).unwrap_or_default();
    if !problems.is_empty() {
        return Err(ConfigProblems(problems));
    }
    Ok(Config {
        data: raw.data.unwrap_or_else(|| PathBuf::from("ikada-data")),
        listen,
        s3_listen,
        peer_listen,
        advertise: raw.advertise,
        peer_advertise: raw.peer_advertise,
        hosts,
        peers,
        join,
        // Where logs live in a database there is no quorum.
        warnings: warnings(expect, log.is_none(), insecure),
        log,
        new_folder,
        expect,
        shards,
        node_id: raw.node_id,
        name: raw.name.unwrap_or_default(),
        insecure,
        audit_all,
        tls,
        join_token_file: raw.join_token_file,
        auth,
        shedding,
        otlp: raw.otlp,
        priority: raw.priority.unwrap_or(0),
        autoscale,
    })
}

/// What stands before the ports.
struct Guard {
    tls: bool,
    auth: bool,
    audit_all: bool,
    /// Nothing does, and it was asked for.
    insecure: bool,
}

/// Checks that whatever is reached from beyond this machine is guarded, or that the risk was asked for (X1).
fn guard(
    raw: &RawConfig,
    listen: SocketAddr,
    s3_listen: Option<SocketAddr>,
    peer_listen: SocketAddr,
    problems: &mut Vec<String>,
) -> Guard {
    let insecure = raw.insecure_listen_anywhere.unwrap_or(false);
    let tls = raw.tls.unwrap_or(false);
    let auth = raw.auth.unwrap_or(tls);
    let s3 = s3_listen.map(|addr| ("s3-listen", addr, tls && auth));
    let both = [("listen", listen, tls && auth), ("peer-listen", peer_listen, tls)];
    for (what, addr, safe) in both.into_iter().chain(s3) {
        if !insecure && !safe && !addr.ip().is_loopback() {
            problems.push(format!(
                "{what} {addr} is not a loopback address, and without TLS and tokens anyone who reaches it could run \
                 jobs here; add --tls, bind to 127.0.0.1, or accept that with --insecure-listen-anywhere"
            ));
        }
    }
    let audit_all = match raw.audit.as_deref() {
        None | Some("all") => true,
        Some("operations") => false,
        Some(other) => {
            problems.push(format!("audit {other:?} is neither all nor operations"));
            true
        }
    };
    if raw.join_token_file.is_some() && !tls {
        problems.push("join-token-file is of use only with tls; add --tls".to_owned());
    }
    let clients_here =
        listen.ip().is_loopback() && s3_listen.is_none_or(|addr| addr.ip().is_loopback());
    let insecure =
        insecure && !((clients_here || (tls && auth)) && (peer_listen.ip().is_loopback() || tls));
    Guard { tls, auth, audit_all, insecure }
}

/// The database that holds the logs. Its URL may hold a password and is never repeated.
fn read_log(url: Option<&str>, join: &[String], problems: &mut Vec<String>) -> Option<Target> {
    let url = url?;
    if !join.is_empty() {
        problems.push("join does not go together with log: nodes meet in the database".to_owned());
    }
    Target::parse(url).map_err(|error| problems.push(error.to_string())).ok()
}

/// Only where nothing that counts was in the folder can another take its place.
fn check_new_folder(
    asked: bool,
    in_database: bool,
    node_id: Option<u64>,
    problems: &mut Vec<String>,
) {
    if asked && (!in_database || node_id.is_none()) {
        problems.push(
            "new-folder needs log and node-id: it is for a member whose logs are in a database; elsewhere a node that lost its folder joins under a new id".to_owned(),
        );
    }
}

/// Names of this node. Where a listener was given by name, that name is one.
fn read_hosts(raw: &RawConfig, problems: &mut Vec<String>) -> Vec<String> {
    let given = raw.host.clone().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_name = |name: &&String| !name.is_empty() && name.bytes().all(plain);
    if given.len() > HOSTS_MAX {
        problems.push(format!("host is given {} times, at most {HOSTS_MAX} are", given.len()));
    }
    for name in given.iter().filter(|name| !is_name(name)) {
        problems.push(format!("host {name:?} is not a name like jobs.example; leave out the port"));
    }
    let listeners = [&raw.listen, &raw.s3_listen, &raw.peer_listen].into_iter().flatten();
    let named = listeners.filter_map(|address| address.rsplit_once(':')).map(|(host, _)| host);
    let named = named.map(str::to_owned).filter(|host| is_name(&host));
    let named = named.filter(|host| host.parse::<IpAddr>().is_err());
    named.chain(given).collect()
}

fn check_peers(peers: &[String], problems: &mut Vec<String>) {
    for peer in peers.iter().filter(|peer| !peer.contains(':')) {
        problems.push(format!("peer {peer} has no port; write host:port of its --peer-listen"));
    }
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

fn check_counts(expect: u16, shards: u16, finds_others: bool, problems: &mut Vec<String>) {
    if expect == 0 || expect > VOTERS_MAX {
        problems.push(format!("expect {expect} is not between 1 and {VOTERS_MAX}"));
    }
    if shards == 0 || shards > SHARDS_MAX {
        problems.push(format!("shards {shards} is not between 1 and {SHARDS_MAX}"));
    }
    if expect > 1 && !finds_others {
        problems.push(format!(
            "expect {expect} needs at least one --peer host:port to find the other nodes"
        ));
    }
}

fn warnings(expect: u16, has_quorum: bool, insecure: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if has_quorum && expect > 1 && expect.is_multiple_of(2) {
        // B4-43; where logs live in a database, one node of any number is enough.
        warnings.push(format!(
            "{expect} voters tolerate no more failures than {}: an odd number is better",
            expect - 1
        ));
    }
    if insecure {
        warnings.push(
            "INSECURE: listening beyond loopback without TLS and tokens; anyone who reaches this port can run jobs".to_owned(),
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
        // X6: the line may hold a password.
        let error =
            RawConfig::from_toml("shards = 4\nlog = \"postgres://a:word@b\" c").unwrap_err();
        assert!(error.starts_with("line 2, log: ") && !error.contains("word"), "{error}");
        let good = RawConfig::from_toml("log = \"postgres://a:word@b\"").unwrap();
        assert!(!format!("{good:?}").contains("word"), "{good:?}");
        let problems =
            RawConfig::from_env([("IKADA_SHRADS".to_owned(), "4".to_owned())]).unwrap_err();
        assert!(problems[0].contains("IKADA_SHRADS"), "{problems:?}");
    }

    #[test]
    fn what_kubernetes_tells_of_a_service_is_no_setting() {
        let told = [
            ("IKADA_SERVICE_HOST", "10.96.0.7"),
            ("IKADA_SERVICE_PORT", "7400"),
            ("IKADA_SERVICE_PORT_CLIENT", "7400"),
            ("IKADA_PORT", "tcp://10.96.0.7:7400"),
            ("IKADA_PORT_7400_TCP", "tcp://10.96.0.7:7400"),
            ("IKADA_PORT_7400_TCP_PROTO", "tcp"),
            ("IKADA_PORT_7400_TCP_PORT", "7400"),
            ("IKADA_PORT_7400_TCP_ADDR", "10.96.0.7"),
        ];
        let read =
            |name: &str, value: &str| RawConfig::from_env([(name.to_owned(), value.to_owned())]);
        for (name, value) in told {
            assert_eq!(read(name, value), Ok(RawConfig::default()), "{name}");
        }
        let strange = [
            ("IKADA_PORT", "7400"),
            ("IKADA_PORTS", "tcp://10.96.0.7:7400"),
            ("IKADA_PORT_CLIENT", "tcp://10.96.0.7:7400"),
            ("IKADA_SERVICE", "10.96.0.7"),
            ("IKADA_SERVICE_PORTS", "7400"),
            ("IKADA_SERVICE_PORT", "many"),
        ];
        for (name, value) in strange {
            assert!(read(name, value).is_err(), "{name}={value}");
        }
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

    /// Starts or not, and whether it is said loudly that nothing protects the port.
    fn outcome(listen: &str, peer: &str, flags: &str) -> Option<bool> {
        let text = format!("listen = \"{listen}:7400\"\npeer-listen = \"{peer}:7401\"\n{flags}");
        let config = resolve(vec![raw(&text)]).ok()?;
        assert_eq!(config.insecure, config.warnings.iter().any(|told| told.contains("INSECURE")));
        Some(config.insecure)
    }

    #[test]
    fn x_1_beyond_loopback_only_with_tls_and_tokens_or_loudly() {
        const HERE: &str = "127.0.0.1";
        const OUT: &str = "0.0.0.0";
        let (none, tls, auth) = ("", "tls = true", "auth = true");
        let open = "insecure-listen-anywhere = true";
        let tls_open = "tls = true\nauth = false";
        for (listen, peer, flags, wanted) in [
            (HERE, HERE, none, Some(false)),
            (HERE, HERE, auth, Some(false)),
            (HERE, HERE, tls, Some(false)),
            (HERE, HERE, open, Some(false)),
            (HERE, HERE, tls_open, Some(false)),
            ("[::1]", HERE, none, Some(false)),
            (OUT, HERE, none, None),
            (HERE, OUT, none, None),
            (OUT, OUT, auth, None),
            (OUT, OUT, tls_open, None),
            (HERE, OUT, tls_open, Some(false)),
            (OUT, OUT, tls, Some(false)),
            (OUT, OUT, open, Some(true)),
            ("192.168.1.7", HERE, none, None),
            // The door of S3 is one of the client's.
            (HERE, HERE, "s3-listen = \"127.0.0.1:7402\"", Some(false)),
            (HERE, HERE, "s3-listen = \"0.0.0.0:7402\"", None),
            (HERE, HERE, "s3-listen = \"0.0.0.0:7402\"\nauth = true", None),
            (HERE, HERE, "s3-listen = \"0.0.0.0:7402\"\ntls = true\nauth = false", None),
            (HERE, HERE, "s3-listen = \"0.0.0.0:7402\"\ntls = true", Some(false)),
            (
                HERE,
                HERE,
                "s3-listen = \"0.0.0.0:7402\"\ninsecure-listen-anywhere = true",
                Some(true),
            ),
        ] {
            assert_eq!(outcome(listen, peer, flags), wanted, "{listen} {peer} {flags}");
        }
    }

    #[test]
    fn an_even_number_of_voters_is_warned_about() {
        let config = resolve(vec![raw("expect = 4\npeer = [\"127.0.0.1:1\"]")]).expect("valid");
        assert!(config.warnings[0].contains("odd number"), "{:?}", config.warnings);
        let leased = "expect = 2\nlog = \"postgres://ikada@127.0.0.1/ikada\"";
        let config = resolve(vec![raw(leased)]).expect("valid");
        assert!(config.warnings.is_empty(), "two are useful there: {:?}", config.warnings);
    }
}
