//! A cluster of processes that can be killed, paused and looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::v1::NodeSelf;
use tempfile::TempDir;

use crate::fresh::{ikada, ports};
use crate::missing::LOG_SWITCH;
use crate::network::Network;
use crate::server::Server;
use crate::wait::until;

/// One node.
pub struct Node {
    pub id: u64,
    pub url: String,
    pub data: PathBuf,
    pub client: String,
    pub peer: String,
    /// Whether it listens beyond loopback.
    everywhere: bool,
    child: Option<Child>,
}

/// All nodes; ended and removed when dropped.
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub shards: u16,
    /// So many found the cluster; the others wait to join it.
    pub founders: u64,
    /// Further flags of every node.
    pub extra: Vec<String>,
    /// Where the logs live, if not in the nodes' folders.
    pub database: Option<Server>,
    /// Other ways to it, by node.
    pub log_urls: BTreeMap<u64, String>,
    folder: TempDir,
}

/// Nothing that the cluster does by itself after a start comes later than this after something else.
const STILL: Duration = Duration::from_millis(2_500);

/// Whether a test of what only logs on the nodes' own disks have is passed over, since all logs are in a database. Says why.
pub fn is_passed_over(why: &str) -> bool {
    let is_switched = std::env::var_os(LOG_SWITCH).is_some();
    if is_switched {
        eprintln!("passed over with {LOG_SWITCH}: {why}");
    }
    is_switched
}

/// A Postgres for the logs of one test, if all tests keep them there: then none runs without.
pub fn test_database() -> Option<Server> {
    std::env::var_os(LOG_SWITCH)?;
    Some(Server::start().expect("the switch asks for a Postgres"))
}

impl Cluster {
    /// Starts three nodes and waits until they agree on leaders.
    pub async fn start() -> Cluster {
        Cluster::start_with(2).await
    }

    /// Starts three nodes with so many shards.
    pub async fn start_with(shards: u16) -> Cluster {
        let mut cluster = Cluster::prepare(3);
        cluster.shards = shards;
        for id in 1..=3 {
            cluster.launch(id);
        }
        cluster.settle().await;
        cluster
    }

    /// Starts three nodes that keep their logs in a Postgres of the test's own; nothing where there is none installed.
    pub async fn start_in_postgres(shards: u16) -> Option<Cluster> {
        let mut cluster = Cluster::prepare_in_postgres(shards)?;
        for id in 1..=3 {
            cluster.launch(id);
        }
        cluster.settle().await;
        Some(cluster)
    }

    /// Chooses folders and ports, and starts a Postgres; no node runs yet.
    pub fn prepare_in_postgres(shards: u16) -> Option<Cluster> {
        let database = Server::start()?;
        let mut cluster = Cluster::prepare(3);
        (cluster.shards, cluster.database) = (shards, Some(database));
        Some(cluster)
    }

    /// Starts the first nodes of so many; the others can join later.
    pub async fn start_some(founders: u64, count: u64) -> Cluster {
        let mut cluster = Cluster::prepare(count);
        cluster.founders = founders;
        for id in 1..=founders {
            cluster.launch(id);
        }
        cluster.settle().await;
        cluster
    }

    /// Starts nodes in a network of their own.
    pub async fn start_in(network: &Network, count: u64, shards: u16) -> Cluster {
        let mut cluster = Cluster::prepare_in(network, count, shards);
        for id in 1..=count {
            cluster.launch_by(id, network.program(id));
        }
        cluster.settle().await;
        cluster
    }

    /// Chooses folders for nodes in a network of their own; nothing runs yet.
    pub fn prepare_in(network: &Network, count: u64, shards: u16) -> Cluster {
        let mut cluster = Cluster::prepare(count);
        cluster.shards = shards;
        for node in &mut cluster.nodes {
            let address = network.address(node.id);
            node.client = format!("{address}:7400");
            node.peer = format!("{address}:7401");
            node.url = format!("http://{address}:7400");
            node.everywhere = true;
        }
        cluster
    }

    /// Chooses folders and ports; nothing runs yet.
    pub fn prepare(count: u64) -> Cluster {
        let folder = tempfile::tempdir().expect("a folder");
        let addresses = ports(count as usize * 2);
        let pairs = addresses.chunks_exact(2).zip(1..);
        let nodes = pairs.map(|(pair, id)| Node {
            id,
            url: format!("http://{}", pair[0]),
            data: folder.path().join(format!("node-{id}")),
            client: pair[0].clone(),
            peer: pair[1].clone(),
            everywhere: false,
            child: None,
        });
        Cluster {
            nodes: nodes.collect(),
            shards: 2,
            founders: count,
            extra: Vec::new(),
            database: test_database(),
            log_urls: BTreeMap::new(),
            folder,
        }
    }

    /// Whether its logs live in a database.
    pub fn is_in_database(&self) -> bool {
        self.database.is_some()
    }

    pub fn node(&self, id: u64) -> &Node {
        &self.nodes[id as usize - 1]
    }

    /// What a node has logged so far, over all its lives.
    pub fn log(&self, id: u64) -> String {
        std::fs::read_to_string(self.node(id).data.with_extension("log")).expect("a log")
    }

    /// The command line of a node.
    pub fn command(&self, id: u64, program: Command) -> Command {
        let node = self.node(id);
        let mut command = program;
        command
            .args(["server", "--node-id", &id.to_string()])
            .args(["--listen", &node.client, "--peer-listen", &node.peer])
            .arg("--data")
            .arg(&node.data)
            .arg("--until-stdin-closes")
            .args(&self.extra)
            .current_dir(self.folder.path());
        if node.everywhere {
            command.arg("--insecure-listen-anywhere");
        }
        if let Some(database) = &self.database {
            let url = self.log_urls.get(&id).cloned().unwrap_or_else(|| database.url());
            command.args(["--log", &url]);
        }
        if id > self.founders {
            command.args(["--join", &self.node(1).peer]);
            return command;
        }
        command
            .args(["--shards", &self.shards.to_string()])
            .args(["--expect", &self.founders.to_string()]);
        let others = self.nodes.iter().filter(|other| other.id != id && other.id <= self.founders);
        for other in others.filter(|_| self.database.is_none()) {
            command.args(["--peer", &other.peer]);
        }
        command
    }

    pub fn launch(&mut self, id: u64) {
        self.launch_by(id, ikada());
    }

    /// Starts a node by way of another program (a tracer).
    pub fn launch_by(&mut self, id: u64, program: Command) {
        let command = self.command(id, program);
        self.launch_command(id, command);
    }

    /// Starts a node by a whole command line.
    pub fn launch_command(&mut self, id: u64, mut command: Command) {
        assert!(self.node(id).child.is_none(), "node {id} runs already");
        let log = self.node(id).data.with_extension("log");
        let log = File::options().create(true).append(true).open(log).expect("a log file");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn();
        self.nodes[id as usize - 1].child = Some(child.expect("the node starts"));
    }

    /// Ends a node without warning.
    pub fn kill(&mut self, id: u64) {
        let mut child = self.nodes[id as usize - 1].child.take().expect("it runs");
        child.kill().expect("killed");
        child.wait().expect("ended");
    }

    /// The id of a node's process.
    pub fn process(&self, id: u64) -> u32 {
        self.node(id).child.as_ref().expect("it runs").id()
    }

    /// Sends a signal to one node's process.
    pub fn signal(&self, id: u64, name: &str) {
        let order = format!("kill -{name} {}", self.process(id));
        assert!(Command::new("sh").args(["-c", &order]).status().expect("sh").success());
    }

    /// Waits until a node has ended by itself.
    pub async fn ended(&mut self, id: u64) -> ExitStatus {
        let mut child = self.nodes[id as usize - 1].child.take().expect("it runs");
        until("a node ends", || {
            let status = child.try_wait().expect("a child");
            async move { status }
        })
        .await
    }

    /// Whether the process of a node that was started is still there.
    pub fn is_running(&mut self, id: u64) -> bool {
        let child = self.nodes[id as usize - 1].child.as_mut().expect("it was started");
        child.try_wait().expect("a child").is_none()
    }

    /// Waits until a node leads everything (true), or has ended by itself with a failure (false).
    pub async fn serves_or_ends(&mut self, id: u64) -> bool {
        let url = [self.node(id).url.clone()];
        let mut child = self.nodes[id as usize - 1].child.take().expect("it runs");
        let ended = until("a node serves or ends", || {
            let (status, url) = (child.try_wait().expect("a child"), &url);
            async move {
                if status.is_some() {
                    return status.map(Some);
                }
                let seen = look(url).await?;
                let leads = seen[0].shards.iter().all(|part| part.role == "leader");
                leads.then_some(None)
            }
        })
        .await;
        assert!(ended.is_none_or(|status| !status.success()), "it stopped as if all were well");
        if ended.is_none() {
            self.nodes[id as usize - 1].child = Some(child);
        }
        ended.is_none()
    }

    /// The URLs of the nodes that run.
    pub fn urls(&self) -> Vec<String> {
        let running = self.nodes.iter().filter(|node| node.child.is_some());
        running.map(|node| node.url.clone()).collect()
    }

    /// A client of all nodes that run.
    pub fn client(&self) -> Client {
        client(&self.urls())
    }

    /// Waits until the running nodes agree: one leader per shard. Gives the leaders by shard.
    pub async fn settle(&self) -> BTreeMap<u16, u64> {
        agree(&self.urls()).await
    }

    /// Waits until every node leads some shards. One that started later than the others is given some by and by.
    pub async fn everyone_leads(&self) -> BTreeMap<u16, u64> {
        until("every node leads some shards", || async {
            let leaders = self.settle().await;
            let led: BTreeSet<u64> = leaders.values().copied().collect();
            (led.len() == self.nodes.len()).then_some(leaders)
        })
        .await
    }

    /// Waits until the cluster has written down what all its nodes understand: after a start it does so by itself, and
    /// nothing follows that nobody asked for.
    pub async fn level_is_raised(&self) {
        let client = self.client();
        until("the level is raised", || async {
            let view = client.cluster().await.ok()?;
            let raised =
                view.level > 0 && view.members.iter().all(|it| it.level == Some(view.level));
            raised.then_some(())
        })
        .await;
        // What follows from it, once in each shard, is told within a second or so.
        let urls = self.urls();
        let ends = || async {
            let seen = look(&urls).await?;
            Some(seen.iter().flat_map(|node| &node.shards).map(|it| it.applied.clone()).collect())
        };
        let mut last: Vec<String> = Vec::new();
        loop {
            let now: Vec<String> = until("the nodes answer", ends).await;
            if std::mem::replace(&mut last, now.clone()) == now {
                return;
            }
            tokio::time::sleep(STILL).await;
        }
    }

    /// Leader and term of the first shard, as the running nodes agree.
    pub async fn reign(&self) -> (u64, u64) {
        let urls = self.urls();
        until("leader and term are known", || async {
            let leader = agree(&urls).await[&0];
            let seen = look(&urls).await?;
            let term = seen[0].shards[0].term;
            let same = |node: &NodeSelf| {
                node.shards[0].term == term
                    && node.shards[0].leader.is_some_and(|of| of.0 == leader)
            };
            seen.iter().all(same).then_some((leader, term))
        })
        .await
    }

    /// Waits until all running nodes hold the same state at the same position, and checks that equal positions never
    /// meant different states.
    pub async fn copies_become_equal(&self) {
        let urls = self.urls();
        until("the copies become equal", || async {
            let seen = look(&urls).await?;
            let mut hashes: BTreeMap<(u16, String), String> = BTreeMap::new();
            for part in seen.iter().flat_map(|node| &node.shards) {
                let place = (part.shard, part.applied.clone());
                let first = hashes.entry(place).or_insert_with(|| part.hash.clone());
                assert_eq!(*first, part.hash, "copies differ in shard {}", part.shard);
            }
            (hashes.len() == seen[0].shards.len()).then_some(())
        })
        .await
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(mut child) = node.child.take() {
                // A paused process dies by this as well; one that has ended is as good as killed.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        if std::thread::panicking() {
            for node in &self.nodes {
                show_log(&node.data.with_extension("log"));
            }
        }
    }
}

fn show_log(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    eprintln!("{}:", path.display());
    for line in &lines[lines.len().saturating_sub(15)..] {
        eprintln!("  {line}");
    }
}

pub fn client(urls: &[String]) -> Client {
    Client::new(urls).expect("urls").with_timeout(Duration::from_secs(30))
}

/// What every one of these nodes says of itself.
pub async fn look(urls: &[String]) -> Option<Vec<NodeSelf>> {
    let mut seen = Vec::new();
    for url in urls {
        let client = Client::new([url]).expect("url").with_timeout(Duration::from_secs(2));
        seen.push(client.node().await.ok()?);
    }
    Some(seen)
}

/// Waits until these nodes agree on leaders among themselves.
pub async fn agree(urls: &[String]) -> BTreeMap<u16, u64> {
    until("the nodes agree on leaders", || async {
        let seen = look(urls).await?;
        let mut leaders = BTreeMap::new();
        for part in seen.iter().flat_map(|node| &node.shards) {
            let leader = part.leader?.0;
            if *leaders.entry(part.shard).or_insert(leader) != leader {
                return None;
            }
        }
        let named = |node: &NodeSelf, shard: u16| leaders.get(&shard) == Some(&node.node.0);
        for node in &seen {
            let honest = |leads: bool, shard| leads == named(node, shard);
            if !node.shards.iter().all(|part| honest(part.role == "leader", part.shard)) {
                return None;
            }
        }
        let present = |leader: &u64| seen.iter().any(|node| node.node.0 == *leader);
        leaders.values().all(present).then_some(leaders)
    })
    .await
}
