//! A table from hashed names to small numbers. Never iterated, so its inner order cannot leak into
//! the state; the hash is fixed, so that every process behaves alike.

use hashbrown::HashTable;

/// Spreads a 32-bit tag over 64 bits: the table uses both ends of the hash.
fn spread(tag: u32) -> u64 {
    u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Entries of (upper half of the name's hash, value). Keeping part of the hash beside the value
/// means that growth and most misses need not read the records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookup {
    table: HashTable<(u32, u32)>,
}

impl Lookup {
    /// Finds the value whose record `is_it` recognises.
    pub(crate) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let tag = (hash >> 32) as u32;
        self.table.find(spread(tag), |entry| entry.0 == tag && is_it(entry.1)).map(|entry| entry.1)
    }

    /// Adds a value that is not in the table.
    pub(crate) fn insert(&mut self, hash: u64, value: u32) {
        let tag = (hash >> 32) as u32;
        self.table.insert_unique(spread(tag), (tag, value), |entry| spread(entry.0));
    }

    /// Removes a value; says whether it was there.
    pub(crate) fn remove(&mut self, hash: u64, value: u32) -> bool {
        let tag = (hash >> 32) as u32;
        match self.table.find_entry(spread(tag), |entry| *entry == (tag, value)) {
            Ok(entry) => {
                entry.remove();
                true
            }
            Err(_) => false,
        }
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_with_one_tag_are_told_apart() {
        let mut lookup = Lookup::default();
        for value in 0..1000 {
            lookup.insert(u64::from(value % 10) << 32, value);
        }
        assert_eq!(lookup.find(3 << 32, |value| value == 993), Some(993));
        assert_eq!(lookup.find(3 << 32, |value| value == 994), None);
        assert!(lookup.remove(3 << 32, 993));
        assert!(!lookup.remove(3 << 32, 993));
        assert_eq!(lookup.len(), 999);
    }
}
