//! The quotas at hand, and whether a call keeps within them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use ikada_api::state::{Namespace, NamespaceView, Quota};

use super::bucket::Bucket;

/// How often the quotas and what is used of them are looked at.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Beyond the quota of tasks the follow-ups of workers come in this slowly, each: all of it would stand still if those that
/// hold tasks could not settle them.
const TRICKLE: Duration = Duration::from_secs(1);

/// One namespace with a quota.
#[derive(Debug)]
struct Space {
    quota: Quota,
    bucket: Mutex<Bucket>,
    /// When the next completion that brings more than it ends may come, beyond the quota.
    trickle: Mutex<Option<Instant>>,
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
                    trickle: Mutex::default(),
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
    /// for the rate; beyond the quota of tasks, whoever brings more than the one that ends waits for its turn.
    pub fn admit_follow_ups(
        &self,
        namespace: &Namespace,
        count: impl FnOnce() -> u64,
        now: Instant,
    ) -> Result<(), Duration> {
        let Some(space) = self.find(namespace) else { return Ok(()) };
        let count = count();
        // The task that ends makes room for one.
        let more = count.saturating_sub(1);
        let mut turn = lock(&space.trickle);
        let trickles = more > 0 && space.is_beyond(more);
        if let Some(at) = turn.filter(|at| trickles && *at > now) {
            return Err(at - now);
        }
        if space.quota.rate_max > 0 {
            lock(&space.bucket).take(f64::from(space.quota.rate_max), count, now)?;
        }
        if trickles {
            *turn = Some(now + TRICKLE.saturating_mul(u32::try_from(more).unwrap_or(u32::MAX)));
        }
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
        let admit = |count, now| quotas.admit_follow_ups(&team, || count, now);
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
            assert!(admit(3, later).is_ok(), "whoever waits comes in");
        }
        assert_eq!(later - now, TRICKLE * 200, "one more task a second, however many try");
        quotas.learn(&[bounded(0, 0)], later);
        assert!(admit(3, later).is_ok(), "some are done");
        quotas.learn(&[bounded(0, 2)], later);
        assert!(admit(3, later).is_ok() && admit(1, later).is_err(), "the rate counts them all");
        assert!(quotas.admit(&team, 1, later).is_err(), "as it does submissions");
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
