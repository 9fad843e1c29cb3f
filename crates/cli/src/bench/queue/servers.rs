//! The cluster that is measured: one of the bench's own, or one that is there already.

use std::time::Duration;

use ikada_api::client::ClientOptions;

use crate::args::{QueueBenchArgs, SharedArgs};
use crate::bench::database::Schema;
use crate::failure::Failure;
use crate::local::{Guard, Nodes, Shape};

/// How long the nodes may take to agree on leaders.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Kernel clock ticks per second, as in every Linux account of processor time.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) struct Servers {
    urls: Vec<String>,
    /// Absent for a cluster that others run.
    nodes: Option<Nodes>,
    about: String,
    /// Where the logs live, if not in the nodes' folders.
    schema: Option<Schema>,
}

/// Whether a cluster that is there already is measured: it was named, or asked for.
pub(in crate::bench) fn is_existing(
    shared: &SharedArgs,
    args: &QueueBenchArgs,
) -> Result<bool, Failure> {
    let named = shared.is_url_typed();
    if named && (args.secure || args.log.is_some()) {
        return Err(Failure::usage(
            "--secure and --log start a cluster of the bench's own; leave --url out",
        ));
    }
    Ok(named || args.existing)
}

impl Servers {
    pub(super) async fn start_or_reach(
        shared: &SharedArgs,
        args: &QueueBenchArgs,
    ) -> Result<Servers, Failure> {
        if is_existing(shared, args)? {
            let (urls, _) = shared.reach()?;
            let about = format!("a cluster at {}", urls.join(", "));
            return Ok(Servers { urls, nodes: None, about, schema: None });
        }
        Servers::start(args, Guard::Open).await
    }

    /// A cluster of the bench's own.
    pub(super) async fn start(args: &QueueBenchArgs, guard: Guard) -> Result<Servers, Failure> {
        let shape = Shape { name: "bench", nodes: args.nodes, shards: args.shards };
        let mut nodes = Nodes::prepare(shape)?;
        nodes.guard(guard);
        let schema = Schema::create_if(args.log.as_deref()).await?;
        nodes.log_in(schema.as_ref().map(Schema::url));
        nodes.start_guarded(START_PATIENCE).await?;
        let agreed = nodes.agree(START_PATIENCE).await?;
        // Calls go to the node that leads the most first: others would only pass them on.
        let mut urls = nodes.urls();
        if let Some(leader) = agreed.busiest() {
            let position = (leader as usize).saturating_sub(1) % urls.len();
            urls.rotate_left(position);
        }
        let place = if schema.is_some() { ", logs in Postgres" } else { "" };
        let (count, shards) = (args.nodes, args.shards);
        let about = format!("{count} node processes and {shards} shards of its own{place}");
        Ok(Servers { urls, nodes: Some(nodes), about, schema })
    }

    /// Ends the processes, and takes away what they left in a database.
    pub(super) async fn end(self) -> Result<(), Failure> {
        drop(self.nodes);
        Schema::remove_if(self.schema).await
    }

    /// Whether the bench started it.
    pub(super) fn is_own(&self) -> bool {
        self.nodes.is_some()
    }

    pub(super) fn urls(&self) -> &[String] {
        &self.urls
    }

    /// How a client reaches the bench's own nodes.
    pub(super) fn options(&self) -> Result<ClientOptions, Failure> {
        self.nodes.as_ref().map_or_else(|| Ok(ClientOptions::default()), Nodes::options)
    }

    pub(super) fn describe(&self) -> String {
        self.about.clone()
    }

    /// Processor time of all nodes so far, user and system.
    pub(super) fn cpu_seconds(&self) -> Option<f64> {
        let pids = self.nodes.as_ref()?.pids();
        pids.iter().map(|pid| cpu_of(*pid)).sum()
    }

    /// Memory of each node: its share of what is resident (PSS), page cache left out.
    pub(super) fn memory_bytes(&self) -> Option<Vec<u64>> {
        let pids = self.nodes.as_ref()?.pids();
        pids.iter().map(|pid| memory_of(*pid)).collect()
    }
}

pub(super) fn cpu_of(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything but ends with the last bracket; user and system time are the 12th and 13th after it.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

/// What a process holds in memory that no file backs. Costs it nothing, however large it is and however often one looks.
pub(in crate::bench) fn resident_of(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    kib_of(line)
}

/// What a process holds in memory of its own. The kernel walks all of it meanwhile, so that the process may have to wait.
pub(in crate::bench) fn memory_of(pid: u32) -> Option<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find(|line| line.starts_with("Pss_Anon:"))?;
    kib_of(line)
}

/// The second word of a line, in bytes.
fn kib_of(line: &str) -> Option<u64> {
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
