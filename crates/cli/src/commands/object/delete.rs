//! `ikada object delete`.

use ikada_api::Client;

use super::objects_under;
use super::place::{one, split};
use crate::args::ObjectDeleteArgs;
use crate::failure::Failure;
use crate::render::Screen;

pub(super) async fn delete(
    client: &Client,
    args: ObjectDeleteArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    if !args.recursive {
        let (bucket, key) = one(&args.target)?;
        let removed = client.delete_object(bucket, key, args.version).await?;
        return screen.show(&removed);
    }
    let (bucket, prefix) = split(&args.target)?;
    for (number, object) in objects_under(client, bucket, prefix).await?.iter().enumerate() {
        let removed = client.delete_object(bucket, &object.key, None).await?;
        if number == 0 { screen.show(&removed) } else { screen.show_more(&removed) }?;
    }
    Ok(())
}
