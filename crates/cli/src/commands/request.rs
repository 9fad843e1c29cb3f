//! `ikada request show|void`.

use crate::args::{RequestCommand, SharedArgs};
use crate::failure::Failure;
use crate::render::Screen;

pub(crate) async fn request(
    shared: &SharedArgs,
    command: RequestCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let client = shared.client()?;
    let info = match command {
        RequestCommand::Show(args) => client.request(&args.id, args.item).await?,
        RequestCommand::Void(args) => client.void_request(&args.id, args.item).await?,
    };
    screen.show(&info)
}
