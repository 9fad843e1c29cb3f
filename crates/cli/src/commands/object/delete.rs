//! `ikada object delete`.

use ikada_api::Client;

use super::place::{one, split};
use super::{is_gone, objects_in};
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
    let (bucket, key) = split(&args.target)?;
    let mut is_first = true;
    for object in objects_in(client, bucket, key).await? {
        let removed = match client.delete_object(bucket, &object.key, None).await {
            // Somebody else was faster.
            Err(error) if is_gone(&error) => continue,
            removed => removed?,
        };
        if is_first { screen.show(&removed) } else { screen.show_more(&removed) }?;
        is_first = false;
    }
    Ok(())
}
