//! Nodes come and go while clients write: added, replaced, removed, by the command line as an operator would.

use std::process::Command;

use ikada_api::client::{GetOptions, ObjectSource, PutOptions};
use ikada_api::v1::ClusterView;

use crate::cluster::{Cluster, client, is_passed_over};
use crate::fresh::{ikada, refusal};
use crate::wait::until;
use crate::work::{Stream, check_all_there};

/// `ikada cluster ...` against one node.
fn order(cluster: &Cluster, through: u64, args: &[&str]) -> Command {
    let mut command = ikada();
    command.args(["cluster", "--url", &cluster.node(through).url]).args(args);
    command
}

/// Runs it; it must end well.
async fn run(mut command: Command) -> String {
    let ran = tokio::task::spawn_blocking(move || command.output().expect("it runs")).await;
    let output = ran.expect("joined");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

/// Runs it; it must be refused. Gives what it said.
async fn run_refused(mut command: Command) -> String {
    tokio::task::spawn_blocking(move || refusal(&mut command)).await.expect("joined")
}

/// Waits until a node sees these members, all voters of every shard, and no change under way.
async fn members_become(cluster: &Cluster, through: u64, wanted: &[u64]) -> ClusterView {
    let client = client(&[cluster.node(through).url.clone()]);
    until("the members become as wanted", || async {
        let seen = client.cluster().await.ok()?;
        let members: Vec<u64> = seen.members.iter().map(|member| member.node.0).collect();
        let settled = seen.shards.iter().all(|shard| {
            let voters: Vec<u64> = shard.voters.iter().map(|node| node.0).collect();
            !shard.joint && shard.learners.is_empty() && voters == wanted
        });
        (members == wanted && settled && seen.change.is_none()).then_some(seen)
    })
    .await
}

// CH-14, R9, F-17: a lone node grows to three, then one is replaced, while clients write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_14_a_lone_node_grows_and_a_member_is_replaced() {
    if is_passed_over("members are not changed yet where they meet in a database") {
        return;
    }
    let mut cluster = Cluster::start_some(1, 4).await;
    let stream = Stream::start(&cluster.urls());
    stream.advance(50).await;
    let file = ObjectSource::Bytes(vec![7; 1_500_000].into());
    let stored = cluster.client().put_object("b", "k", &file, &PutOptions::default()).await;
    stored.expect("stored by one node");
    for id in [2, 3] {
        cluster.launch(id);
        until("the node waits", || async {
            cluster.log(id).contains("waiting to be added").then_some(())
        })
        .await;
        let said = run(order(&cluster, 1, &["add", &cluster.node(id).peer.clone()])).await;
        assert!(said.contains("shards done"), "progress is shown: {said}");
    }
    members_become(&cluster, 3, &[1, 2, 3]).await;
    // Asking again is harmless.
    run(order(&cluster, 2, &["add", &cluster.node(3).peer.clone()])).await;
    stream.advance(50).await;
    cluster.launch(4);
    let peer = cluster.node(4).peer.clone();
    until("the node waits", || async {
        cluster.log(4).contains("waiting to be added").then_some(())
    })
    .await;
    // Node 1 leads everything: it leaves safely, says so and stops.
    run(order(&cluster, 3, &["replace", "1", &peer])).await;
    let status = cluster.ended(1).await;
    assert!(status.success(), "a removed node ends well: {status}");
    assert!(cluster.log(1).contains("was removed from the cluster"), "{}", cluster.log(1));
    members_become(&cluster, 4, &[2, 3, 4]).await;
    let acked = stream.stop().await;
    cluster.settle().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
    // The node that took the file is gone.
    let read = client(&[cluster.node(4).url.clone()]);
    let read = read.get_object("b", "k", &GetOptions::default()).await.expect("there");
    assert!(read.collect().await.expect("whole") == vec![7; 1_500_000]);
    // The new members found each other by what the log says, also after a restart of all.
    for id in 2..=4 {
        cluster.kill(id);
    }
    for id in 2..=4 {
        cluster.launch(id);
    }
    cluster.settle().await;
    check_all_there(&cluster.client(), &acked).await;
    // The removed node is told at its next start, too.
    cluster.launch(1);
    assert!(cluster.ended(1).await.success());
    // One less: it gives its leaderships away, says so and stops, and what was acknowledged stays.
    let said = run(order(&cluster, 2, &["remove", "3"])).await;
    assert!(said.contains("shards done"), "progress is shown: {said}");
    let status = cluster.ended(3).await;
    assert!(status.success(), "a removed node ends well: {status}");
    assert!(cluster.log(3).contains("was removed from the cluster"), "{}", cluster.log(3));
    // The command came back when it was done, so that the members are as wanted at the first look at the node it asked.
    let seen = client(&[cluster.node(2).url.clone()]).cluster().await.expect("an answer");
    assert!(seen.members.iter().all(|member| member.node.0 != 3), "{:?}", seen.members);
    members_become(&cluster, 4, &[2, 4]).await;
    check_all_there(&cluster.client(), &acked).await;
}

// F-17: a wiped node does not come back under its id; a dead one can be removed and replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_node_is_replaced_under_a_new_id() {
    if is_passed_over("members are not changed yet where they meet in a database") {
        return;
    }
    let mut cluster = Cluster::start_some(3, 4).await;
    let before = client(&cluster.urls());
    let acked = crate::work::write_all(&before, "early", 40).await;
    cluster.kill(3);
    std::fs::remove_dir_all(&cluster.node(3).data).expect("wiped");
    cluster.founders = 2;
    let program = ikada();
    let said = run_refused(cluster.command(3, program)).await;
    assert!(said.contains("was wiped"), "{said}");
    // Removing another one would cost the majority.
    let said = run_refused(order(&cluster, 1, &["remove", "2"])).await;
    assert!(said.contains("majority"), "{said}");
    cluster.founders = 3;
    cluster.launch(4);
    let peer = cluster.node(4).peer.clone();
    until("the node waits", || async {
        cluster.log(4).contains("waiting to be added").then_some(())
    })
    .await;
    run(order(&cluster, 1, &["replace", "3", &peer])).await;
    members_become(&cluster, 2, &[1, 2, 4]).await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_cannot_be_are_refused_with_the_reason() {
    if is_passed_over("members are not changed yet where they meet in a database") {
        return;
    }
    let mut cluster = Cluster::start_some(1, 3).await;
    let say = |args: &[&str]| run_refused(order(&cluster, 1, args));
    assert!(say(&["remove", "1"]).await.contains("last member"));
    assert!(say(&["remove", "77"]).await.contains("no member has this id"));
    let nobody = cluster.node(3).peer.clone();
    assert!(say(&["add", &nobody]).await.contains("no node answers"));
    assert!(say(&["cordon", "77"]).await.contains("no member has this id"));
    // A node of another cluster.
    cluster.founders = 1;
    let mut other = Cluster::prepare(1);
    other.launch(1);
    other.settle().await;
    let said = run_refused(order(&cluster, 1, &["add", &other.node(1).peer.clone()])).await;
    assert!(said.contains("belongs to cluster"), "{said}");
    // One change at a time: node 2 is stopped in the middle of its own.
    cluster.launch(2);
    let peer = cluster.node(2).peer.clone();
    until("the node waits", || async {
        cluster.log(2).contains("waiting to be added").then_some(())
    })
    .await;
    cluster.signal(2, "STOP");
    cluster.signal(2, "CONT");
    run(order(&cluster, 1, &["add", "--no-wait", &peer])).await;
    cluster.kill(2);
    cluster.launch(3);
    until("the node waits", || async {
        cluster.log(3).contains("waiting to be added").then_some(())
    })
    .await;
    let third = order(&cluster, 1, &["add", &cluster.node(3).peer.clone()]);
    let begun = client(&cluster.urls()).cluster().await.expect("seen").change.is_some();
    if begun {
        let said = run_refused(third).await;
        assert!(said.contains("not finished"), "{said}");
    }
    cluster.launch(2);
    members_become(&cluster, 1, &[1, 2]).await;
}
