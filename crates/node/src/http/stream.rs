//! Streams of events: what those of role changes, of the cluster and of jobs have in common.
//!
//! A stream belongs to a task of its own with a small buffer, and looks for news at intervals. Their number is bounded. A
//! reader that takes nothing for a while is cut off (F-33), and so is one whose token no longer holds; silence is filled
//! with comments, so that a dead connection is noticed.
//!
//! Leaves out: streams of logs, whose pieces are as large as what was said (`logs/tell.rs`).

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::channel::{Channel, Sender};
use hyper::StatusCode;
use tokio::sync::watch;

use super::answer::{Reply, Stop, with_body};
use super::app::App;
use super::connection::told_to_stop;
use super::door::Door;
use super::problems;
use super::request::Context;

/// What one reader is told.
pub(super) trait News: Send + 'static {
    /// The comment that opens the stream on the reader's side.
    const NAME: &'static str;
    /// Time between two looks.
    const LOOK_EVERY: Duration;
    /// Pieces that wait for the reader.
    const PIECES_MAX: usize;
    /// A comment is sent after this long without news.
    const ALIVE_EVERY: Duration = Duration::from_secs(15);
    /// A reader that takes nothing for this long is cut off.
    const READER_PATIENCE: Duration = Duration::from_secs(30);

    /// Adds the events since the last look; says whether there can be more.
    fn look(&mut self, piece: &mut String) -> impl Future<Output = bool> + Send;
}

/// Begins a stream; refused if there are too many.
pub(super) fn begin<D: Door, N: News>(
    app: &App<D>,
    context: &Context,
    news: N,
) -> Result<Reply, Stop> {
    let permit = app.streams.clone().try_acquire_owned();
    let permit = permit.map_err(|_| problems::door_full("event streams"))?;
    let (sender, body) = Channel::<Bytes, Infallible>::new(N::PIECES_MAX);
    let stopping = app.stopping.clone();
    let standing = app.security.standing(&context.principal);
    tokio::spawn(async move {
        tokio::select! {
            () = feed(news, sender, stopping) => {}
            () = standing.ended() => {}
        }
        drop(permit);
    });
    Ok(with_body(StatusCode::OK, "text/event-stream", body.boxed()))
}

/// Feeds one stream until there is no more to tell, its reader leaves or the door closes.
async fn feed<N: News>(
    mut news: N,
    mut sender: Sender<Bytes, Infallible>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut quiet = Duration::ZERO;
    let mut piece = format!(": {}\n\n", N::NAME);
    loop {
        let goes_on = news.look(&mut piece).await;
        if piece.is_empty() && quiet >= N::ALIVE_EVERY {
            piece.push_str(": alive\n\n");
        }
        if !piece.is_empty() {
            quiet = Duration::ZERO;
            let sent = sender.send_data(Bytes::from(std::mem::take(&mut piece)));
            let sent = tokio::time::timeout(N::READER_PATIENCE, sent).await;
            if !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
        if !goes_on {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(N::LOOK_EVERY) => quiet += N::LOOK_EVERY,
            () = told_to_stop(&mut stopping) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Says something on some looks, and nothing more after the last; counts its looks.
    struct Sayings(Vec<&'static str>, Arc<AtomicUsize>);

    impl News for Sayings {
        const NAME: &'static str = "sayings";
        const LOOK_EVERY: Duration = Duration::from_millis(1);
        const PIECES_MAX: usize = 2;
        const ALIVE_EVERY: Duration = Duration::from_millis(3);
        const READER_PATIENCE: Duration = Duration::from_millis(20);

        async fn look(&mut self, piece: &mut String) -> bool {
            self.1.fetch_add(1, Ordering::Relaxed);
            piece.push_str(self.0.remove(0));
            !self.0.is_empty()
        }
    }

    #[tokio::test]
    async fn f_33_a_stream_opens_breaks_its_silence_and_ends() {
        let (sender, body) = Channel::<Bytes, Infallible>::new(16);
        let (_door, stopping) = watch::channel(false);
        let sayings = vec!["", "a\n\n", "", "", "", "", "", "b\n\n"];
        feed(Sayings(sayings, Arc::default()), sender, stopping).await;
        let all = body.collect().await.unwrap().to_bytes();
        assert_eq!(all, ": sayings\n\na\n\n: alive\n\nb\n\n");
    }

    // F-33: neither a reader who takes nothing nor a door that closes is waited for.
    #[tokio::test]
    async fn f_33_a_reader_that_takes_nothing_is_cut_off_and_a_door_that_closes_ends_all() {
        let (door, stopping) = watch::channel(false);
        let (sender, body) = Channel::<Bytes, Infallible>::new(Sayings::PIECES_MAX);
        let looks = Arc::<AtomicUsize>::default();
        feed(Sayings(vec!["x\n\n"; 1_000], looks.clone()), sender, stopping).await;
        assert!(looks.load(Ordering::Relaxed) < 10, "it is not asked for what nobody takes");
        drop(body);
        let (sender, _body) = Channel::<Bytes, Infallible>::new(Sayings::PIECES_MAX);
        let stopping = door.subscribe();
        door.send_replace(true);
        let looks = Arc::<AtomicUsize>::default();
        feed(Sayings(vec![""; 1_000], looks.clone()), sender, stopping).await;
        assert_eq!(looks.load(Ordering::Relaxed), 1);
    }
}
