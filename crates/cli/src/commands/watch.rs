//! Shows something again and again, as it changes.

use std::time::Duration;

use ikada_api::client::Error;

use crate::args::WatchArgs;
use crate::failure::Failure;
use crate::render::{Document, Screen, say, while_heard};

/// Shows a document once, or until Ctrl-C or until nobody reads it any more. Nodes that come and go do not end it.
pub(super) async fn watch<D: Document, F>(
    args: &WatchArgs,
    screen: &mut Screen,
    ask: impl Fn() -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<D, Error>>,
{
    let first = ask().await?;
    if !args.follow {
        return screen.show(&first);
    }
    while_heard(again(args.every, first, screen, ask)).await
}

async fn again<D: Document, F>(
    every_s: u64,
    first: D,
    screen: &mut Screen,
    ask: impl Fn() -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<D, Error>>,
{
    screen.show_again(&first)?;
    loop {
        tokio::time::sleep(Duration::from_secs(every_s)).await;
        match ask().await {
            Ok(seen) => screen.show_again(&seen)?,
            Err(error @ (Error::Unavailable { .. } | Error::Unknown { .. })) => {
                say(&format!("no answer, asking again: {error}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
}
