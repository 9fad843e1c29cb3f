//! Whether anybody still reads what is printed: `ikada job logs -f | head -1` ends with `head`, at once and without a complaint.
//!
//! Promise: what follows ends when its reader is gone, also while there is nothing new to print. Work that changes something is not
//! broken off for want of a reader; it goes on in silence.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;

use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

use crate::failure::Failure;

/// Follows something for as long as somebody reads it.
pub(crate) async fn while_heard(
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    tokio::select! {
        ended = work => ended,
        () = unheard() => Err(Failure::Unheard),
    }
}

/// Comes back once the other end of the pipe that is standard output was closed.
async fn unheard() {
    let out = std::io::stdout();
    // A terminal goes away with a signal; a file, which cannot be watched, never does.
    if out.is_terminal() {
        return std::future::pending().await;
    }
    // Nothing is written by this handle, so that it may be left as it is: whoever shares the pipe may count on a blocking one.
    let watched = out.as_fd().try_clone_to_owned().and_then(Sender::from_owned_fd_unchecked);
    let Ok(watched) = watched else {
        return std::future::pending().await;
    };
    if watched.ready(Interest::ERROR).await.is_err() {
        std::future::pending().await
    }
}

/// Puts text on standard output; a reader that is gone is a failure of its own kind.
pub(crate) fn put(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::Unheard),
        Err(error) => Err(Failure::failed(format!("standard output: {error}"))),
    }
}

/// Says something on standard error, as it may stand on a terminal. Nobody may be there any more, which is no reason to fall over.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", super::plain(text));
}
