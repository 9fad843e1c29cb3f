//! Role changes of a node, in pages and as a stream.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Number;

/// Role changes of the answering node since its start, oldest first (MQ-27).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EventPage {
    /// The node that answers; sequences of different nodes are not comparable.
    pub node: Number,
    /// The events.
    pub events: Vec<EventView>,
    /// Pass this as `after` to see only newer ones.
    pub next: u64,
}

/// One role change.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EventView {
    /// Counts up from 1 in the answering process.
    pub sequence: u64,
    /// When, ms since 1970 by that node's clock.
    pub wall_ms: u64,
    /// Which shard.
    pub shard: u16,
    /// In which term.
    pub term: u64,
    /// What the node became.
    pub role: String,
    /// Whom it follows or is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<Number>,
    /// Whom it voted for in that term.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vote: Option<Number>,
    /// Why.
    pub reason: String,
    /// Who answered the pre-vote that this change ends, or that came before the vote that it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_votes: Option<BallotView>,
    /// Who answered the vote that this change ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub votes: Option<BallotView>,
}

/// Who answered a node that asked for votes, itself included. Answers that came too late to count are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BallotView {
    /// Who said yes.
    pub granted: Vec<Number>,
    /// Who said no.
    pub refused: Vec<Number>,
}

/// Tells the reader of a stream of role changes whose changes follow, and what is missing before them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventSource {
    /// The node that tells.
    pub node: Number,
    /// When its process started, ms since 1970: sequences begin anew with each.
    pub started_ms: u64,
    /// Whether this goes on where the reader was: the same process told the reader's last event.
    pub continues: bool,
    /// Changes of this process that are left out before the next one: it keeps them no longer, or they are older than the
    /// last event of a reader who comes from another process.
    pub left_out: u64,
}

/// A place in a stream of role changes, as `id` of an event and in `Last-Event-ID`: `node-started-sequence-time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPlace {
    /// The node that told.
    pub node: u64,
    /// When its process started.
    pub started_ms: u64,
    /// The sequence of the last event.
    pub sequence: u64,
    /// When that was, by the node's clock.
    pub wall_ms: u64,
}

impl fmt::Display for EventPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EventPlace { node, started_ms, sequence, wall_ms } = self;
        write!(formatter, "{node}-{started_ms}-{sequence}-{wall_ms}")
    }
}

/// A text that is no place in a stream of role changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the id of an event that a node told")]
pub struct BadEventPlace;

impl FromStr for EventPlace {
    type Err = BadEventPlace;

    fn from_str(text: &str) -> Result<EventPlace, BadEventPlace> {
        let mut parts = text.split('-').map(|part| part.parse::<u64>().map_err(|_| BadEventPlace));
        let mut next = || parts.next().unwrap_or(Err(BadEventPlace));
        let place =
            EventPlace { node: next()?, started_ms: next()?, sequence: next()?, wall_ms: next()? };
        parts.next().is_none().then_some(place).ok_or(BadEventPlace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = EventPlace { node: 3, started_ms: u64::MAX, sequence: 0, wall_ms: 7 };
        assert_eq!(place.to_string().parse(), Ok(place));
        for wrong in ["", "1-2-3", "1-2-3-4-5", "1-2-3-x", "1-2--4", "-1-2-3-4"] {
            assert_eq!(wrong.parse::<EventPlace>(), Err(BadEventPlace), "{wrong:?}");
        }
    }
}
