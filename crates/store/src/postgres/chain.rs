//! The chain of a log: a number per entry that tells its whole history from every other.
//!
//! Promise: made of the chain before, of who wrote under which epoch, of the entry's place and content; never 0, never
//! negative to the database. The same append repeated makes the same chains.

use super::lease::Holder;

/// The chains of entries from an index on, after one of `after`.
pub(super) fn chains(
    after: u64,
    holder: Holder,
    epoch: u64,
    first_index: u64,
    payloads: &[&[u8]],
) -> Vec<i64> {
    let mut chain = after;
    let link = |(index, payload): (u64, &&[u8])| {
        let mut hasher = blake3::Hasher::new();
        for number in [chain, holder.node, holder.life, epoch, index] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(payload);
        let mut head = [0; 8];
        head.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        // The database knows signed numbers only, and 0 is no chain.
        chain = (u64::from_le_bytes(head) >> 1).max(1);
        chain as i64
    };
    (first_index..).zip(payloads).map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: Holder = Holder { node: 1, life: 11 };

    #[test]
    fn p_2_whatever_differs_makes_another_chain() {
        let usual = chains(5, ANN, 2, 7, &[b"a", b"b"]);
        assert_eq!(usual, chains(5, ANN, 2, 7, &[b"a", b"b"]), "a repetition is the same");
        assert!(usual.iter().all(|chain| *chain > 0));
        let others = [
            chains(6, ANN, 2, 7, &[b"a", b"b"]),
            chains(5, Holder { life: 12, ..ANN }, 2, 7, &[b"a", b"b"]),
            chains(5, Holder { node: 2, ..ANN }, 2, 7, &[b"a", b"b"]),
            chains(5, ANN, 3, 7, &[b"a", b"b"]),
            chains(5, ANN, 2, 8, &[b"a", b"b"]),
            chains(5, ANN, 2, 7, &[b"c", b"b"]),
        ];
        for other in others {
            assert_ne!(usual[1], other[1], "the last entry is the same, its history is not");
        }
        let parts = [chains(5, ANN, 2, 7, &[b"a"]), chains(usual[0] as u64, ANN, 2, 8, &[b"b"])];
        assert_eq!(parts.concat(), usual, "however entries are gathered");
    }
}
