//! Many shards in one database, many holders: every node works, and a dead one takes only its own shards along (LS-16, LS-19).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::v1::{ClaimRequest, CompleteRequest, NewTask, Number, TransferRequest};

use crate::cluster::{Cluster, client};
use crate::holder;
use crate::scenario::Scenario;
use crate::wait::until;
use crate::work::{check_all_there, write_all};

const SHARDS: u16 = 8;
const QUEUE: &str = "due";
/// Tasks of one submission.
const BATCH: u64 = 1_000;
/// Workers per node: all nodes together have more than a hundred (LS-19).
const WORKERS: u64 = 40;

/// Tasks that are drained; `IKADA_TEST_DRAIN` for more, up to the million of LS-16.
fn due() -> u64 {
    std::env::var("IKADA_TEST_DRAIN").ok().and_then(|text| text.parse().ok()).unwrap_or(6_000)
}

fn shares(leaders: &BTreeMap<u16, u64>) -> BTreeMap<u64, usize> {
    let mut shares = BTreeMap::new();
    for node in leaders.values() {
        *shares.entry(*node).or_default() += 1;
    }
    shares
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_16_three_nodes_lead_eight_shards_and_a_kill_moves_only_its_own() {
    let Some(mut cluster) = Cluster::start_in_postgres(SHARDS).await else { return };
    let before = cluster.everyone_leads().await;
    let dead = before[&0];
    cluster.kill(dead);
    let after = cluster.settle().await;
    for (shard, leader) in before.iter().filter(|(_, leader)| **leader != dead) {
        assert_eq!(after[shard], *leader, "shard {shard} was not the dead node's");
    }
    let heirs: BTreeSet<u64> =
        before.keys().filter(|shard| before[shard] == dead).map(|shard| after[shard]).collect();
    assert!(!heirs.contains(&dead), "{after:?}");
    assert_eq!(shares(&after).len(), 2, "both others lead: {after:?}");
    // Back again it leads what it is given.
    cluster.launch(dead);
    cluster.settle().await;
    let wish = TransferRequest { shard: Some(0), to: Some(Number(dead)), from: None };
    // Refused until its links stand again.
    until("it is given a shard", || async { cluster.client().transfer(&wish).await.ok() }).await;
    until("the node that came back leads again", || async {
        (cluster.settle().await[&0] == dead).then_some(())
    })
    .await;
}

/// The balancer waits for half a minute of quiet before each move: `IKADA_TEST_BALANCE` for those who have the time, as `cargo xtask
/// postgres` and `cargo xtask scenarios --long` have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_16_a_node_that_comes_back_leads_a_share_without_anybodys_doing() {
    if std::env::var_os("IKADA_TEST_BALANCE").is_none() {
        eprintln!("passed over: it takes a minute; set IKADA_TEST_BALANCE");
        return;
    }
    let Some(mut cluster) = Cluster::start_in_postgres(SHARDS).await else { return };
    let scenario = Scenario::begin("LS-16 balance", &cluster).await;
    let dead = cluster.settle().await[&0];
    cluster.kill(dead);
    cluster.settle().await;
    cluster.launch(dead);
    until("it leads again", || async {
        cluster.settle().await.values().any(|leader| *leader == dead).then_some(())
    })
    .await;
    scenario.end(&cluster).await;
}

// LS-15: what was weighed against a lease in a database. A ring would have to make its lost token anew and to close up again;
// Raft would need a majority. Here one node of three is enough, whichever it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_15_one_node_of_three_leads_everything_and_takes_writes() {
    let Some(mut cluster) = Cluster::start_in_postgres(SHARDS).await else { return };
    let before = write_all(&cluster.client(), "before", 20).await;
    // Each shard has another order in which nodes may take it; the one that is left is last for some of them.
    cluster.kill(1);
    cluster.kill(2);
    let leaders = cluster.settle().await;
    assert!(leaders.values().all(|leader| *leader == 3), "{leaders:?}");
    let client = cluster.client();
    let after = write_all(&client, "after", 20).await;
    check_all_there(&client, &before.union(&after).cloned().collect()).await;
}

/// One worker of one node: claims and completes until all is done. Gives what it was handed.
async fn work(client: Client, name: String, done: Arc<AtomicU64>, goal: u64) -> Vec<String> {
    let mut handed = Vec::new();
    let wish = ClaimRequest {
        holds: Vec::new(),
        worker: name.clone(),
        session: Number(1),
        queues: vec![QUEUE.to_owned()],
        count_max: 50,
        wait_ms: 500,
        labels: BTreeMap::new(),
    };
    while done.load(Ordering::Relaxed) < goal {
        let Ok(answer) = client.claim(&wish).await else { continue };
        if answer.tasks.is_empty() {
            continue;
        }
        let items = answer.tasks.iter().flat_map(|task| holder::done(&name, task).tasks);
        let report = CompleteRequest { worker: name.clone(), tasks: items.collect(), claim: None };
        let outcomes = client.complete(&report).await.expect("completed");
        assert!(outcomes.tasks.iter().all(|it| it.outcome.is_settled()), "{outcomes:?}");
        handed.extend(answer.tasks.into_iter().map(|task| task.id));
        done.fetch_add(report.tasks.len() as u64, Ordering::Relaxed);
    }
    handed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_16_ls_19_due_tasks_are_drained_by_all_nodes_and_a_hundred_workers_without_duplicates() {
    let Some(cluster) = Cluster::start_in_postgres(SHARDS).await else { return };
    let scenario = Scenario::begin("LS-16 drain", &cluster).await;
    let submitter = client(&cluster.urls());
    for first in (0..due()).step_by(BATCH as usize) {
        let task = |number: u64| NewTask {
            id: Some(format!("due-{number}")),
            queue: Some(QUEUE.to_owned()),
            ttl_ms: Some(600_000),
            ..NewTask::default()
        };
        let tasks = (first..(first + BATCH).min(due())).map(task).collect();
        submitter.enqueue(tasks).await.expect("acknowledged");
    }
    let (began, done) = (std::time::Instant::now(), Arc::new(AtomicU64::new(0)));
    let mut workers = Vec::new();
    for node in &cluster.nodes {
        let client = client(std::slice::from_ref(&node.url));
        for number in 0..WORKERS {
            let name = format!("worker-{}-{number}", node.id);
            let worker = work(client.clone(), name, done.clone(), due());
            workers.push((node.id, tokio::spawn(worker)));
        }
    }
    let (mut all, mut by_node) = (BTreeSet::new(), BTreeMap::new());
    for (node, worker) in workers {
        let handed = worker.await.expect("a worker");
        *by_node.entry(node).or_insert(0) += handed.len();
        for id in handed {
            assert!(all.insert(id.clone()), "{id} was handed out twice");
        }
    }
    println!("{} tasks drained in {:.1?} by node: {by_node:?}", due(), began.elapsed());
    assert_eq!(all.len() as u64, due());
    assert!(by_node.values().all(|count| *count > 0), "a node stood idle: {by_node:?}");
    until("all are counted as done", || async {
        let counts = submitter.queue(QUEUE).await.ok()?.counts;
        (counts.done_total == due()).then_some(())
    })
    .await;
    tokio::time::timeout(Duration::from_secs(60), cluster.copies_become_equal())
        .await
        .expect("the copies become equal");
    scenario.end(&cluster).await;
}
