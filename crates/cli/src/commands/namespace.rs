//! `ikada namespace list|show|set`.

use super::watch::watch;
use crate::args::{NamespaceCommand, SharedArgs};
use crate::failure::Failure;
use crate::render::Screen;

pub(crate) async fn namespace(
    shared: &SharedArgs,
    command: NamespaceCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let client = shared.client()?;
    let shown = match command {
        NamespaceCommand::List(args) => return watch(&args, screen, || client.namespaces()).await,
        NamespaceCommand::Show(args) => match args.name {
            Some(name) => client.namespace(&name).await?,
            None => client.quota().await?,
        },
        NamespaceCommand::Set(set) => {
            let quota = set.quota().ok_or_else(|| {
                Failure::usage("namespace set needs at least one bound to change")
            })?;
            client.set_quota(&set.name, &quota).await?
        }
    };
    screen.show(&shown)
}
