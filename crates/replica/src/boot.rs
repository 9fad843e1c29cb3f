//! What a node believes of one shard after reading its disk: snapshot and log brought together.
//!
//! Promise: nothing that was acknowledged is forgotten silently. Where the log does not continue the snapshot that is
//! left (its newer one was damaged and set aside), the shard starts from the snapshot with a *floor*: it neither votes
//! nor leads until a leader has brought it back to where it was (R11).
//!
//! Leaves out: reading the files (`store`), which the node and the simulator do alike.

use ikada_consensus::{Conf, Entry, NodeId, Recovered, Start};

/// The newest whole snapshot.
#[derive(Debug, Clone)]
pub struct SnapshotPoint {
    /// Its position.
    pub start: Start,
    /// The membership stored with it.
    pub conf: Conf,
}

/// What the log holds.
#[derive(Debug, Clone, Default)]
pub struct LogContent {
    /// Durable term.
    pub term: u64,
    /// Vote in that term; 0 is nobody.
    pub vote: NodeId,
    /// Commit index as last noted.
    pub commit: u64,
    /// The same, also where the entries are not in this log.
    pub noted: u64,
    /// The log begins after this point.
    pub start: Start,
    /// Entries after it, without gaps.
    pub entries: Vec<Entry>,
    /// Highest index proven to have been durable.
    pub floor: u64,
}

/// What to start from.
#[derive(Debug)]
pub struct Believed {
    /// For the consensus engine.
    pub recovered: Recovered,
    /// The log on disk must be restarted at this point before anything is appended.
    pub restart: Option<Start>,
}

/// Brings snapshot and log together.
pub fn believe(snapshot: Option<SnapshotPoint>, log: LogContent) -> Believed {
    let last = log.entries.last().map_or(log.start.index, |entry| entry.index);
    let Some(SnapshotPoint { start, conf }) = snapshot else {
        return without_snapshot(&log, last);
    };
    let continues = if log.start == start {
        true
    } else if log.start.index < start.index {
        log.entries.iter().any(|entry| entry.index == start.index && entry.term == start.term)
    } else {
        false
    };
    // A committed snapshot that contradicts the log proves that the log's own ending was never committed.
    let contradicts =
        log.entries.iter().any(|entry| entry.index == start.index && entry.term != start.term);
    let floor = if contradicts { start.index } else { log.floor.max(last) };
    let entries = if continues {
        log.entries.into_iter().filter(|entry| entry.index > start.index).collect()
    } else {
        Vec::new()
    };
    let recovered = Recovered {
        term: log.term.max(start.term),
        vote: if log.term >= start.term { log.vote } else { 0 },
        commit: log.commit.max(start.index),
        noted: log.noted,
        start,
        conf,
        entries,
        floor: floor.max(start.index),
    };
    Believed { recovered, restart: (!continues).then_some(start) }
}

/// Every snapshot was lost: the shard waits for one from its leader, with all its promises kept.
fn without_snapshot(log: &LogContent, last: u64) -> Believed {
    let recovered = Recovered {
        term: log.term.max(1),
        vote: log.vote,
        noted: log.noted,
        floor: log.floor.max(last),
        ..Recovered::joining()
    };
    let restart = (last > 0).then_some(Start { index: 0, term: 0 });
    Believed { recovered, restart }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use ikada_consensus::EntryKind;

    fn entry(index: u64, term: u64) -> Entry {
        let (data, context) = (Bytes::new(), Bytes::new());
        Entry { term, index, kind: EntryKind::Normal, data, context }
    }

    fn log(start: (u64, u64), terms: &[u64]) -> LogContent {
        let entries: Vec<Entry> = terms
            .iter()
            .enumerate()
            .map(|(step, term)| entry(start.0 + 1 + step as u64, *term))
            .collect();
        let floor = start.0 + terms.len() as u64;
        let start = Start { index: start.0, term: start.1 };
        LogContent { term: 9, vote: 2, commit: floor, noted: floor, start, entries, floor }
    }

    fn point(index: u64, term: u64) -> Option<SnapshotPoint> {
        Some(SnapshotPoint { start: Start { index, term }, conf: Conf::of_voters([1, 2, 3]) })
    }

    #[test]
    fn the_log_continues_its_snapshot() {
        let believed = believe(point(5, 2), log((5, 2), &[2, 3]));
        assert_eq!(believed.restart, None);
        assert_eq!(believed.recovered.entries.len(), 2);
        assert_eq!(believed.recovered.last_index(), believed.recovered.floor);
    }

    #[test]
    fn a_newer_snapshot_covers_the_beginning_of_the_log() {
        let believed = believe(point(6, 2), log((5, 2), &[2, 3]));
        assert_eq!(believed.restart, None);
        assert_eq!(believed.recovered.entries[0].index, 7);
        // A received snapshot beyond the log, or one that contradicts it, replaces it.
        let believed = believe(point(20, 8), log((5, 2), &[2, 3]));
        assert_eq!(believed.restart, Some(Start { index: 20, term: 8 }));
        assert_eq!(believed.recovered.floor, 20);
        let believed = believe(point(6, 7), log((5, 2), &[2, 3]));
        assert!(believed.recovered.entries.is_empty());
        assert_eq!(believed.recovered.floor, 6);
    }

    #[test]
    fn a_lost_newer_snapshot_leaves_a_floor() {
        // R11: the log began at 50, only the snapshot at 10 is whole.
        let believed = believe(point(10, 2), log((50, 3), &[3, 3]));
        assert_eq!(believed.recovered.floor, 52);
        assert_eq!(believed.recovered.last_index(), 10);
        assert_eq!((believed.recovered.term, believed.recovered.vote), (9, 2));
        let believed = believe(None, log((50, 3), &[3, 3]));
        assert_eq!(believed.recovered.floor, 52);
        assert_eq!(believed.recovered.vote, 2);
        assert!(believed.recovered.conf.is_empty());
    }
}
