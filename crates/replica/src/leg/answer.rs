//! What a leader told a leg, and what follows from it.

use ikada_state::{Command, Namespace, Order, Reply, ShardId, Unclaim, WorkerStanding};

use crate::call::{Answer, CallId, Unavailable};
use crate::database::database_refusal;
use crate::leg::{Leg, LegState, Owner};
use crate::origin::only_outcome;
use crate::output::Now;
use crate::peer::{Ask, Told};
use crate::replica::Replica;

/// Pause before asking again after a leader said no, so that a wrong hint cannot make two nodes spin.
const AFTER_NO_MS: u64 = 20;
/// Pause before asking again a leader that has too much waiting.
const AFTER_BUSY_MS: u64 = 50;
/// How long a claim given back is tried.
pub(crate) const GIVE_BACK_MS: u64 = 5_000;

/// What a worker, or whoever asks for all of them, is told.
fn worker_answer(shard: ShardId, told: Told) -> Answer {
    match told {
        Told::Beat { standing, term } => Answer::Beat { standing, term },
        Told::Workers { term, workers } => Answer::Workers { term, workers },
        Told::Refused { code, detail } => Answer::Refused { code, detail },
        Told::Replies { term, mut replies, .. } => match replies.pop() {
            Some(Reply::WorkerRegistered) => {
                Answer::Beat { standing: WorkerStanding::Active, term }
            }
            Some(Reply::Refused { code }) => {
                let detail = "the worker could not be recorded".to_owned();
                Answer::Refused { code: code.as_str().to_owned(), detail }
            }
            _ => Answer::Unavailable(Unavailable::NoLeader { shard }),
        },
        _ => Answer::Unavailable(Unavailable::NoLeader { shard }),
    }
}

impl Replica {
    /// An answer arrived: settle the leg, or have it asked again.
    pub(crate) fn leg_told(&mut self, id: u64, told: Told, now: Now) {
        let Some(leg) = self.legs.get_mut(id) else {
            return;
        };
        match told {
            Told::NotLeader { .. } => {
                leg.open = false;
                leg.state = LegState::Waiting { again_ms: now.mono_ms + AFTER_NO_MS };
            }
            Told::Unknown => {
                leg.state = LegState::Waiting { again_ms: now.mono_ms + AFTER_NO_MS };
            }
            // One whose earlier try may be in the log is asked again: its answer may be on its way, and to say that nothing
            // happened could be false.
            Told::Busy
                if !leg.may_be_taken()
                    && matches!(leg.owner, Owner::Call(..) | Owner::OrderCall(_)) =>
            {
                self.resolve(id, Told::Busy, now);
            }
            Told::Busy => {
                leg.open = false;
                leg.state = LegState::Waiting { again_ms: now.mono_ms + AFTER_BUSY_MS };
            }
            // The leader has yet to hear what this node knows.
            Told::LevelTooLow { needed, .. } if needed <= self.seats[0].state.level() => {
                leg.open = false;
                leg.state = LegState::Waiting { again_ms: now.mono_ms + AFTER_BUSY_MS };
            }
            // Nobody asks again but this: a grant that is not given back keeps its task from others.
            Told::Refused { ref code, .. }
                if matches!(leg.owner, Owner::Nobody | Owner::GiveBack(_))
                    && database_refusal(code).is_some() =>
            {
                leg.open = false;
                leg.state = LegState::Waiting { again_ms: now.mono_ms + AFTER_BUSY_MS };
            }
            Told::Moved => self.leg_moved(id, now),
            told if Self::names_moved(&told) => self.split_moved(id, told, now),
            told => self.resolve(id, told, now),
        }
    }

    /// Ends a leg for good.
    pub(crate) fn resolve(&mut self, id: u64, told: Told, now: Now) {
        let Some(leg) = self.legs.remove(id) else {
            return;
        };
        match leg.owner {
            Owner::Call(call, ref items) => self.call_told(call, items, &leg, told, now),
            Owner::OrderCall(call) => {
                let outcome = only_outcome(&leg, told);
                let answer = self.explained(Answer::Written(vec![outcome]));
                self.outputs.answers.push((call, answer));
            }
            Owner::Reads(ref calls) => self.reads_told(leg.shard, calls, &told),
            Owner::Outbox { source, sequence } => {
                self.outbox_told(source, leg.shard, sequence, &told, now);
            }
            Owner::GiveBack(ref namespace) => self.give_back(namespace, &told, now),
            Owner::Nobody => {}
        }
    }

    fn call_told(&mut self, call: CallId, items: &[u32], leg: &Leg, told: Told, now: Now) {
        match &leg.ask {
            Ask::Grow { .. } if matches!(told, Told::Refused { .. }) => {
                if let Told::Refused { code, detail } = told {
                    self.answer(call, Answer::Refused { code, detail });
                }
            }
            Ask::Write(_) | Ask::Grow { .. } => self.write_told(call, items, leg, told),
            Ask::Renew { .. } => self.renew_told(call, items, told),
            Ask::Claim(_) => self.claim_told(call, leg.shard, told, now),
            Ask::Transfer { .. } | Ask::Change { .. } => {
                let answer = match told {
                    Told::Accepted => Answer::Accepted,
                    Told::Refused { code, detail } => Answer::Refused { code, detail },
                    _ => Answer::Unavailable(Unavailable::NoLeader { shard: leg.shard }),
                };
                self.answer(call, answer);
            }
            Ask::Explain { .. } => {
                let answer = match told {
                    Told::Explained(explanation) => Answer::Explained(explanation),
                    _ => Answer::Unavailable(Unavailable::NoLeader { shard: leg.shard }),
                };
                self.answer(call, answer);
            }
            Ask::Beat { .. } | Ask::Workers => {
                let answer = worker_answer(leg.shard, told);
                self.answer(call, answer);
            }
            Ask::Lease(_) => self.lease_told(call, leg, told, now),
            Ask::RenewLease { .. } => self.renew_lease_told(call, &told),
            Ask::ReadIndex => {}
        }
    }

    /// Returns the tasks of a grant whose caller has gone; they do not count as attempts.
    pub(crate) fn give_back(&mut self, namespace: &Namespace, told: &Told, now: Now) {
        let Told::Replies { replies, .. } = told else {
            return;
        };
        let grants = replies.iter().filter_map(|reply| match reply {
            Reply::Claimed { tasks } => Some(tasks),
            _ => None,
        });
        for grant in grants.flatten() {
            let command = Command::Unclaim(Unclaim { id: grant.id.clone(), fence: grant.fence });
            let order = Order { namespace: namespace.clone(), request: None, command };
            let shard = self.shard_of(&order);
            let deadline_ms = now.mono_ms + GIVE_BACK_MS;
            self.open_leg(
                Leg::new(shard, Owner::Nobody, Ask::Write(vec![order]), deadline_ms),
                now,
            );
        }
    }
}
