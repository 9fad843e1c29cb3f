//! Queues of frames, one per peer, bounded in frames and bytes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::config::{PEER_QUEUE_BYTES_MAX, PEER_QUEUE_FRAMES_MAX};
use crate::counters::SharedCounters;

struct Lane {
    frames: mpsc::Sender<Bytes>,
    bytes: Arc<AtomicUsize>,
}

/// Where the driver puts frames. Lanes come and go with the members.
#[derive(Clone)]
pub struct Outgoing {
    lanes: Arc<RwLock<BTreeMap<u64, Lane>>>,
    counters: SharedCounters,
}

/// The other end of one lane.
pub struct LaneEnd {
    pub frames: mpsc::Receiver<Bytes>,
    pub bytes: Arc<AtomicUsize>,
}

impl LaneEnd {
    /// Throws away what waits: the peer was away, and consensus will say it again.
    pub fn drain(&mut self) {
        while let Ok(frame) = self.frames.try_recv() {
            self.took(&frame);
        }
    }

    /// Accounts for a frame that left the queue.
    pub fn took(&self, frame: &Bytes) {
        self.bytes.fetch_sub(frame.len(), Relaxed);
    }
}

impl Outgoing {
    /// Without any lane.
    pub fn new(counters: SharedCounters) -> Self {
        Outgoing { lanes: Arc::default(), counters }
    }

    /// Opens a lane to a peer; an earlier one to it ends.
    pub fn open(&self, peer: u64) -> LaneEnd {
        let (sender, receiver) = mpsc::channel(PEER_QUEUE_FRAMES_MAX);
        let bytes = Arc::new(AtomicUsize::new(0));
        let lane = Lane { frames: sender, bytes: bytes.clone() };
        self.lanes.write().unwrap_or_else(PoisonError::into_inner).insert(peer, lane);
        LaneEnd { frames: receiver, bytes }
    }

    /// Ends the lane to a peer; whoever dials for it stops.
    pub fn close(&self, peer: u64) {
        self.lanes.write().unwrap_or_else(PoisonError::into_inner).remove(&peer);
    }

    /// Queues a frame; a full queue or an unknown peer drops it.
    pub fn send(&self, to: u64, frame: Bytes) {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        let Some(lane) = lanes.get(&to) else {
            return self.counters.frame_dropped();
        };
        let length = frame.len();
        if lane.bytes.load(Relaxed) + length > PEER_QUEUE_BYTES_MAX
            || lane.frames.try_send(frame).is_err()
        {
            return self.counters.frame_dropped();
        }
        lane.bytes.fetch_add(length, Relaxed);
        self.counters.frame_sent(length);
    }
}
