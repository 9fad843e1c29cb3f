//! Leaving early: Ctrl-C or a request to stop ends the work, and with it the nodes that it started.

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// What an interruption means to nodes of our own.
pub(crate) const NODES_STOPPED: &str = "the nodes are stopped";

/// Runs `work` until it is done or this process is told to stop; then says what became of it. Dropping the work stops
/// the nodes that it started.
pub(crate) async fn until_interrupted<T>(
    consequence: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut terminate = signal(SignalKind::terminate())
        .map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
    tokio::select! {
        outcome = work => outcome,
        _ = tokio::signal::ctrl_c() => Err(Failure::failed(format!("interrupted; {consequence}"))),
        _ = terminate.recv() => Err(Failure::failed(format!("told to stop; {consequence}"))),
    }
}
