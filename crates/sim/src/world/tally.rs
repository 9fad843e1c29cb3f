//! Counts for the report of a run.

use std::collections::BTreeMap;

/// What happened how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events handled.
    pub events: u64,
    /// Client operations that have ended, whatever they came to.
    pub operations: u64,
    /// Orders acknowledged.
    pub acked: u64,
    /// Orders refused by the state machine.
    pub refused: u64,
    /// Orders of unknown outcome.
    pub unknown: u64,
    /// Calls that were not decided.
    pub unavailable: u64,
    /// Reads served.
    pub reads: u64,
    /// Frames sent.
    pub frames: u64,
    /// Entries committed.
    pub committed: u64,
    /// Elections won.
    pub elections: u64,
    /// Faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Tally) {
        self.events += other.events;
        self.operations += other.operations;
        self.acked += other.acked;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.unavailable += other.unavailable;
        self.reads += other.reads;
        self.frames += other.frames;
        self.committed += other.committed;
        self.elections += other.elections;
        for (kind, count) in &other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
    }
}
