//! `ikada worker-pool list|scaling|show|drain|remove`.

use super::watch::watch;
use crate::args::{SharedArgs, WorkerPoolCommand};
use crate::failure::Failure;
use crate::render::Screen;

pub(crate) async fn worker_pool(
    shared: &SharedArgs,
    command: WorkerPoolCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let client = shared.client()?;
    match command {
        WorkerPoolCommand::List(args) => watch(&args, screen, || client.workers()).await,
        WorkerPoolCommand::Scaling => screen.show(&client.scaling().await?),
        WorkerPoolCommand::Show(worker) => screen.show(&client.worker(&worker.name).await?),
        WorkerPoolCommand::Drain(worker) => screen.show(&client.drain_worker(&worker.name).await?),
        WorkerPoolCommand::Remove(worker) => {
            screen.show(&client.remove_worker(&worker.name).await?)
        }
    }
}
