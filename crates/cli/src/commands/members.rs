//! `ikada cluster add|remove|replace|cordon|uncordon|priority|elections`: asks for the change, then shows how it goes on.

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::Error;
use ikada_api::v1::{AddNode, ChangeView, Number, SteerNode, TuneElections};

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
            return Err(Failure::failed(format!(
                "the change goes on, but nothing moved for {} s; are all nodes up? see `ikada cluster status`",
                PATIENCE.as_secs()
            )));
        }
        tokio::time::sleep(LOOK_EVERY).await;
        // A node that does not follow the change any more still names it; another one then tells.
        match client.cluster().await?.change {
            Some(now) if now.number == number => change = now,
            _ => break,
        }
    }
    bar.finish_and_clear();
    Ok(ChangeView { shards_done: change.shards, stage: "done".to_owned(), ..change })
}
