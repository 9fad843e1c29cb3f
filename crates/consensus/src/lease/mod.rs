//! One shard whose log lives in a database: who may write is decided by a lease there.
//!
//! Promises:
//! - an entry is handed out for applying only after the database has it, in the order of the log;
//! - what makes it safe is the epoch, which the database checks with every append; time only decides when to try;
//! - this node calls itself leader only until its own clock, from *before* the last renewal was sent, nears the ttl (P3);
//!   clocks of database and node are never compared (P4);
//! - a database that lacks what this node knows of it, or has something else there, is a fault: the process must stop, and
//!   leaves a mark that stops the others (P2).
//!
//! The parts: `talk` the words, `hold` taking, renewing and giving up, `append` writing, `tail` reading the log, `reads`
//! linearizable reads, `refuse` what a database that was set back is known by, `view` what can be asked and what is reported. Leaves
//! out: SQL and membership; who is a member is told to it.

mod append;
mod hold;
mod reads;
mod refuse;
mod tail;
mod talk;
mod view;

use std::collections::VecDeque;

pub use talk::{Answer, Ask, Chain, Head, Known, Lease, Work, Written};

use crate::conf::Conf;
use crate::config::{Config, NodeId, Recovered, ShardId, Start};
use crate::entry::Entry;
use crate::outbox::{Fault, Io, IoRecord, Outbox, Reason, RoleChange};

/// How often disk is told how far the log reaches.
const NOTE_MS: u64 = 1_000;

/// Settings of the lease protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// How long a lease holds. A dead holder's shards stand still for about this long.
    pub ttl_ms: u64,
    /// How often it is renewed: at most a third of the ttl, so that two lost renewals do no harm (LS-13).
    pub renew_ms: u64,
    /// How long before its end, by our clock, we stop acting on a lease: for clocks that run at different rates.
    pub margin_ms: u64,
    /// How often a follower looks without being told to.
    pub poll_ms: u64,
    /// Pause after a question that failed.
    pub retry_ms: u64,
    /// Most a follower waits, at random, before it tries to take a free lease.
    pub spread_ms: u64,
    /// How long others wait for the favoured node after a release.
    pub favour_ms: u64,
    /// An append ends with the entry that passes this many bytes; a read too.
    pub batch_bytes_max: u64,
}

impl Default for LeaseConfig {
    fn default() -> Self {
        LeaseConfig {
            ttl_ms: 5_000,
            renew_ms: 1_500,
            margin_ms: 500,
            poll_ms: 500,
            retry_ms: 250,
            spread_ms: 200,
            favour_ms: 300,
            batch_bytes_max: 1 << 20,
        }
    }
}

impl LeaseConfig {
    /// Whether a lease can be kept under these settings.
    pub fn is_sound(&self) -> bool {
        let all = [self.renew_ms, self.poll_ms, self.retry_ms, self.batch_bytes_max];
        all.iter().all(|value| *value > 0)
            && self.renew_ms * 3 <= self.ttl_ms
            && self.renew_ms + self.margin_ms < self.ttl_ms
    }
}

/// Where this node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// Somebody else holds the lease, or nobody does.
    Follows,
    /// Holds the lease and reads what was written before.
    CatchesUp(hold::Hold),
    /// Holds the lease and knows the whole log.
    Leads(hold::Hold),
}

/// One shard of this node.
pub(crate) struct LeaseShard {
    id: ShardId,
    node: NodeId,
    config: LeaseConfig,
    rng: fastrand::Rng,
    /// Below zero, so many ms more before a free lease is taken.
    priority: i64,
    /// How long this node lets others go first, so that all lead some shards.
    turn_ms: u64,
    /// Time as last told; a question's time of sending is never later than it really was.
    now_ms: u64,
    stand: Stand,
    /// Highest epoch ever seen; the database must not go below it.
    epoch_max: u64,
    /// The lease as last seen, and when.
    seen: Option<(Lease, u64)>,
    /// Node that the lease is being handed to; 0 is whoever comes.
    leaving: Option<NodeId>,
    /// The last entry that the database is known to have, and the chain there.
    last: Start,
    chain: Chain,
    /// Where the log begins for this node, and the membership there.
    start: Start,
    conf: Conf,
    /// Entries proposed and not known to be in the database, oldest first.
    queue: VecDeque<Entry>,
    /// Entries to apply.
    ready: Vec<Entry>,
    applied: u64,
    /// Whether a stored snapshot has to be loaded, since the log begins after our end.
    install: tail::Install,
    /// The outcome of an append is open: the log has to be read before the next one.
    is_settling: bool,
    /// A notice came that no reading under way has to know of: the log is read once more.
    has_news: bool,
    /// How far the entries reach that were ever sent: followers may see them before we know that they are written.
    sent_index: u64,
    reads: reads::Reads,
    under_way: UnderWay,
    due: hold::Due,
    next_ask: u64,
    asks: Vec<Ask>,
    reported: view::View,
    roles: Vec<RoleChange>,
    faults: Vec<Fault>,
    /// A higher epoch was seen that disk does not know.
    is_unnoted: bool,
    /// What was known of the log before this process, as disk remembers.
    before: refuse::Noted,
    /// Others that take leases under this node's id.
    twin: hold::Twin,
    /// The database was set back: nothing is done any more but to say so.
    refusal: Option<refuse::Refusal>,
    /// The end of the log as disk knows it, and when that was noted.
    noted: (u64, u64),
}

/// Questions without an answer.
#[derive(Debug, Default)]
struct UnderWay {
    lease: Option<hold::LeaseAsk>,
    append: Option<append::AppendAsk>,
    tail: Option<tail::TailAsk>,
    confirm: Option<reads::ConfirmAsk>,
}

impl LeaseShard {
    pub(crate) fn open(
        config: &Config,
        lease: LeaseConfig,
        id: ShardId,
        recovered: Recovered,
        now_ms: u64,
    ) -> Self {
        assert!(lease.is_sound(), "a lease cannot be kept with these settings");
        let start = recovered.start;
        let seed = config.seed ^ (u64::from(id) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut shard = LeaseShard {
            id,
            node: config.node,
            config: lease,
            rng: fastrand::Rng::with_seed(seed),
            priority: config.priority,
            turn_ms: 0,
            now_ms,
            stand: Stand::Follows,
            epoch_max: recovered.term.max(start.term),
            seen: None,
            leaving: None,
            last: start,
            chain: Chain::UNKNOWN,
            start,
            conf: recovered.conf,
            queue: VecDeque::new(),
            ready: Vec::new(),
            applied: start.index,
            install: tail::Install::Nothing,
            is_settling: false,
            has_news: false,
            sent_index: 0,
            reads: reads::Reads::default(),
            under_way: UnderWay::default(),
            due: hold::Due { take_ms: u64::MAX, poll_ms: now_ms },
            next_ask: 1,
            asks: Vec::new(),
            reported: view::View::default(),
            roles: Vec::new(),
            faults: Vec::new(),
            is_unnoted: false,
            before: refuse::Noted { index: recovered.noted, note: recovered.vote },
            twin: hold::Twin::default(),
            refusal: None,
            noted: (0, now_ms),
        };
        shard.report(Reason::Started);
        shard
    }

    /// Time passes: the lease is kept or given up, what is due is asked.
    pub(crate) fn fire_timers(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        if self.refusal.is_some() {
            return;
        }
        self.keep_lease();
        self.read_tail_if_due();
        self.report(Reason::NoHeartbeat);
    }

    /// When `fire_timers` has something to do next.
    pub(crate) fn timer_ms(&self) -> Option<u64> {
        if self.refusal.is_some() {
            return None;
        }
        let lease = match self.stand {
            Stand::Follows => self.under_way.lease.is_none().then_some(self.due.take_ms),
            Stand::CatchesUp(hold) | Stand::Leads(hold) => {
                Some(hold.next_ms(self.under_way.lease.is_some()))
            }
        };
        self.reading_ms().into_iter().chain(lease).min()
    }

    /// Takes the answer to a question; one that nobody waits for is dropped.
    pub(crate) fn answered(&mut self, id: u64, answer: Answer, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        if self.refusal.is_some() {
            self.refusal_answered(id);
            return;
        }
        let waits = |slot: Option<u64>| slot == Some(id);
        let under_way = &self.under_way;
        if waits(under_way.lease.map(|ask| ask.id)) {
            self.lease_answered(&answer);
        } else if waits(under_way.append.map(|ask| ask.id)) {
            self.append_answered(&answer);
        } else if waits(under_way.tail.map(|ask| ask.id)) {
            self.tail_answered(answer);
        } else if waits(under_way.confirm.as_ref().map(|ask| ask.id)) {
            self.confirm_answered(&answer);
        }
        self.fire_timers(now_ms);
    }

    /// The database says that something new is in the log, or that the lease changed.
    pub(crate) fn notified(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        if !matches!(self.stand, Stand::Leads(_)) && self.refusal.is_none() {
            self.has_news = true;
            self.due.poll_ms = self.due.poll_ms.min(self.now_ms);
            self.read_tail_if_due();
        }
    }

    /// Hands out everything there is to do.
    pub(crate) fn drain(&mut self, io: &mut Io, out: &mut Outbox) {
        self.append_next();
        self.confirm_reads();
        self.note(io);
        if !self.ready.is_empty() {
            out.apply.push((self.id, std::mem::take(&mut self.ready)));
        }
        out.asks.append(&mut self.asks);
        out.roles.append(&mut self.roles);
        out.faults.append(&mut self.faults);
        let id = self.id;
        out.reads.extend(self.reads.ready.drain(..).map(|(read, index)| (id, read, index)));
        out.reads_lost.extend(self.reads.lost.drain(..).map(|read| (id, read)));
        if self.install == tail::Install::Wanted {
            self.install = tail::Install::UnderWay;
            out.snapshots_behind.push(id);
        }
    }

    /// Tells disk which epoch was seen, at once, and how far the log reaches, now and then: a database that is set back
    /// while no process runs is found out by the next ones. Nobody votes here: the vote's place tells which entry that was.
    fn note(&mut self, io: &mut Io) {
        let (Known { epoch, index, .. }, note) = (self.known(), self.noted_entry());
        let (noted_index, noted_ms) = self.noted;
        let is_due = index > noted_index && self.now_ms >= noted_ms + NOTE_MS;
        let is_urgent = std::mem::take(&mut self.is_unnoted);
        if is_due || is_urgent {
            self.noted = (index, self.now_ms);
            io.records.push(IoRecord::Hard {
                shard: self.id,
                term: epoch,
                vote: note,
                commit: index,
            });
            io.must_sync |= is_urgent;
        }
    }

    fn ask(&mut self, work: Work) -> u64 {
        let id = self.next_ask;
        self.next_ask += 1;
        self.asks.push(Ask { shard: self.id, id, work });
        id
    }
}
