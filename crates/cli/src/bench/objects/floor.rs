//! What callers wait for each other: the time of an echo between two ends that are both in the bench.
//!
//! Senders and nodes share one machine, and the senders stand back, so that part of every time is theirs. No node has a
//! part in the echo: what it takes under load is the floor below which no call can be measured.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::report::rank;

/// Bytes of an echo.
const ECHO_BYTES: usize = 512;
/// Time between two.
const EVERY: Duration = Duration::from_millis(5);

/// Echoes until it is dropped.
pub(super) struct Floor {
    times: Arc<Mutex<Vec<Duration>>>,
    ends: [JoinHandle<()>; 2],
}

impl Floor {
    pub(super) async fn start() -> std::io::Result<Floor> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut near = TcpStream::connect(listener.local_addr()?).await?;
        let (mut far, _) = listener.accept().await?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let times: Arc<Mutex<Vec<Duration>>> = Arc::default();
        let noted = times.clone();
        let answering = tokio::spawn(async move {
            let mut bytes = [0; ECHO_BYTES];
            while far.read_exact(&mut bytes).await.is_ok() && far.write_all(&bytes).await.is_ok() {}
        });
        let asking = tokio::spawn(async move {
            let mut bytes = [0; ECHO_BYTES];
            loop {
                let began = Instant::now();
                let sent = near.write_all(&bytes).await;
                if sent.is_err() || near.read_exact(&mut bytes).await.is_err() {
                    return;
                }
                let took = began.elapsed();
                noted.lock().unwrap_or_else(PoisonError::into_inner).push(took);
                tokio::time::sleep(EVERY).await;
            }
        });
        Ok(Floor { times, ends: [answering, asking] })
    }

    /// The 99th percentile since it was last asked, ms.
    pub(super) fn take_p99_ms(&self) -> f64 {
        let mut times =
            std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner));
        times.sort_unstable();
        rank(&times, 99)
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.ends.iter().for_each(JoinHandle::abort);
    }
}

/// A 99th percentile, ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Time {
    /// As callers saw it.
    seen_ms: f64,
    /// Without what they waited for each other meanwhile.
    pub(super) own_ms: f64,
}

impl Time {
    pub(super) fn new(seen_ms: f64, floor_ms: f64) -> Time {
        Time { seen_ms, own_ms: (seen_ms - floor_ms).max(0.0) }
    }

    pub(super) fn show(self) -> String {
        let Time { seen_ms, own_ms } = self;
        format!("{seen_ms:.1} ms; {own_ms:.1} ms without the callers' own delay")
    }
}

/// What is judged of times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Of accepted calls on the idle cluster.
    pub(super) idle: Time,
    /// Of accepted calls under load.
    pub(super) accepted: Time,
    /// Of calls that were turned away under load.
    pub(super) shed: Time,
}

impl Times {
    /// How many times slower accepted calls were than on the idle cluster: as they were seen, and without the callers' part
    /// of either.
    pub(super) fn slower(&self) -> (f64, f64) {
        let of = |loaded: f64, idle: f64| loaded / idle.max(f64::MIN_POSITIVE);
        let (idle, accepted) = (self.idle, self.accepted);
        (of(accepted.seen_ms, idle.seen_ms), of(accepted.own_ms, idle.own_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_32_what_callers_wait_for_each_other_is_taken_off_both_sides() {
        let times = Times {
            idle: Time::new(6.0, 2.0),
            accepted: Time::new(30.0, 10.0),
            shed: Time::new(3.0, 10.0),
        };
        assert_eq!(times.slower(), (5.0, 5.0));
        assert_eq!(times.shed, Time { seen_ms: 3.0, own_ms: 0.0 }, "never less than nothing");
        let shown = times.accepted.show();
        assert!(shown.starts_with("30.0 ms; 20.0 ms without"), "{shown}");
    }

    #[tokio::test]
    async fn f_32_echoes_among_callers_are_timed_and_taken_once() {
        let floor = Floor::start().await.unwrap();
        while floor.times.lock().unwrap().len() < 3 {
            tokio::time::sleep(EVERY).await;
        }
        assert!(floor.take_p99_ms() > 0.0);
        floor.ends.iter().for_each(JoinHandle::abort);
        floor.take_p99_ms();
        assert_eq!(floor.take_p99_ms(), 0.0);
    }
}
