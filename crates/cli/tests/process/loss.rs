//! Lost packets under real processes: the peer port, on which gossip travels, loses some of them by chance (F-38).
//!
//! What is counted is who is forgotten and who is a member, never how long anything took. Gossip only hints: whatever gets
//! lost, the members are those of the log, and nobody is added, removed or given up.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::v1::ClusterView;

use crate::cluster::Cluster;
use crate::network::Network;
use crate::wait::until;
use crate::work::{Stream, check_all_there};

/// Where nodes talk to each other in a network of their own.
const PEER_PORT: u16 = 7401;
/// Longer than a word of gossip is kept: who is not heard again in that time is forgotten.
const LOSS_LASTS: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long packets get lost: `IKADA_LOSS_SECONDS=3600` plays the long form, with `cargo test`, which has no limit of time.
fn loss_lasts() -> Duration {
    let wanted = std::env::var("IKADA_LOSS_SECONDS").ok();
    wanted.map_or(LOSS_LASTS, |text| Duration::from_secs(text.parse().expect("seconds")))
}

/// Who belongs to the cluster, by the log alone: members with their parts, and the voters of every shard.
fn membership(view: &ClusterView) -> String {
    let members = view.members.iter();
    let members: Vec<_> =
        members.map(|it| (it.node.0, &it.part, &it.peer_addr, it.cordoned, it.priority)).collect();
    let shards = view.shards.iter();
    let shards: Vec<_> = shards.map(|it| (it.shard, &it.voters, &it.learners, it.joint)).collect();
    format!("{members:?} {shards:?} {:?}", view.change)
}

/// The cluster as each node sees it that answers.
async fn views(cluster: &Cluster) -> Vec<ClusterView> {
    let mut views = Vec::new();
    for url in cluster.urls() {
        let client = Client::new([&url]).expect("url").with_timeout(Duration::from_secs(2));
        views.extend(client.cluster().await.ok());
    }
    views
}

/// Who has forgotten whom.
fn forgotten(views: &[ClusterView]) -> BTreeSet<(u64, u64)> {
    let of = |view: &ClusterView| {
        let silent = view.members.iter().filter(|member| member.load.is_none());
        silent.map(|member| (view.answered_by.0, member.node.0)).collect::<Vec<_>>()
    };
    views.iter().flat_map(of).collect()
}

/// Waits until every node knows of every other.
async fn all_are_known(cluster: &Cluster) {
    until("every node knows of every other", || async {
        let views = views(cluster).await;
        (views.len() == cluster.nodes.len() && forgotten(&views).is_empty()).then_some(())
    })
    .await;
}

// F-38: 0 effects on the membership at any loss; nobody is taken for dead at 10 %, and nobody for good at 30 %.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_38_lost_packets_change_no_member_and_bury_nobody() {
    let Some(network) = Network::make(3) else { return };
    let cluster = Cluster::start_in(&network, 3, 1).await;
    cluster.level_is_raised().await;
    all_are_known(&cluster).await;
    let before: BTreeSet<String> = views(&cluster).await.iter().map(membership).collect();
    assert_eq!(before.len(), 1, "all agree: {before:?}");
    let stream = Stream::start(&cluster.urls());
    stream.advance(10).await;
    for percent in [10, 30] {
        if !network.lose(percent, PEER_PORT) {
            return;
        }
        let (began, mut alarms, mut buried) = (Instant::now(), 0, BTreeSet::new());
        while began.elapsed() < loss_lasts() {
            let seen = views(&cluster).await;
            for view in &seen {
                assert!(before.contains(&membership(view)), "{percent} %: {}", membership(view));
            }
            let now = forgotten(&seen);
            alarms += now.difference(&buried).count();
            buried = now;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let lost = network.lost();
        println!("{percent} %: {lost} packets lost, {alarms} times somebody was taken for dead");
        assert!(lost > 0, "packets got lost");
        assert!(percent > 10 || alarms == 0, "{percent} %: {alarms} false alarms");
    }
    network.heal();
    all_are_known(&cluster).await;
    cluster.settle().await;
    let after: BTreeSet<String> = views(&cluster).await.iter().map(membership).collect();
    assert_eq!(after, before, "nothing of it reached the log");
    check_all_there(&cluster.client(), &stream.stop().await).await;
    cluster.copies_become_equal().await;
}
