//! A sorted map in shared pages: cloning costs one pointer per page, a change copies one page at most.
//!
//! A snapshot freezes the state by cloning it on the hot path, so a map that may hold a million names must not be
//! copied entry by entry.

use std::cmp::Ordering;
use std::sync::Arc;

/// Most entries of a page: what one change may have to copy.
const PAGE_MAX: usize = 128;

/// A sorted map.
#[derive(Clone, Debug)]
pub(crate) struct Pages<K, V> {
    /// None is empty; keys rise within and over pages.
    pages: Vec<Arc<Vec<(K, V)>>>,
    len: usize,
}

impl<K, V> Default for Pages<K, V> {
    fn default() -> Self {
        Pages { pages: Vec::new(), len: 0 }
    }
}

impl<K: Ord + Clone, V: Clone> Pages<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The page that holds a key or would.
    fn page_of(&self, key: &K) -> usize {
        let after = self.pages.partition_point(|page| page[0].0.cmp(key) != Ordering::Greater);
        after.saturating_sub(1)
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let page = self.pages.get(self.page_of(key))?;
        let place = page.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
        Some(&page[place].1)
    }

    /// Stores a value; gives the one before.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let number = self.page_of(&key);
        let Some(page) = self.pages.get_mut(number) else {
            self.pages.push(Arc::new(vec![(key, value)]));
            self.len = 1;
            return None;
        };
        let page = Arc::make_mut(page);
        match page.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(place) => return Some(std::mem::replace(&mut page[place].1, value)),
            Err(place) => page.insert(place, (key, value)),
        }
        self.len += 1;
        if page.len() > PAGE_MAX {
            let upper = page.split_off(PAGE_MAX / 2);
            self.pages.insert(number + 1, Arc::new(upper));
        }
        None
    }

    /// Removes a key; gives its value.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let number = self.page_of(key);
        let shared = self.pages.get_mut(number)?;
        let place = shared.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
        let page = Arc::make_mut(shared);
        let (_, value) = page.remove(place);
        if page.is_empty() {
            self.pages.remove(number);
        }
        self.len -= 1;
        Some(value)
    }

    /// The entries of one page, by its place.
    pub(crate) fn page(&self, number: usize) -> Option<&[(K, V)]> {
        self.pages.get(number).map(|page| page.as_slice())
    }

    /// The highest key.
    pub(crate) fn last_key(&self) -> Option<&K> {
        self.pages.last()?.last().map(|(key, _)| key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> + '_ {
        self.iter_after(|_| false)
    }

    /// All entries from the first one on that does not lie before the wanted place. `is_before` must be true for a
    /// first part of all keys and false for the rest.
    pub(crate) fn iter_after(
        &self,
        is_before: impl Fn(&K) -> bool,
    ) -> impl Iterator<Item = (&K, &V)> + '_ {
        let number = self.pages.partition_point(|page| is_before(&page[0].0)).saturating_sub(1);
        let first = self.pages.get(number);
        let place = first.map_or(0, |page| page.partition_point(|(key, _)| is_before(key)));
        let pages = self.pages.iter().skip(number);
        pages.flat_map(|page| page.iter()).skip(place).map(|(key, value)| (key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_behaves_like_a_plain_map_and_copies_stay_as_they_were() {
        let mut random = fastrand_like(7);
        let (mut pages, mut plain) = (Pages::default(), BTreeMap::new());
        for step in 0..20_000u32 {
            let key = random() % 900;
            let copy = (step.is_multiple_of(1_000)).then(|| (pages.clone(), plain.clone()));
            if random().is_multiple_of(3) {
                assert_eq!(pages.remove(&key), plain.remove(&key));
            } else {
                assert_eq!(pages.insert(key, step), plain.insert(key, step));
            }
            assert_eq!(pages.len(), plain.len());
            assert_eq!(pages.get(&key), plain.get(&key));
            if let Some((pages, plain)) = copy {
                assert!(pages.iter().eq(plain.iter()));
            }
            if step.is_multiple_of(100) {
                assert!(pages.iter().eq(plain.iter()));
                assert!(pages.iter_after(|known| *known < key).eq(plain.range(key..)));
                assert_eq!(pages.last_key(), plain.last_key_value().map(|(key, _)| key));
                assert!(pages.pages.iter().all(|page| (1..=PAGE_MAX).contains(&page.len())));
            }
        }
    }

    /// A small generator, so that the test needs no crate.
    fn fastrand_like(mut seed: u64) -> impl FnMut() -> u32 {
        move || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as u32
        }
    }
}
