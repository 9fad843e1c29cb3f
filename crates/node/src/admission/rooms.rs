//! Bounds on calls under way: each lane has its own places, and transfers wait in queues (CH-16).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::lane::Lane;

/// No place is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomsFull;

/// The places of all lanes. No lane can take those of another.
#[derive(Debug)]
pub struct Rooms {
    lanes: [Semaphore; Lane::ALL.len()],
    calls_max: usize,
    /// Uploads under way, and those that wait.
    pub uploads: Queue,
    /// The same of outputs of tasks: new objects must not keep results from coming home.
    pub outputs: Queue,
    /// Downloads under way, and those that wait.
    pub downloads: Queue,
}

impl Rooms {
    /// So many calls per lane, and so many transfers each way; as many again may wait.
    pub fn new(calls_max: usize, uploads_max: usize, downloads_max: usize) -> Rooms {
        Rooms {
            lanes: Lane::ALL.map(|_| Semaphore::new(calls_max)),
            calls_max,
            uploads: Queue::new(uploads_max, uploads_max),
            outputs: Queue::new(uploads_max, uploads_max),
            downloads: Queue::new(downloads_max, downloads_max),
        }
    }

    /// Takes a place in a lane.
    pub fn enter(&self, lane: Lane) -> Result<SemaphorePermit<'_>, RoomsFull> {
        self.lanes[lane.index()].try_acquire().map_err(|_| RoomsFull)
    }

    /// Calls of a lane that are under way.
    pub fn under_way(&self, lane: Lane) -> usize {
        self.calls_max.saturating_sub(self.lanes[lane.index()].available_permits())
    }
}

/// Places, and a bounded number that wait for one.
#[derive(Debug)]
pub struct Queue {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
}

/// A place in a queue.
#[derive(Debug)]
pub struct Seat {
    /// Held while the transfer is under way.
    pub place: OwnedSemaphorePermit,
    /// How long it took to get it, if it was not free at once.
    pub waited: Option<Duration>,
}

struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Queue {
    fn new(places: usize, waiting_max: usize) -> Queue {
        let waiting = AtomicUsize::new(0);
        Queue { places: Arc::new(Semaphore::new(places)), waiting, waiting_max }
    }

    /// Takes a place, waiting for one if others do not fill the queue.
    pub async fn enter(&self, patience: Duration) -> Result<Seat, RoomsFull> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(Seat { place, waited: None });
        }
        let begun = Instant::now();
        let before = self.waiting.fetch_add(1, Relaxed);
        let _waits = Waits(&self.waiting);
        if before >= self.waiting_max {
            return Err(RoomsFull);
        }
        let waiting = self.places.clone().acquire_owned();
        match tokio::time::timeout(patience, waiting).await {
            Ok(Ok(place)) => Ok(Seat { place, waited: Some(begun.elapsed()) }),
            _ => Err(RoomsFull),
        }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }
}
