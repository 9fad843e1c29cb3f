//! Log positions as text: `shard:term:index`, several separated by commas.

use std::fmt;

use ikada_state::{Lsn, ShardId};

/// Most positions in one list: one per shard of a large cluster.
const POSITIONS_MAX: usize = 1024;

/// Where in which shard's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Which shard.
    pub shard: ShardId,
    /// Which place.
    pub lsn: Lsn,
}

/// A text that is not a list of positions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("position {0:?} is not of the form shard:term:index")]
pub struct PositionError(String);

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.shard, self.lsn.term, self.lsn.index)
    }
}

impl std::str::FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let refuse = || PositionError(text.chars().take(64).collect());
        let mut parts = text.trim().split(':');
        let (Some(shard), Some(term), Some(index), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(refuse());
        };
        Ok(Position {
            shard: shard.parse().map_err(|_| refuse())?,
            lsn: Lsn {
                term: term.parse().map_err(|_| refuse())?,
                index: index.parse().map_err(|_| refuse())?,
            },
        })
    }
}

/// Reads a list of positions.
pub fn parse_positions(text: &str) -> Result<Vec<(ShardId, Lsn)>, PositionError> {
    let mut positions = Vec::new();
    for part in text.split(',') {
        if positions.len() == POSITIONS_MAX {
            return Err(PositionError(format!("more than {POSITIONS_MAX} positions")));
        }
        let position: Position = part.parse()?;
        positions.push((position.shard, position.lsn));
    }
    Ok(positions)
}

/// Writes a list of positions, the highest of each shard only, in shard order.
pub fn print_positions(positions: impl IntoIterator<Item = (ShardId, Lsn)>) -> String {
    let mut highest = std::collections::BTreeMap::new();
    for (shard, lsn) in positions {
        let known = highest.entry(shard).or_insert(lsn);
        *known = (*known).max(lsn);
    }
    let parts: Vec<String> =
        highest.into_iter().map(|(shard, lsn)| Position { shard, lsn }.to_string()).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_round_trip_and_keep_the_highest() {
        let lsn = |term, index| Lsn { term, index };
        let text = print_positions([(1, lsn(4, 1000)), (0, lsn(1, 2)), (1, lsn(5, 2))]);
        assert_eq!(text, "0:1:2,1:5:2");
        assert_eq!(parse_positions(&text).unwrap(), vec![(0, lsn(1, 2)), (1, lsn(5, 2))]);
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in ["", "1", "1:2", "1:2:3:4", "a:1:1", "70000:1:1", "1:-1:2", "1:1:1,"] {
            assert!(parse_positions(bad).is_err(), "{bad}");
        }
    }
}
