//! `ikada cluster status|events|transfer`.

use std::time::Duration;

use ikada_api::Client;
use ikada_api::v1::{Number, TransferRequest};

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
    let client = shared.client()?;
    match command {
        ClusterCommand::Status => {
            let seen = client.cluster().await?;
            screen.show(&seen)
        }
        ClusterCommand::Events(events) => show_events(&client, &events, screen).await,
        ClusterCommand::Transfer(transfer) => move_leaders(&client, &transfer, screen).await,
    }
}

async fn show_events(
    client: &Client,
    args: &EventsArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let mut after = args.after;
    loop {
        let page = client.events(after).await?;
        if !page.events.is_empty() || !args.follow {
            screen.show(&page.events)?;
        }
        after = page.next;
        if !args.follow {
            return Ok(());
        }
        tokio::time::sleep(FOLLOW_EVERY).await;
    }
}

async fn move_leaders(
    client: &Client,
    args: &TransferArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let wish = TransferRequest { shard: args.shard, to: args.to.map(Number) };
    let result = client.transfer(&wish).await?;
    screen.show(&result)?;
    match result.shards.iter().find_map(|shard| shard.problem.as_ref()) {
        Some(problem) => Err(Failure::Refused { message: problem.to_string() }),
        None => Ok(()),
    }
}
