//! Leaving early: Ctrl-C or a request to stop ends the work, and with it the nodes that it started.

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// Runs `work` until it is done or this process is told to stop. Dropping the work stops its nodes.
pub(crate) async fn until_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut terminate = signal(SignalKind::terminate())
        .map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
    tokio::select! {
        outcome = work => outcome,
        _ = tokio::signal::ctrl_c() => Err(Failure::failed("interrupted; the nodes are stopped")),
        _ = terminate.recv() => Err(Failure::failed("told to stop; the nodes are stopped")),
    }
}
