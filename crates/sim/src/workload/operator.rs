//! An operator: makes schedules, pauses and resumes them, hands leadership over, cordons nodes, changes the membership, and after the healing pauses schedules,
//! resumes queues and sends a probe to every shard.

use std::collections::BTreeMap;

use fastrand::Rng;
use ikada_replica::call::{Answer, CallId, Outcome, Request, Unavailable};
use ikada_state::{
    Command, Enqueue, LEVEL, Missed, Order, Overlap, QueueChange, RaiseLevel, RefusalCode, Reply,
    RequestId, RequestKey, ScheduleName, ScheduleSpec, SetQueue, SetSchedule, ShardId, SteerMember,
    TaskId, Timing, TuneElections,
};

use super::{QUEUES, Step, namespace, queue, some_door};
use crate::check::Verdict;
use crate::check::schedule_instants::PREFIX;
use crate::draw::{chance, pick};
use crate::marks::Mark;
use crate::oracle::timing::ZONES;
use crate::world::calls::{CallEnd, OpenCall};
use crate::world::{Event, Phase, World};

/// Schedules of a run; the last has a cron line.
const SCHEDULES: u64 = 3;

/// A schedule that the operator made.
#[derive(Debug)]
struct Made {
    name: ScheduleName,
    spec: ScheduleSpec,
    /// The version that a pause gave it: what a resume goes on from.
    paused_version: Option<u64>,
}

/// The operator.
#[derive(Debug)]
pub struct Operator {
    rng: Rng,
    membership_ms: u64,
    transfer_ms: u64,
    count: u64,
    /// Probes under way: what to send again until it is acknowledged.
    probes: BTreeMap<CallId, (ShardId, Vec<Order>)>,
    /// What to send again a little later.
    unsent: Vec<(ShardId, Vec<Order>)>,
    /// Schedules that run until the healing.
    schedules: Vec<Made>,
}

impl Operator {
    /// An operator who changes things at these mean distances; 0 means never.
    pub fn new(rng: Rng, membership_ms: u64, transfer_ms: u64) -> Self {
        Self {
            rng,
            membership_ms,
            transfer_ms,
            count: 0,
            probes: BTreeMap::new(),
            schedules: Vec::new(),
            unsent: Vec::new(),
        }
    }

    /// Does a step.
    pub fn step(&mut self, world: &mut World, me: usize, step: &Step) -> Verdict {
        match step {
            Step::Transfer => self.transfer(world, me),
            Step::Change => self.change(world, me),
            Step::Steer => self.steer(world, me),
            Step::Grow => self.grow(world, me),
            Step::Probe => self.probe(world, me),
            Step::Next => self.begin_schedules(world, me),
            Step::Turn => self.turn_schedule(world, me),
            Step::Again(_) => {
                for (shard, orders) in std::mem::take(&mut self.unsent) {
                    self.send(world, me, shard, orders);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn transfer(&mut self, world: &mut World, me: usize) {
        if world.phase == Phase::Liveness {
            return;
        }
        let shard = self.rng.u16(0..world.shard_count());
        let to = self.rng.bool().then(|| some_door(world, &mut self.rng));
        let node = some_door(world, &mut self.rng);
        world.ask(me, node, Request::Transfer { shard, to }, 2_000);
        let again_us = self.rng.u64(self.transfer_ms * 300..=self.transfer_ms * 1_700);
        world.schedule.after(again_us, Event::Actor(me, Step::Transfer));
    }

    /// Cordons a node, or lets it lead again. Nobody waits for the answer.
    fn steer(&mut self, world: &mut World, me: usize) {
        if world.phase == Phase::Liveness {
            return;
        }
        let (node, door) = (some_door(world, &mut self.rng), some_door(world, &mut self.rng));
        let cordoned = Some(self.rng.bool());
        if cordoned == Some(true) {
            world.mark(Mark::NodeCordoned);
        }
        let command = Command::SteerMember(SteerMember { node, cordoned, priority: None });
        let order = Order { namespace: namespace(), request: None, command };
        world.ask(me, door, Request::Write(vec![order]), 2_000);
        self.hurry(world, me);
        let again_us = self.rng.u64(5_000_000..30_000_000);
        world.schedule.after(again_us, Event::Actor(me, Step::Steer));
    }

    /// Sends an order of the newest level, whatever the nodes understand.
    fn hurry(&mut self, world: &mut World, me: usize) {
        let nodes = world.doors();
        let door = some_door(world, &mut self.rng);
        // Near the usual second: how soon there must be a leader again is judged by that.
        let timeout_ms = Some(self.rng.u32(600..=1_200));
        let command = match self.rng.bool() {
            true => Command::RaiseLevel(RaiseLevel { level: LEVEL, nodes }),
            false => Command::TuneElections(TuneElections { timeout_ms }),
        };
        let order = Order { namespace: namespace(), request: None, command };
        world.ask(me, door, Request::Write(vec![order]), 2_000);
    }

    /// Asks for more shards, under the same request id until it is decided.
    fn grow(&mut self, world: &mut World, me: usize) {
        if world.phase == Phase::Liveness {
            return;
        }
        let id = RequestId::parse("grow").unwrap_or_else(|error| panic!("request id: {error}"));
        let request = Some(RequestKey { id, item: 0 });
        let node = some_door(world, &mut self.rng);
        world.ask(me, node, Request::Grow { shards: world.plan.grows_to, request }, 2_000);
    }

    /// Whether a growth was decided; if not it is asked for again.
    fn grown(&mut self, world: &mut World, me: usize, end: &CallEnd) {
        let decided = match end {
            CallEnd::Answered(Answer::Written(outcomes)) => {
                outcomes.iter().all(|outcome| matches!(outcome, Outcome::Reply { .. }))
            }
            _ => false,
        };
        if !decided {
            let again_us = self.rng.u64(300_000..2_000_000);
            world.schedule.after(again_us, Event::Actor(me, Step::Grow));
        }
    }

    fn change(&mut self, world: &mut World, me: usize) {
        if !world.membership.is_changing() && world.phase == Phase::Safety {
            world.wish_change();
        }
        let distance_us = if let Some(request) = world.next_change() {
            let node = some_door(world, &mut self.rng);
            world.ask(me, node, request, 2_000);
            if let Some(second) = world.hasty_change() {
                let node = some_door(world, &mut self.rng);
                world.ask(me, node, second, 2_000);
            }
            self.rng.u64(200_000..1_500_000)
        } else if world.phase == Phase::Liveness {
            return;
        } else {
            self.rng.u64(self.membership_ms * 300..=self.membership_ms * 1_700)
        };
        world.schedule.after(distance_us, Event::Actor(me, Step::Change));
    }

    /// Makes a few schedules; they run until the healing.
    fn begin_schedules(&mut self, world: &mut World, me: usize) {
        for number in 0..SCHEDULES {
            let text = format!("{PREFIX}{number}");
            let (Ok(name), Ok(id)) = (ScheduleName::parse(&text), TaskId::parse(&text)) else {
                continue;
            };
            let mut task =
                Enqueue::new(id, queue(pick::<&str>(&mut self.rng, &QUEUES)), &b"tick"[..]);
            task.ttl_ms = Some(world.plan.knobs.ttl_ms as u32);
            let timing = match number + 1 == SCHEDULES {
                true => self.cron(world.plan.knobs.wall_start_ms),
                false => self.interval(),
            };
            let missed = *pick(&mut self.rng, &[Missed::Skip, Missed::One, Missed::All]);
            let overlap = *pick(&mut self.rng, &[Overlap::Allow, Overlap::Allow, Overlap::Skip]);
            let grace_ms = self.rng.u64(0..=10_000);
            let spec = ScheduleSpec { timing, task, missed, overlap, grace_ms, paused: false };
            // A late copy must not revive what was paused meanwhile.
            let expected_version = Some(0);
            let set = SetSchedule {
                name: name.clone(),
                spec: Some(Box::new(spec.clone())),
                paused: None,
                expected_version,
            };
            self.schedules.push(Made { name, spec, paused_version: None });
            self.set_schedule(world, me, set);
        }
        world.schedule.after(self.rng.u64(3_000_000..15_000_000), Event::Actor(me, Step::Turn));
    }

    fn interval(&mut self) -> Timing {
        let every_ms = self.rng.u64(1_500..=8_000);
        Timing::Every { every_ms, anchor_ms: self.rng.u64(1..=every_ms) }
    }

    /// A cron line with instants soon: in every hour, or in hours named around the one at the start.
    fn cron(&mut self, wall_start_ms: u64) -> Timing {
        let some = pick(&mut self.rng, &ZONES);
        let soon = ZONES.iter().find(|zone| zone.changes_after(wall_start_ms));
        let zone = soon.filter(|_| chance(&mut self.rng, 700)).unwrap_or(some);
        let step = pick(&mut self.rng, &[1, 1, 2, 5]);
        let hour = zone.hour(wall_start_ms);
        let line = match self.rng.bool() {
            true => format!("*/{step} * * * *"),
            false => format!("*/{step} {},{},{} * * *", hour, (hour + 1) % 24, (hour + 2) % 24),
        };
        Timing::Cron { line, zone: zone.name.to_owned() }
    }

    /// Pauses a schedule, or resumes one that was paused.
    fn turn_schedule(&mut self, world: &mut World, me: usize) {
        if world.phase == Phase::Liveness || self.schedules.is_empty() {
            return;
        }
        let position = self.rng.usize(0..self.schedules.len());
        let made = &self.schedules[position];
        // A late copy of a resume must not revive what was paused for good: it goes on from a version. A late pause
        // does no harm.
        let expected_version = made.paused_version;
        let paused = Some(expected_version.is_none());
        let set = SetSchedule { name: made.name.clone(), spec: None, paused, expected_version };
        self.set_schedule(world, me, set);
        let again_us = self.rng.u64(2_000_000..20_000_000);
        world.schedule.after(again_us, Event::Actor(me, Step::Turn));
    }

    /// Learns what became of a pause or a resume.
    fn schedule_set(&mut self, set: &SetSchedule, reply: &Reply) {
        let Some(made) = self.schedules.iter_mut().find(|made| made.name == set.name) else {
            return;
        };
        made.paused_version = match (set.paused, reply) {
            (Some(true), Reply::ScheduleSet { version }) => Some(*version),
            (Some(_), _) => None,
            (None, _) => made.paused_version,
        };
    }

    fn set_schedule(&mut self, world: &mut World, me: usize, set: SetSchedule) {
        self.count += 1;
        let order = self.order(Command::SetSchedule(set));
        self.send(world, me, ShardId::MAX, vec![order]);
    }

    /// Pauses all schedules, so that every task can come to its end.
    fn end_schedules(&mut self, world: &mut World, me: usize) {
        self.probes.clear();
        self.unsent.clear();
        for Made { name, spec, .. } in std::mem::take(&mut self.schedules) {
            let spec = Some(Box::new(ScheduleSpec { paused: true, ..spec }));
            let set = SetSchedule { name, spec, paused: None, expected_version: None };
            self.set_schedule(world, me, set);
        }
    }

    /// Resumes all queues, and submits one task to every shard.
    fn probe(&mut self, world: &mut World, me: usize) {
        self.end_schedules(world, me);
        for name in QUEUES {
            self.count += 1;
            let change = QueueChange { paused: Some(false), ..QueueChange::default() };
            let set = SetQueue { queue: queue(name), change, expected_version: None };
            let order = self.order(Command::SetQueue(set));
            self.send(world, me, ShardId::MAX, vec![order]);
        }
        for shard in 0..world.shard_count() {
            self.count += 1;
            let id = self.id_in(world, shard);
            let mut task =
                Enqueue::new(id, queue(pick::<&str>(&mut self.rng, &QUEUES)), &b"probe"[..]);
            task.ttl_ms = Some(world.plan.knobs.ttl_ms as u32);
            let order = self.order(Command::Enqueue(task));
            world.probes.insert(shard, (world.now_us(), None));
            self.send(world, me, shard, vec![order]);
        }
    }

    fn order(&self, command: Command) -> Order {
        let text = format!("op-{}", self.count);
        let id = RequestId::parse(&text).unwrap_or_else(|error| panic!("request id: {error}"));
        Order { namespace: namespace(), request: Some(RequestKey { id, item: 0 }), command }
    }

    fn id_in(&mut self, world: &World, shard: ShardId) -> TaskId {
        loop {
            let text = format!("probe-{}", self.rng.u32(..));
            let id = TaskId::parse(&text).unwrap_or_else(|error| panic!("task id: {error}"));
            if world.shard_of_task(&id) == shard {
                return id;
            }
        }
    }

    fn send(&mut self, world: &mut World, me: usize, shard: ShardId, orders: Vec<Order>) {
        let node = some_door(world, &mut self.rng);
        for order in &orders {
            world.clients.sent(order);
        }
        let call = world.ask(me, node, Request::Write(orders.clone()), 2_000);
        self.probes.insert(call, (shard, orders));
    }

    /// A call has ended.
    pub fn ended(
        &mut self,
        world: &mut World,
        me: usize,
        call: CallId,
        open: &OpenCall,
        end: &CallEnd,
    ) -> Verdict {
        if is_change_refused(&open.request, end) {
            world.mark(Mark::ChangeRefused);
        }
        if let CallEnd::Answered(Answer::Written(outcomes)) = end
            && let [Outcome::Unavailable(Unavailable::LevelTooLow { .. })] = &outcomes[..]
        {
            world.mark(Mark::LevelRefused);
        }
        if let Request::Grow { .. } = &open.request {
            self.grown(world, me, end);
            return Ok(());
        }
        let Some((shard, orders)) = self.probes.remove(&call) else {
            return Ok(());
        };
        let done = match end {
            CallEnd::Answered(Answer::Written(outcomes)) => {
                let settled = |outcome: &Outcome| match outcome {
                    Outcome::Reply { reply, .. } => !is_transient(reply),
                    _ => false,
                };
                outcomes.iter().all(settled)
            }
            _ => false,
        };
        if !done && world.phase == Phase::Safety {
            self.unsent.push((shard, orders));
            let again_us = self.rng.u64(300_000..1_500_000);
            world.schedule.after(again_us, Event::Actor(me, Step::Again(0)));
            return Ok(());
        }
        if !done {
            // A shard at its bound decides as it should by saying so. The probe goes on until there is room.
            if is_told_full(end) && world.is_shard_full(shard) {
                world.probe_decided(shard);
            }
            self.send(world, me, shard, orders);
            return Ok(());
        }
        if let CallEnd::Answered(Answer::Written(outcomes)) = end {
            for (order, outcome) in orders.iter().zip(outcomes) {
                if let Outcome::Reply { reply, .. } = outcome {
                    world.clients.told(order, reply);
                    if let Command::SetSchedule(set) = &order.command {
                        self.schedule_set(set, reply);
                    }
                }
            }
        }
        world.probe_decided(shard);
        Ok(())
    }
}

/// Whether the leader refused all orders for want of room.
fn is_told_full(end: &CallEnd) -> bool {
    let full = |outcome: &Outcome| {
        let refused = Reply::Refused { code: RefusalCode::QueueFull };
        matches!(outcome, Outcome::Reply { reply, .. } if *reply == refused)
    };
    matches!(end, CallEnd::Answered(Answer::Written(outcomes)) if outcomes.iter().all(full))
}

/// A queue full of dead tasks stays so until somebody comes: that is an answer.
fn is_transient(reply: &Reply) -> bool {
    matches!(reply, Reply::Refused { code } if code.is_transient() && *code != RefusalCode::DeadFull)
}

/// Whether the answer to a call is that the members may not change so.
fn is_change_refused(request: &Request, end: &CallEnd) -> bool {
    let Request::Write(orders) = request else { return false };
    let CallEnd::Answered(Answer::Written(outcomes)) = end else { return false };
    matches!(
        (&orders[..], &outcomes[..]),
        (
            [Order { command: Command::ChangeMembers(_), .. }],
            [Outcome::Reply { reply: Reply::Refused { .. }, .. }]
        )
    )
}
