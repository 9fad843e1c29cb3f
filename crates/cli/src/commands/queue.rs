//! `ikada queue list|show|set|pause|resume|purge`.

use std::io::IsTerminal;

use ikada_api::Client;

use super::confirm::ask;
use super::watch::watch;
use crate::args::{PurgeArgs, QueueCommand, SharedArgs};
use crate::failure::Failure;
use crate::render::{Screen, spinner};

pub(crate) async fn queue(
    shared: &SharedArgs,
    command: QueueCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let client = shared.client()?;
    let shown = match command {
        QueueCommand::List(args) => return watch(&args, screen, || client.queues()).await,
        QueueCommand::Show(queue) => client.queue(&queue.name).await?,
        QueueCommand::Set(set) => {
            let settings = set
                .settings()
                .ok_or_else(|| Failure::usage("queue set needs at least one setting to change"))?;
            client.set_queue(&set.name, &settings).await?
        }
        QueueCommand::Pause(queue) => client.pause_queue(&queue.name).await?,
        QueueCommand::Resume(queue) => client.resume_queue(&queue.name).await?,
        QueueCommand::Purge(args) => return purge(&client, args, screen).await,
    };
    screen.show(&shown)
}

async fn purge(client: &Client, args: PurgeArgs, screen: &mut Screen) -> Result<(), Failure> {
    if !args.yes {
        if !std::io::stdin().is_terminal() {
            return Err(Failure::usage("queue purge asks first; without a terminal, add --yes"));
        }
        let counts = client.queue(&args.name).await?.counts;
        let waiting = counts.scheduled + counts.ready;
        let held = if args.claimed { counts.claimed } else { 0 };
        ask(&format!("Cancel {} tasks of queue {}?", waiting + held, args.name))?;
    }
    let turning = spinner(format!("cancelling the tasks of queue {}", args.name));
    let answer = client.purge_queue(&args.name, args.claimed).await;
    turning.finish_and_clear();
    screen.show(&answer?)
}
