//! Settings as one source gave them: all optional, unknown keys refused.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

/// One source's settings (flags, environment or file).
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RawConfig {
    /// Data folder.
    pub data: Option<PathBuf>,
    /// Address for clients, `host:port`.
    pub listen: Option<String>,
    /// Address for programs that speak S3, `host:port`; none unless given.
    pub s3_listen: Option<String>,
    /// Address for peers, `host:port`.
    pub peer_listen: Option<String>,
    /// Address that clients are told, if not `listen`.
    pub advertise: Option<String>,
    /// Address that peers are told, if not `peer-listen`.
    pub peer_advertise: Option<String>,
    /// Further names under which clients reach this node.
    pub host: Option<Vec<String>>,
    /// Peer addresses to ask when founding a cluster.
    pub peer: Option<Vec<String>>,
    /// Peer addresses of a cluster to join.
    pub join: Option<Vec<String>>,
    /// Where the logs live instead of in the data folders: a Postgres URL.
    pub log: Option<String>,
    /// Take the place of this member's lost data folder.
    pub new_folder: Option<bool>,
    /// How many nodes found the cluster.
    pub expect: Option<u16>,
    /// How many shards the cluster is founded with.
    pub shards: Option<u16>,
    /// This node's id; drawn at random if absent.
    pub node_id: Option<u64>,
    /// A name for people.
    pub name: Option<String>,
    /// Allow addresses other than loopback without TLS.
    pub insecure_listen_anywhere: Option<bool>,
    /// What the audit log holds: `all` changes, or only `operations`; denials always.
    pub audit: Option<String>,
    /// Speak TLS on both ports.
    pub tls: Option<bool>,
    /// File with the join token by which this node gets its certificate.
    pub join_token_file: Option<PathBuf>,
    /// Ask clients for tokens; on unless everything is on loopback.
    pub auth: Option<bool>,
    /// What is turned away under load: `off`, `memory=PERCENT`, `wait=MS` or `wait=auto`, `LANE=STEPS`.
    pub shed: Option<Vec<String>>,
    /// Collector of traces: an OTLP endpoint, `http://host:4318`; none unless given.
    pub otlp: Option<String>,
    /// Election priority: higher is preferred when logs are equal.
    pub priority: Option<i64>,
    /// How workers come and go by themselves: `process`, `exec` or `kubernetes`; absent: they do not.
    pub autoscale: Option<String>,
    /// Fewest workers.
    pub autoscale_min: Option<u32>,
    /// Most workers.
    pub autoscale_max: Option<u32>,
    /// Slots of one worker.
    pub autoscale_slots: Option<u32>,
    /// Queues whose tasks count, with commas between them.
    pub autoscale_queue: Option<String>,
    /// Work that waits should begin within this time.
    pub autoscale_target_ms: Option<u64>,
    /// Time between two changes.
    pub autoscale_cooldown_ms: Option<u64>,
    /// The program of `exec`.
    pub autoscale_command: Option<PathBuf>,
    /// The workload of `kubernetes`, `namespace/name`.
    pub autoscale_workload: Option<String>,
    /// Further arguments of the workers of `process`.
    pub autoscale_worker_args: Option<String>,
}

impl RawConfig {
    /// Reads `ikada.toml`; the error names the key and the line.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| explain(text, &error))
    }

    /// Reads `IKADA_*` variables. `IKADA_URL` and others of the client commands are not settings of a server and are
    /// passed over, and so is what Kubernetes tells every pod about a service called `ikada`; any other unknown name is
    /// a problem.
    pub fn from_env(vars: impl IntoIterator<Item = (String, String)>) -> Result<Self, Vec<String>> {
        const CLIENT: [&str; 14] = [
            "IKADA_LEASE",
            "IKADA_FENCE",
            "IKADA_URL",
            "IKADA_OUTPUT",
            "IKADA_NAMESPACE",
            "IKADA_CONFIG",
            "IKADA_LOG",
            "IKADA_LOG_FORMAT",
            "IKADA_TOKEN",
            "IKADA_TOKEN_FILE",
            "IKADA_CONTEXT",
            "IKADA_CA_FILE",
            "IKADA_CERT_FILE",
            "IKADA_KEY_FILE",
        ];
        let mut table = BTreeMap::new();
        for (name, value) in vars {
            let Some(key) = name.strip_prefix("IKADA_") else {
                continue;
            };
            if !CLIENT.contains(&name.as_str()) && !is_service_link(key, &value) {
                table.insert(key.to_ascii_lowercase().replace('_', "-"), (name, value));
            }
        }
        let mut raw = RawConfig::default();
        let mut problems = Vec::new();
        for (key, (name, value)) in table {
            if let Err(why) = raw.set(&key, &value) {
                problems.push(format!("{name}={value}: {why}"));
            }
        }
        if problems.is_empty() { Ok(raw) } else { Err(problems) }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        fn number<T: std::str::FromStr>(value: &str) -> Result<Option<T>, String> {
            value.parse().map(Some).map_err(|_| "not a number in range".to_owned())
        }
        fn flag(value: &str) -> Result<bool, String> {
            value.parse().map_err(|_| "neither true nor false".to_owned())
        }
        let text = || Some(value.to_owned());
        match key {
            "data" => self.data = Some(PathBuf::from(value)),
            "listen" => self.listen = text(),
            "s3-listen" => self.s3_listen = text(),
            "peer-listen" => self.peer_listen = text(),
            "advertise" => self.advertise = text(),
            "peer-advertise" => self.peer_advertise = text(),
            "host" => {
                self.host = Some(value.split(',').map(|name| name.trim().to_owned()).collect())
            }
            "peer" => {
                self.peer = Some(value.split(',').map(|addr| addr.trim().to_owned()).collect())
            }
            "join" => {
                self.join = Some(value.split(',').map(|addr| addr.trim().to_owned()).collect())
            }
            // IKADA_LOG says what is written to the terminal.
            "log-url" => self.log = text(),
            "new-folder" => self.new_folder = Some(flag(value)?),
            "expect" => self.expect = number(value)?,
            "shards" => self.shards = number(value)?,
            "node-id" => self.node_id = number(value)?,
            "name" => self.name = text(),
            "insecure-listen-anywhere" => self.insecure_listen_anywhere = Some(flag(value)?),
            "auth" => self.auth = Some(flag(value)?),
            "audit" => self.audit = text(),
            "tls" => self.tls = Some(flag(value)?),
            "join-token-file" => self.join_token_file = Some(PathBuf::from(value)),
            // Steps have commas of their own.
            "shed" => {
                self.shed = Some(value.split(';').map(|rule| rule.trim().to_owned()).collect())
            }
            "otlp" => self.otlp = text(),
            "priority" => self.priority = number(value)?,
            "autoscale" => self.autoscale = text(),
            "autoscale-min" => self.autoscale_min = number(value)?,
            "autoscale-max" => self.autoscale_max = number(value)?,
            "autoscale-slots" => self.autoscale_slots = number(value)?,
            "autoscale-queue" => self.autoscale_queue = text(),
            "autoscale-target-ms" => self.autoscale_target_ms = number(value)?,
            "autoscale-cooldown-ms" => self.autoscale_cooldown_ms = number(value)?,
            "autoscale-command" => self.autoscale_command = Some(PathBuf::from(value)),
            "autoscale-workload" => self.autoscale_workload = text(),
            "autoscale-worker-args" => self.autoscale_worker_args = text(),
            _ => return Err("unknown setting; see `ikada server --help`".to_owned()),
        }
        Ok(())
    }

    /// Fills what is absent here from a source of lower rank.
    #[must_use]
    pub fn or(self, lower: RawConfig) -> RawConfig {
        RawConfig {
            data: self.data.or(lower.data),
            listen: self.listen.or(lower.listen),
            s3_listen: self.s3_listen.or(lower.s3_listen),
            peer_listen: self.peer_listen.or(lower.peer_listen),
            advertise: self.advertise.or(lower.advertise),
            peer_advertise: self.peer_advertise.or(lower.peer_advertise),
            host: self.host.or(lower.host),
            peer: self.peer.or(lower.peer),
            join: self.join.or(lower.join),
            log: self.log.or(lower.log),
            new_folder: self.new_folder.or(lower.new_folder),
            expect: self.expect.or(lower.expect),
            shards: self.shards.or(lower.shards),
            node_id: self.node_id.or(lower.node_id),
            name: self.name.or(lower.name),
            insecure_listen_anywhere: self
                .insecure_listen_anywhere
                .or(lower.insecure_listen_anywhere),
            audit: self.audit.or(lower.audit),
            tls: self.tls.or(lower.tls),
            join_token_file: self.join_token_file.or(lower.join_token_file),
            auth: self.auth.or(lower.auth),
            shed: self.shed.or(lower.shed),
            otlp: self.otlp.or(lower.otlp),
            priority: self.priority.or(lower.priority),
            autoscale: self.autoscale.or(lower.autoscale),
            autoscale_min: self.autoscale_min.or(lower.autoscale_min),
            autoscale_max: self.autoscale_max.or(lower.autoscale_max),
            autoscale_slots: self.autoscale_slots.or(lower.autoscale_slots),
            autoscale_queue: self.autoscale_queue.or(lower.autoscale_queue),
            autoscale_target_ms: self.autoscale_target_ms.or(lower.autoscale_target_ms),
            autoscale_cooldown_ms: self.autoscale_cooldown_ms.or(lower.autoscale_cooldown_ms),
            autoscale_command: self.autoscale_command.or(lower.autoscale_command),
            autoscale_workload: self.autoscale_workload.or(lower.autoscale_workload),
            autoscale_worker_args: self.autoscale_worker_args.or(lower.autoscale_worker_args),
        }
    }
}

/// Shows where it listens, and not the URL of a database, which may hold a password (X6).
impl fmt::Debug for RawConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = self.log.as_ref().map(|_| "..");
        formatter
            .debug_struct("RawConfig")
            .field("data", &self.data)
            .field("listen", &self.listen)
            .field("peer_listen", &self.peer_listen)
            .field("node_id", &self.node_id)
            .field("log", &log)
            .finish_non_exhaustive()
    }
}

/// Whether Kubernetes set this variable for a service called `ikada`: `IKADA_SERVICE_HOST`, `IKADA_SERVICE_PORT` with or
/// without a port's name, `IKADA_PORT`, and `IKADA_PORT_7400_TCP` with its parts.
fn is_service_link(key: &str, value: &str) -> bool {
    let is_number = |text: &str| text.parse::<u16>().is_ok();
    if let Some(port) = key.strip_prefix("PORT_") {
        return is_number(port.split('_').next().unwrap_or_default());
    }
    let is_port = key == "SERVICE_PORT" || key.starts_with("SERVICE_PORT_");
    match key {
        "SERVICE_HOST" => true,
        "PORT" => value.contains("://"),
        _ => is_port && is_number(value),
    }
}

/// What is wrong, and where. Of the line only its key is repeated, of the message no quoted value: either may hold a
/// password (X6).
fn explain(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default();
    let plain = |key: &&str| key.chars().all(|one| one.is_ascii_alphanumeric() || one == '-');
    let key = line.split_once('=').map(|(key, _)| key.trim()).filter(plain).unwrap_or_default();
    let message: Vec<&str> = error.message().split('"').step_by(2).collect();
    let message = message.join("\"..\"").replace('\n', " ");
    match key.is_empty() {
        true => format!("line {}: {message}", number + 1),
        false => format!("line {}, {key}: {message}", number + 1),
    }
}
