//! Role changes as a user follows them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::cluster::{Cluster, client};
use crate::fresh::ikada;
use crate::wait::until;

/// `ikada cluster events --follow`, read line by line; ended when dropped.
struct Follower {
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
}

impl Follower {
    fn start(url: &str) -> Follower {
        let mut command = ikada();
        command.args(["cluster", "events", "--follow", "--output", "json", "--url", url]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let told = BufReader::new(child.stdout.take().expect("piped"));
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = lines.clone();
        std::thread::spawn(move || {
            for line in told.lines().map_while(Result::ok) {
                kept.lock().expect("no panic").push(serde_json::from_str(&line).expect("JSON"));
            }
        });
        Follower { child, lines }
    }

    /// Waits for a line; gives its place.
    async fn hears(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> usize {
        until(what, || {
            let place = self.lines.lock().expect("no panic").iter().position(&wanted);
            async move { place }
        })
        .await
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// MQ-27: only the leader is named, it is killed, and the change is told by another node, with the votes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mq_27_who_follows_a_leader_that_is_killed_sees_the_next_one() {
    let mut cluster = Cluster::start().await;
    let leader = cluster.settle().await[&0];
    let follower = Follower::start(&cluster.node(leader).url);
    let id = leader.to_string();
    let source = |line: &Value| line["source"]["node"].as_str().map(str::to_owned);
    follower.hears("the leader tells", |line| source(line).as_ref() == Some(&id)).await;
    follower.hears("its election", |line| line["role"] == "leader" && line["shard"] == 0).await;
    cluster.kill(leader);
    let next = cluster.settle().await[&0];
    let moved = follower
        .hears("another node tells", |line| source(line).is_some_and(|node| node != id))
        .await;
    let told = follower.lines.lock().expect("no panic")[moved]["source"].clone();
    assert_eq!(told["continues"], false, "that something may be missing is said: {told}");
    let next_id = next.to_string();
    let heard = follower
        .hears("the next leader", |line| line["shard"] == 0 && line["leader"] == next_id.as_str())
        .await;
    assert!(heard > moved, "it is told by the other node");
    let events = client(&[cluster.node(next).url.clone()]).events(0).await.expect("events").events;
    let won = events.iter().rfind(|event| event.shard == 0 && event.role == "leader");
    let won = won.expect("the election is kept");
    if cluster.is_in_database() {
        assert!(won.votes.is_none() && won.reason == "took the lease", "{won:?}");
        return;
    }
    let votes = won.votes.clone().expect("a vote decided it");
    assert!(votes.granted.len() == 2 && votes.refused.is_empty(), "{votes:?}");
    assert!(won.pre_votes.is_some() && won.reason == "election won", "{won:?}");
}
