//! Nodes that are asked to stop and start again, one after the other, under load (F-28).
//!
//! `IKADA_ROLLS=n` goes round so many times; three without.

use std::time::Instant;

use crate::cluster::Cluster;
use crate::holder::Holder;
use crate::scenario::Scenario;
use crate::work::{Stream, check_all_there};

// F-28
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_28_a_rolling_restart_under_load_loses_nothing() {
    let rolls = std::env::var("IKADA_ROLLS").ok().and_then(|count| count.parse().ok());
    let mut cluster = Cluster::start().await;
    let mut scenario = Scenario::begin("F-28", &cluster).await;
    let stream = Stream::start(&cluster.urls());
    let holder = Holder::start(&cluster.urls(), "held", 20).await;
    stream.advance(50).await;
    let mut silences = Vec::new();
    for _ in 0..rolls.unwrap_or(3) {
        for id in 1..=3 {
            let began = Instant::now();
            cluster.signal(id, "TERM");
            let status = cluster.ended(id).await;
            assert!(status.success(), "a graceful stop ends well: {status}");
            stream.advance(20).await;
            cluster.launch(id);
            cluster.settle().await;
            stream.advance(20).await;
            silences.push(stream.silence_ms(began));
        }
    }
    silences.sort_unstable();
    let (middle, longest) = (silences[silences.len() / 2], silences[silences.len() - 1]);
    scenario.gap(longest);
    println!(
        "{} stops, longest silence of each: p50 {middle} ms, max {longest} ms",
        silences.len()
    );
    holder.renewed(2).await;
    holder.complete_all().await;
    let acked = stream.stop().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
    scenario.end(&cluster).await;
}
