//! Questions on their way to the database that holds the logs, and answers on their way back.
//!
//! The contract of `consensus::lease` is kept: each question is answered once, `Failed` when its time is over; what was
//! asked happens whole or not at all, and may happen after its asker gave up or died. A work is checked at the moment it
//! happens (P1, P2): the database is the witness. What is appended there is committed.

use bytes::Bytes;
use ikada_consensus::lease::{Answer, Ask, Work};
use ikada_consensus::{Conf, Entry, NodeId, Start};
use ikada_replica::output::{DatabaseTold, Input};
use ikada_state::ShardId;
use ikada_store::{Manifest, SimDisk, Snapshots};

use super::{Event, World};
use crate::check::Verdict;
use crate::database::{Life, StoredSnapshot};
use crate::draw::{chance, log_uniform};
use crate::marks::Mark;
use crate::oracle::mirror::EntryMark;

/// How long a question about a lease waits, as in `node/database`.
const LEASE_PATIENCE_US: u64 = 1_500_000;
/// How long any other question waits.
const PATIENCE_US: u64 = 5_000_000;
/// How long a refused connection takes.
const REFUSED_US: u64 = 1_000;
/// How long a snapshot takes, most.
const FETCH_US_MAX: u64 = 50_000;

/// A question on its way.
#[derive(Debug)]
pub struct Flight {
    life: Life,
    ask: Ask,
    /// The database's life when it was sent.
    session: u64,
    /// Its answer gets lost.
    is_lost: bool,
}

/// A question as its asker remembers it.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// When it was sent, by the asker's monotonic clock, if the answer may extend a lease.
    pub lease_sent_ms: Option<u64>,
}

impl World {
    /// A node asks: the questions leave, and the patience for each begins.
    pub(super) fn ask_database(
        &mut self,
        node: NodeId,
        generation: u64,
        asks: Vec<Ask>,
    ) -> Verdict {
        let (Some(plan), now_us) = (self.plan.database.clone(), self.now_us()) else {
            return Ok(());
        };
        let Some(session) = self.database.as_ref().map(|database| database.session) else {
            return Ok(());
        };
        for ask in asks {
            let (shard, id) = (ask.shard, ask.id);
            let is_forked =
                self.fork.as_ref().is_some_and(|fork| fork.knows(shard, node).is_some());
            if let Work::Append { entries, .. } = &ask.work
                && !is_forked
            {
                self.handed_to_database(shard, entries)?;
            }
            let Some(machine) = self.machines.get_mut(&node) else { return Ok(()) };
            let sent_ms = machine.clock.read(now_us).mono_ms;
            let Some(process) = &mut machine.process else { return Ok(()) };
            let is_lease = matches!(ask.work, Work::Take { .. } | Work::Renew { .. });
            let asked = Asked { lease_sent_ms: is_lease.then_some(sent_ms) };
            process.asked.insert((shard, id), asked);
            let is_short = is_lease || matches!(ask.work, Work::Release { .. });
            let patience_us = if is_short { LEASE_PATIENCE_US } else { PATIENCE_US };
            self.schedule.after(patience_us, Event::AskPatience(node, generation, shard, id));
            let mut delay_us = self.rng.u64(0..=plan.delay_us_max);
            let is_late = chance(&mut self.rng, plan.late_permille);
            if is_late {
                delay_us = patience_us + self.rng.u64(0..=plan.late_ms_max * 1_000);
            }
            let is_lost = is_late || chance(&mut self.rng, plan.lost_permille);
            let life = Life { node, generation };
            let flight = Flight { life, ask, session, is_lost };
            self.schedule.after(delay_us, Event::Ask(Box::new(flight)));
        }
        Ok(())
    }

    /// Entries leave for the database: from now on they may be written, whatever becomes of their holder.
    fn handed_to_database(&mut self, shard: ShardId, entries: &[Entry]) -> Verdict {
        let now_us = self.now_us();
        for entry in entries {
            let mark = mark_of(entry);
            self.watch.epoch_fence.handed_over(shard, &mark)?;
            self.watch.wrote(shard, &mark, entry, now_us);
        }
        Ok(())
    }

    /// A question reaches the database.
    pub(super) fn ask_arrives(&mut self, flight: Flight) -> Verdict {
        let now_us = self.now_us();
        let Some(database) = &self.database else { return Ok(()) };
        let Life { node, generation } = flight.life;
        let (shard, id) = (flight.ask.shard, flight.ask.id);
        if flight.session != database.session || now_us < database.down_until_us {
            // The connection broke, or there is none: nothing happens.
            let told = Event::Told(node, generation, shard, id, Box::new((0, Answer::Failed)));
            self.schedule.after(REFUSED_US, told);
            return Ok(());
        }
        if database.cut_until_us.get(&node).is_some_and(|until_us| now_us < *until_us) {
            return Ok(());
        }
        if now_us < database.stalled_until_us {
            self.schedule.at(database.stalled_until_us, Event::Ask(Box::new(flight)));
            return Ok(());
        }
        let Some(answer) = self.happen(&flight)? else { return Ok(()) };
        if flight.is_lost {
            return Ok(());
        }
        let delay_us =
            self.plan.database.as_ref().map_or(0, |plan| self.rng.u64(0..=plan.delay_us_max));
        let answer = Box::new((flight.session, answer));
        self.schedule.after(delay_us, Event::Told(node, generation, shard, id, answer));
        Ok(())
    }

    /// The work of a question happens. Nothing is said of one that its own asker would have to help with and cannot.
    fn happen(&mut self, flight: &Flight) -> Result<Option<Answer>, crate::check::Violation> {
        let now_us = self.now_us();
        let (life, shard, work) = (flight.life, flight.ask.shard, &flight.ask.work);
        let has = |known| {
            self.database.as_ref().is_some_and(|it| it.tables[usize::from(shard)].has(known))
        };
        if let Work::Purge { to_index, known, .. } = work
            && has(known)
            && !self.store_snapshot(life, shard, *to_index)
        {
            return Ok(Some(Answer::Failed));
        }
        let Some(database) = &mut self.database else { return Ok(None) };
        let place = usize::from(shard);
        let before = database.tables[place].term_of_lease();
        let previous = database.tables[place].last_epoch();
        let (answer, is_taken) = database.carry_out(life, shard, work, now_us);
        let (epoch, clock_ms) = (database.tables[place].epoch, database.clock_ms(now_us));
        self.note(life.node, "database", (u64::from(shard), flight.ask.id), |text| {
            use std::fmt::Write as _;
            let _ = write!(
                text,
                "{} -> {}",
                short(&format!("{work:?}")),
                short(&format!("{answer:?}"))
            );
        });
        let is_forked =
            self.fork.as_ref().is_some_and(|fork| fork.knows(shard, life.node).is_some());
        if is_taken && is_forked {
            self.wrote_in_fork(life.node, shard)?;
        } else if is_taken {
            self.watch.epoch_fence.taken(shard, epoch)?;
            let (holder, expires_ms) = before;
            let from_other = holder.is_some_and(|holder| holder.node != life.node);
            self.marks.hit_if(from_other && expires_ms < clock_ms, Mark::LeaseTakenOver);
        }
        match (work, &answer) {
            (Work::Append { epoch, entries, .. }, Answer::Appended { .. }) => {
                if !self.wrote_in_fork(life.node, shard)? {
                    self.watch.epoch_fence.appended(shard, *epoch, previous)?;
                    self.appended(shard, *epoch, entries)?;
                }
                self.notify(shard);
            }
            (Work::Append { .. }, Answer::Deposed) => self.mark(Mark::AppendRefused),
            (Work::Append { .. }, Answer::Conflict) => self.mark(Mark::AppendConflict),
            (Work::Release { .. }, _) => self.notify(shard),
            _ => {}
        }
        Ok(Some(answer))
    }

    /// What the database has is committed, once and for ever.
    fn appended(&mut self, shard: ShardId, epoch: u64, entries: &[Entry]) -> Verdict {
        let now_us = self.now_us();
        for entry in entries {
            let mark = mark_of(entry);
            let ledger = &mut self.watch.ledgers[usize::from(shard)];
            if entry.index != ledger.committed_index() + 1 {
                let what = format!("shard {shard}: {} written again", entry.index);
                return crate::check::violation("R5 committed_forever", what);
            }
            let Some(committed) = ledger.commit(mark, epoch) else {
                let what = format!("shard {shard}: nobody wrote {}.{}", mark.term, mark.index);
                return crate::check::violation("R5 committed_forever", what);
            };
            self.tally.committed += 1;
            self.watch.committed_us.insert((shard, entry.index), now_us);
            self.follow(shard, committed)?;
        }
        Ok(())
    }

    /// Everybody who listens hears that a shard's log or lease changed.
    fn notify(&mut self, shard: ShardId) {
        let Some(plan) = self.plan.database.clone() else { return };
        let nodes: Vec<(NodeId, u64)> =
            self.machines.values().map(|machine| (machine.node, machine.generation)).collect();
        for (node, generation) in nodes {
            if chance(&mut self.rng, plan.notices_permille) {
                let delay_us = self.rng.u64(0..=plan.delay_us_max);
                self.schedule.after(delay_us, Event::Notified(node, generation, shard));
            }
        }
    }

    /// An answer, or the end of the patience, reaches whoever asked; the first of both counts.
    pub(super) fn database_told(
        &mut self,
        node: NodeId,
        generation: u64,
        (shard, id): (ShardId, u64),
        (session, mut answer): (u64, Answer),
    ) {
        let Some(database) = &self.database else { return };
        if session != database.session {
            answer = Answer::Failed;
        }
        let Some(plan) = &self.plan.database else { return };
        let lasts_ms = plan.lease.ttl_ms - plan.lease.margin_ms;
        let Some(machine) = self.machines.get_mut(&node) else { return };
        let Some(process) = machine.process.as_mut().filter(|_| machine.generation == generation)
        else {
            return;
        };
        let Some(asked) = process.asked.remove(&(shard, id)) else { return };
        if let (Some(sent_ms), Answer::Lease(lease)) = (asked.lease_sent_ms, &answer)
            && lease.is_ours
        {
            process.held_until_ms.insert(shard, sent_ms + lasts_ms);
        }
        self.fork_is_heard(node, shard, &answer);
        let told = DatabaseTold::Answered { shard, id, answer };
        self.input(node, generation, Input::Database(told));
    }

    /// A node wants the stored snapshots of these shards.
    pub(super) fn fetch_from_database(
        &mut self,
        node: NodeId,
        generation: u64,
        shards: Vec<ShardId>,
    ) {
        for shard in shards {
            let delay_us = log_uniform(&mut self.rng, 500, FETCH_US_MAX);
            self.schedule.after(delay_us, Event::Fetch(node, generation, shard));
        }
    }

    /// A stored snapshot comes into a node's files, if it can.
    pub(super) fn fetched(&mut self, node: NodeId, generation: u64, shard: ShardId) {
        let now_us = self.now_us();
        let Some(database) = &self.database else { return };
        let is_away = now_us < database.down_until_us.max(database.stalled_until_us);
        let is_cut = database.cut_until_us.get(&node).is_some_and(|until_us| now_us < *until_us);
        let tables = database.tables.get(usize::from(shard)).filter(|_| !is_away && !is_cut);
        let stored = tables.and_then(|tables| tables.snapshots.values().next_back());
        let Some(machine) = self.machines.get(&node) else { return };
        let Some(process) = machine.process.as_ref().filter(|_| machine.generation == generation)
        else {
            return;
        };
        let found = stored.and_then(|stored| bring(&process.snapshots, stored));
        self.marks.hit_if(found.is_some(), Mark::StoredSnapshotFetched);
        self.input(node, generation, Input::Database(DatabaseTold::Fetched { shard, found }));
    }

    /// Copies a node's newest snapshot, which must be at this index, into the database.
    fn store_snapshot(&mut self, life: Life, shard: ShardId, index: u64) -> bool {
        let Some(machine) = self.machines.get(&life.node) else { return false };
        let process = machine.process.as_ref().filter(|_| machine.generation == life.generation);
        let Some(stored) = process.and_then(|process| read(&process.snapshots, shard, index))
        else {
            return false;
        };
        let Some(database) = &mut self.database else { return false };
        database.tables[usize::from(shard)].snapshots.insert(index, stored);
        true
    }
}

/// The whole snapshot of a node at an index.
fn read(snapshots: &Snapshots<SimDisk>, shard: ShardId, index: u64) -> Option<StoredSnapshot> {
    let manifest = snapshots.load(shard).ok()?.filter(|manifest| manifest.index == index)?;
    let chunk = |chunk| snapshots.read_chunk(&manifest, chunk).ok().map(Bytes::from);
    let chunks = (0..manifest.chunks.len()).map(chunk).collect::<Option<Vec<Bytes>>>()?;
    Some(StoredSnapshot { manifest: Bytes::from(manifest.encode()), chunks })
}

/// Writes a stored snapshot into a node's files.
fn bring(snapshots: &Snapshots<SimDisk>, stored: &StoredSnapshot) -> Option<(Start, Conf)> {
    let manifest = Manifest::decode(&stored.manifest).ok()?;
    let conf = Conf::decode(&manifest.conf).ok()?;
    let mut writer = snapshots.receive(&manifest).ok()?;
    for chunk in &stored.chunks {
        writer.chunk(chunk).ok()?;
    }
    writer.finish_received().ok()?;
    Some((Start { index: manifest.index, term: manifest.term }, conf))
}

fn mark_of(entry: &Entry) -> EntryMark {
    EntryMark::new(entry.index, entry.term, entry.kind, &entry.data, &entry.context)
}

/// Enough of a work or an answer to follow a trace; never the entries' bytes.
fn short(text: &str) -> &str {
    const CHARS_MAX: usize = 60;
    text.char_indices().nth(CHARS_MAX).map_or(text, |(at, _)| &text[..at])
}
