//! R10 Reads: a linearizable read includes every write acknowledged before it began; a read "at least as new as" a
//! position is; a stale read never shows what was not committed.

use std::collections::BTreeMap;

use ikada_state::{Lsn, ShardId};

use super::{Verdict, violation};

const NAME: &str = "R10 linearizable_reads";

/// What was acknowledged, per shard.
#[derive(Debug, Clone, Default)]
pub struct Acknowledged {
    newest: BTreeMap<ShardId, Lsn>,
}

impl Acknowledged {
    /// A client was told that its write is at this position.
    pub fn write(&mut self, shard: ShardId, lsn: Lsn) {
        let newest = self.newest.entry(shard).or_insert(lsn);
        *newest = (*newest).max(lsn);
    }

    /// The newest acknowledged position of a shard.
    pub fn newest(&self, shard: ShardId) -> Option<Lsn> {
        self.newest.get(&shard).copied()
    }

    /// All of them.
    pub fn all(&self) -> Vec<(ShardId, Lsn)> {
        self.newest.iter().map(|(shard, lsn)| (*shard, *lsn)).collect()
    }
}

/// Compares the positions at which a read was served with those that it had to include.
pub fn check(kind: &str, owed: &[(ShardId, Lsn)], served: &[(ShardId, Lsn)]) -> Verdict {
    for (shard, at) in served {
        let Some((_, least)) = owed.iter().find(|(of, _)| of == shard) else {
            continue;
        };
        if at < least {
            return violation(
                NAME,
                format!(
                    "{kind} read of shard {shard} was served at {at}, but had to include {least}"
                ),
            );
        }
    }
    Ok(())
}

/// A stale read must be at a committed position.
pub fn check_committed(shard: ShardId, at: Lsn, committed: Option<u64>) -> Verdict {
    // Nothing applied yet is the state before all commits.
    if committed == Some(at.term) || at == Lsn::default() {
        return Ok(());
    }
    violation(NAME, format!("a read of shard {shard} was served at {at}, which is not committed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_misses_an_acknowledged_write_is_noticed() {
        let lsn = |index| Lsn { term: 2, index };
        let mut acked = Acknowledged::default();
        acked.write(0, lsn(5));
        acked.write(0, lsn(4));
        acked.write(1, lsn(9));
        let owed = acked.all();
        assert!(check("linearizable", &owed, &[(0, lsn(5))]).is_ok());
        assert!(check("linearizable", &owed, &[(0, lsn(4))]).is_err());
        assert!(check("linearizable", &owed, &[(2, lsn(1))]).is_ok());
    }

    #[test]
    fn a_read_of_uncommitted_state_is_noticed() {
        let at = Lsn { term: 2, index: 5 };
        assert!(check_committed(0, at, Some(2)).is_ok());
        assert!(check_committed(0, at, Some(3)).is_err());
        assert!(check_committed(0, at, None).is_err());
    }
}
