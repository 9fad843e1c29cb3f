//! The quotas at hand, and whether a call keeps within them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use ikada_api::state::{Namespace, NamespaceView, Quota};

use super::bucket::Bucket;

/// How often the quotas and what is used of them are looked at.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);

/// One namespace with a quota.
#[derive(Debug)]
struct Space {
    quota: Quota,
    bucket: Mutex<Bucket>,
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
                    space.clone()
                }
                None => Arc::new(Space {
                    quota: view.quota,
                    bucket: Mutex::new(Bucket::new(rate, view.submitted, now)),
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

fn lock(bucket: &Mutex<Bucket>) -> std::sync::MutexGuard<'_, Bucket> {
    bucket.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(object_bytes: u64) -> NamespaceView {
        let namespace = Namespace::parse("team").unwrap();
        let quota = Quota { version: 1, object_bytes_max: 100, rate_max: 1, ..Quota::default() };
        NamespaceView { quota, object_bytes, ..NamespaceView::empty(namespace) }
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
