//! What a node has synced of its one shard.

use ikada_consensus::{Conf, Entry, Io, IoRecord, Recovered, Start};

pub struct Disk {
    pub state: Recovered,
    /// Highest index that was ever synced and not replaced by a restart.
    pub floor: u64,
    /// Snapshot that was installed or taken; its restart may not be synced yet.
    pub snapshot: Option<(Start, Conf)>,
}

impl Disk {
    pub fn new(state: Recovered) -> Disk {
        Disk { floor: state.floor, state, snapshot: None }
    }

    pub fn write(&mut self, io: &Io) {
        for record in &io.records {
            match record {
                IoRecord::Hard { term, vote, commit, .. } => {
                    self.state.term = *term;
                    self.state.vote = *vote;
                    self.state.commit = *commit;
                }
                IoRecord::Append { entries, .. } => self.append(entries),
                IoRecord::Restart { start, .. } => self.restart(*start),
            }
        }
    }

    fn append(&mut self, entries: &[Entry]) {
        let first = entries.first().expect("appends are not empty").index;
        self.state.entries.retain(|entry| entry.index < first);
        assert_eq!(self.state.last_index() + 1, first, "appends leave no gap");
        self.state
            .entries
            .extend(entries.iter().filter(|entry| entry.index > self.state.start.index).cloned());
        self.floor = self.state.last_index();
    }

    fn restart(&mut self, start: Start) {
        self.state.entries.clear();
        self.state.start = start;
        self.floor = start.index;
        if let Some((at, conf)) = &self.snapshot
            && *at == start
        {
            self.state.conf = conf.clone();
        }
    }

    pub fn compact(&mut self, start: Start, conf: Conf) {
        self.state.entries.retain(|entry| entry.index > start.index);
        self.state.start = start;
        self.state.conf = conf;
    }

    /// Loses the last `count` entries, as a damaged disk would.
    pub fn damage(&mut self, count: usize) {
        let keep = self.state.entries.len().saturating_sub(count);
        self.state.entries.truncate(keep);
    }

    /// Whether this entry is durable here, or was before the disk was damaged.
    pub fn held(&self, entry: &Entry) -> bool {
        let last = self.state.last_index();
        let is_lost = last < entry.index && entry.index <= self.floor;
        let at = |held: &Entry| held.index == entry.index && held.term == entry.term;
        self.state.start.index >= entry.index || is_lost || self.state.entries.iter().any(at)
    }

    pub fn recover(&self) -> Recovered {
        Recovered { floor: self.floor, ..self.state.clone() }
    }
}
