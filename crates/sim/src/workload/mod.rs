//! Who uses the cluster: clients that submit, workers that run, readers that look, some who want
//! leases, a foreman with jobs, a tenant with a quota, an operator that changes things.
//!
//! Actors act through calls to any node and learn only what the answers say. They keep going through every fault; a
//! call without an answer is sent again with the same request id, or left open.

mod client;
pub mod foreman;
mod leaser;
mod operator;
mod reader;
pub mod tenant;
pub mod worker;

use ikada_consensus::NodeId;
use ikada_replica::call::CallId;
use ikada_state::{Digest, Fence, Label, Labels, Namespace, QueueName, TaskId};

use crate::check::Verdict;
use crate::draw::pick;
use crate::world::calls::{CallEnd, OpenCall};
use crate::world::{Event, World};
use client::Client;
use foreman::Foreman;
use leaser::Leaser;
use operator::Operator;
use reader::Reader;
use tenant::Tenant;
use worker::Worker;

/// Queues in use.
pub const QUEUES: [&str; 3] = ["alpha", "beta", "gamma"];
/// The queue of all jobs. Nobody pauses or purges it.
pub const JOB_QUEUE: &str = "jobs";
/// How many workers there are.
pub const WORKERS: u64 = 4;

/// How many programs the tasks of jobs run.
pub const PROGRAMS: u64 = 4;

/// The digest of a program.
pub fn program_digest(number: u64) -> Digest {
    Digest([number as u8 + 1; 32])
}

/// What an actor does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The next thing of its own choice.
    Next,
    /// Sends an open request again.
    Again(u64),
    /// A worker ends its work on a task.
    Finish(TaskId, Fence),
    /// A worker proves that it lives.
    Renew(u64),
    /// A worker keeps how far it has come with a task.
    Checkpoint(TaskId, Fence),
    /// A worker says that it lives.
    Beat,
    /// A worker says what it holds, as a claim may have got lost.
    RollCall(u64),
    /// An operator's probe after healing.
    Probe,
    /// A membership change goes on.
    Change,
    /// A transfer is due.
    Transfer,
    /// A node is cordoned, or may lead again.
    Steer,
    /// A schedule is paused or resumed.
    Turn,
    /// The cluster shall grow.
    Grow,
}

/// One user of the cluster.
#[derive(Debug)]
pub enum Actor {
    /// Submits and cancels.
    Client(Box<Client>),
    /// Claims and runs.
    Worker(Box<Worker>),
    /// Reads.
    Reader(Box<Reader>),
    /// Wants leases.
    Leaser(Box<Leaser>),
    /// Submits jobs.
    Foreman(Box<Foreman>),
    /// Has a quota.
    Tenant(Box<Tenant>),
    /// Transfers, membership, probes.
    Operator(Box<Operator>),
}

impl Actor {
    /// Does a step.
    pub fn step(&mut self, world: &mut World, me: usize, step: Step) -> Verdict {
        match self {
            Actor::Client(actor) => actor.step(world, me, &step),
            Actor::Worker(actor) => actor.step(world, me, step),
            Actor::Reader(actor) => actor.step(world, me),
            Actor::Leaser(actor) => actor.step(world, me),
            Actor::Foreman(actor) => actor.step(world, me),
            Actor::Tenant(actor) => actor.step(world, me),
            Actor::Operator(actor) => actor.step(world, me, &step),
        }
    }

    /// A call has ended.
    pub fn ended(
        &mut self,
        world: &mut World,
        me: usize,
        call: CallId,
        open: &OpenCall,
        end: CallEnd,
    ) -> Verdict {
        match self {
            Actor::Client(actor) => actor.ended(world, me, open, end),
            Actor::Worker(actor) => actor.ended(world, me, call, open, end),
            Actor::Reader(actor) => actor.ended(world, me, open, &end),
            Actor::Leaser(actor) => actor.ended(world, me, open, &end),
            Actor::Foreman(actor) => actor.ended(world, me, open, end),
            Actor::Tenant(actor) => actor.ended(world, me, open, &end),
            Actor::Operator(actor) => actor.ended(world, me, call, open, &end),
        }
    }
}

/// Brings all actors in and gives them their first step.
pub fn enlist(world: &mut World) {
    let plan = &world.plan;
    let mut actors = Vec::new();
    for number in 0..3 {
        actors.push(Actor::Client(Box::new(Client::new(number, plan.rng(200 + number)))));
    }
    for number in 0..WORKERS {
        actors.push(Actor::Worker(Box::new(Worker::new(number, plan.rng(300 + number)))));
    }
    actors.push(Actor::Reader(Box::new(Reader::new(plan.rng(400)))));
    for number in 0..3 {
        actors.push(Actor::Leaser(Box::new(Leaser::new(number, plan.rng(600 + number)))));
    }
    actors.push(Actor::Tenant(Box::new(Tenant::new(plan.rng(700)))));
    actors.push(Actor::Foreman(Box::new(Foreman::new(plan.rng(800)))));
    // The operator is the last: the world knows it by that.
    let (membership_ms, transfer_ms) = (plan.faults.membership_ms, plan.faults.transfer_ms);
    actors.push(Actor::Operator(Box::new(Operator::new(
        plan.rng(500),
        membership_ms,
        transfer_ms,
    ))));
    let operator = actors.len() - 1;
    world.actors = actors.into_iter().map(Some).collect();
    for actor in 0..world.actors.len() {
        let first_us = 1_000_000 + actor as u64 * 37_000;
        world.schedule.at(first_us, Event::Actor(actor, Step::Next));
        if matches!(world.actors[actor], Some(Actor::Worker(_))) {
            world.schedule.at(first_us, Event::Actor(actor, Step::Beat));
        }
    }
    if world.plan.grows_to > world.plan.shards {
        let at_us = world.plan.rng(501).u64(3_000_000..30_000_000);
        world.schedule.at(at_us, Event::Actor(operator, Step::Grow));
    }
    if world.plan.knobs.balance_quiet_ms > 0 {
        let at_us = world.plan.rng(502).u64(3_000_000..30_000_000);
        world.schedule.at(at_us, Event::Actor(operator, Step::Steer));
    }
    if transfer_ms > 0 {
        world.schedule.at(transfer_ms * 1_000, Event::Actor(operator, Step::Transfer));
    }
    if membership_ms > 0 {
        world.schedule.at(membership_ms * 1_000, Event::Actor(operator, Step::Change));
    }
}

/// A node to ask: any machine, running or not, as a client cannot know.
pub fn some_door(world: &World, rng: &mut fastrand::Rng) -> NodeId {
    let doors: Vec<NodeId> = world.doors();
    *pick(rng, &doors)
}

/// The namespace of everything.
pub fn namespace() -> Namespace {
    Namespace::default()
}

/// One of the queues.
pub fn some_queue(rng: &mut fastrand::Rng) -> QueueName {
    queue(pick::<&str>(rng, &QUEUES))
}

/// Label sets in use, each holding those before it.
pub fn labels(count: usize) -> Labels {
    let label = |text: &str| Label::parse(text).unwrap_or_else(|error| panic!("label: {error}"));
    let all = [("zone", "a"), ("gpu", "yes"), ("disk", "fast")];
    let pairs = all[..count.min(all.len())].iter();
    Labels::new(pairs.map(|(name, value)| (label(name), label(value))).collect())
        .unwrap_or_default()
}

/// A queue by name.
pub fn queue(name: &str) -> QueueName {
    QueueName::parse(name).unwrap_or_else(|error| panic!("queue name in the workload: {error}"))
}

/// Cuts the last line of a trace, whose detail may be long.
pub fn shorten(text: &mut String) {
    const DETAIL_CHARS_MAX: usize = 400;
    let line = text.rfind('\n').map_or(0, |at| at + 1);
    if text.len() > line + DETAIL_CHARS_MAX {
        let mut cut = line + DETAIL_CHARS_MAX;
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        text.truncate(cut);
    }
}
