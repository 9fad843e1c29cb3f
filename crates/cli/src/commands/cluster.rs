//! `ikada cluster status|events|transfer|grow` and where the other verbs are.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ikada_api::Client;
use ikada_api::v1::{GrowRequest, Number, TransferRequest};
use indicatif::{ProgressBar, ProgressStyle};

use super::{backup, members};
use crate::args::{ClusterCommand, EventsArgs, GrowArgs, SharedArgs, TransferArgs};
use crate::failure::Failure;
use crate::render::{Screen, draw};

/// Columns of a timeline.
const TIMELINE_COLUMNS: usize = 60;
/// A node that does not answer within this time is left out of a timeline.
const NODE_PATIENCE: Duration = Duration::from_secs(3);
/// How often new events are looked for.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);
/// How often a growth is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

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
        ClusterCommand::Grow(growth) => grow(&client, &growth, screen).await,
        ClusterCommand::Transfer(transfer) => move_leaders(&client, &transfer, screen).await,
        other => members::members(&client, other, screen).await,
    }
}

async fn show_events(
    client: &Client,
    args: &EventsArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    if let Some(minutes) = args.timeline {
        return show_timeline(client, minutes).await;
    }
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

/// Asks every member that answers for its events, and draws them.
async fn show_timeline(client: &Client, minutes: u64) -> Result<(), Failure> {
    let mut events = BTreeMap::new();
    for member in client.cluster().await?.members {
        let node = Client::new([format!("http://{}", member.client_addr)])?;
        match node.with_timeout(NODE_PATIENCE).events(0).await {
            Ok(page) => drop(events.insert(member.node.0, page.events)),
            Err(error) => eprintln!("node {} does not tell its events: {error}", member.node),
        }
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let to_ms = now.as_millis() as u64;
    let from_ms = to_ms.saturating_sub(minutes.max(1) * 60_000);
    for line in draw(&events, from_ms, to_ms, TIMELINE_COLUMNS) {
        println!("{line}");
    }
    Ok(())
}

/// Begins a growth and shows how far it is until it is over. It goes on without us.
async fn grow(client: &Client, args: &GrowArgs, screen: &mut Screen) -> Result<(), Failure> {
    let begun = client.grow(&GrowRequest { shards: args.shards }).await?;
    if args.no_wait {
        return screen.show(&begun);
    }
    let bar = ProgressBar::new(u64::from(begun.slots));
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} slots, {per_sec}, {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
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
    let result = client.transfer(&wish).await?;
    screen.show(&result)?;
    match result.shards.iter().find_map(|shard| shard.problem.as_ref()) {
        Some(problem) => Err(Failure::Refused { message: problem.to_string() }),
        None => Ok(()),
    }
}
