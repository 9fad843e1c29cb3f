//! Disks that take long, or for ever: who leads, and that nothing is lost or expired (F-10, F-11).

use std::time::{Duration, Instant};

use crate::cluster::{Cluster, look};
use crate::holder::Holder;
use crate::scenario::Scenario;
use crate::tracer::{self, SlowDisk};
use crate::wait::until;
use crate::work::{Stream, check_all_there};

/// Claims that are held meanwhile.
const CLAIMS: usize = 20;
/// Of the disk that is slow and gets on.
const SLOW: Duration = Duration::from_millis(200);
/// Of the disk that hangs: longer than any wait of these tests.
const HANGING: Duration = Duration::from_secs(300);

async fn check(cluster: &Cluster, stream: Stream, holder: Holder) {
    holder.renewed(2).await;
    holder.complete_all().await;
    let acked = stream.stop().await;
    cluster.settle().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
}

/// A cluster with one shard, a stream of writes and claims that are held.
async fn busy() -> (Cluster, Stream, Holder) {
    let cluster = Cluster::start_with(1).await;
    let stream = Stream::start(&cluster.urls());
    let holder = Holder::start(&cluster.urls(), "held", CLAIMS).await;
    stream.advance(50).await;
    (cluster, stream, holder)
}

// F-10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_10_a_leader_with_a_slow_disk_stays() {
    if !tracer::is_there() {
        return;
    }
    let (cluster, stream, holder) = busy().await;
    let scenario = Scenario::begin("F-10 slow", &cluster).await;
    let before = cluster.reign().await;
    let Some(disk) = SlowDisk::make(&cluster, before.0, SLOW).await else { return };
    stream.advance(60).await;
    holder.renewed(5).await;
    assert_eq!(cluster.reign().await, before, "same leader, same term");
    drop(disk);
    check(&cluster, stream, holder).await;
    scenario.end(&cluster).await;
}

// F-10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_10_a_leader_whose_disk_hangs_yields_and_expires_nothing() {
    if !tracer::is_there() {
        return;
    }
    let (cluster, stream, holder) = busy().await;
    let mut scenario = Scenario::begin("F-10 hang", &cluster).await;
    let (old, _) = cluster.reign().await;
    let Some(disk) = SlowDisk::make(&cluster, old, HANGING).await else { return };
    let hung = Instant::now();
    let others = cluster.nodes.iter().filter(|node| node.id != old);
    let others: Vec<String> = others.map(|node| node.url.clone()).collect();
    // Where logs live in a database, clients wait for nothing on the holder's own disk: it stays.
    if !cluster.is_in_database() {
        until("another leads", || async {
            let seen = look(&others).await?;
            seen.iter().any(|node| node.shards[0].role == "leader").then_some(())
        })
        .await;
    }
    stream.advance(50).await;
    scenario.gap(stream.silence_ms(hung));
    println!("writable {} ms after the disk hung", hung.elapsed().as_millis());
    holder.renewed(5).await;
    drop(disk);
    check(&cluster, stream, holder).await;
    scenario.end(&cluster).await;
}

// F-11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_11_a_follower_with_a_slow_disk_is_not_felt() {
    if !tracer::is_there() {
        return;
    }
    let cluster = Cluster::start_with(1).await;
    let mut scenario = Scenario::begin("F-11", &cluster).await;
    let before = cluster.reign().await;
    let stream = Stream::start(&[cluster.node(before.0).url.clone()]);
    let holder = Holder::start(&cluster.urls(), "held", CLAIMS).await;
    stream.advance(50).await;
    let began = Instant::now();
    stream.advance(200).await;
    let usual = began.elapsed();
    let Some(disk) = SlowDisk::make(&cluster, before.0 % 3 + 1, SLOW).await else { return };
    let began = Instant::now();
    stream.advance(200).await;
    let percent = 100.0 * usual.as_secs_f64() / began.elapsed().as_secs_f64();
    scenario.throughput(percent);
    println!("a slow disk of a follower leaves {percent:.0} % of the writes per second");
    holder.renewed(5).await;
    assert_eq!(cluster.reign().await, before, "same leader, same term");
    drop(disk);
    check(&cluster, stream, holder).await;
    scenario.end(&cluster).await;
}
