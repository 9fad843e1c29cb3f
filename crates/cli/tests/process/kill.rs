//! Leaders that end: without warning, and gracefully.

use crate::cluster::Cluster;
use crate::work::{Stream, check_all_there};

// F-1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_60_a_killed_leader_loses_nothing_acknowledged() {
    let mut cluster = Cluster::start().await;
    let stream = Stream::start(&cluster.urls());
    for _ in 0..3 {
        stream.advance(50).await;
        let leader = cluster.settle().await[&0];
        cluster.kill(leader);
        // Writes go on without it.
        stream.advance(50).await;
        cluster.launch(leader);
        cluster.settle().await;
    }
    let acked = stream.stop().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
}

// F-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_59_all_nodes_killed_at_once_lose_nothing_acknowledged() {
    let mut cluster = Cluster::start().await;
    let stream = Stream::start(&cluster.urls());
    stream.advance(100).await;
    for id in 1..=3 {
        cluster.kill(id);
    }
    for id in 1..=3 {
        cluster.launch(id);
    }
    stream.advance(50).await;
    let acked = stream.stop().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mq_14_a_leader_that_is_asked_to_stop_hands_over() {
    let mut cluster = Cluster::start().await;
    let stream = Stream::start(&cluster.urls());
    stream.advance(50).await;
    let leader = cluster.settle().await[&0];
    cluster.signal(leader, "TERM");
    let status = cluster.ended(leader).await;
    assert!(status.success(), "a graceful stop ends well: {status}");
    let leaders = cluster.settle().await;
    assert!(leaders.values().all(|new| *new != leader), "{leaders:?}");
    // The new leader of shard 0 was told to take over, or found the lease given back; it did not wait for a timeout.
    let successor = crate::cluster::client(&[cluster.node(leaders[&0]).url.clone()]);
    let events = successor.events(0).await.expect("events").events;
    let reasons: Vec<&str> =
        events.iter().filter(|event| event.shard == 0).map(|event| event.reason.as_str()).collect();
    let wanted = if cluster.is_in_database() { "took the lease" } else { "transfer" };
    assert!(reasons.iter().any(|reason| reason.contains(wanted)), "{reasons:?}");
    let said = cluster.log(leader);
    assert!(!cluster.is_in_database() || said.contains("leadership transferred"), "{said}");
    stream.advance(20).await;
    let acked = stream.stop().await;
    cluster.launch(leader);
    cluster.settle().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
}
