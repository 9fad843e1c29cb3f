//! `ikada lease run|list|show|acquire|release`.

mod companion;
mod run;

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::Error;
use ikada_api::v1::{AcquireLease, LeasePage, LeaseTask, Number, ReleaseLease};

use super::watch::watch;
use crate::args::{LeaseCommand, LeaseTakeArgs, SharedArgs};
use crate::failure::Failure;
use crate::render::{Screen, say, while_heard};

pub(crate) use companion::companion;

/// Pause before a cluster that could not serve is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// One look at a watched lease waits this long for news.
const WATCH_STEP: Duration = Duration::from_secs(30);

pub(crate) async fn lease(
    shared: &SharedArgs,
    command: LeaseCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let client = shared.client()?;
    match command {
        LeaseCommand::Run(args) => run::run(&client, args).await,
        LeaseCommand::List(args) => watch(&args, screen, || list(&client)).await,
        LeaseCommand::Show(args) => {
            let shown = client.lease(&args.name).await?;
            screen.show(&shown)?;
            match args.watch {
                true => while_heard(holders(&client, &args.name, shown.fence, screen)).await,
                false => Ok(()),
            }
        }
        LeaseCommand::Acquire(args) => {
            let (name, wish) = wish(args);
            screen.show(&client.acquire_lease(&name, &wish).await?)
        }
        LeaseCommand::Release(args) => {
            let fence = args.fence.map(Number);
            let release = ReleaseLease { holder: args.holder, fence, force: args.force };
            screen.show(&client.release_lease(&args.name, &release).await?)
        }
    }
}

/// Shows each new holder, until nobody reads it any more. Nodes come and go meanwhile.
async fn holders(
    client: &Client,
    name: &str,
    mut before: Option<Number>,
    screen: &mut Screen,
) -> Result<(), Failure> {
    loop {
        let shown = match client.watch_lease(name, before, WATCH_STEP).await {
            Ok(shown) => shown,
            Err(error @ (Error::Unavailable { .. } | Error::Unknown { .. })) => {
                say(&format!("no answer, asking again: {error}"));
                tokio::time::sleep(ASK_AGAIN).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if shown.fence != before {
            screen.show_next(&shown)?;
        }
        before = shown.fence;
    }
}

fn wish(args: LeaseTakeArgs) -> (String, AcquireLease) {
    let task = args.task.zip(args.task_fence);
    let task = task.map(|(id, fence)| LeaseTask { id, fence: Number(fence) });
    let (holder, ttl_ms, wait_ms) = (args.holder, args.ttl_ms, args.wait_ms);
    (args.name, AcquireLease { holder, ttl_ms, wait_ms, task })
}

/// All pages together.
async fn list(client: &Client) -> Result<LeasePage, Error> {
    let mut all = client.leases(None).await?;
    while let Some(next) = all.next.take() {
        let page = client.leases(Some(&next)).await?;
        all.leases.extend(page.leases);
        all.next = page.next;
    }
    Ok(all)
}
