//! Growth as a node sees it: opening the logs of added shards, and asking again where a slot has gone.
//!
//! Promise: an added shard takes part only after its first state is durable here, so that a crash never leaves a log
//! without its beginning. A question that meets a slot which is away is asked again by a newer map until its deadline;
//! it counts as *handed over* only if an earlier try may have been committed.

use ikada_consensus::{BOOTSTRAP, Conf, Recovered};
use ikada_state::{Progress, RefusalCode, Reply, Shard, ShardId};

use crate::leg::{Leg, LegState, Owner};
use crate::output::{Now, SnapshotWork};
use crate::peer::{Ask, RenewTold, Told};
use crate::replica::Replica;
use crate::seat::Seat;

/// Pause before looking at the map again.
const AFTER_MOVED_MS: u64 = 20;

impl Replica {
    /// Begins to open the next shard that shard 0 names and that is not open here.
    pub(crate) fn open_added(&mut self, now: Now) {
        let state = &self.seats[0].state;
        let shard = self.seats.len() as ShardId;
        if shard >= state.shards() || self.opening.is_some() || self.seats[0].loading.is_some() {
            return;
        }
        let voters = state.growth().and_then(|growth| growth.voters_of(shard));
        let added = Shard::added(shard, state.shards(), state.limits().clone());
        match voters {
            Some(voters) if voters.contains(&self.config.node) => {
                let conf = Conf::of_voters(voters.iter().copied());
                let frozen = added.freeze();
                self.opening = Some(shard);
                let work = SnapshotWork::Save { shard, frozen, start: BOOTSTRAP, conf };
                self.outputs.snapshots.push(work);
            }
            // Whoever joined later waits for a snapshot.
            _ => {
                self.seats.push(Seat::new(shard, added));
                let opened = self.consensus.open(shard, Recovered::joining(), now.mono_ms);
                assert!(opened.is_ok(), "an empty shard can be opened");
            }
        }
    }

    /// The first state of an added shard is durable.
    pub(crate) fn added_saved(&mut self, shard: ShardId, conf: Conf, now: Now) {
        self.opening = None;
        let state = &self.seats[0].state;
        let added = Shard::added(shard, state.shards(), state.limits().clone());
        self.seats.push(Seat::new(shard, added));
        let opened = self.consensus.open_added(shard, conf, now.mono_ms);
        assert!(opened.is_ok(), "a first state can be opened");
    }

    /// The leg's slot is away: it waits a little and looks at the map again.
    pub(crate) fn leg_moved(&mut self, id: u64, now: Now) {
        if let Some(leg) = self.legs.get_mut(id) {
            leg.open = false;
            leg.handed_over = leg.doubtful;
            leg.tries = 0;
            leg.moved = true;
            leg.state = LegState::Waiting { again_ms: now.mono_ms + AFTER_MOVED_MS };
        }
    }

    /// Whether some of the answers say that a slot has moved.
    pub(crate) fn names_moved(told: &Told) -> bool {
        let moved = Reply::Refused { code: RefusalCode::SlotMoved };
        match told {
            Told::Replies { replies, .. } => replies.contains(&moved),
            Told::Renewed(told) => told.contains(&RenewTold::Refused(RefusalCode::SlotMoved)),
            _ => false,
        }
    }

    /// Some parts of a leg have moved: each goes on as a leg of its own, the others are settled.
    pub(crate) fn split_moved(&mut self, id: u64, told: Told, now: Now) {
        let Some(leg) = self.legs.get_mut(id) else {
            return;
        };
        let single = matches!(&leg.ask, Ask::Write(orders) if orders.len() == 1);
        if single || !matches!(leg.owner, Owner::Call(..) | Owner::Nobody) {
            return self.leg_moved(id, now);
        }
        let Some(leg) = self.legs.remove(id) else {
            return;
        };
        match (&leg.ask, told) {
            (Ask::Write(orders), Told::Replies { term, index, replies }) => {
                let (mut kept, mut answers) = (Vec::new(), Vec::new());
                for (place, (order, reply)) in orders.iter().zip(replies).enumerate() {
                    if reply == Reply::refused(RefusalCode::SlotMoved) {
                        let owner = owner_of(&leg.owner, place);
                        self.open_moved(&leg, owner, Ask::Write(vec![order.clone()]), now);
                    } else if let Owner::Call(_, items) = &leg.owner {
                        kept.push(items[place]);
                        answers.push(reply);
                    }
                }
                if let (Owner::Call(call, _), false) = (&leg.owner, kept.is_empty()) {
                    let told = Told::Replies { term, index, replies: answers };
                    self.write_told(*call, &kept, &leg, told);
                }
            }
            (Ask::Renew { namespace, worker, claims, progress, .. }, Told::Renewed(told)) => {
                let (mut kept, mut answers) = (Vec::new(), Vec::new());
                for (place, (claim, told)) in claims.iter().zip(told).enumerate() {
                    if told == RenewTold::Refused(RefusalCode::SlotMoved) {
                        let ask = Ask::Renew {
                            namespace: namespace.clone(),
                            worker: worker.clone(),
                            claims: vec![claim.clone()],
                            session: None,
                            map_version: 0,
                            progress: progress_at(progress.as_deref(), place),
                        };
                        self.open_moved(&leg, owner_of(&leg.owner, place), ask, now);
                    } else if let Owner::Call(_, items) = &leg.owner {
                        kept.push(items[place]);
                        answers.push(told);
                    }
                }
                if let (Owner::Call(call, _), false) = (&leg.owner, kept.is_empty()) {
                    self.renew_told(*call, &kept, Told::Renewed(answers));
                }
            }
            _ => {}
        }
    }

    fn open_moved(&mut self, before: &Leg, owner: Owner, ask: Ask, now: Now) {
        let mut leg = Leg::new(before.shard, owner, ask, before.deadline_ms);
        leg.doubtful = before.doubtful;
        leg.tries = before.tries;
        let id = self.legs.insert(leg);
        self.leg_moved(id, now);
    }

    /// Sends a leg that met a moved slot where it belongs now; gives its id from then on. A late answer of the shard that
    /// it asked before would be taken for one of the new shard, with a position that means nothing there.
    pub(crate) fn reroute(&mut self, id: u64) -> u64 {
        let Some(leg) = self.legs.get_mut(id).filter(|leg| leg.moved) else {
            return id;
        };
        let ask = std::mem::replace(&mut leg.ask, Ask::ReadIndex);
        let shard = match &ask {
            Ask::Write(orders) => orders.first().map(|order| self.shard_of(order)),
            Ask::Renew { namespace, claims, .. } => {
                claims.first().map(|(task, _)| self.shard_of_task(namespace, task))
            }
            Ask::Explain { namespace, id } => Some(self.shard_of_task(namespace, id)),
            Ask::Lease(order) => Some(self.shard_of(order)),
            Ask::RenewLease { key, .. } => Some(self.shard_of_key(&key.0, key.1.as_str())),
            _ => None,
        };
        let Some(leg) = self.legs.get_mut(id) else {
            return id;
        };
        leg.ask = ask;
        match shard {
            Some(shard) if shard != leg.shard => {
                leg.shard = shard;
                self.legs.rename(id)
            }
            _ => id,
        }
    }
}

/// The owner of one part of a leg.
fn owner_of(owner: &Owner, place: usize) -> Owner {
    match owner {
        Owner::Call(call, items) => Owner::Call(*call, vec![items[place]]),
        _ => Owner::Nobody,
    }
}

/// What a renewal says of the claim at a place, as of the only one.
fn progress_at(progress: Option<&[(u32, Progress)]>, place: usize) -> Option<Vec<(u32, Progress)>> {
    let said = progress?.iter().find(|(position, _)| *position as usize == place)?;
    Some(vec![(0, said.1.clone())])
}
