//! How slow a client may be with the bytes of objects (X7, CH-16).
//!
//! Promise: whoever holds a place for a transfer moves [`BYTES_PER_S_MIN`] on average, and never stands still for longer
//! than its patience. Only time that this side waits for the client counts: what it takes to store a piece does not.
//!
//! Leaves out: how many may transfer at one time (`admission/rooms.rs`).

use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use tokio::time::error::Elapsed;

/// What a client must move per second. A modem does; a few bytes now and then do not.
const BYTES_PER_S_MIN: u64 = 4 << 10;

/// How long one client may still be waited for. Waiting uses it up, bytes bring it back.
#[derive(Debug)]
pub(super) struct Pace {
    left: Duration,
    most: Duration,
}

impl Pace {
    /// So long at the beginning, and never more.
    pub(super) fn new(most: Duration) -> Pace {
        Pace { left: most, most }
    }

    /// How long may be waited now.
    pub(super) fn left(&self) -> Duration {
        self.left
    }

    /// Takes in how long was waited, and how many bytes moved then.
    pub(super) fn went(&mut self, waited: Duration, bytes: usize) {
        let earned = Duration::from_micros(bytes as u64 * 1_000_000 / BYTES_PER_S_MIN);
        self.left = self.left.saturating_sub(waited).saturating_add(earned).min(self.most);
    }

    /// The next frame of a body, if it comes in time.
    pub(super) async fn frame<B: Body<Data = Bytes>>(
        &mut self,
        mut body: Pin<&mut B>,
    ) -> Result<Option<Result<Frame<Bytes>, B::Error>>, Elapsed> {
        let begun = Instant::now();
        let frame = tokio::time::timeout(self.left, body.frame()).await?;
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        self.went(begun.elapsed(), bytes);
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn x_7_a_trickle_runs_out_of_time_and_a_slow_line_does_not() {
        let most = SECOND * 30;
        let (mut trickle, mut slow) = (Pace::new(most), Pace::new(most));
        for _ in 0..60 {
            trickle.went(SECOND, 1);
            slow.went(SECOND, BYTES_PER_S_MIN as usize);
        }
        assert!(trickle.left() < SECOND / 10, "{trickle:?}");
        assert_eq!(slow.left(), most);
        // What was fast before cannot stand still for longer than anybody else.
        slow.went(Duration::ZERO, 1 << 30);
        slow.went(most, 0);
        assert_eq!(slow.left(), Duration::ZERO);
    }
}
