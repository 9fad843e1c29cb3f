//! `ikada queue list|show|set|pause|resume`.

use crate::args::{QueueCommand, SharedArgs};
use crate::failure::Failure;
use crate::render::Screen;

pub(crate) async fn queue(
    shared: &SharedArgs,
    command: QueueCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let client = shared.client()?;
    let shown = match command {
        QueueCommand::List => {
            let page = client.queues().await?;
            return screen.show(&page);
        }
        QueueCommand::Show(queue) => client.queue(&queue.name).await?,
        QueueCommand::Set(set) => {
            let settings = set
                .settings()
                .ok_or_else(|| Failure::usage("queue set needs at least one setting to change"))?;
            client.set_queue(&set.name, &settings).await?
        }
        QueueCommand::Pause(queue) => client.pause_queue(&queue.name).await?,
        QueueCommand::Resume(queue) => client.resume_queue(&queue.name).await?,
    };
    screen.show(&shown)
}
