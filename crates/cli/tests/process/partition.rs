//! Broken networks under real processes: who leads, whether it changes, and that nothing acknowledged is lost.
//!
//! Short forms of the named scenarios; the simulator runs the long ones. Cuts are silent, so that only timeouts and
//! majorities can tell. What is counted are changes of leaders, never durations.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use ikada_api::Client;

use crate::cluster::{Cluster, agree, look};
use crate::network::Network;
use crate::scenario::Scenario;
use crate::wait::until;
use crate::work::{Stream, check_all_there};

/// Long enough for several election timeouts.
const A_WHILE: Duration = Duration::from_secs(8);

/// How long a cut lasts that must change nothing: `IKADA_CUT_SECONDS=120` plays the long form, with `cargo test`, which has
/// no limit of time.
fn cut_lasts() -> Duration {
    let wanted = std::env::var("IKADA_CUT_SECONDS").ok();
    wanted.map_or(A_WHILE, |text| Duration::from_secs(text.parse().expect("seconds")))
}

/// Leader and term of every shard, as these nodes agree.
async fn reign(cluster: &Cluster, ids: &[u64]) -> BTreeMap<u16, (u64, u64)> {
    let urls: Vec<String> = ids.iter().map(|id| cluster.node(*id).url.clone()).collect();
    until("the nodes agree on leaders and terms", || async {
        let leaders = agree(&urls).await;
        let seen = look(&urls).await?;
        let mut terms = BTreeMap::new();
        for part in seen.iter().flat_map(|node| &node.shards) {
            let leader = *leaders.get(&part.shard)?;
            if *terms.entry(part.shard).or_insert((leader, part.term)) != (leader, part.term) {
                return None;
            }
        }
        Some(terms)
    })
    .await
}

/// The leader of the only shard.
async fn leader(cluster: &Cluster) -> u64 {
    let all: Vec<u64> = (1..=cluster.nodes.len() as u64).collect();
    reign(cluster, &all).await[&0].0
}

/// Waits until one of these nodes leads and takes writes.
async fn led_by(cluster: &Cluster, ids: &[u64]) -> u64 {
    let urls: Vec<String> = ids.iter().map(|id| cluster.node(*id).url.clone()).collect();
    until("one of these leads", || async {
        let seen = look(&urls).await?;
        let newest = seen.iter().map(|node| node.shards[0].term).max()?;
        let leads = |node: &&ikada_api::v1::NodeSelf| {
            node.shards[0].role == "leader" && node.shards[0].term == newest
        };
        seen.iter().find(leads).map(|node| node.node.0)
    })
    .await
}

/// Makes a node the leader of the only shard.
async fn make_leader(cluster: &Cluster, id: u64) {
    until("the chosen node leads", || async {
        if leader(cluster).await == id {
            return Some(());
        }
        let wish = ikada_api::v1::TransferRequest {
            to: Some(ikada_api::v1::Number(id)),
            ..Default::default()
        };
        let _ = cluster.client().transfer(&wish).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        None
    })
    .await;
}

/// How often the leader of the only shard changed as a node saw it, since this sequence.
async fn changes(cluster: &Cluster, id: u64, after: u64) -> usize {
    let client = Client::new([&cluster.node(id).url]).expect("url");
    let events = client.events(after).await.expect("events").events;
    let mut leaders: Vec<u64> = events.iter().filter_map(|event| Some(event.leader?.0)).collect();
    leaders.dedup();
    leaders.len()
}

/// The newest event of a node.
async fn newest(cluster: &Cluster, id: u64) -> u64 {
    let client = Client::new([&cluster.node(id).url]).expect("url");
    client.events(0).await.expect("events").next
}

/// Ends the writes, heals, and checks that nothing acknowledged is missing and all copies are equal.
async fn check(cluster: &Cluster, network: &Network, stream: Stream) {
    network.heal();
    let acked = stream.stop().await;
    cluster.settle().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
}

// MQ-17
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mq_17_a_node_that_comes_back_changes_no_leader() {
    let Some(network) = Network::make(4) else { return };
    let cluster = Cluster::start_in(&network, 4, 1).await;
    let scenario = Scenario::begin("MQ-17", &cluster).await;
    let before = reign(&cluster, &[1, 2, 3, 4]).await;
    let (lead, _) = before[&0];
    let away = lead % 4 + 1;
    network.isolate(away);
    tokio::time::sleep(cut_lasts()).await;
    network.heal();
    let after = reign(&cluster, &[1, 2, 3, 4]).await;
    assert_eq!(after, before, "same leader, same term");
    scenario.end(&cluster).await;
}

// MQ-18, F-6a
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mq_18_a_cut_between_leader_and_one_follower_changes_no_leader() {
    let Some(network) = Network::make(4) else { return };
    let cluster = Cluster::start_in(&network, 4, 1).await;
    let mut scenario = Scenario::begin("F-6a", &cluster).await;
    let before = reign(&cluster, &[1, 2, 3, 4]).await;
    let (lead, term) = before[&0];
    let stream = Stream::start(&[cluster.node(lead).url.clone()]);
    let usual = stream.rate(A_WHILE).await;
    network.cut(lead, lead % 4 + 1);
    scenario.throughput(100.0 * stream.rate(cut_lasts()).await / usual);
    stream.advance(20).await;
    network.heal();
    let after = reign(&cluster, &[1, 2, 3, 4]).await;
    assert_eq!(after[&0], (lead, term), "zero changes while the link was cut, and after");
    check(&cluster, &network, stream).await;
    scenario.end(&cluster).await;
}

/// The nodes of three that are not this one, and a stream of work that goes only to them.
fn stream_past(cluster: &Cluster, node: u64) -> (Vec<u64>, Stream) {
    let others: Vec<u64> = (1..=3).filter(|id| *id != node).collect();
    let urls: Vec<String> = others.iter().map(|id| cluster.node(*id).url.clone()).collect();
    (others, Stream::start(&urls))
}

// F-5, MQ-26
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mq_26_a_leader_cut_off_steps_down_and_answers_nothing_stale() {
    let Some(network) = Network::make(3) else { return };
    let cluster = Cluster::start_in(&network, 3, 1).await;
    let old = leader(&cluster).await;
    let (others, stream) = stream_past(&cluster, old);
    stream.advance(20).await;
    network.isolate(old);
    let new = led_by(&cluster, &others).await;
    assert_ne!(new, old);
    stream.advance(20).await;
    // The old one has stepped down by itself, and neither writes nor reads there succeed.
    let alone = Client::new([&cluster.node(old).url]).expect("url");
    let alone = alone.with_timeout(Duration::from_secs(2));
    until("the old leader steps down", || async {
        let seen = alone.node().await.ok()?;
        (seen.shards[0].role != "leader").then_some(())
    })
    .await;
    assert!(!crate::work::write(&alone, "never").await);
    assert!(alone.queue("work").await.is_err(), "no linearizable read without a majority");
    check(&cluster, &network, stream).await;
}

// F-5. `IKADA_CUTS=n` cuts so many leaders off, one after the other; one without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_5_the_others_go_on_whenever_a_leader_is_cut_off_in_silence() {
    let cuts = std::env::var("IKADA_CUTS").ok().and_then(|count| count.parse().ok());
    let Some(network) = Network::make(3) else { return };
    let cluster = Cluster::start_in(&network, 3, 1).await;
    let mut scenario = Scenario::begin("F-5", &cluster).await;
    let (mut acked, mut gaps) = (BTreeSet::new(), Vec::new());
    for round in 0..cuts.unwrap_or(1) {
        let old = leader(&cluster).await;
        let others: Vec<u64> = (1..=3).filter(|id| *id != old).collect();
        let urls: Vec<String> = others.iter().map(|id| cluster.node(*id).url.clone()).collect();
        let stream = Stream::start_named(&format!("cut-{round}"), &urls);
        stream.advance(20).await;
        let cut = Instant::now();
        network.isolate(old);
        led_by(&cluster, &others).await;
        stream.advance(20).await;
        gaps.push(stream.silence_ms(cut));
        network.heal();
        acked.extend(stream.stop().await);
    }
    gaps.sort_unstable();
    let (middle, longest) = (gaps[gaps.len() / 2], gaps[gaps.len() - 1]);
    scenario.gap(longest);
    println!("{} silent cuts, without writes: p50 {middle} ms, max {longest} ms", gaps.len());
    cluster.settle().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
    scenario.end(&cluster).await;
}

// F-6b
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_6b_when_all_see_only_one_node_that_one_leads() {
    let Some(network) = Network::make(5) else { return };
    let cluster = Cluster::start_in(&network, 5, 1).await;
    make_leader(&cluster, 2).await;
    let scenario = Scenario::begin("F-6b", &cluster).await;
    let stream = Stream::start(&[cluster.node(1).url.clone()]);
    stream.advance(10).await;
    network.only(&[(1, 2), (1, 3), (1, 4), (1, 5)]);
    assert_eq!(led_by(&cluster, &[1]).await, 1);
    stream.advance(20).await;
    let since = newest(&cluster, 1).await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(changes(&cluster, 1, since).await, 0, "and it stays");
    check(&cluster, &network, stream).await;
    scenario.end(&cluster).await;
}

// F-6c
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_6c_two_nodes_with_one_link_each_do_not_disturb_the_leader() {
    let Some(network) = Network::make(5) else { return };
    let cluster = Cluster::start_in(&network, 5, 1).await;
    make_leader(&cluster, 1).await;
    let scenario = Scenario::begin("F-6c", &cluster).await;
    let stream = Stream::start(&[cluster.node(1).url.clone()]);
    stream.advance(10).await;
    let since = newest(&cluster, 2).await;
    network.only(&[(1, 2), (1, 3), (2, 3), (4, 2), (5, 3)]);
    tokio::time::sleep(A_WHILE).await;
    assert!(changes(&cluster, 2, since).await <= 2, "at most two changes");
    stream.advance(20).await;
    check(&cluster, &network, stream).await;
    scenario.end(&cluster).await;
}

// F-6e
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_6e_a_leader_that_hears_nothing_steps_down() {
    let Some(network) = Network::make(3) else { return };
    let cluster = Cluster::start_in(&network, 3, 1).await;
    let scenario = Scenario::begin("F-6e", &cluster).await;
    let old = leader(&cluster).await;
    let (others, stream) = stream_past(&cluster, old);
    stream.advance(10).await;
    for other in &others {
        network.cut_one_way(*other, old);
    }
    assert!(others.contains(&led_by(&cluster, &others).await));
    stream.advance(20).await;
    check(&cluster, &network, stream).await;
    scenario.end(&cluster).await;
}

// F-6f
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_6f_a_flapping_link_inflates_no_terms() {
    let Some(network) = Network::make(3) else { return };
    let cluster = Cluster::start_in(&network, 3, 1).await;
    let scenario = Scenario::begin("F-6f", &cluster).await;
    let lead = leader(&cluster).await;
    let other = lead % 3 + 1;
    let third = 6 - lead - other;
    let since = newest(&cluster, third).await;
    let stream = Stream::start(&[cluster.node(third).url.clone()]);
    for _ in 0..5 {
        network.cut(lead, other);
        tokio::time::sleep(Duration::from_secs(1)).await;
        network.heal();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(changes(&cluster, third, since).await <= 5, "few changes");
    stream.advance(20).await;
    check(&cluster, &network, stream).await;
    scenario.end(&cluster).await;
}

// F-6d
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_6d_only_a_stale_node_reaches_a_majority_and_nothing_is_acknowledged() {
    let Some(network) = Network::make(5) else { return };
    let mut cluster = Cluster::start_in(&network, 5, 1).await;
    make_leader(&cluster, 2).await;
    let scenario = Scenario::begin("F-6d", &cluster).await;
    // Node 1 falls behind; then its elders lose sight of each other, and the leader ends.
    network.isolate(1);
    let urls: Vec<String> = (2..=5).map(|id| cluster.node(id).url.clone()).collect();
    let acked = crate::work::write_all(&crate::cluster::client(&urls), "early", 20).await;
    let caught_up = |seen: &[ikada_api::v1::NodeSelf]| {
        seen.iter().all(|node| node.shards[0].last_index == seen[0].shards[0].last_index)
    };
    until("the others have all of it", || async {
        look(&urls).await.filter(|seen| caught_up(seen)).map(|_| ())
    })
    .await;
    for id in 3..=5 {
        network.hears_only(id, &[2]);
    }
    cluster.kill(2);
    for id in 3..=5 {
        network.hears_only(id, &[1]);
    }
    network.hears_only(1, &[3, 4, 5]);
    let middle = Client::new([&cluster.node(1).url]).expect("url");
    let middle = middle.with_timeout(Duration::from_secs(4));
    assert!(!crate::work::write(&middle, "never").await, "safe, hence unavailable");
    network.heal();
    cluster.settle().await;
    let stream = Stream::start(&cluster.urls());
    stream.advance(20).await;
    check(&cluster, &network, stream).await;
    check_all_there(&cluster.client(), &acked).await;
    scenario.end(&cluster).await;
}
