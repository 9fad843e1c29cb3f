//! `ikada lease run|list|show|acquire|release`.

mod companion;
mod run;

use std::time::Duration;

use ikada_api::Client;
use ikada_api::v1::{AcquireLease, LeasePage, LeaseTask, Number, ReleaseLease};

use crate::args::{LeaseCommand, LeaseTakeArgs, SharedArgs};
use crate::failure::Failure;
use crate::render::Screen;

pub(crate) use companion::companion;

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
        LeaseCommand::List => screen.show(&list(&client).await?),
        LeaseCommand::Show(args) => {
            let mut shown = client.lease(&args.name).await?;
            screen.show(&shown)?;
            if !args.watch {
                return Ok(());
            }
            loop {
                let before = shown.fence;
                shown = client.watch_lease(&args.name, before, WATCH_STEP).await?;
                if shown.fence != before {
                    screen.show_more(&shown)?;
                }
            }
        }
        LeaseCommand::Acquire(args) => {
            let (name, wish) = wish(args);
            screen.show(&client.acquire_lease(&name, &wish).await?)
        }
        LeaseCommand::Release(args) => {
            let fence = args.fence.map(Number);
            let release = ReleaseLease { holder: args.holder, fence };
            screen.show(&client.release_lease(&args.name, &release).await?)
        }
    }
}

fn wish(args: LeaseTakeArgs) -> (String, AcquireLease) {
    let task = args.task.zip(args.task_fence);
    let task = task.map(|(id, fence)| LeaseTask { id, fence: Number(fence) });
    let (holder, ttl_ms, wait_ms) = (args.holder, args.ttl_ms, args.wait_ms);
    (args.name, AcquireLease { holder, ttl_ms, wait_ms, task })
}

/// All pages together.
async fn list(client: &Client) -> Result<LeasePage, Failure> {
    let mut all = client.leases(None).await?;
    while let Some(next) = all.next.take() {
        let page = client.leases(Some(&next)).await?;
        all.leases.extend(page.leases);
        all.next = page.next;
    }
    Ok(all)
}
