//! A leader that stops breathing and comes back, believing that it still leads (F-9, short).

use std::time::Duration;

use ikada_api::Client;

use crate::cluster::{Cluster, agree, client};
use crate::work::{check_all_there, write_all};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_leader_serves_no_stale_read() {
    let cluster = Cluster::start().await;
    let old = cluster.settle().await[&0];
    let mut acked = write_all(&cluster.client(), "before", 20).await;
    let others: Vec<String> =
        cluster.nodes.iter().filter(|node| node.id != old).map(|node| node.url.clone()).collect();
    cluster.signal(old, "STOP");
    tokio::time::sleep(Duration::from_secs(4)).await;
    let leaders = agree(&others).await;
    assert!(leaders.values().all(|leader| *leader != old), "{leaders:?}");
    let written = write_all(&client(&others), "meanwhile", 40).await;
    // These wait in the paused node's socket and are read the moment it wakes, before it hears of its successor.
    let mut reads = Vec::new();
    for id in &written {
        let alone = Client::new([&cluster.node(old).url]).expect("url");
        let alone = alone.with_timeout(Duration::from_secs(60));
        let id = id.clone();
        reads.push(tokio::spawn(async move { (alone.task(&id).await, id) }));
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    cluster.signal(old, "CONT");
    for read in reads {
        let (answer, id) = read.await.expect("a read");
        let task = answer.unwrap_or_else(|error| panic!("{id} is not seen: {error}"));
        assert_eq!(task.id, id);
    }
    acked.extend(written);
    cluster.settle().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
}
