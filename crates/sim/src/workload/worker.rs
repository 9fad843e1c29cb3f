//! A worker: claims tasks, runs them for a while, completes or fails them; dies, stalls past the lifetime of its claims
//! and comes back as a zombie, as the plan says. It says that it lives, and leaves when it is told to. What it brings bears a
//! digest that names task, fence and worker.

use std::collections::BTreeMap;

use fastrand::Rng;
use ikada_consensus::NodeId;
use ikada_replica::call::{Answer, CallId, ClaimCall, Outcome, RenewOutcome, Renewal, Request};
use ikada_state::{
    Checkpoint, Command, Complete, Digest, Enqueue, Fail, Fence, Grant, Labels, ObjectName, Order,
    Output, Progress, RefusalCode, RegisterWorker, Reply, RequestId, SessionId, TaskId, WorkerId,
    WorkerStanding,
};

use ikada_state::{SharedBytes, encode_then};

use super::{JOB_QUEUE, QUEUES, Step, namespace, queue, some_door};
use crate::check::Verdict;
use crate::draw::{chance, log_uniform};
use crate::marks::Mark;
use crate::world::calls::{CallEnd, OpenCall};
use crate::world::{Event, Phase, World};

/// Tasks that one worker runs at a time.
const SLOTS: usize = 3;
/// How often a worker says what it holds after a claim without an answer, and how far apart.
const ROLL_CALLS: u64 = 4;
const ROLL_CALL_EVERY_US: u64 = 1_100_000;
/// How often it says that it lives.
const BEAT_EVERY_US: u64 = 3_000_000;

/// How the work on a task will end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Failed,
}

/// A claim in hand.
#[derive(Debug, Clone)]
struct Held {
    fate: Fate,
    /// The worker stopped renewing it.
    stalled: bool,
    /// Term-independent count of completions sent.
    tries: u32,
    /// The node through which it was granted.
    door: NodeId,
    renewed: bool,
    /// Whether the task brings files.
    brings: bool,
}

/// One worker.
#[derive(Debug)]
pub struct Worker {
    number: u64,
    rng: Rng,
    session: u64,
    count: u64,
    held: BTreeMap<(TaskId, Fence), Held>,
    /// The claim request under way, or to be sent again.
    claiming: Option<ClaimCall>,
    calling: bool,
    /// It was told to leave: it takes no more, and another takes its place when it has ended.
    draining: bool,
}

/// The name of a worker.
pub fn named(number: u64) -> WorkerId {
    let text = format!("w{number}");
    WorkerId::parse(&text).unwrap_or_else(|error| panic!("worker id: {error}"))
}

/// Files that an attempt brings: two partitions, which nobody else can have made.
pub fn bring(id: &TaskId, fence: Fence, worker: &WorkerId) -> Vec<Output> {
    let output = |partition: u8| Output {
        name: ObjectName::parse(&format!("part-{partition}"))
            .unwrap_or_else(|error| panic!("object name: {error}")),
        size: 1,
        content_type: "text/plain".to_owned(),
        digest: digest(id, fence, worker, partition),
        chunks: vec![digest(id, fence, worker, partition)].into(),
        address: None,
    };
    vec![output(0), output(1)]
}

/// A digest that tells of whom it is.
fn digest(id: &TaskId, fence: Fence, worker: &WorkerId, number: u8) -> Digest {
    let text = format!("{id} {} {worker} {number}", fence.0);
    let mut bytes = [0; 32];
    for (place, byte) in bytes.iter_mut().enumerate() {
        let mixed = text.bytes().fold(place as u64 + 1, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
        });
        *byte = mixed as u8;
    }
    Digest(bytes)
}

impl Worker {
    /// A worker with a number of its own.
    pub fn new(number: u64, rng: Rng) -> Self {
        Self {
            number,
            rng,
            session: 1,
            count: 0,
            held: BTreeMap::new(),
            claiming: None,
            calling: false,
            draining: false,
        }
    }

    fn id(&self) -> WorkerId {
        named(self.number)
    }

    /// Does a step.
    pub fn step(&mut self, world: &mut World, me: usize, step: Step) -> Verdict {
        match step {
            Step::Finish(id, fence) => self.finish(world, me, &id, fence),
            Step::Renew(session) => self.renew(world, me, session),
            Step::Checkpoint(id, fence) => self.checkpoint(world, me, &id, fence),
            Step::Beat => self.beat(world, me),
            Step::RollCall(session) => self.call_roll(world, me, session),
            _ => self.claim(world, me),
        }
        Ok(())
    }

    fn claim(&mut self, world: &mut World, me: usize) {
        if self.calling {
            return;
        }
        if self.claiming.is_none() {
            let free = SLOTS.saturating_sub(self.held.len());
            if free == 0 || self.draining {
                world.schedule.after(200_000, Event::Actor(me, Step::Next));
                return;
            }
            self.count += 1;
            self.claiming = Some(self.wish(free));
        }
        let Some(wish) = self.claiming.clone() else {
            return;
        };
        self.calling = true;
        let node = some_door(world, &mut self.rng);
        let timeout_ms = wish.wait_ms + 2_000;
        world.ask(me, node, Request::Claim(wish), timeout_ms);
    }

    fn wish(&mut self, free: usize) -> ClaimCall {
        let text = format!("w{}-{}-{}", self.number, self.session, self.count);
        let request = RequestId::parse(&text).unwrap_or_else(|error| panic!("request id: {error}"));
        let mut queues = if self.rng.bool() {
            QUEUES.iter().map(|name| queue(name)).collect()
        } else {
            vec![super::some_queue(&mut self.rng)]
        };
        queues.push(queue(JOB_QUEUE));
        ClaimCall {
            labels: self.labels(),
            holds: self.holds(),
            namespace: namespace(),
            worker: self.id(),
            session: SessionId(self.session),
            queues,
            count_max: self.rng.u32(1..=free as u32),
            wait_ms: log_uniform(&mut self.rng, 500, 10_000),
            request,
        }
    }

    /// What this worker has: the first everything, so that every task finds somebody; the others some of it.
    fn labels(&self) -> Labels {
        super::labels(match self.number {
            0 => 3,
            number => number as usize % 3,
        })
    }

    /// Some of the programs that there are; or nothing is said.
    fn holds(&mut self) -> Option<Vec<u64>> {
        let programs = 0..super::PROGRAMS;
        let mut some = |_: &u64| self.rng.bool();
        let held: Vec<u64> = programs.filter(|number| some(number)).collect();
        let marks = held.into_iter().map(|number| super::program_digest(number).mark());
        chance(&mut self.rng, 700).then(|| marks.collect())
    }

    fn take(&mut self, world: &mut World, me: usize, grants: Vec<Grant>, door: NodeId) {
        for grant in grants {
            let key = (grant.id.clone(), grant.fence);
            if self.held.contains_key(&key) {
                continue;
            }
            let calm = world.phase == Phase::Liveness;
            let faults = &world.plan.faults;
            let (crash, stall, fail) = (
                faults.worker_crash_permille,
                faults.worker_stall_permille,
                faults.worker_fail_permille,
            );
            let ttl_ms = u64::from(grant.ttl_ms);
            if !calm && chance(&mut self.rng, crash) {
                return self.die(world, me);
            }
            let stalled = !calm && chance(&mut self.rng, stall);
            let fate = if !calm && chance(&mut self.rng, fail) { Fate::Failed } else { Fate::Done };
            let work_ms = if stalled {
                self.rng.u64(ttl_ms / 2..=ttl_ms * 3)
            } else if chance(&mut self.rng, 150) {
                self.rng.u64(ttl_ms..=ttl_ms * 2)
            } else {
                log_uniform(&mut self.rng, 5, ttl_ms.max(6) / 2)
            };
            let brings = grant.work.is_some() || grant.id.as_str().ends_with("5-0");
            let held = Held { fate, stalled, tries: 0, door, renewed: false, brings };
            self.held.insert(key.clone(), held);
            if grant.work.is_some() && chance(&mut self.rng, 300) {
                let step = Step::Checkpoint(key.0.clone(), key.1);
                world.schedule.after(work_ms * 500, Event::Actor(me, step));
            }
            world.schedule.after(work_ms * 1_000, Event::Actor(me, Step::Finish(key.0, key.1)));
            if !stalled {
                let renew_us = ttl_ms * 1_000 / 3;
                world.schedule.after(renew_us, Event::Actor(me, Step::Renew(self.session)));
            }
        }
    }

    /// Keeps how far it has come with a task, whether or not it still holds it.
    fn checkpoint(&mut self, world: &mut World, me: usize, id: &TaskId, fence: Fence) {
        let worker = self.id();
        let digest = digest(id, fence, &worker, 9);
        let command = Command::Checkpoint(Checkpoint {
            id: id.clone(),
            fence,
            worker,
            size: 1,
            digest,
            chunks: vec![digest].into(),
        });
        let order = Order { namespace: namespace(), request: None, command };
        let node = some_door(world, &mut self.rng);
        world.ask(me, node, Request::Write(vec![order]), 3_000);
    }

    /// Says who it is, and that it lives; or that it has left.
    fn beat(&mut self, world: &mut World, me: usize) {
        let leaving = self.draining && self.held.is_empty() && !self.calling;
        if world.phase == Phase::Liveness {
            // Nobody asks for anything any more: all work, and the cluster is left in peace.
            self.draining = false;
            return;
        }
        let worker = RegisterWorker {
            id: self.id(),
            session: SessionId(self.session),
            slots: SLOTS as u32,
            labels: self.labels(),
            queues: vec![queue(JOB_QUEUE)],
            version: String::new(),
            replaces: None,
        };
        let (namespace, busy) = (namespace(), self.held.len() as u32);
        let node = some_door(world, &mut self.rng);
        world.ask(me, node, Request::Beat { namespace, worker, busy, leaving }, 2_000);
        if leaving {
            self.forget_all();
            self.claiming = None;
            world.mark(Mark::WorkerLeft);
        }
        world.schedule.after(BEAT_EVERY_US, Event::Actor(me, Step::Beat));
    }

    /// What is wanted of this worker. A removed one drops everything and begins anew.
    fn beat_ended(&mut self, session: SessionId, end: &CallEnd) {
        let CallEnd::Answered(Answer::Beat { standing, .. }) = end else {
            return;
        };
        if session != SessionId(self.session) {
            return;
        }
        match standing {
            WorkerStanding::Active => {}
            WorkerStanding::Draining => self.draining = true,
            WorkerStanding::Removed => {
                self.forget_all();
                self.claiming = None;
            }
        }
    }

    /// Another process begins, which knows of nothing.
    fn forget_all(&mut self) {
        self.held.clear();
        self.session += 1;
        self.draining = false;
    }

    /// The process dies with everything it holds; another begins after a while.
    fn die(&mut self, world: &mut World, me: usize) {
        self.forget_all();
        self.claiming = None;
        let down_us = log_uniform(&mut self.rng, 50, 3_000) * 1_000;
        world.schedule.after(down_us, Event::Actor(me, Step::Next));
    }

    fn renew(&mut self, world: &mut World, me: usize, session: u64) {
        let renewal = self.renewal();
        if session != self.session || renewal.claims.is_empty() {
            return;
        }
        let node = some_door(world, &mut self.rng);
        world.ask(me, node, Request::Renew(renewal), 1_500);
        let again_us = world.plan.knobs.ttl_ms * 1_000 / 3;
        world.schedule.after(again_us, Event::Actor(me, Step::Renew(session)));
    }

    /// All that is held, unless the worker is silent about some of it: then the list is not complete and says so.
    fn renewal(&self) -> Renewal {
        let listed = self.held.iter().filter(|(_, held)| !held.stalled);
        let claims: Vec<(TaskId, Fence)> = listed.map(|(key, _)| key.clone()).collect();
        let is_complete = claims.len() == self.held.len();
        let session = is_complete.then_some(SessionId(self.session));
        // How far the first one is, for the sake of it: it must change nothing.
        let progress = claims.first().map(|(_, fence)| (0, Progress::new(fence.0 as u16, "")));
        let progress = progress.into_iter().collect();
        Renewal { namespace: namespace(), worker: self.id(), session, claims, progress }
    }

    fn call_roll(&mut self, world: &mut World, me: usize, session: u64) {
        if session == self.session {
            let node = some_door(world, &mut self.rng);
            world.ask(me, node, Request::Renew(self.renewal()), 1_500);
        }
    }

    fn finish(&mut self, world: &mut World, me: usize, id: &TaskId, fence: Fence) {
        let worker = self.id();
        // A resend must not differ from the first: drawn from the claim.
        let delay_ms = fence.0.is_multiple_of(7).then_some(fence.0 % 3_000);
        let Some(held) = self.held.get_mut(&(id.clone(), fence)) else {
            return;
        };
        held.tries += 1;
        let command = match held.fate {
            Fate::Done => Command::Complete(Complete {
                keeps_digest: None,
                then: more_work(id),
                id: id.clone(),
                fence,
                result: Some(id.as_str().as_bytes().into()),
                outputs: if held.brings { bring(id, fence, &worker) } else { Vec::new() },
                worker,
            }),
            Fate::Failed => Command::Fail(Fail {
                id: id.clone(),
                fence,
                worker,
                error: b"it broke"[..].into(),
                retry: !id.as_str().ends_with("-4"),
                delay_ms,
                // Drawn anew by the leader.
                jitter_permille: 0,
            }),
        };
        let order = Order { namespace: namespace(), request: None, command };
        let node = some_door(world, &mut self.rng);
        world.ask(me, node, Request::Write(vec![order]), 3_000);
    }

    /// A call has ended.
    pub fn ended(
        &mut self,
        world: &mut World,
        me: usize,
        _call: CallId,
        open: &OpenCall,
        end: CallEnd,
    ) -> Verdict {
        match &open.request {
            Request::Claim(wish) => self.claim_ended(world, me, wish, open.node, end),
            Request::Renew(renewal) => self.renew_ended(world, renewal, open.node, &end),
            Request::Beat { worker, .. } => self.beat_ended(worker.session, &end),
            Request::Write(orders) => {
                for order in orders {
                    self.finish_ended(world, me, order, &end);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn claim_ended(
        &mut self,
        world: &mut World,
        me: usize,
        wish: &ClaimCall,
        door: NodeId,
        end: CallEnd,
    ) {
        self.calling = false;
        let current = wish.session == SessionId(self.session);
        match end {
            CallEnd::Answered(Answer::Claimed(grants)) => {
                self.claiming = None;
                if current {
                    if !grants.is_empty() && world.now_us() > 0 {
                        world.mark(Mark::ParkedClaimWoken);
                    }
                    self.take(world, me, grants, door);
                }
            }
            CallEnd::Answered(answer) => {
                self.claiming = None;
                // It was removed while it asked: its process ends, and another begins.
                if current
                    && matches!(&answer, Answer::Refused { code, .. } if code == RefusalCode::WorkerRemoved.as_str())
                {
                    self.forget_all();
                }
            }
            CallEnd::NotSent | CallEnd::Lost => {
                if !current || chance(&mut self.rng, 400) {
                    self.claiming = None;
                }
                for step in 0..ROLL_CALLS {
                    let at_us = step * ROLL_CALL_EVERY_US;
                    world.schedule.after(at_us, Event::Actor(me, Step::RollCall(self.session)));
                }
            }
        }
        let again_us = log_uniform(&mut self.rng, 20, 600) * 1_000;
        world.schedule.after(again_us, Event::Actor(me, Step::Next));
    }

    fn renew_ended(&mut self, world: &mut World, renewal: &Renewal, door: NodeId, end: &CallEnd) {
        let CallEnd::Answered(Answer::Renewed(outcomes)) = end else {
            return;
        };
        for (key, outcome) in renewal.claims.iter().zip(outcomes) {
            let Some(held) = self.held.get_mut(key) else {
                continue;
            };
            match outcome {
                RenewOutcome::Renewed { .. } => {
                    if held.door != door && !held.renewed {
                        world.mark(Mark::ClaimOutlivedLeader);
                    }
                    held.renewed = true;
                }
                RenewOutcome::Refused(_) => {
                    // The claim is gone: a good worker stops; it may still have a completion on its way.
                    if held.tries == 0 {
                        self.held.remove(key);
                    }
                }
                RenewOutcome::Unknown => {}
            }
        }
    }

    fn finish_ended(&mut self, world: &mut World, me: usize, order: &Order, end: &CallEnd) {
        let (id, fence) = match &order.command {
            Command::Complete(complete) => (&complete.id, complete.fence),
            Command::Fail(fail) => (&fail.id, fail.fence),
            _ => return,
        };
        let key = (id.clone(), fence);
        let Some(held) = self.held.get(&key) else {
            return;
        };
        let stalled = held.stalled;
        let outcome = match end {
            CallEnd::Answered(Answer::Written(outcomes)) => outcomes.first(),
            _ => None,
        };
        match outcome {
            Some(Outcome::Reply { reply, .. }) => {
                match reply {
                    Reply::Refused { .. } => {
                        world.tally.refused += 1;
                        world.mark(Mark::ZombieRefused);
                    }
                    _ => {
                        world.tally.acked += 1;
                        if stalled {
                            world.mark(Mark::ZombieInTime);
                        }
                    }
                }
                self.held.remove(&key);
            }
            _ => {
                world.tally.unknown += 1;
                let again_us = log_uniform(&mut self.rng, 20, 800) * 1_000;
                world.schedule.after(again_us, Event::Actor(me, Step::Finish(key.0, key.1)));
            }
        }
    }
}

/// A few completions bring a follow-up of their own.
fn more_work(id: &TaskId) -> Option<SharedBytes> {
    if !id.as_str().ends_with("3-0") {
        return None;
    }
    let name = format!("{}-more", id.bare_id());
    let follow_up = TaskId::keyed(id.routing_key(), &name).ok()?;
    let task = Enqueue::new(follow_up, queue(QUEUES[0]), b"more".to_vec());
    Some(encode_then(&[task]))
}
