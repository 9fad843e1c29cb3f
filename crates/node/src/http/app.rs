//! What all requests share.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Semaphore;

use super::door::Door;
use super::limits::HttpLimits;
use crate::metrics::HttpCounters;

/// Bodies are accounted in steps of this size.
pub(super) const BODY_UNIT_BYTES: usize = 1 << 10;

/// The shared part of the client door.
pub(super) struct App<D> {
    pub(super) door: D,
    pub(super) limits: HttpLimits,
    pub(super) counters: HttpCounters,
    /// Permits for requests in flight.
    pub(super) requests: Semaphore,
    /// Permits for body bytes, in units.
    pub(super) bodies: Semaphore,
    /// Permits for event streams; held by their tasks.
    pub(super) streams: Arc<Semaphore>,
    /// Turns true when the door closes.
    pub(super) stopping: tokio::sync::watch::Receiver<bool>,
    draws: AtomicU64,
    seed: u64,
}

impl<D: Door> App<D> {
    pub(super) fn new(
        door: D,
        limits: HttpLimits,
        stopping: tokio::sync::watch::Receiver<bool>,
    ) -> App<D> {
        App {
            requests: Semaphore::new(limits.requests_max),
            bodies: Semaphore::new(limits.bodies_bytes_max / BODY_UNIT_BYTES),
            streams: Arc::new(Semaphore::new(limits.streams_max)),
            counters: HttpCounters::default(),
            draws: AtomicU64::new(0),
            seed: RandomState::new().hash_one(std::process::id()),
            door,
            limits,
            stopping,
        }
    }

    /// A random number for the jitter of retries; nothing secret hangs on it.
    pub(super) fn draw(&self) -> u64 {
        let count = self.draws.fetch_add(1, Ordering::Relaxed);
        fastrand::Rng::with_seed(self.seed.wrapping_add(count)).u64(..)
    }
}
