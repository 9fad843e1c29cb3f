//! Sends what a program says to the cluster while it runs, and once more at its end.
//!
//! The log of an attempt is one object, written anew as it grows, at intervals that grow with it: a quick or silent
//! program costs nothing, a short log is a second or a few old, a long one costs no more bytes per second than a short
//! one. It can be read after this worker is gone, until the task goes.

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{ObjectSource, PutOptions};

use super::{Log, Progress, Stop};

/// The bucket of logs.
const BUCKET: &str = "logs";
/// First pause between two writes; it doubles.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// Longest pause of a short log: how old it may be for whoever follows it.
const PAUSE_MAX: Duration = Duration::from_secs(4);
/// A log that is so long is written at longer pauses, in proportion.
const SHORT_BYTES: usize = 128 << 10;
/// How long the last write may take: a result must not wait for its log.
const LAST_WRITE: Duration = Duration::from_secs(5);
/// The same for an attempt that was told to stop: its slot should be free two seconds after it has ended (B4-30).
const LAST_WRITE_STOPPED: Duration = Duration::from_secs(1);

/// Runs an attempt, keeps its log up to date, and tells how far it is.
pub(super) async fn send_while<T>(
    client: &Client,
    name: &str,
    log: &Log,
    tell: impl Fn(&Progress),
    stop: &Stop,
    running: impl Future<Output = T>,
) -> T {
    let mut running = std::pin::pin!(running);
    let (mut pause, mut sent, mut told) = (PAUSE_FIRST, 0, None);
    let ended = loop {
        tokio::select! {
            ended = &mut running => break ended,
            () = tokio::time::sleep(pause) => {}
        }
        let progress = log.progress();
        if progress != told {
            log.note_progress();
            progress.iter().for_each(&tell);
            told = progress;
        }
        // The run is awaited at the same time: a slow write must not keep it from being stopped.
        let writing = send(client, name, log, &mut sent);
        tokio::select! {
            ended = &mut running => break ended,
            wrote = writing => if wrote { pause = next_pause(pause, sent) },
        }
    };
    if tokio::time::timeout(last_write(stop), send(client, name, log, &mut sent)).await.is_err() {
        tracing::warn!(log = name, "the end of a log could not be stored in time");
    }
    ended
}

/// How long the last write may take.
fn last_write(stop: &Stop) -> Duration {
    if stop.is_told() { LAST_WRITE_STOPPED } else { LAST_WRITE }
}

/// How long to wait after a write of so many bytes.
fn next_pause(pause: Duration, bytes: usize) -> Duration {
    (pause * 2).min(PAUSE_MAX * (1 + bytes / SHORT_BYTES) as u32)
}

/// Writes the log if it has grown; tells whether it did.
async fn send(client: &Client, name: &str, log: &Log, sent: &mut usize) -> bool {
    let bytes = log.since(0);
    if bytes.len() == *sent {
        return false;
    }
    let length = bytes.len();
    let content_type = Some("text/plain; charset=utf-8".to_owned());
    let options = PutOptions { content_type, ..PutOptions::default() };
    match client.put_object(BUCKET, name, &ObjectSource::Bytes(bytes.into()), &options).await {
        Ok(_) => *sent = length,
        // The next write brings it along; a task that is gone has no log.
        Err(error) => tracing::debug!(log = name, %error, "a log could not be stored"),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b4_30_an_attempt_that_was_told_to_stop_frees_its_slot_within_two_seconds() {
        let (stopper, stop) = Stop::pair();
        assert_eq!(last_write(&stop), LAST_WRITE);
        stopper.stop();
        assert!(last_write(&stop) < Duration::from_secs(2));
    }
}
