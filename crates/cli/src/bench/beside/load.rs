//! A steady stream of writes to a peer, each under a number of its own, sent again to the next server until it is settled.
//!
//! As ikada's own load: open loop, so that an outage shows in full.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::{JoinHandle, JoinSet};

use super::PeerKind;
use crate::failure::Failure;

/// How long one try may take.
const TRY_PATIENCE: Duration = Duration::from_secs(1);
/// A write that is not settled by then counts as unknown.
const WRITE_PATIENCE: Duration = Duration::from_secs(60);
/// Pause before a write is sent again.
const RESEND_PAUSE: Duration = Duration::from_millis(20);

/// How the writes ended.
#[derive(Debug, Default)]
pub(super) struct PeerFate {
    /// Acknowledged.
    pub(super) acked: BTreeSet<u64>,
    /// Never settled.
    pub(super) unknown: usize,
    /// Tries beyond the first.
    pub(super) retried: u64,
    /// When the acknowledged try was begun and answered.
    times: Vec<(Instant, Instant)>,
}

impl PeerFate {
    fn note(&mut self, number: u64, is_again: bool, acked: Option<(Instant, Instant)>) {
        self.retried += u64::from(is_again);
        if let Some(times) = acked {
            self.acked.insert(number);
            self.times.push(times);
        }
    }
}

struct Shared {
    kind: PeerKind,
    addresses: Vec<String>,
    fate: Mutex<PeerFate>,
    stop: AtomicBool,
}

/// The running load.
pub(super) struct PeerLoad {
    shared: Arc<Shared>,
    pacer: JoinHandle<()>,
}

fn lock(fate: &Mutex<PeerFate>) -> MutexGuard<'_, PeerFate> {
    fate.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PeerLoad {
    /// Begins `rate` writes per second.
    pub(super) fn start(kind: PeerKind, addresses: &[String], rate: u32) -> PeerLoad {
        let shared = Arc::new(Shared {
            kind,
            addresses: addresses.to_vec(),
            fate: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        PeerLoad { pacer: tokio::spawn(pace(shared.clone(), rate)), shared }
    }

    /// When the first write that was begun after a moment was acknowledged.
    pub(super) fn first_begun_after(&self, moment: Instant) -> Option<Instant> {
        let fate = lock(&self.shared.fate);
        let later = fate.times.iter().rev().take_while(|(_, at)| *at >= moment);
        later.filter(|(begun, _)| *begun >= moment).map(|(_, at)| *at).min()
    }

    /// Begins no more writes, and waits for those under way.
    pub(super) async fn stop(self) -> Result<PeerFate, Failure> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let ended = self.pacer.await;
        ended.map_err(|error| Failure::failed(format!("the load ended by itself: {error}")))?;
        Ok(std::mem::take(&mut lock(&self.shared.fate)))
    }
}

async fn pace(shared: Arc<Shared>, rate: u32) {
    let mut pulse = tokio::time::interval(Duration::from_secs(1) / rate.max(1));
    let mut writes = JoinSet::new();
    for number in 0.. {
        if shared.stop.load(Ordering::Relaxed) {
            break;
        }
        pulse.tick().await;
        writes.spawn(write(shared.clone(), number));
        while writes.try_join_next().is_some() {}
    }
    while writes.join_next().await.is_some() {}
}

async fn write(shared: Arc<Shared>, number: u64) {
    let deadline = Instant::now() + WRITE_PATIENCE;
    for round in 0.. {
        let begun = Instant::now();
        let server = (number as usize + round) % shared.addresses.len();
        let sent = shared.kind.write(&shared.addresses[server], number);
        let answer = tokio::time::timeout(TRY_PATIENCE, sent).await;
        let now = Instant::now();
        let is_acked = matches!(answer, Ok(Ok(())));
        lock(&shared.fate).note(number, round > 0, is_acked.then_some((begun, now)));
        if is_acked {
            return;
        }
        if now >= deadline {
            lock(&shared.fate).unknown += 1;
            return;
        }
        tokio::time::sleep(RESEND_PAUSE).await;
    }
}
