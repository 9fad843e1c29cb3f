//! `ikada cluster`.

use std::fmt;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use ikada_api::s3::{BadPlace, PART_BYTES_MIN, StorePlace};

/// How object stores are reached, for two helps.
macro_rules! store_help {
    () => {
        "\nObject stores: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN) are the key, for gs:// an HMAC key of Google;\nAWS_REGION, AWS_ENDPOINT_URL and AWS_CA_BUNDLE say where, https unless the endpoint says http. For az:// they are AZURE_STORAGE_ACCOUNT,\nAZURE_STORAGE_KEY (or AZURE_STORAGE_SAS_TOKEN) and AZURE_STORAGE_ENDPOINT. This command alone talks to the store, the cluster does not."
    };
}

/// Commands about the cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show members, shards and leaders.
    #[command(
        after_help = "Examples:\n  ikada cluster status\n  ikada cluster status -f                      again every second, until Ctrl-C\n  ikada cluster status --output json | jq .shards"
    )]
    Status(WatchArgs),
    /// Show the role changes of one node, with reasons.
    Events(EventsArgs),
    /// Move leadership to another node, or away from one.
    Transfer(TransferArgs),
    /// Add a node that was started with `ikada server --join`.
    Add(AddArgs),
    /// Remove a node for good.
    Remove(RemoveArgs),
    /// Put a new node in the place of a member, in one step.
    Replace(ReplaceArgs),
    /// Keep a node from leading: its leaderships move away, and it takes none while another node can lead.
    #[command(after_help = "Examples:\n  ikada cluster cordon 2")]
    Cordon(NodeArgs),
    /// Let a cordoned node lead again.
    #[command(after_help = "Examples:\n  ikada cluster uncordon 2")]
    Uncordon(NodeArgs),
    /// Prefer a node as leader, or make others preferred over it.
    #[command(after_help = "Examples:\n  ikada cluster priority 2 10")]
    Priority(PriorityArgs),
    /// Show the settings of elections, or change them on all nodes.
    Elections(ElectionsArgs),
    /// Write the state of the running cluster into a file or an object store.
    Backup(BackupArgs),
    /// Make the data folder of a new cluster from a backup, offline.
    Restore(RestoreArgs),
    /// Make the data folder of a new cluster from the one disk that is left, offline. Work may be lost.
    Recover(RecoverArgs),
    /// Add shards while the cluster works.
    Grow(GrowArgs),
}

/// Flags of what can be watched.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Show it again and again, until Ctrl-C.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Seconds between two looks.
    #[arg(long, default_value_t = 1, requires = "follow", value_parser = clap::value_parser!(u64).range(1..=3_600), value_name = "SECONDS")]
    pub(crate) every: u64,
}

/// Flags of `elections`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada cluster elections\n  ikada cluster elections --timeout-ms 5000   a slow network: followers wait 5 to 10 s\n  ikada cluster elections --reset"
)]
pub(crate) struct ElectionsArgs {
    /// Least silence of a leader before followers elect another: 200 to 60000. Heartbeats are sent ten times as often.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(200..=60_000))]
    pub(crate) timeout_ms: Option<u32>,
    /// Go back to what the nodes were started with.
    #[arg(long, conflicts_with = "timeout_ms")]
    pub(crate) reset: bool,
}

/// Flags of `grow`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada cluster grow --shards 8\n  ikada cluster grow --shards 8 --no-wait   and watch it with ikada cluster status"
)]
pub(crate) struct GrowArgs {
    /// How many shards the cluster shall have: more than now, at most 256. Shards cannot be merged.
    #[arg(long)]
    pub(crate) shards: u16,
    /// Return once the growth has begun.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// Flags of `events`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada cluster events --url http://127.0.0.1:7410\n  ikada cluster events --follow"
)]
pub(crate) struct EventsArgs {
    /// Go on as new ones come, until Ctrl-C.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Draw who led when over the last minutes, of all nodes, instead of a list.
    #[arg(long, value_name = "MINUTES", num_args = 0..=1, default_missing_value = "10", conflicts_with_all = ["follow", "after"])]
    pub(crate) timeline: Option<u64>,
    /// Only events after this number.
    #[arg(long, default_value_t = 0, value_name = "SEQUENCE")]
    pub(crate) after: u64,
}

/// Flags of `transfer`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada cluster transfer --shard 2 --to 17\n  ikada cluster transfer            every shard moves to its most caught-up other voter"
)]
pub(crate) struct TransferArgs {
    /// The shard; all when absent.
    #[arg(long)]
    pub(crate) shard: Option<u16>,
    /// The new leader's node id; the most caught-up other voter when absent.
    #[arg(long, value_name = "NODE")]
    pub(crate) to: Option<u64>,
    /// Only shards that this node leads.
    #[arg(long, value_name = "NODE")]
    pub(crate) from: Option<u64>,
}

/// What all changes of members share.
#[derive(Debug, Args)]
pub(crate) struct PatienceArgs {
    /// Come back at once instead of waiting until every shard has followed.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// Flags of `add`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada server --data d --join 127.0.0.1:7401 --listen 127.0.0.1:7430 --peer-listen 127.0.0.1:7431\n  ikada cluster add 127.0.0.1:7431"
)]
pub(crate) struct AddArgs {
    /// The new node's --peer-listen (its --peer-advertise, if it has one).
    #[arg(value_name = "HOST:PORT")]
    pub(crate) peer_addr: String,
    #[command(flatten)]
    pub(crate) patience: PatienceArgs,
}

/// Flags of `remove`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada cluster remove 3            asks first, if this is a terminal\n  ikada cluster remove 3 --yes      the node says so and stops; its id is not used again"
)]
pub(crate) struct RemoveArgs {
    /// The node's id.
    pub(crate) node: u64,
    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) patience: PatienceArgs,
}

/// Flags of `replace`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada cluster replace 3 127.0.0.1:7431      also when node 3 is lost with its disk"
)]
pub(crate) struct ReplaceArgs {
    /// The node that leaves.
    pub(crate) node: u64,
    /// The new node's --peer-listen.
    #[arg(value_name = "HOST:PORT")]
    pub(crate) peer_addr: String,
    #[command(flatten)]
    pub(crate) patience: PatienceArgs,
}

/// One node.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ikada cluster cordon 2\n  ikada cluster uncordon 2")]
pub(crate) struct NodeArgs {
    /// The node's id.
    pub(crate) node: u64,
}

/// Flags of `priority`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ikada cluster priority 2 10\n  ikada cluster priority 2 -5")]
pub(crate) struct PriorityArgs {
    /// The node's id.
    pub(crate) node: u64,
    /// -1000 to 1000; nodes have 0 unless set.
    #[arg(allow_hyphen_values = true)]
    pub(crate) priority: i64,
}

/// Where a backup lies.
#[derive(Debug, Clone)]
pub(crate) enum BackupPlace {
    /// On this machine.
    File(PathBuf),
    /// In an object store.
    Store(StorePlace),
}

impl BackupPlace {
    fn parser() -> impl TypedValueParser<Value = BackupPlace> {
        PathBufValueParser::new().try_map(|path| -> Result<BackupPlace, BadPlace> {
            match path.to_str().and_then(StorePlace::parse) {
                Some(place) => Ok(BackupPlace::Store(place?)),
                None => Ok(BackupPlace::File(path)),
            }
        })
    }
}

impl fmt::Display for BackupPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupPlace::File(file) => file.display().fmt(formatter),
            BackupPlace::Store(place) => place.fmt(formatter),
        }
    }
}

/// Largest part: several are in memory at once.
const PART_MIB_MAX: usize = 1_024;

fn part_mib(text: &str) -> Result<usize, String> {
    let range = PART_BYTES_MIN >> 20..=PART_MIB_MAX;
    let given = text.parse().ok().filter(|size| range.contains(size));
    given.ok_or_else(|| format!("must be {} to {PART_MIB_MAX}", range.start()))
}

/// Flags of `backup`.
#[derive(Debug, Args)]
#[command(
    after_help = concat!("Examples:\n  ikada cluster backup monday.ikada\n  ikada cluster backup s3://backups/monday.ikada\n  AWS_ENDPOINT_URL=https://minio.example:9000 ikada cluster backup s3://backups/monday.ikada\n\nThe bytes of objects are part of it, each piece once.\n", store_help!())
)]
pub(crate) struct BackupArgs {
    /// The file to write, or s3://BUCKET/KEY, gs://BUCKET/KEY or az://CONTAINER/BLOB; it must not exist.
    #[arg(value_name = "FILE", value_parser = BackupPlace::parser())]
    pub(crate) place: BackupPlace,
    /// Size of the parts that an object store is sent, in MiB; it takes 10,000 of them.
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = part_mib)]
    pub(crate) part_mib: usize,
}

/// Flags of `restore`.
#[derive(Debug, Args)]
#[command(
    after_help = concat!("Examples:\n  ikada cluster restore monday.ikada --data new\n  ikada cluster restore s3://backups/monday.ikada --data new\n  ikada server --data new\n\nThe new cluster has one node and another id; let others join with `ikada cluster add`. Every fence exceeds all that\nwere granted before the backup and since.\n", store_help!())
)]
pub(crate) struct RestoreArgs {
    /// The backup: a file, or s3://BUCKET/KEY, gs://BUCKET/KEY or az://CONTAINER/BLOB.
    #[arg(value_name = "FILE", value_parser = BackupPlace::parser())]
    pub(crate) place: BackupPlace,
    /// The data folder to make; it must not exist or be empty.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Id of the only node.
    #[arg(long, value_name = "ID", default_value_t = 1)]
    pub(crate) node_id: u64,
    /// Where clients will reach it.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7400")]
    pub(crate) advertise: String,
    /// Where other nodes will reach it.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7401")]
    pub(crate) peer_advertise: String,
    /// The restore epoch; needed when this backup was restored before and that cluster has granted fences.
    #[arg(long, value_name = "N")]
    pub(crate) epoch: Option<u16>,
    #[command(flatten)]
    pub(crate) into: IntoDatabase,
}

/// Where a new cluster's logs go, if not into its folder.
#[derive(Debug, Args)]
pub(crate) struct IntoDatabase {
    /// Keep the new cluster's logs in this Postgres: postgres://user@host:5432/database. Its tables must hold no cluster. A password
    /// goes into PGPASSWORD.
    #[arg(long, value_name = "URL")]
    pub(crate) log: Option<String>,
    /// Another node of it: its id, its address for nodes, its address for clients; repeat it for each. They start with
    /// empty folders and --new-folder.
    #[arg(long = "member", value_name = "ID=PEER,CLIENT", requires = "log", value_parser = member)]
    pub(crate) members: Vec<(u64, String, String)>,
}

fn member(text: &str) -> Result<(u64, String, String), String> {
    let parts = text.split_once('=').and_then(|(id, rest)| Some((id, rest.split_once(',')?)));
    let Some((id, (peer, client))) = parts else {
        return Err("write ID=PEER,CLIENT, e.g. 2=10.0.0.2:7401,10.0.0.2:7400".to_owned());
    };
    if !peer.contains(':') || !client.contains(':') {
        return Err("both addresses need a port".to_owned());
    }
    match id.parse() {
        Ok(0) | Err(_) => Err(format!("{id} is no node id; use 1 or more")),
        Ok(id) => Ok((id, peer.to_owned(), client.to_owned())),
    }
}

/// Flags of `recover`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada cluster recover --data lost --to new\n  ikada cluster recover --data lost --from-log postgres://ikada@db/ikada --to new --log postgres://ikada@db/fresh\n\nWithout --phrase it only shows what the disk holds. See docs/operations.md, A lost majority."
)]
pub(crate) struct RecoverArgs {
    /// The data folder of the stopped node that holds most; with --from-log any, for the objects' bytes in it.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// The logs are in this Postgres, which was brought back to an older state: make the new cluster of what it holds.
    /// A password goes into PGPASSWORD.
    #[arg(long, value_name = "URL")]
    pub(crate) from_log: Option<String>,
    /// The data folder to make; it must not exist or be empty. The old one is kept.
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Words that accept the loss.
    #[arg(long)]
    pub(crate) phrase: Option<String>,
    /// Id of the only node.
    #[arg(long, value_name = "ID", default_value_t = 1)]
    pub(crate) node_id: u64,
    /// Where clients will reach it.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7400")]
    pub(crate) advertise: String,
    /// Where other nodes will reach it.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7401")]
    pub(crate) peer_advertise: String,
    #[command(flatten)]
    pub(crate) into: IntoDatabase,
}
