//! A leader that stops breathing and comes back, believing that it still leads (F-9, short).
//!
//! `IKADA_PAUSES=n` pauses so many leaders one after the other; one without.

use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::v1::{NewTask, OutcomeKind, parse_positions};
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, agree, client, look};
use crate::holder::{Holder, TTL};
use crate::scenario::Scenario;
use crate::wait::until;
use crate::work::{QUEUE, check_all_there, write_all};

/// Calls of each kind that wait in a paused node's socket.
const WAITING: usize = 20;

/// A client of one node only, which waits as long as it takes.
fn alone(cluster: &Cluster, id: u64) -> Client {
    Client::new([&cluster.node(id).url]).expect("url").with_timeout(Duration::from_secs(60))
}

/// A write that waits in a node's socket. Gives the id and the term in which it was acknowledged, if it was.
fn write_at(client: Client, id: String) -> JoinHandle<Option<(String, u64)>> {
    tokio::spawn(async move {
        let queue = Some(QUEUE.to_owned());
        let task = NewTask { id: Some(id.clone()), queue, ..NewTask::default() };
        let (answer, places) = client.enqueue_with_positions(&id, vec![task]).await.ok()?;
        let is_made = answer.tasks[0].outcome == OutcomeKind::Created;
        let places = parse_positions(&places?).expect("positions");
        is_made.then(|| (id, places[0].1.term))
    })
}

// F-9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_9_a_leader_that_wakes_reads_nothing_stale_acknowledges_nothing_and_expires_nothing() {
    let pauses = std::env::var("IKADA_PAUSES").ok().and_then(|count| count.parse().ok());
    let cluster = Cluster::start_with(1).await;
    let scenario = Scenario::begin("F-9", &cluster).await;
    let mut acked = write_all(&cluster.client(), "before", 20).await;
    for round in 1..=pauses.unwrap_or(1) {
        let old = cluster.settle().await[&0];
        let term =
            look(&[cluster.node(old).url.clone()]).await.expect("it answers")[0].shards[0].term;
        let others = cluster.nodes.iter().filter(|node| node.id != old);
        let others: Vec<String> = others.map(|node| node.url.clone()).collect();
        let holder = Holder::start(&others, &format!("held-{round}"), 20).await;
        cluster.signal(old, "STOP");
        let stopped = Instant::now();
        let leaders = until("another leads", || async {
            Some(agree(&others).await).filter(|leaders| leaders[&0] != old)
        });
        leaders.await;
        let written = write_all(&client(&others), &format!("meanwhile-{round}"), WAITING).await;
        // These wait in the paused node's socket and are taken in the moment it wakes, before it hears of its successor.
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for id in &written {
            let (reader, id) = (alone(&cluster, old), id.clone());
            writes.push(write_at(alone(&cluster, old), format!("{id}-late")));
            reads.push(tokio::spawn(async move { (reader.task(&id).await, id) }));
        }
        // By its own clock all claims have run out when it wakes; their worker renews them elsewhere all the time.
        holder.renewed(3).await;
        tokio::time::sleep(TTL.saturating_sub(stopped.elapsed()) + Duration::from_secs(1)).await;
        cluster.signal(old, "CONT");
        for read in reads {
            let (answer, id) = read.await.expect("a read");
            let task = answer.unwrap_or_else(|error| panic!("{id} is not seen: {error}"));
            assert_eq!(task.id, id);
        }
        for write in writes {
            if let Some((id, at)) = write.await.expect("a write") {
                assert!(at > term, "{id} was acknowledged by a leader that was replaced");
                acked.insert(id);
            }
        }
        acked.extend(written);
        holder.renewed(3).await;
        holder.complete_all().await;
        cluster.settle().await;
    }
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
    scenario.end(&cluster).await;
}
