//! `ikada cluster add|remove|replace|cordon|uncordon|priority|elections`: asks for the change, then shows how it goes on.
//!
//! Promise: a change is called done once a node sees its outcome in every shard. A node that says nothing of it may not have heard of it.

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::Error;
use ikada_api::v1::{
    AddNode, ChangeView, ClusterView, Number, ShardView, SteerNode, TuneElections,
};

use super::confirm::confirm;
use crate::args::{ClusterCommand, ElectionsArgs};
use crate::failure::Failure;
use crate::render::{Screen, bar};

/// How often progress is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A change that makes no progress for this long is left to go on by itself.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn members(
    client: &Client,
    command: ClusterCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let (change, no_wait) = match command {
        ClusterCommand::Add(args) => {
            let wish = AddNode { peer_addr: args.peer_addr, replaces: None };
            (client.add_node(&wish).await?, args.patience.no_wait)
        }
        ClusterCommand::Replace(args) => {
            let wish = AddNode { peer_addr: args.peer_addr, replaces: Some(Number(args.node)) };
            (patiently(|| client.add_node(&wish)).await?, args.patience.no_wait)
        }
        ClusterCommand::Remove(args) => {
            let node = args.node;
            confirm(args.yes, &format!("Remove node {node} for good? Its id is not used again."))?;
            (patiently(|| client.remove_node(args.node)).await?, args.patience.no_wait)
        }
        ClusterCommand::Cordon(args) => {
            return steer(client, args.node, cordon(true), screen).await;
        }
        ClusterCommand::Uncordon(args) => {
            return steer(client, args.node, cordon(false), screen).await;
        }
        ClusterCommand::Priority(args) => {
            let wish = SteerNode { priority: Some(args.priority), cordoned: None };
            return steer(client, args.node, wish, screen).await;
        }
        ClusterCommand::Elections(args) => return elections(client, &args, screen).await,
        // The rest is not about members.
        _ => return Ok(()),
    };
    let last = if no_wait { change } else { watch(client, change).await? };
    screen.show(&last)
}

/// Asks again while the other nodes still fetch what the leaving one has.
async fn patiently<F>(ask: impl Fn() -> F) -> Result<ChangeView, Error>
where
    F: Future<Output = Result<ChangeView, Error>>,
{
    let until = std::time::Instant::now() + PATIENCE;
    let mut told = false;
    loop {
        match ask().await {
            Err(error)
                if error.code() == Some("copies_missing") && std::time::Instant::now() < until =>
            {
                if !told {
                    eprintln!("waiting until the other nodes have the files of the leaving one");
                    told = true;
                }
            }
            other => return other,
        }
    }
}

fn cordon(cordoned: bool) -> SteerNode {
    SteerNode { cordoned: Some(cordoned), priority: None }
}

async fn steer(
    client: &Client,
    node: u64,
    wish: SteerNode,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let seen = client.steer_node(node, &wish).await?;
    screen.show(&seen)
}

async fn elections(
    client: &Client,
    args: &ElectionsArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let wish = TuneElections { timeout_ms: args.timeout_ms };
    let cluster = match args.reset || wish.timeout_ms.is_some() {
        true => client.tune_elections(&wish).await?,
        false => client.cluster().await?,
    };
    // Recorded at once, followed by every node within a moment.
    screen.show(&cluster.elections)
}

/// Follows a change to its end; every new stage is told once.
async fn watch(client: &Client, mut change: ChangeView) -> Result<ChangeView, Failure> {
    let number = change.number;
    if number == 0 {
        return Ok(change);
    }
    let mut told = String::new();
    let mut moved = std::time::Instant::now();
    let bar = bar(u64::from(change.shards), "shards");
    loop {
        let line =
            format!("{} ({} of {} shards done)", change.stage, change.shards_done, change.shards);
        bar.set_position(u64::from(change.shards_done));
        bar.set_message(change.stage.clone());
        if line != told {
            // Where there is no bar to be seen, the stages are told.
            if bar.is_hidden() {
                eprintln!("{line}");
            }
            told = line;
            moved = std::time::Instant::now();
        }
        if moved.elapsed() > PATIENCE {
            bar.finish_and_clear();
            let message = format!(
                "change {number} goes on, but nothing moved for {} s: {told}",
                PATIENCE.as_secs()
            );
            let next = "are all nodes up? watch it: ikada cluster status -f";
            return Err(Failure::failed_next(message, next));
        }
        tokio::time::sleep(LOOK_EVERY).await;
        let seen = client.cluster().await?;
        match seen.change.as_ref().filter(|now| now.number == number) {
            Some(now) => change = now.clone(),
            None if is_outcome(&change, &seen) => break,
            // Its shards may be out of joint for the next one already.
            None if seen.change.as_ref().is_some_and(|other| other.number > number) => {
                if is_there(&change, &seen) {
                    break;
                }
                bar.finish_and_clear();
                let message = format!("change {number} was called off by another one");
                return Err(Failure::failed_next(message, "look: ikada cluster status"));
            }
            // This node has not heard of it, or not of all of it: it is asked again, or another one.
            None => {}
        }
    }
    bar.finish_and_clear();
    Ok(ChangeView { shards_done: change.shards, stage: "done".to_owned(), ..change })
}

/// Whether what a node sees is what the change was to bring, in every shard.
fn is_outcome(change: &ChangeView, seen: &ClusterView) -> bool {
    let is_settled = !seen.shards.is_empty() && !seen.shards.iter().any(|shard| shard.joint);
    is_settled && is_there(change, seen)
}

/// The same, whether or not a shard is on its way to something else.
fn is_there(change: &ChangeView, seen: &ClusterView) -> bool {
    let is_member = |node: Number| seen.members.iter().any(|member| member.node == node);
    let came = |node: Number| {
        is_member(node) && seen.shards.iter().all(|shard| shard.voters.contains(&node))
    };
    let went = |node: Number| {
        let is_there =
            |shard: &ShardView| shard.voters.contains(&node) || shard.learners.contains(&node);
        !is_member(node) && !seen.shards.iter().any(is_there)
    };
    change.add.is_none_or(came) && change.remove.is_none_or(went)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cluster of these members, with these voters and learners in its two shards.
    fn seen(members: &[u64], voters: [&[u64]; 2], learners: [&[u64]; 2]) -> ClusterView {
        let ids = |nodes: &[u64]| nodes.iter().map(u64::to_string).collect::<Vec<_>>();
        let member = |node: &u64| serde_json::json!({"node": node.to_string(), "peer_addr": "a:1", "client_addr": "a:2", "connected": true, "leads": 0});
        let shard = |shard: usize| {
            serde_json::json!({"shard": shard, "term": 1, "commit": 1, "voters": ids(voters[shard]),
                "learners": ids(learners[shard]), "joint": false, "scheduled": 0, "ready": 0, "claimed": 0, "finished": 0})
        };
        let cluster = serde_json::json!({"cluster": "1", "answered_by": "1", "status": "healthy",
            "members": members.iter().map(member).collect::<Vec<_>>(), "shards": [shard(0), shard(1)]});
        serde_json::from_value(cluster).expect("a cluster")
    }

    fn change(add: Option<u64>, remove: Option<u64>) -> ChangeView {
        let (add, remove) = (add.map(Number), remove.map(Number));
        let stage = "begun".to_owned();
        ChangeView { number: 7, add, remove, since_ms: 0, shards_done: 0, shards: 2, stage }
    }

    #[test]
    fn ch_14_a_change_is_done_once_its_outcome_is_seen_in_every_shard() {
        let none: [&[u64]; 2] = [&[], &[]];
        let add = change(Some(2), None);
        // A node that has not heard of the change looks like one for which it is over, but for the members.
        assert!(!is_outcome(&add, &seen(&[1], [&[1], &[1]], none)));
        assert!(!is_outcome(&add, &seen(&[1, 2], [&[1, 2], &[1]], [&[], &[2]])));
        assert!(is_outcome(&add, &seen(&[1, 2], [&[1, 2], &[1, 2]], none)));
        let remove = change(None, Some(2));
        assert!(!is_outcome(&remove, &seen(&[1, 2], [&[1, 2], &[1, 2]], none)));
        assert!(!is_outcome(&remove, &seen(&[1], [&[1], &[1, 2]], none)));
        assert!(!is_outcome(&remove, &seen(&[1], [&[1], &[1]], [&[], &[2]])));
        assert!(is_outcome(&remove, &seen(&[1], [&[1], &[1]], none)));
        let replace = change(Some(3), Some(2));
        assert!(!is_outcome(&replace, &seen(&[1, 2, 3], [&[1, 2, 3], &[1, 2, 3]], none)));
        assert!(is_outcome(&replace, &seen(&[1, 3], [&[1, 3], &[1, 3]], none)));
    }
}
