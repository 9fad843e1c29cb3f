//! Queues of frames, one per peer, bounded in frames and bytes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::config::{PEER_QUEUE_BYTES_MAX, PEER_QUEUE_FRAMES_MAX};
use crate::counters::SharedCounters;

struct Lane {
    frames: mpsc::Sender<Bytes>,
    bytes: Arc<AtomicUsize>,
}

/// Where the driver puts frames.
pub struct Outgoing {
    lanes: BTreeMap<u64, Lane>,
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
    /// Lanes to these peers, and their ends.
    pub fn new(
        peers: impl IntoIterator<Item = u64>,
        counters: SharedCounters,
    ) -> (Self, BTreeMap<u64, LaneEnd>) {
        let mut lanes = BTreeMap::new();
        let mut ends = BTreeMap::new();
        for peer in peers {
            let (sender, receiver) = mpsc::channel(PEER_QUEUE_FRAMES_MAX);
            let bytes = Arc::new(AtomicUsize::new(0));
            lanes.insert(peer, Lane { frames: sender, bytes: bytes.clone() });
            ends.insert(peer, LaneEnd { frames: receiver, bytes });
        }
        (Outgoing { lanes, counters }, ends)
    }

    /// Queues a frame; a full queue or an unknown peer drops it.
    pub fn send(&self, to: u64, frame: Bytes) {
        let Some(lane) = self.lanes.get(&to) else {
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
