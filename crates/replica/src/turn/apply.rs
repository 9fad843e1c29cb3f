//! Committed entries meet the state; waiting callers hear of it; a leader acts on the effects.

use std::collections::BTreeSet;

use ikada_consensus::{Entry, EntryKind};
use ikada_state::{Applied, Audience, Effect, Lsn, Reply, ShardId};

use crate::output::{Ended, Halt, Now};
use crate::peer::{HashReport, Hint, PeerMessage, Told};
use crate::planted::{self, Bug};
use crate::replica::Replica;
use crate::seat::{Asker, Ticket};

impl Replica {
    /// Applies entries in order, unless the shard is loading a snapshot: then they wait for it.
    pub(crate) fn apply_entries(&mut self, shard: ShardId, entries: Vec<Entry>, now: Now) {
        let seat = &mut self.seats[usize::from(shard)];
        if let Some(loading) = &mut seat.loading {
            loading.waiting.extend(entries);
            return;
        }
        let Some(last) = entries.last().map(|entry| entry.index) else {
            return;
        };
        for entry in entries {
            self.apply_entry(shard, &entry, now);
        }
        self.consensus.applied(shard, last);
    }

    fn apply_entry(&mut self, shard: ShardId, entry: &Entry, now: Now) {
        let lsn = Lsn { term: entry.term, index: entry.index };
        let seat = &mut self.seats[usize::from(shard)];
        let data: &[u8] = if entry.kind == EntryKind::Normal { &entry.data } else { &[] };
        let waited_for = seat.tickets.front().is_some_and(|ticket| ticket.index <= entry.index);
        let audience = match seat.leads() || waited_for {
            true if self.config.tells_ended => Audience::Watcher,
            true => Audience::Leader,
            false => Audience::Nobody,
        };
        let Applied { orders, replies, effects, is_newer } =
            seat.state.apply_for(lsn, data, audience);
        if is_newer {
            self.outputs.halt = Some(Halt::Newer { shard, index: entry.index });
        }
        let seat = &mut self.seats[usize::from(shard)];
        seat.snapshot.entries += 1;
        seat.snapshot.log_bytes += entry.data.len() as u64;
        self.applied_orders += orders as u64;
        self.settle_ticket(shard, lsn, replies, now);
        if self.seats[usize::from(shard)].leads() {
            if self.config.tells_ended {
                self.tell_ended(shard, lsn, &effects);
            }
            self.act_on(shard, effects, now);
        }
        if entry.index.is_multiple_of(self.config.hash_every) {
            self.report_hash(shard, entry.index);
        }
    }

    /// Answers those who waited for this entry. Those whose entry is not where it was proposed are told that nothing is known: in
    /// a database it may be further on, since an append whose outcome was not heard is tried again.
    fn settle_ticket(&mut self, shard: ShardId, lsn: Lsn, replies: Vec<Reply>, now: Now) {
        let mut replies = replies.into_iter();
        loop {
            let seat = &mut self.seats[usize::from(shard)];
            let Some(Ticket { term, index, waiters }) =
                seat.tickets.pop_front_if(|ticket| ticket.index <= lsn.index)
            else {
                return;
            };
            let committed = (term, index) == (lsn.term, lsn.index);
            for waiter in waiters {
                let told = if committed {
                    let replies: Vec<Reply> = replies.by_ref().take(waiter.orders).collect();
                    if let [Reply::Claimed { tasks }] = replies.as_slice() {
                        self.seats[usize::from(shard)].granted.told(tasks, waiter.asker);
                    }
                    Told::Replies { term, index, replies }
                } else {
                    Told::Unknown
                };
                self.tell(waiter.asker, told, now);
            }
        }
    }

    fn act_on(&mut self, shard: ShardId, effects: Vec<Effect>, now: Now) {
        let (mut ready, mut unheld) = (Vec::new(), Vec::new());
        let seat = &mut self.seats[usize::from(shard)];
        for effect in effects {
            match effect {
                Effect::Claimed { slot, fence, session, ttl_ms, timeout_ms } => {
                    let early = u64::from(planted::active(Bug::ExpiryTooEarly));
                    let ttl_ms = u64::from(ttl_ms) >> early;
                    let (timeout_ms, now_ms) = (u64::from(timeout_ms), now.mono_ms);
                    seat.liveness.grant(slot, fence, session, ttl_ms, timeout_ms, now_ms);
                    unheld.extend(seat.give_back(slot, fence));
                }
                Effect::SessionOver { namespace, worker, session } => {
                    seat.gone.note((namespace, worker, session));
                }
                Effect::Released { slot, fence } => seat.liveness.release(slot, fence),
                Effect::Ready { queue } => ready.push(queue),
                Effect::LeaseTimed { key, mark, ttl_ms } => {
                    seat.holdings.start(key, mark, u64::from(ttl_ms), now.mono_ms);
                }
                Effect::LeaseEnded { key, mark } => seat.holdings.end(&key, mark),
                Effect::OutboxPut { .. } => self.outbox_due = true,
                Effect::OutboxAcked { target } => {
                    seat.delivering.remove(&target);
                    self.outbox_due = true;
                }
                // Scheduled tasks and added shards are looked at by every turn, members by whoever asks.
                Effect::Moved { .. }
                | Effect::Travelled { .. }
                | Effect::Scheduled { .. }
                | Effect::QueueChanged { .. }
                | Effect::Grew
                | Effect::MembersChanged => {}
            }
        }
        if !unheld.is_empty() {
            self.enqueue_orders(shard, Asker::Nobody, &unheld);
        }
        for queue in ready {
            self.hint_nodes(shard, queue, now);
        }
    }

    /// Gives out the records of tasks that this entry ended, and of jobs that ended with them.
    fn tell_ended(&mut self, shard: ShardId, lsn: Lsn, effects: &[Effect]) {
        let state = &self.seats[usize::from(shard)].state;
        let mut jobs = BTreeSet::new();
        for effect in effects {
            let Effect::Moved { queue, id, to: Some(to), .. } = effect else { continue };
            if !to.is_terminal() {
                continue;
            }
            let Some((namespace, _)) = state.queue_at(*queue) else { continue };
            let Some(task) = state.task(namespace, id) else { continue };
            let part = task.work.as_ref().and_then(|work| work.job.as_ref());
            if let Some(part) = part
                && let Some(job) = state.job(namespace, &part.job)
                && job.finished_ms() == Some(state.time_ms())
                && jobs.insert((namespace.clone(), part.job.clone()))
            {
                self.outputs.ended.push(Ended::Job { shard, lsn, job: job.clone() });
            }
            self.outputs.ended.push(Ended::Task { shard, lsn, task: Box::new(task) });
        }
    }

    /// Work is ready: the nodes with idle workers for it hear so.
    fn hint_nodes(&mut self, shard: ShardId, queue: ikada_state::QueueHandle, now: Now) {
        let seat = &mut self.seats[usize::from(shard)];
        let Some((namespace, name)) = seat.state.queue_at(queue) else {
            return;
        };
        let (namespace, name) = (namespace.clone(), name.clone());
        let foreseen = seat.interest.forget_foreseen(&namespace, &name);
        let waited_for = seat.interest.has(&namespace, &name);
        if foreseen || waited_for {
            // They may have asked before the queue was there to be remembered.
            seat.asked.note(queue, now.mono_ms);
        }
        if !waited_for {
            return;
        }
        let ready = seat.state.ready_count(&namespace, &name);
        if ready > 0 {
            // Else a claim that came with it has it already, and the others wait on.
            let program = seat.state.offered_program(queue);
            let program = program.map(|it| it.digest.map_or(0, |digest| digest.mark()));
            self.hint(&Hint { shard, namespace, queue: name, ready, program }, now);
        }
    }

    /// Tells those who wait for tasks that were gathered in this turn: their claims may go into the same entry.
    pub(crate) fn hint_foreseen(&mut self, now: Now) {
        for position in 0..self.seats.len() {
            let seat = &mut self.seats[position];
            if seat.pending.is_empty() && seat.tickets.is_empty() {
                seat.interest.all_came();
                continue;
            }
            for ((namespace, queue), ready) in seat.interest.take_coming() {
                if self.seats[position].state.is_paused(&namespace, &queue) {
                    self.seats[position].interest.forget_foreseen(&namespace, &queue);
                    continue;
                }
                // Only plain tasks are foreseen.
                let (shard, program) = (position as ShardId, None);
                self.hint(&Hint { shard, namespace, queue, ready, program }, now);
            }
        }
    }

    /// Uses the interest in a queue up.
    fn hint(&mut self, hint: &Hint, now: Now) {
        let seat = &mut self.seats[usize::from(hint.shard)];
        let nodes = seat.interest.take(&hint.namespace, &hint.queue);
        for node in nodes {
            if node == self.config.node {
                self.hinted(hint, now);
            } else {
                self.send(node, &PeerMessage::Hint(hint.clone()));
            }
        }
    }

    /// At a checkpoint: tells all members our hash, and counts our own vote.
    fn report_hash(&mut self, shard: ShardId, index: u64) {
        let node = self.config.node;
        let hash = self.seats[usize::from(shard)].state.hash();
        let report = HashReport { shard, index, hash };
        let conf = self.consensus.conf(shard);
        for member in conf.members() {
            if member != node {
                self.send(member, &PeerMessage::Hash(report));
            }
        }
        if let Some(halt) = self.hashes.report(node, report, node, &conf.voters) {
            self.outputs.halt = Some(halt);
        }
    }
}
