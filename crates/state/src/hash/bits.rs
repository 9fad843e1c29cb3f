//! An ordered set of small numbers as a tree of 64-bit words: constant-time insert, remove and
//! "lowest member", two bits per number. Used for free places (the lowest is taken first, so that
//! places depend on the state alone and not on its history) and for live claims.

const WORD_BITS: u32 = 64;
const LEVELS: usize = 5;

/// Set of numbers below 64^5, which is above every bound in `limits`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BitSet {
    levels: [Vec<u64>; LEVELS],
    length: usize,
}

impl BitSet {
    /// Adds a number; says whether it is new.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        if self.contains(number) {
            return false;
        }
        let mut position = number;
        for level in &mut self.levels {
            let word = (position / WORD_BITS) as usize;
            if word >= level.len() {
                level.resize(word + 1, 0);
            }
            let before = level[word];
            level[word] |= 1 << (position % WORD_BITS);
            if before != 0 {
                // The levels above know this word already.
                break;
            }
            position /= WORD_BITS;
        }
        self.length += 1;
        true
    }

    /// Removes a number; says whether it was there.
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        if !self.contains(number) {
            return false;
        }
        let mut position = number;
        for level in &mut self.levels {
            let word = (position / WORD_BITS) as usize;
            level[word] &= !(1 << (position % WORD_BITS));
            if level[word] != 0 {
                break;
            }
            position /= WORD_BITS;
        }
        self.length -= 1;
        true
    }

    /// Whether the number is in the set.
    pub(crate) fn contains(&self, number: u32) -> bool {
        let word = (number / WORD_BITS) as usize;
        self.levels[0].get(word).is_some_and(|bits| bits & (1 << (number % WORD_BITS)) != 0)
    }

    /// The lowest member.
    pub(crate) fn first(&self) -> Option<u32> {
        if self.length == 0 {
            return None;
        }
        let mut position = 0u32;
        for level in self.levels.iter().rev() {
            let bits = level.get(position as usize).copied().unwrap_or(0);
            position = position * WORD_BITS + bits.trailing_zeros();
        }
        Some(position)
    }

    /// Number of members.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Members in rising order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.levels[0].iter().enumerate().flat_map(|(word, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                if bits == 0 {
                    return None;
                }
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                Some(word as u32 * WORD_BITS + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn behaves_like_an_ordered_set() {
        let (mut bits, mut model) = (BitSet::default(), BTreeSet::new());
        let mut number = 1u32;
        for _ in 0..20_000 {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let member = (number >> 8) % 300_000;
            if number & 1 == 0 {
                assert_eq!(bits.insert(member), model.insert(member));
            } else if let Some(lowest) = model.first().copied() {
                assert_eq!(bits.first(), Some(lowest));
                assert_eq!(bits.remove(lowest), model.remove(&lowest));
            }
            assert_eq!(bits.len(), model.len());
        }
        assert!(bits.iter().eq(model.iter().copied()));
    }
}
