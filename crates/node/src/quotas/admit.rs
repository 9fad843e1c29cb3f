//! The quotas at hand, and whether a call keeps within them.
//!
//! Promise: submissions and objects beyond a quota are refused. A completion that brings follow-ups is put off at most, and
//! for no longer than a few seconds (`line.rs`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use ikada_api::state::{Fence, Namespace, NamespaceView, Quota, TaskId};

use super::bucket::Bucket;
use super::line::Line;

/// How often the quotas and what is used of them are looked at.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Beyond the quota of tasks the follow-ups of workers come in this slowly, each, but for those that waited long enough: all
/// of it would stand still if those that hold tasks could not settle them.
const TRICKLE: Duration = Duration::from_secs(1);

/// One namespace with a quota.
#[derive(Debug)]
struct Space {
    quota: Quota,
    bucket: Mutex<Bucket>,
    /// Completions that bring more than they may. It outlives a change of the quota: who waits has waited.
    line: Arc<Mutex<Line>>,
    /// Unfinished tasks at the last look, with the follow-ups that came in here since.
    pending: AtomicU64,
    /// Their bytes at the last look.
    bytes: AtomicU64,
    /// Bytes of objects at the last look, and put here since.
    object_bytes: AtomicU64,
}

type Spaces = HashMap<Namespace, Arc<Space>>;

/// All quotas as this node knows them.
#[derive(Debug, Default)]
pub struct Quotas {
    any: AtomicBool,
    spaces: RwLock<Arc<Spaces>>,
}

impl Quotas {
    /// Takes quotas and use as they are now.
    pub fn learn(&self, views: &[NamespaceView], now: Instant) {
        let before = self.spaces();
        let keep = |view: &NamespaceView| {
            let rate = f64::from(view.quota.rate_max);
            let known = before.get(&view.namespace).filter(|space| space.quota == view.quota);
            let space = match known {
                Some(space) => {
                    lock(&space.bucket).look(rate, view.submitted, now);
                    space.object_bytes.store(view.object_bytes, Relaxed);
                    space.pending.store(view.pending, Relaxed);
                    space.bytes.store(view.bytes, Relaxed);
                    space.clone()
                }
                None => Arc::new(Space {
                    quota: view.quota,
                    bucket: Mutex::new(Bucket::new(rate, view.submitted, now)),
                    line: before
                        .get(&view.namespace)
                        .map(|known| known.line.clone())
                        .unwrap_or_default(),
                    pending: AtomicU64::new(view.pending),
                    bytes: AtomicU64::new(view.bytes),
                    object_bytes: AtomicU64::new(view.object_bytes),
                }),
            };
            (view.namespace.clone(), space)
        };
        let spaces: Spaces = views.iter().map(keep).collect();
        self.any.store(!spaces.is_empty(), Relaxed);
        *self.spaces.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(spaces);
    }

    /// Admits so many new tasks of a namespace, or tells how long to wait.
    pub fn admit(&self, namespace: &Namespace, count: u64, now: Instant) -> Result<(), Duration> {
        match self.find(namespace).filter(|space| space.quota.rate_max > 0) {
            Some(space) => {
                let rate = f64::from(space.quota.rate_max);
                lock(&space.bucket).take(rate, count, now)
            }
            None => Ok(()),
        }
    }

    /// Admits a completion by which a worker brings so many tasks that nobody submitted, or tells how long to wait. They count
    /// for the rate; beyond the quota of tasks, whoever brings more than the one that ends waits for its turn. None waits for
    /// longer than the line's patience, and none that was admitted before.
    pub fn admit_follow_ups(
        &self,
        namespace: &Namespace,
        (task, fence): (&TaskId, Fence),
        count: impl FnOnce() -> u64,
        now: Instant,
    ) -> Result<(), Duration> {
        let Some(space) = self.find(namespace) else { return Ok(()) };
        let (completion, count) = ((task.clone(), fence), count());
        // The task that ends makes room for one.
        let more = count.saturating_sub(1);
        let mut line = lock(&space.line);
        if line.has_admitted(&completion, count) {
            return Ok(());
        }
        let trickles = more > 0 && space.is_beyond(more);
        if !line.has_waited(&completion, now) {
            let turn = line.turn.filter(|_| trickles);
            if let Err(wait) = space.take_turn(turn, count, now)
                && let Some(left) = line.put_off(&completion, now)
            {
                return Err(wait.min(left));
            }
        }
        if trickles {
            let pause = TRICKLE.saturating_mul(u32::try_from(more).unwrap_or(u32::MAX));
            line.turn = now.checked_add(pause);
        }
        line.admit(completion, count);
        space.pending.fetch_add(more, Relaxed);
        Ok(())
    }

    /// Whether a namespace may store so many more bytes of objects.
    pub fn has_room(&self, namespace: &Namespace, bytes: u64) -> bool {
        self.find(namespace).is_none_or(|space| {
            let sum = space.object_bytes.load(Relaxed).saturating_add(bytes);
            space.quota.object_bytes_max == 0 || sum <= space.quota.object_bytes_max
        })
    }

    /// Whether a namespace may not store as much as it likes.
    pub fn bounds_objects(&self, namespace: &Namespace) -> bool {
        self.find(namespace).is_some_and(|space| space.quota.object_bytes_max > 0)
    }

    /// Counts bytes of an object that was put here, until the next look counts them.
    pub fn stored(&self, namespace: &Namespace, bytes: u64) {
        if let Some(space) = self.find(namespace) {
            space.object_bytes.fetch_add(bytes, Relaxed);
        }
    }

    fn find(&self, namespace: &Namespace) -> Option<Arc<Space>> {
        if !self.any.load(Relaxed) {
            return None;
        }
        self.spaces().get(namespace).cloned()
    }

    fn spaces(&self) -> Arc<Spaces> {
        self.spaces.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Space {
    /// Takes so many tasks out of the rate if it is time for them. What comes in without it is taken out by the next look.
    fn take_turn(&self, turn: Option<Instant>, count: u64, now: Instant) -> Result<(), Duration> {
        if let Some(at) = turn.filter(|at| *at > now) {
            return Err(at - now);
        }
        match self.quota.rate_max {
            0 => Ok(()),
            rate_max => lock(&self.bucket).take(f64::from(rate_max), count, now),
        }
    }

    /// Whether so many more tasks bring it over its quota, or it is over it in bytes.
    fn is_beyond(&self, more: u64) -> bool {
        let Quota { pending_max, bytes_max, .. } = self.quota;
        let pending = self.pending.load(Relaxed).saturating_add(more);
        (pending_max > 0 && pending > pending_max)
            || (bytes_max > 0 && self.bytes.load(Relaxed) > bytes_max)
    }
}

fn lock<T>(place: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::line::PATIENCE;
    use super::*;

    fn view(object_bytes: u64) -> NamespaceView {
        let namespace = Namespace::parse("team").unwrap();
        let quota = Quota { version: 1, object_bytes_max: 100, rate_max: 1, ..Quota::default() };
        NamespaceView { quota, object_bytes, ..NamespaceView::empty(namespace) }
    }

    // X7: a worker's completions are no way around the quotas, and never stand still for good.
    #[test]
    fn x_7_follow_ups_of_workers_count_for_the_rate_and_trickle_beyond_the_quota() {
        let (quotas, now) = (Quotas::default(), Instant::now());
        let bounded = |pending, rate_max| {
            let quota = Quota { version: 1, pending_max: 10, rate_max, ..Quota::default() };
            NamespaceView { quota, pending, ..view(0) }
        };
        let team = view(0).namespace;
        let (task, fences) = (TaskId::parse("t").unwrap(), std::cell::Cell::new(0));
        let resend = |count, now| {
            quotas.admit_follow_ups(&team, (&task, Fence(fences.get())), || count, now)
        };
        let admit = |count, now| {
            fences.set(fences.get() + 1);
            resend(count, now)
        };
        assert!(admit(16, now).is_ok(), "without a quota nothing is counted");
        quotas.learn(&[bounded(8, 0)], now);
        assert!(admit(3, now).is_ok(), "up to the quota");
        assert!(admit(3, now).is_ok(), "the first beyond it");
        assert_eq!(admit(3, now), Err(TRICKLE * 2));
        assert!(admit(1, now).is_ok(), "a chain adds nothing");
        let mut later = now;
        for _ in 0..100 {
            let wait = admit(3, later).unwrap_err();
            later += wait;
            assert!(resend(3, later).is_ok(), "whoever waits comes in");
            assert!(resend(3, later).is_ok(), "and needs no second turn");
        }
        assert_eq!(later - now, TRICKLE * 200, "one more task a second, however many try");
        quotas.learn(&[bounded(0, 0)], later);
        assert!(admit(3, later).is_ok(), "some are done");
        quotas.learn(&[bounded(0, 2)], later);
        assert!(admit(3, later).is_ok() && admit(1, later).is_err(), "the rate counts them all");
        assert!(quotas.admit(&team, 1, later).is_err(), "as it does submissions");
    }

    // X7: an attempt may have a timeout that no renewal moves, so that its completion waits for no more than a few seconds.
    #[test]
    fn x_7_a_completion_with_follow_ups_is_put_off_no_longer_than_the_patience() {
        let (quotas, now) = (Quotas::default(), Instant::now());
        let (team, task) = (view(0).namespace, TaskId::parse("t").unwrap());
        let learn = |pending_max, rate_max| {
            let quota = Quota { version: 1, pending_max, rate_max, ..Quota::default() };
            quotas.learn(&[NamespaceView { quota, pending: 10, ..view(0) }], now);
        };
        let admit = |fence, count, now| {
            quotas.admit_follow_ups(&team, (&task, Fence(fence)), || count, now)
        };
        learn(10, 0);
        assert!(admit(0, 64, now).is_ok(), "it takes the turn for a minute");
        for fence in 1..=20 {
            assert_eq!(admit(fence, 64, now), Err(PATIENCE), "no longer than that");
        }
        let sooner = now + PATIENCE - Duration::from_millis(1);
        assert_eq!(admit(1, 64, sooner), Err(Duration::from_millis(1)));
        assert_eq!(admit(21, 64, sooner), Err(PATIENCE), "the newest waits for itself");
        learn(11, 0);
        for fence in 1..=20 {
            assert!(
                admit(fence, 64, now + PATIENCE).is_ok(),
                "all of them, also after a new quota"
            );
        }
        assert!(admit(1, 64, now + PATIENCE).is_ok(), "sent again it needs no turn");
        assert!(admit(1, 65, now + PATIENCE).is_err(), "with more it is judged anew");
        // The rate puts off no longer either.
        learn(0, 1);
        assert!(admit(30, 64, now).is_ok() && admit(31, 1, now) == Err(PATIENCE));
        assert!(admit(31, 1, now + PATIENCE).is_ok());
    }

    #[test]
    fn x_7_only_a_namespace_with_a_quota_is_bounded() {
        let (quotas, now) = (Quotas::default(), Instant::now());
        let (team, other) = (view(0).namespace, Namespace::default());
        assert!(quotas.admit(&team, 9, now).is_ok() && quotas.admit(&team, 9, now).is_ok());
        quotas.learn(&[view(60)], now);
        assert!(quotas.admit(&team, 9, now).is_ok());
        assert!(quotas.admit(&team, 1, now).is_err() && quotas.admit(&other, 9, now).is_ok());
        quotas.learn(&[view(60)], now);
        assert!(quotas.admit(&team, 1, now).is_err(), "a look forgets no debt");
        assert!(quotas.bounds_objects(&team) && !quotas.bounds_objects(&other));
        assert!(quotas.has_room(&team, 40) && !quotas.has_room(&team, 41));
        quotas.stored(&team, 30);
        assert!(!quotas.has_room(&team, 11), "what was put since the last look counts");
        quotas.learn(&[], now);
        assert!(quotas.admit(&team, 1, now).is_ok() && quotas.has_room(&team, 1_000));
    }
}
