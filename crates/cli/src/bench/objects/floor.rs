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

#[cfg(test)]
mod tests {
    use super::*;

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
