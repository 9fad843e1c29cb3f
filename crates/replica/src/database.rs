//! Logs in a database: what it says goes to the lease protocol, what that wants goes out.
//!
//! Promise: everything above the log is the same as with Raft; only who may write, and where entries come from, is decided there.

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use crate::call::{Answer, Outcome, Unavailable};
use crate::output::{DatabaseHealth, DatabaseTold, Now};
use crate::replica::Replica;

/// How much later each further node tries to take a free lease, so that all nodes lead some shards.
const TURN_MS: u64 = 300;
/// The longest such wait.
const TURN_MS_MAX: u64 = 1_500;
/// How long it counts that the database took no write. After that one is tried again, whoever wants it.
const WORD_MS: u64 = 3_000;

/// Codes of refusals while the database takes no writes.
pub(crate) const DATABASE_FULL: &str = "database_full";
pub(crate) const DATABASE_READ_ONLY: &str = "database_read_only";

/// What was last heard of the database.
#[derive(Debug, Default)]
pub(crate) struct DatabaseWatch {
    health: DatabaseHealth,
    until_ms: u64,
}

/// What a refusal in the name of the database means to whoever asked for it.
pub(crate) fn database_refusal(code: &str) -> Option<Unavailable> {
    let health = match code {
        DATABASE_FULL => DatabaseHealth::Full,
        DATABASE_READ_ONLY => DatabaseHealth::ReadOnly,
        _ => return None,
    };
    Some(Unavailable::Database { health })
}

impl Replica {
    /// Whether logs live in a database.
    pub(crate) fn is_leased(&self) -> bool {
        self.config.consensus.lease.is_some()
    }

    pub(crate) fn database_told(&mut self, told: DatabaseTold, now: Now) {
        match told {
            DatabaseTold::Answered { shard, id, answer } => {
                self.consensus.database_answered(shard, id, answer, now.mono_ms);
            }
            DatabaseTold::Health(health) => {
                self.database = DatabaseWatch { health, until_ms: now.mono_ms + WORD_MS };
            }
            DatabaseTold::Changed(shard) => self.consensus.database_changed(shard, now.mono_ms),
            DatabaseTold::Fetched { shard, found } => {
                let Some(seat) = self.seats.get(usize::from(shard)) else {
                    return;
                };
                let applied = seat.state.applied();
                match found.filter(|(start, _)| start.index > applied.index) {
                    Some((start, conf)) => self.snapshot_accepted(shard, start, conf),
                    None => {
                        // Nothing newer than what is here: the protocol looks again.
                        let here =
                            ikada_consensus::Start { index: applied.index, term: applied.term };
                        let conf = self.consensus.conf(shard);
                        self.consensus.snapshot_installed(shard, here, conf);
                    }
                }
            }
        }
    }

    /// Forgets what was heard long ago.
    pub(crate) fn watch_database(&mut self, now: Now) {
        if now.mono_ms >= self.database.until_ms {
            self.database.health = DatabaseHealth::Well;
        }
    }

    /// How the database takes writes; none where logs live on this node.
    pub(crate) fn database_health(&self) -> Option<DatabaseHealth> {
        self.is_leased().then_some(self.database.health)
    }

    /// Why nothing can be written now, if the database said so: whoever asks is told at once, instead of waiting for an append that
    /// is tried again and again (LS-14).
    pub(crate) fn unwritable(&self) -> Option<&'static str> {
        match self.database.health {
            DatabaseHealth::Well | DatabaseHealth::Away => None,
            DatabaseHealth::Full => Some(DATABASE_FULL),
            DatabaseHealth::ReadOnly => Some(DATABASE_READ_ONLY),
        }
    }

    /// The same answer in better words: where the database takes no writes, that is why nobody leads.
    pub(crate) fn explained(&self, mut answer: Answer) -> Answer {
        let Some(why) = self.unwritable().and_then(database_refusal) else { return answer };
        let explain = |reason: &mut Unavailable| {
            if matches!(reason, Unavailable::NoLeader { .. }) {
                *reason = why.clone();
            }
        };
        match &mut answer {
            Answer::Unavailable(reason) => explain(reason),
            Answer::Written(outcomes) => outcomes.iter_mut().for_each(|outcome| {
                if let Outcome::Unavailable(reason) = outcome {
                    explain(reason);
                }
            }),
            _ => {}
        }
        answer
    }

    /// Spreads the shards over the nodes: each node is the first to try for its own share.
    pub(crate) fn take_turns(&mut self) {
        for shard in 0..self.seats.len() as ShardId {
            let voters = self.consensus.conf(shard).voters;
            let place = voters.iter().position(|node| *node == self.config.node);
            let Some(place) = place else { continue };
            let turn = (place + voters.len() - usize::from(shard) % voters.len()) % voters.len();
            self.consensus.set_turn(shard, (turn as u64 * TURN_MS).min(TURN_MS_MAX));
        }
    }

    /// Gives every lease back, to a node that is up if there is one.
    pub(crate) fn release_leases(&mut self) {
        for shard in 0..self.seats.len() as ShardId {
            let seat = &self.seats[usize::from(shard)];
            if seat.leads() && self.consensus.transferring(shard).is_none() {
                let to = self.best_successor(shard).unwrap_or(0);
                // A refusal (the node just lost the lease) leaves nothing to do.
                let _ = self.consensus.transfer(shard, to);
            }
        }
    }

    /// The next node after this one that is up and may lead; rather one that knows the log.
    pub(crate) fn next_holder(&self, shard: ShardId) -> Option<NodeId> {
        let voters = self.consensus.conf(shard).voters;
        let may_lead = |node: &&NodeId| self.is_up(**node) && !self.is_shunned(**node);
        let after = voters.iter().filter(|node| **node > self.config.node);
        let before = voters.iter().filter(|node| **node < self.config.node);
        let lags = |node: &&NodeId| self.lags_too_far(shard, **node).is_some();
        after.chain(before).filter(may_lead).min_by_key(lags).copied()
    }
}
