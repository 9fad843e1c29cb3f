//! `ikada server`.

use std::path::PathBuf;

use clap::Args;
use ikada_node::config::RawConfig;

const EXAMPLES: &str = "\
Examples:
  one node:
    ikada server --data ./data
  three nodes on one machine (run each in its own terminal):
    ikada server --data a --expect 3 --listen 127.0.0.1:7400 --peer-listen 127.0.0.1:7401 --peer 127.0.0.1:7411 --peer 127.0.0.1:7421
    ikada server --data b --expect 3 --listen 127.0.0.1:7410 --peer-listen 127.0.0.1:7411 --peer 127.0.0.1:7401 --peer 127.0.0.1:7421
    ikada server --data c --expect 3 --listen 127.0.0.1:7420 --peer-listen 127.0.0.1:7421 --peer 127.0.0.1:7401 --peer 127.0.0.1:7411
  three nodes that keep their logs in a Postgres you already run (each with its own ports and folder):
    ikada server --log postgres://ikada@127.0.0.1:5432/ikada --expect 3 --data a

Settings are read from flags, then IKADA_* variables (IKADA_DATA, IKADA_LISTEN, ...), then the file. IKADA_LOG sets what
is logged, e.g. IKADA_LOG=debug, and IKADA_LOG_FORMAT=json makes each line an object.";

/// Flags of a server; every one may also stand in the environment or in the file.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServerArgs {
    /// Data folder [default: ikada-data].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address for clients [default: 127.0.0.1:7400].
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Address for programs that speak S3 (boto3, aws-cli, rclone); none unless given.
    #[arg(long, value_name = "HOST:PORT")]
    s3_listen: Option<String>,
    /// Send traces of jobs, tasks and attempts to this OpenTelemetry collector (OTLP over HTTP), e.g. http://127.0.0.1:4318;
    /// headers for it come from OTEL_EXPORTER_OTLP_HEADERS.
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Address for other nodes [default: 127.0.0.1:7401].
    #[arg(long, value_name = "HOST:PORT")]
    peer_listen: Option<String>,
    /// Address that clients are told, if not that of --listen.
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// Address that other nodes are told, if not that of --peer-listen.
    #[arg(long, value_name = "HOST:PORT")]
    peer_advertise: Option<String>,
    /// A further name under which clients reach this node, for its certificate and for callers without a token; repeat it
    /// for each.
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Another node's --peer-listen; repeat it for each.
    #[arg(long, value_name = "HOST:PORT")]
    peer: Vec<String>,
    /// A member's --peer-listen of a cluster to join; then run `ikada cluster add`. Instead of --peer and --expect.
    #[arg(long, value_name = "HOST:PORT")]
    join: Vec<String>,
    /// Keep the logs in this Postgres instead of in the nodes' folders: postgres://user@host:5432/database. A password
    /// is refused here: it goes into PGPASSWORD, or the whole URL into IKADA_LOG_URL.
    #[arg(long, value_name = "URL")]
    log: Option<String>,
    /// The folder of this member (--node-id) is lost: take its place with an empty one. Only with --log.
    #[arg(long)]
    new_folder: bool,
    /// How many nodes found the cluster together [default: 1].
    #[arg(long, value_name = "N")]
    expect: Option<u16>,
    /// How many shards a new cluster has [default: 4].
    #[arg(long, value_name = "N")]
    shards: Option<u16>,
    /// This node's id; drawn at random when absent.
    #[arg(long, value_name = "ID")]
    node_id: Option<u64>,
    /// A name for people.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Preferred as leader over nodes with a lower number when logs are equal.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    priority: Option<i64>,
    /// Listen beyond this machine without TLS: anyone who reaches the port can run jobs.
    #[arg(long)]
    insecure_listen_anywhere: bool,
    /// Speak TLS on both ports, and ask clients for tokens. Without a join token the node makes the cluster's authority
    /// and writes a join token for the others to the file join-token in its data folder.
    #[arg(long)]
    tls: bool,
    /// File with the join token of the first node, for all other nodes.
    #[arg(long, value_name = "FILE")]
    join_token_file: Option<PathBuf>,
    /// Ask clients for tokens; the first one is written to the file admin-token in the data folder of the node with
    /// the lowest id.
    #[arg(long)]
    auth: bool,
    /// What the audit log holds where tokens are asked for: `all` changes, or only `operations`; denials always
    /// [default: all].
    #[arg(long, value_name = "WHAT")]
    audit: Option<String>,
    /// What is turned away under load: `off`, `memory=PERCENT`, `wait=MS` or `wait=auto`, or LANE=STEPS with the lanes read, download, submit,
    /// upload and list, as upload='>70:5,75:10,80:25,>90:100'; repeat it [default: see docs/operations.md].
    #[arg(long, value_name = "RULE")]
    shed: Vec<String>,
    /// Start and drain workers by themselves: `process`, `exec` or `kubernetes`. Only the leader of shard 0 acts.
    #[arg(long, value_name = "DRIVER")]
    autoscale: Option<String>,
    /// Fewest workers [default: 0].
    #[arg(long, value_name = "N")]
    autoscale_min: Option<u32>,
    /// Most workers [default: 4].
    #[arg(long, value_name = "N")]
    autoscale_max: Option<u32>,
    /// Slots of one worker [default: 2].
    #[arg(long, value_name = "N")]
    autoscale_slots: Option<u32>,
    /// Queues whose tasks count, with commas between them; workers of `process` take from these [default: all count, and workers take from
    /// `default`].
    #[arg(long, value_name = "QUEUES")]
    autoscale_queue: Option<String>,
    /// Work that waits should begin within this time [default: 30000].
    #[arg(long, value_name = "MS")]
    autoscale_target_ms: Option<u64>,
    /// Time between two changes [default: 60000].
    #[arg(long, value_name = "MS")]
    autoscale_cooldown_ms: Option<u64>,
    /// The program of `exec`; it is told the wanted and the present number.
    #[arg(long, value_name = "FILE")]
    autoscale_command: Option<PathBuf>,
    /// The workload of `kubernetes`.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    autoscale_workload: Option<String>,
    /// Further arguments of the workers of `process`, as one text.
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    autoscale_worker_args: Option<String>,
    /// Run a worker with this many slots beside the server.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) worker_slots: Option<u32>,
    /// Further arguments of that worker, as one text, as in '--queue default --isolation best'.
    #[arg(long, value_name = "ARGS", requires = "worker_slots", allow_hyphen_values = true)]
    pub(crate) worker_args: Option<String>,
    /// Settings file; ikada.toml in the current folder when present.
    #[arg(long, env = "IKADA_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Stop when standard input is closed, so that the node cannot outlive its starter.
    #[arg(long, hide = true)]
    pub(crate) until_stdin_closes: bool,
}

impl ServerArgs {
    /// The flags as settings.
    pub(crate) fn raw(&self) -> RawConfig {
        RawConfig {
            data: self.data.clone(),
            listen: self.listen.clone(),
            s3_listen: self.s3_listen.clone(),
            otlp: self.otlp.clone(),
            peer_listen: self.peer_listen.clone(),
            advertise: self.advertise.clone(),
            peer_advertise: self.peer_advertise.clone(),
            host: (!self.host.is_empty()).then(|| self.host.clone()),
            peer: (!self.peer.is_empty()).then(|| self.peer.clone()),
            join: (!self.join.is_empty()).then(|| self.join.clone()),
            log: self.log.clone(),
            new_folder: self.new_folder.then_some(true),
            expect: self.expect,
            shards: self.shards,
            node_id: self.node_id,
            name: self.name.clone(),
            insecure_listen_anywhere: self.insecure_listen_anywhere.then_some(true),
            audit: self.audit.clone(),
            tls: self.tls.then_some(true),
            join_token_file: self.join_token_file.clone(),
            auth: self.auth.then_some(true),
            shed: (!self.shed.is_empty()).then(|| self.shed.clone()),
            priority: self.priority,
            autoscale: self.autoscale.clone(),
            autoscale_min: self.autoscale_min,
            autoscale_max: self.autoscale_max,
            autoscale_slots: self.autoscale_slots,
            autoscale_queue: self.autoscale_queue.clone(),
            autoscale_target_ms: self.autoscale_target_ms,
            autoscale_cooldown_ms: self.autoscale_cooldown_ms,
            autoscale_command: self.autoscale_command.clone(),
            autoscale_workload: self.autoscale_workload.clone(),
            autoscale_worker_args: self.autoscale_worker_args.clone(),
        }
    }
}
