//! `ikada cluster status|events|transfer` and where the other verbs are.

use std::time::Duration;

use ikada_api::Client;
use ikada_api::v1::{Number, TransferRequest};

use super::{backup, members};
use crate::args::{ClusterCommand, EventsArgs, SharedArgs, TransferArgs};
use crate::failure::Failure;
use crate::render::Screen;

/// How often new events are looked for.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);

pub(crate) async fn cluster(
    shared: &SharedArgs,
    command: ClusterCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    // These two work on folders, without a cluster.
    match &command {
        ClusterCommand::Restore(args) => return backup::restore(args),
        ClusterCommand::Recover(args) => return backup::recover(args),
        _ => {}
    }
    let client = shared.client()?;
    match command {
        ClusterCommand::Backup(args) => backup::backup(&client, &args).await,
        ClusterCommand::Status => {
            let seen = client.cluster().await?;
            screen.show(&seen)
        }
        ClusterCommand::Events(events) => show_events(&client, &events, screen).await,
        ClusterCommand::Transfer(transfer) => move_leaders(&client, &transfer, screen).await,
        other => members::members(&client, other, screen).await,
    }
}

async fn show_events(
    client: &Client,
    args: &EventsArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let mut source = client.node().await?;
    let mut page = client.events(args.after).await?;
    eprintln!("role changes of node {}, by its own clock", page.node);
    screen.show(&page.events)?;
    if !args.follow {
        return Ok(());
    }
    loop {
        tokio::time::sleep(FOLLOW_EVERY).await;
        let now = client.node().await?;
        let mut after = page.next;
        // Sequences begin anew in another node, and in a node that was restarted.
        if (now.node, now.started_ms) != (source.node, source.started_ms) {
            eprintln!("now node {}, from its start", now.node);
            (source, after) = (now, 0);
        }
        page = client.events(after).await?;
        if !page.events.is_empty() {
            screen.show_more(&page.events)?;
        }
    }
}

async fn move_leaders(
    client: &Client,
    args: &TransferArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let wish =
        TransferRequest { shard: args.shard, to: args.to.map(Number), from: args.from.map(Number) };
    let result = client.transfer(&wish).await?;
    screen.show(&result)?;
    match result.shards.iter().find_map(|shard| shard.problem.as_ref()) {
        Some(problem) => Err(Failure::Refused { message: problem.to_string() }),
        None => Ok(()),
    }
}
