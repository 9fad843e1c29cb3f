//! Which workers are alive, as the leader of shard 0 sees it. Beats leave no trace in the log.
//!
//! Promise: a worker is called dead only after this leader's monotonic clock saw [`WORKER_DEAD_MS`] without a beat since the
//! last one, its registration, or the moment this node became leader.

use std::collections::BTreeMap;

use ikada_state::{SessionId, WorkerKey};

/// Workers beat this often.
pub const WORKER_BEAT_MS: u64 = 3_000;
/// Silence after which a worker is dead: three beats got lost.
pub const WORKER_DEAD_MS: u64 = 10_000;
/// Silence after which a worker is forgotten, and one that was removed may be used again.
pub(crate) const WORKER_FORGET_MS: u64 = 60 * 60 * 1_000;

#[derive(Debug, Clone, Copy)]
struct Beat {
    session: SessionId,
    heard_ms: u64,
    busy: u32,
}

/// The newest beat of every worker; empty on nodes that do not lead shard 0.
#[derive(Debug, Default)]
pub(crate) struct Beats {
    heard: BTreeMap<WorkerKey, Beat>,
    /// Sessions that came under the name of a living one.
    impostors: BTreeMap<WorkerKey, (SessionId, u64)>,
    pub swept_ms: u64,
}

impl Beats {
    /// Forgets everything (this node does not lead).
    pub fn clear(&mut self) {
        *self = Beats::default();
    }

    /// A worker beats, or is found recorded by a new leader.
    pub fn heard(&mut self, key: WorkerKey, session: SessionId, busy: u32, now_ms: u64) {
        self.heard.insert(key, Beat { session, heard_ms: now_ms, busy });
    }

    /// How long a session has been silent, and how many slots were busy when it was last heard.
    pub fn silence(&self, key: &WorkerKey, session: SessionId, now_ms: u64) -> Option<(u64, u32)> {
        let beat = self.heard.get(key).filter(|beat| beat.session == session)?;
        Some((now_ms.saturating_sub(beat.heard_ms), beat.busy))
    }

    /// Whether a session is alive.
    pub fn is_alive(&self, key: &WorkerKey, session: SessionId, now_ms: u64) -> bool {
        self.silence(key, session, now_ms).is_some_and(|(ms, _)| ms < WORKER_DEAD_MS)
    }

    /// Another session came under the name of a living one.
    pub fn note_impostor(&mut self, key: WorkerKey, session: SessionId, now_ms: u64) {
        self.impostors.insert(key, (session, now_ms));
    }

    /// The impostor that was heard lately.
    pub fn impostor(&self, key: &WorkerKey, now_ms: u64) -> Option<SessionId> {
        let (session, at_ms) = self.impostors.get(key)?;
        (now_ms.saturating_sub(*at_ms) < WORKER_DEAD_MS).then_some(*session)
    }

    /// Keeps only what is still recorded.
    pub fn retain(&mut self, is_recorded: impl Fn(&WorkerKey) -> bool) {
        self.heard.retain(|key, _| is_recorded(key));
        self.impostors.retain(|key, _| is_recorded(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{Namespace, WorkerId};

    #[test]
    fn b4_16_a_worker_is_dead_after_silence_and_not_before() {
        let key = (Namespace::default(), WorkerId::parse("w").unwrap());
        let mut beats = Beats::default();
        assert!(!beats.is_alive(&key, SessionId(1), 0), "never heard");
        beats.heard(key.clone(), SessionId(1), 2, 1_000);
        assert!(beats.is_alive(&key, SessionId(1), WORKER_DEAD_MS + 999));
        assert!(!beats.is_alive(&key, SessionId(1), WORKER_DEAD_MS + 1_000));
        assert!(!beats.is_alive(&key, SessionId(2), 1_000), "another session");
        assert_eq!(beats.silence(&key, SessionId(1), 1_500), Some((500, 2)));
        beats.note_impostor(key.clone(), SessionId(2), 1_000);
        assert_eq!(beats.impostor(&key, 2_000), Some(SessionId(2)));
        assert_eq!(beats.impostor(&key, WORKER_DEAD_MS + 1_000), None, "it has gone");
        beats.retain(|_| false);
        assert_eq!(beats.silence(&key, SessionId(1), 1_500), None);
    }
}
