//! `ikada cluster status|transfer|grow` and where the other verbs are.

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::Error;
use ikada_api::v1::{GrowRequest, Number, TransferRequest};

use super::watch::watch;
use super::{backup, events, members};
use crate::args::{ClusterCommand, GrowArgs, SharedArgs, TransferArgs};
use crate::failure::Failure;
use crate::render::{Screen, bar, plain};

/// How often a growth is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) async fn cluster(
    shared: &SharedArgs,
    command: ClusterCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    // These two work on folders, without a cluster.
    let command = match command {
        ClusterCommand::Restore(args) => return backup::restore(args, screen).await,
        ClusterCommand::Recover(args) => return backup::recover(&args, screen).await,
        other => other,
    };
    let client = shared.client()?;
    match command {
        ClusterCommand::Backup(args) => backup::take(&client, &args, screen).await,
        ClusterCommand::Status(args) => watch(&args, screen, || client.cluster()).await,
        ClusterCommand::Events(args) => events::events(shared, &args, screen).await,
        ClusterCommand::Grow(growth) => grow(&client, &growth, screen).await,
        ClusterCommand::Transfer(transfer) => move_leaders(&client, &transfer, screen).await,
        other => members::members(&client, other, screen).await,
    }
}

/// Begins a growth and shows how far it is until it is over. It goes on without us.
async fn grow(client: &Client, args: &GrowArgs, screen: &mut Screen) -> Result<(), Failure> {
    let begun = client.grow(&GrowRequest { shards: args.shards }).await?;
    if args.no_wait {
        return screen.show(&begun);
    }
    let bar = bar(u64::from(begun.slots), "slots");
    loop {
        let seen = client.cluster().await?;
        match seen.growth {
            Some(growth) => bar.set_position(u64::from(growth.moved)),
            // A node that has not heard of it yet has fewer shards.
            None if seen.shards.len() >= usize::from(begun.shards) => break,
            None => {}
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    bar.finish();
    screen.show(&begun)
}

async fn move_leaders(
    client: &Client,
    args: &TransferArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let wish =
        TransferRequest { shard: args.shard, to: args.to.map(Number), from: args.from.map(Number) };
    // A node that leads already is what was asked for.
    let result = match client.transfer(&wish).await {
        Err(Error::Refused(problem)) if problem.code == "already_leader" => {
            eprintln!("{}", plain(&problem.detail));
            return Ok(());
        }
        result => result?,
    };
    screen.show(&result)?;
    let mut problems = result.shards.iter().filter_map(|shard| shard.problem.as_ref());
    match problems.find(|problem| problem.code != "already_leader") {
        Some(problem) => Err(Failure::refused(problem)),
        None => Ok(()),
    }
}
