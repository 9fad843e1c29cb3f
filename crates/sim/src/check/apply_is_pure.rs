//! Q14 Apply is a pure, total function of state and entry: two instances of one state come to the same hash and the
//! same replies, for real entries and for broken ones, and nothing panics.

use fastrand::Rng;
use ikada_state::{Lsn, Shard};

use super::{Verdict, violation};

const NAME: &str = "Q14 apply_is_pure";

/// Restores the state twice, applies the entry and broken versions of it to both, and compares.
pub fn check(state: &Shard, entry: &[u8], rng: &mut Rng) -> Verdict {
    let chunks: Vec<Vec<u8>> = state.freeze().chunks().collect();
    let restore = || Shard::restore(chunks.iter().cloned());
    let (mut one, mut other) = match (restore(), restore()) {
        (Ok(one), Ok(other)) => (one, other),
        (Err(error), _) | (_, Err(error)) => {
            return violation(NAME, format!("a frozen state cannot be restored: {error}"));
        }
    };
    if one.hash() != state.hash() {
        return violation(
            NAME,
            format!(
                "a restored state has hash {:016x}, the original {:016x}",
                one.hash(),
                state.hash()
            ),
        );
    }
    for version in 0..4 {
        let bytes = if version == 0 { entry.to_vec() } else { broken(entry, rng) };
        let before = one.applied();
        let lsn = Lsn { term: before.term, index: before.index + 1 };
        let same = one.apply(lsn, &bytes) == other.apply(lsn, &bytes) && one.hash() == other.hash();
        if !same {
            return violation(
                NAME,
                format!("two copies of one state differ after one entry at {lsn}"),
            );
        }
    }
    Ok(())
}

fn broken(entry: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = entry.to_vec();
    if bytes.is_empty() || rng.u8(0..4) == 0 {
        return (0..rng.usize(0..40)).map(|_| rng.u8(..)).collect();
    }
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(0..bytes.len());
        bytes[at] ^= 1 << rng.u8(0..8);
    }
    if rng.bool() {
        bytes.truncate(rng.usize(0..=bytes.len()));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::Member;

    #[test]
    fn a_sound_state_passes() {
        let members = [Member {
            node: 1,
            incarnation: 1,
            peer_addr: String::new(),
            client_addr: String::new(),
        }];
        let shard = Shard::genesis(0, 1, &members);
        let mut rng = Rng::with_seed(1);
        assert_eq!(check(&shard, b"", &mut rng), Ok(()));
        assert_eq!(check(&shard, &[1; 30], &mut rng), Ok(()));
    }
}
