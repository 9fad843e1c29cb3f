//! Shows something again and again, as it changes.

use std::time::Duration;

use ikada_api::client::Error;

use crate::args::WatchArgs;
use crate::failure::Failure;
use crate::render::{Document, Screen, plain};

/// Shows a document once, or until Ctrl-C. Nodes that come and go do not end it.
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
    screen.show_again(&first)?;
    loop {
        tokio::time::sleep(Duration::from_secs(args.every)).await;
        match ask().await {
            Ok(seen) => screen.show_again(&seen)?,
            Err(error @ (Error::Unavailable { .. } | Error::Unknown { .. })) => {
                eprintln!("no answer, asking again: {}", plain(&error.to_string()));
            }
            Err(error) => return Err(error.into()),
        }
    }
}
