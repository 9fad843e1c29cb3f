//! Workers over real sockets: a claim whose answer is lost, and idle workers when the leader goes.

use std::collections::BTreeSet;
use std::time::Duration;

use ikada_api::v1::{ClaimRequest, ClaimedTask, Number, RenewRequest};
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, client};
use crate::scenario::Scenario;
use crate::wait::until;
use crate::work::write_all;

/// How long the idle workers' polls last.
const POLL_MS: u64 = 100_000;
/// Leaders killed under idle workers, unless `IKADA_IDLE_KILLS` says otherwise (100 in `cargo xtask scenarios --long`).
const KILLS: usize = 2;
/// Whoever has no work by then was not woken: far less than a poll lasts, far more than a wake-up takes.
const WOKEN_WITHIN: Duration = Duration::from_secs(25);

fn wish(worker: &str, session: u64, wait_ms: u64) -> ClaimRequest {
    let body = format!(
        r#"{{"worker": "{worker}", "session": "{session}", "queues": ["work"], "wait_ms": {wait_ms}}}"#
    );
    serde_json::from_str(&body).expect("a claim")
}

// Q7. The claim lives for 30 s, so that only a returned one is a first attempt again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_whose_claim_answer_was_lost_runs_again_as_its_first_attempt() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    write_all(&client, "lost", 1).await;
    let lost = client.claim(&wish("w", 7, 5_000)).await.expect("a claim").tasks;
    assert_eq!(lost.len(), 1);
    drop(lost);
    let empty =
        RenewRequest { worker: "w".to_owned(), session: Some(Number(7)), tasks: Vec::new() };
    let found = until("the task is returned", || async {
        client.renew(&empty).await.expect("an empty list is a roll call");
        client.claim(&wish("v", 1, 200)).await.expect("a claim").tasks.pop()
    })
    .await;
    assert_eq!((found.id.as_str(), found.attempt), ("lost-00000", 1));
}

// TQ-16: kill after kill, with the same workers' calls open: each gets work at once, and none is restarted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tq_16_idle_workers_get_work_of_all_shards_after_each_killed_leader() {
    let mut cluster = Cluster::start().await;
    let scenario = Scenario::begin("TQ-16 kills", &cluster).await;
    let wanted = std::env::var("IKADA_IDLE_KILLS").ok();
    let kills = wanted.map_or(KILLS, |wanted| wanted.parse().expect("a number of kills"));
    for round in 0..kills {
        let leader = cluster.settle().await[&0];
        let parked = park(&cluster, leader, round);
        cluster.kill(leader);
        cluster.settle().await;
        assert!(parked.iter().all(|claim| !claim.is_finished()), "all polls are still open");
        write_all(&cluster.client(), &format!("after-{round}"), parked.len()).await;
        let (count, mut taken) = (parked.len(), BTreeSet::new());
        let end = tokio::time::Instant::now() + WOKEN_WITHIN;
        for claim in parked {
            let claim = tokio::time::timeout_at(end, claim).await;
            let tasks = claim.expect("woken before its poll ends").expect("a worker");
            taken.extend(tasks.into_iter().map(|task| task.id));
        }
        assert_eq!(taken.len(), count, "every idle worker got a task, round {round}: {taken:?}");
        cluster.launch(leader);
    }
    cluster.settle().await;
    scenario.end(&cluster).await;
}

/// Workers that wait for work, three at each node but this one.
fn park(cluster: &Cluster, leader: u64, round: usize) -> Vec<JoinHandle<Vec<ClaimedTask>>> {
    let others: Vec<_> = cluster.nodes.iter().filter(|node| node.id != leader).collect();
    let worker = |number: usize| {
        let client = client(&[others[number % others.len()].url.clone()]);
        let wish = wish(&format!("w{round}-{number}"), 1, POLL_MS);
        tokio::spawn(async move { client.claim(&wish).await.expect("a claim").tasks })
    };
    (0..6).map(worker).collect()
}
