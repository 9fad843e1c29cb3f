//! How far followers are, as any node tells it (B4-52).

use ikada_api::v1::{ClusterView, NewTask, Number};

use crate::cluster::{Cluster, client};
use crate::fresh::ikada;
use crate::wait::until;

/// Tasks submitted one by one while a node is down: each is an entry that it lacks.
const MISSED: u64 = 40;
/// The node that is killed.
const GONE: u64 = 3;

/// Entries that a node is not known to have, over all shards; none unless every leader has told.
fn behind(view: &ClusterView, node: u64) -> Option<u64> {
    let mut sum = 0;
    for shard in view.shards.iter().filter(|shard| shard.leader != Some(Number(node))) {
        sum += shard.followers.iter().find(|follower| follower.node.0 == node)?.behind;
    }
    Some(sum)
}

/// Waits until each of these nodes tells that a node is so far behind.
async fn all_tell(urls: &[String], what: &str, fits: impl Fn(u64) -> bool) {
    for url in urls {
        let client = client(std::slice::from_ref(url));
        until(what, || async {
            let view = client.cluster().await.ok()?;
            behind(&view, GONE).filter(|behind| fits(*behind)).map(|_| ())
        })
        .await;
    }
}

/// Shards of these clusters.
const SHARDS: u16 = 4;

async fn any_node_tells(mut cluster: Cluster) {
    cluster.settle().await;
    all_tell(&cluster.urls(), "nobody is behind", |behind| behind == 0).await;
    cluster.kill(GONE);
    cluster.settle().await;
    let client = cluster.client();
    for _ in 0..MISSED {
        client.enqueue(vec![NewTask::default()]).await.expect("a task");
    }
    all_tell(&cluster.urls(), "what is missed is told", |behind| behind >= MISSED).await;
    for url in cluster.urls() {
        let output = ikada().args(["cluster", "status", "--url", &url]).output().expect("it runs");
        let table = String::from_utf8_lossy(&output.stdout);
        assert!(table.contains("LAG") && table.contains("(node 3)"), "{table}");
    }
    cluster.launch(GONE);
    cluster.settle().await;
    all_tell(&cluster.urls(), "it has caught up", |behind| behind == 0).await;
}

// B4-52: whoever leads a shard, every node says how far the others are in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_52_any_node_tells_how_far_followers_are_in_all_shards() {
    any_node_tells(Cluster::start_with(SHARDS).await).await;
}

// The same where each node reads the log for itself, so that nobody knows but by its own word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_52_any_node_tells_how_far_followers_are_with_logs_in_postgres() {
    let Some(cluster) = Cluster::start_in_postgres(SHARDS).await else { return };
    any_node_tells(cluster).await;
}
