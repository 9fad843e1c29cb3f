//! `ikada object list`.

use ikada_api::Client;

use super::place::split;
use crate::args::ObjectListArgs;
use crate::failure::Failure;
use crate::render::Screen;

pub(super) async fn list(
    client: &Client,
    args: ObjectListArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let next = match &args.place {
            None => {
                let page = client.buckets(after.as_deref()).await?;
                show(screen, &page, after.is_none())?;
                page.next
            }
            Some(place) => {
                let (bucket, prefix) = split(place)?;
                let page = client.objects(bucket, prefix, after.as_deref(), args.versions).await?;
                show(screen, &page, after.is_none())?;
                page.next
            }
        };
        after = next;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn show(
    screen: &mut Screen,
    page: &dyn crate::render::Document,
    first: bool,
) -> Result<(), Failure> {
    if first { screen.show(page) } else { screen.show_next(page) }
}
