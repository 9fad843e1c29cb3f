//! The driver's thread.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ikada_replica::call::{Answer, Call, CallId};
use ikada_replica::consensus::lease::Ask;
use ikada_replica::{Halt, Input, Now, Outputs, Replica, Roll, SnapshotWork, reason_text};
use ikada_store::{Log, RealDisk, Snapshots};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{oneshot, watch};
use tracing::{error, info, warn};

use super::log_thread::{self, LogWork};
use super::message::{AnswerSender, DriverMessage, DriverSender};
use super::snapshot_thread;
use crate::config::INPUTS_PER_TURN_MAX;
use crate::counters::SharedCounters;
use crate::database::{DatabaseSender, DatabaseWork};
use crate::peers::Outgoing;
use crate::traces::EndedSender;

/// How many role changes one question may be answered with.
const EVENTS_MAX: usize = 1_024;

/// Why and whether the driver has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It runs.
    Running,
    /// A graceful stop is complete.
    Stopped,
    /// The process must not go on.
    Halted(Halt),
}

/// A running driver.
pub struct Driver {
    /// Its inbox.
    pub sender: DriverSender,
    /// How it ended.
    pub ended: watch::Receiver<Ended>,
    /// Its threads, to be waited for after `DriverMessage::End`.
    pub threads: Vec<thread::JoinHandle<()>>,
}

/// Both clocks, anchored at the start of the process.
struct Clocks {
    started: Instant,
}

impl Clocks {
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // The monotonic clock starts at 1, since 0 stands for "never" in a few places.
        Now {
            mono_ms: self.started.elapsed().as_millis() as u64 + 1,
            wall_ms: wall.as_millis() as u64,
        }
    }
}

struct Loop {
    replica: Replica,
    clocks: Clocks,
    inbox: Receiver<DriverMessage>,
    callers: BTreeMap<u64, Caller>,
    log: Sender<LogWork>,
    snapshots: Sender<SnapshotWork>,
    outlets: Outlets,
    counters: SharedCounters,
    ended: watch::Sender<Ended>,
    over: bool,
}

/// Where the driver sends what is neither written nor answered.
pub struct Outlets {
    /// Frames for peers.
    pub outgoing: Outgoing,
    /// Changes of the members.
    pub rolls: UnboundedSender<Roll>,
    /// Present where logs live in a database.
    pub database: Option<DatabaseSender>,
    /// Present where traces are sent.
    pub traces: Option<EndedSender>,
}

/// Starts the three threads. `make` builds the replica with the driver's clocks.
pub fn start<E: Send + 'static>(
    make: impl FnOnce(Now) -> Result<Replica, E>,
    log: Log<RealDisk>,
    snapshots: Snapshots<RealDisk>,
    outlets: Outlets,
    counters: &SharedCounters,
    (sender, inbox): (DriverSender, Receiver<DriverMessage>),
) -> Result<Driver, StartError<E>> {
    let clocks = Clocks { started: Instant::now() };
    let replica = make(clocks.now()).map_err(StartError::Replica)?;
    let (log_sender, log_work) = std::sync::mpsc::channel();
    let (snapshot_sender, snapshot_work) = std::sync::mpsc::channel();
    let mut threads = vec![log_thread::start(log, log_work, sender.clone(), counters.clone())?];
    threads.push(snapshot_thread::start(
        snapshots,
        snapshot_work,
        sender.clone(),
        counters.clone(),
    )?);
    let (ended_sender, ended) = watch::channel(Ended::Running);
    let mut run = Loop {
        replica,
        clocks,
        inbox,
        callers: BTreeMap::new(),
        log: log_sender,
        snapshots: snapshot_sender,
        outlets,
        counters: counters.clone(),
        ended: ended_sender,
        over: false,
    };
    threads.push(thread::Builder::new().name("ikada-driver".into()).spawn(move || run.run())?);
    Ok(Driver { sender, ended, threads })
}

/// Who waits for an answer.
enum Caller {
    One(oneshot::Sender<Answer>),
    Many(AnswerSender),
}

/// Why the driver did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError<E> {
    /// The replica refused what it was given.
    #[error("{0}")]
    Replica(E),
    /// A thread could not be started.
    #[error("starting a thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl Loop {
    fn run(&mut self) {
        loop {
            let now = self.clocks.now();
            let wait = self.replica.next_wake_ms().saturating_sub(now.mono_ms);
            let received = self.inbox.recv_timeout(Duration::from_millis(wait));
            let woken = Instant::now();
            match received {
                Ok(message) => self.take_all(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.over {
                return;
            }
            let now = self.clocks.now();
            if self.replica.next_wake_ms() <= now.mono_ms {
                self.replica.step(Input::Tick, now);
            }
            let outputs = self.replica.poll(now);
            let role_changes = outputs.roles.len();
            if !self.carry_out(outputs) {
                return;
            }
            self.counters.set_one_log(self.replica.shard(1).is_none());
            self.counters.turn(woken.elapsed(), role_changes);
        }
    }

    /// Steps the message and whatever else has arrived meanwhile.
    fn take_all(&mut self, first: DriverMessage) {
        let now = self.clocks.now();
        self.take(first, now);
        for _ in 0..INPUTS_PER_TURN_MAX {
            match self.inbox.try_recv() {
                Ok(message) => self.take(message, now),
                Err(_) => return,
            }
        }
    }

    fn take(&mut self, message: DriverMessage, now: Now) {
        match message {
            DriverMessage::Input(input) => self.replica.step(input, now),
            DriverMessage::Frame(from, frame, permit) => {
                self.replica.step(Input::Frame(from, frame), now);
                drop(permit);
            }
            DriverMessage::Call { id, request, timeout_ms, routing, reply } => {
                self.callers.insert(id, Caller::One(reply));
                self.replica.step(Input::Call(Call { id, timeout_ms, routing, request }), now);
            }
            DriverMessage::Calls(calls, reply) => {
                for call in calls {
                    self.callers.insert(call.id, Caller::Many(reply.clone()));
                    self.replica.step(Input::Call(call), now);
                }
            }
            DriverMessage::Status(reply) => {
                let _ = reply.send(self.replica.status(now));
            }
            DriverMessage::End => self.over = true,
            DriverMessage::Events(after, reply) => {
                let _ = reply.send(self.replica.events(after, EVENTS_MAX));
            }
        }
    }

    /// Hands answers out; a caller with many gets those of this turn in one go. Whoever has gone is skipped.
    fn answer_all(&mut self, answers: Vec<(CallId, Answer)>) {
        let mut gathered: Vec<(AnswerSender, Vec<(CallId, Answer)>)> = Vec::new();
        for (call, answer) in answers {
            match self.callers.remove(&call) {
                None => {}
                Some(Caller::One(reply)) => drop(reply.send(answer)),
                Some(Caller::Many(reply)) => {
                    match gathered.iter_mut().find(|(sender, _)| sender.same_channel(&reply)) {
                        Some((_, batch)) => batch.push((call, answer)),
                        None => gathered.push((reply, vec![(call, answer)])),
                    }
                }
            }
        }
        for (reply, batch) in gathered {
            let _ = reply.send(batch);
        }
    }

    /// Hands over what has ended; nothing waits for the collector.
    fn trace(&self, ended: Vec<ikada_replica::output::Ended>) {
        let Some(traces) = &self.outlets.traces else { return };
        for ended in ended {
            if traces.try_send(ended).is_err() {
                self.counters.traced(1, false);
            }
        }
    }

    fn ask_database(&self, asks: Vec<Ask>, fetches: Vec<u16>) {
        let Some(database) = &self.outlets.database else { return };
        let asks = asks.into_iter().map(DatabaseWork::Ask);
        for work in asks.chain(fetches.into_iter().map(DatabaseWork::Fetch)) {
            // Its thread ends after this one.
            let _ = database.send(work);
        }
    }

    /// Does what the turn asked for; false when the loop must end.
    fn carry_out(&mut self, outputs: Outputs) -> bool {
        if let Some(halt) = outputs.halt {
            error!(%halt, "this node must stop");
            let _ = self.ended.send(Ended::Halted(halt));
            return false;
        }
        for (to, frame) in outputs.frames {
            self.outlets.outgoing.send(to, frame);
        }
        if let Some(io) = outputs.io
            && !log_thread::send(&self.log, LogWork::Append(io))
        {
            return false;
        }
        if let Some(roll) = outputs.roll {
            let _ = self.outlets.rolls.send(roll);
        }
        for (shard, start) in outputs.purges {
            log_thread::send(&self.log, LogWork::Purge(shard, start));
        }
        self.answer_all(outputs.answers);
        self.trace(outputs.ended);
        self.ask_database(outputs.asks, outputs.fetches);
        for work in outputs.snapshots {
            if self.snapshots.send(work).is_err() {
                return false;
            }
        }
        if let Some(offset_ms) = outputs.clock_alarm {
            warn!(
                offset_ms,
                "this node's clock is far from the other voters'; check its time service"
            );
        }
        for change in &outputs.roles {
            let lsn = self.replica.shard(change.shard).map(|shard| shard.applied().to_string());
            info!(
                shard = change.shard,
                lsn,
                term = change.term,
                role = ?change.role,
                leader = change.leader,
                reason = reason_text(change.reason),
                "role"
            );
        }
        if outputs.stopped {
            let _ = self.ended.send(Ended::Stopped);
        }
        true
    }
}
