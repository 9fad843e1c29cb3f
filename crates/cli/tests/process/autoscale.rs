//! The autoscaler over real processes: a program of the operator's is told, and every node tells what was decided.

use std::os::unix::fs::PermissionsExt;

use ikada_api::v1::ScalingPage;

use crate::cluster::{Cluster, client};
use crate::wait::until;

/// What a node tells, once it tells of something.
async fn told(url: &str) -> ScalingPage {
    let client = client(&[url.to_owned()]);
    until("a node tells of decisions", || async {
        client.scaling().await.ok().filter(|page| !page.decisions.is_empty())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_23_every_node_tells_what_was_decided_and_why_also_when_the_leader_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (hook, heard) = (folder.path().join("hook"), folder.path().join("heard"));
    let script = format!("#!/bin/sh\necho \"$1 $2\" >> {}\n", heard.display());
    std::fs::write(&hook, script).expect("a hook");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("rights");
    let mut cluster = Cluster::prepare(3);
    cluster.shards = 1;
    let flags =
        ["--autoscale", "exec", "--autoscale-min", "2", "--autoscale-cooldown-ms", "600000"];
    cluster.extra.extend(flags.map(str::to_owned));
    cluster.extra.extend(["--autoscale-command".to_owned(), hook.display().to_string()]);
    (1..=3).for_each(|id| cluster.launch(id));
    let leader = cluster.settle().await[&0];
    for url in cluster.urls() {
        let page = told(&url).await;
        let first = &page.decisions[0];
        assert_eq!((first.from, first.to, &first.error), (0, 2, &None), "{first:?}");
        assert!(first.reason.contains("fewer than the least"), "{first:?}");
        assert!(first.node.is_some(), "{first:?}");
    }
    let lines = std::fs::read_to_string(&heard).expect("the hook was called");
    assert_eq!(lines.lines().next(), Some("2 0"));
    cluster.kill(leader);
    for id in (1..=3).filter(|id| *id != leader) {
        let page = told(&cluster.node(id).url.clone()).await;
        assert_eq!((page.decisions[0].from, page.decisions[0].to), (0, 2), "{page:?}");
    }
}
