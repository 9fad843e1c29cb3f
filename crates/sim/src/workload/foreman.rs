//! A foreman: submits jobs, cancels some, resends what it is unsure about, sometimes with another body, and has workers leave or
//! throws them out.

use std::collections::VecDeque;

use fastrand::Rng;
use ikada_replica::call::{Answer, Outcome, Request};
use ikada_state::{
    Backoff, CancelJob, Command, DrainWorker, JobId, JobSpec, Labels, Order, ProgramKind,
    ProgramName, ProgramRef, RemoveWorker, Reply, RequestId, RequestKey, Settle, StageName,
    StageSource, StageSpec, SubmitJob,
};

use super::{JOB_QUEUE, PROGRAMS, Step, namespace, program_digest, queue, some_door};
use crate::check::{Verdict, Violation, honest_outcome};
use crate::draw::{chance, log_uniform};
use crate::oracle::jobs::PREFIX;
use crate::world::calls::{CallEnd, OpenCall};
use crate::world::{Event, Phase, World};

/// A request is sent this often at most.
const TRIES_MAX: u32 = 6;
/// Earlier orders kept for a resend out of the blue.
const OLD_KEPT: usize = 12;
/// Finished jobs stay for longer than any run lasts.
const RETENTION_MS: u64 = 365 * 86_400_000;

/// The foreman.
#[derive(Debug)]
pub struct Foreman {
    rng: Rng,
    count: u64,
    jobs: u64,
    /// What is being asked; sent again until it is settled or given up.
    current: Option<Order>,
    tries: u32,
    old: VecDeque<Order>,
}

impl Foreman {
    /// A foreman without jobs.
    pub fn new(rng: Rng) -> Self {
        Self { rng, count: 0, jobs: 0, current: None, tries: 0, old: VecDeque::new() }
    }

    /// Does a step.
    pub fn step(&mut self, world: &mut World, me: usize) -> Verdict {
        if self.current.is_none() {
            if world.phase == Phase::Liveness {
                return Ok(());
            }
            self.tries = 0;
            self.current = Some(self.choose(world));
        }
        let Some(order) = self.current.clone() else {
            return Ok(());
        };
        self.tries += 1;
        world.clients.sent(&order);
        let node = some_door(world, &mut self.rng);
        let timeout_ms = log_uniform(&mut self.rng, 500, 8_000);
        world.ask(me, node, Request::Write(vec![order]), timeout_ms);
        Ok(())
    }

    fn choose(&mut self, world: &World) -> Order {
        let order = match self.rng.u32(0..100) {
            50..62 if !self.old.is_empty() => {
                return self.old[self.rng.usize(0..self.old.len())].clone();
            }
            62..77 if self.jobs > 0 => self.cancel(),
            77..80 if self.jobs > 0 => self.conflict(world),
            80..90 => {
                let id = self.some_worker();
                about_worker(Command::DrainWorker(DrainWorker { id }))
            }
            90..100 => match self.removal(world) {
                Some(removal) => about_worker(removal),
                None => self.submission(world),
            },
            _ => self.submission(world),
        };
        self.old.push_back(order.clone());
        if self.old.len() > OLD_KEPT {
            self.old.pop_front();
        }
        order
    }

    fn order(&mut self, command: Command) -> Order {
        self.count += 1;
        let text = format!("foreman-{}", self.count);
        let id = RequestId::parse(&text).unwrap_or_else(|error| panic!("request id: {error}"));
        Order { namespace: namespace(), request: Some(RequestKey { id, item: 0 }), command }
    }

    fn submission(&mut self, world: &World) -> Order {
        self.jobs += 1;
        let submit = SubmitJob::new(named(self.jobs), self.spec(world));
        self.order(Command::SubmitJob(submit))
    }

    fn spec(&mut self, world: &World) -> JobSpec {
        let knobs = &world.plan.knobs;
        let tasks = self.rng.u64(1..=8);
        let settle = match self.rng.u32(0..10) {
            0..2 => Settle::Any,
            2..4 => Settle::Quorum(self.rng.u32(1..=tasks as u32)),
            _ => Settle::All,
        };
        let attempts_max = knobs.attempts_max as u16;
        let mut spec = map_reduce(tasks, settle, knobs.ttl_ms as u32, attempts_max);
        if chance(&mut self.rng, 700) {
            let program = &mut spec.stages[0].program;
            program.kind = ProgramKind::Command;
            program.digest = Some(program_digest(self.rng.u64(0..PROGRAMS)));
        }
        if chance(&mut self.rng, 300) {
            // Partitions of the map between it and the reduce.
            let shuffle = StageSource::Shuffle { of: vec![0], partitions: 2 };
            spec.stages.insert(1, stage("shuffle", shuffle, Settle::All));
            spec.stages[2].source = StageSource::Gather { of: vec![1], fan_in: 0 };
        } else if chance(&mut self.rng, 300) {
            spec.stages.truncate(1);
        }
        spec.duplicate_after = chance(&mut self.rng, 500).then_some(2);
        spec
    }

    fn cancel(&mut self) -> Order {
        let id = named(self.rng.u64(self.jobs.saturating_sub(3).max(1)..=self.jobs));
        self.order(Command::CancelJob(CancelJob { id }))
    }

    /// A job whose id is taken, with another body: it must be refused.
    fn conflict(&mut self, world: &World) -> Order {
        let id = named(self.rng.u64(1..=self.jobs));
        let mut spec = self.spec(world);
        spec.name = "another".to_owned();
        self.order(Command::SubmitJob(SubmitJob::new(id, spec)))
    }

    fn some_worker(&mut self) -> ikada_state::WorkerId {
        super::worker::named(self.rng.u64(0..super::WORKERS))
    }

    /// Removes a worker as it is listed now.
    fn removal(&mut self, world: &World) -> Option<Command> {
        let id = self.some_worker();
        let state = world.watch.ledgers.first().and_then(|ledger| ledger.reference())?;
        let listed = state.worker(&(namespace(), id.clone()))?;
        let session = Some(listed.session);
        Some(Command::RemoveWorker(RemoveWorker { id, session, forget: false }))
    }

    /// A call has ended.
    pub fn ended(
        &mut self,
        world: &mut World,
        me: usize,
        open: &OpenCall,
        end: CallEnd,
    ) -> Verdict {
        let Request::Write(orders) = &open.request else {
            return Ok(());
        };
        let Some(order) = orders.first() else {
            return Ok(());
        };
        let settled = self.read(world, order, end)?;
        let patient = world.phase == Phase::Liveness || self.tries < TRIES_MAX;
        if settled || !patient {
            self.current = None;
            let think_us = log_uniform(&mut self.rng, 300, 9_000) * 1_000;
            world.schedule.after(think_us, Event::Actor(me, Step::Next));
        } else {
            let again_us = log_uniform(&mut self.rng, 20, 1_500) * 1_000;
            world.schedule.after(again_us, Event::Actor(me, Step::Next));
        }
        Ok(())
    }

    /// Reads what came; true when nothing is left open.
    fn read(&self, world: &mut World, order: &Order, end: CallEnd) -> Result<bool, Violation> {
        let outcome = match end {
            CallEnd::Answered(Answer::Written(outcomes)) => outcomes.into_iter().next(),
            CallEnd::Answered(_) => {
                world.tally.unavailable += 1;
                let honest = world.clients.denied(order);
                honest_outcome::check(order, honest)?;
                return Ok(false);
            }
            CallEnd::NotSent => return Ok(false),
            CallEnd::Lost => None,
        };
        match outcome {
            Some(Outcome::Reply { reply, .. }) => {
                match reply {
                    Reply::Refused { .. } => world.tally.refused += 1,
                    _ => world.tally.acked += 1,
                }
                world.clients.told(order, &reply);
                Ok(true)
            }
            Some(Outcome::Unavailable(_)) => {
                world.tally.unavailable += 1;
                let honest = world.clients.denied(order);
                honest_outcome::check(order, honest)?;
                Ok(false)
            }
            Some(Outcome::Unknown) | None => {
                world.tally.unknown += 1;
                world.clients.lost(order);
                Ok(false)
            }
        }
    }
}

/// Doing it twice is as good as once, so that no request id is remembered.
fn about_worker(command: Command) -> Order {
    Order { namespace: namespace(), request: None, command }
}

/// The id of a job.
pub fn named(number: u64) -> JobId {
    let text = format!("{PREFIX}{number}");
    JobId::parse(&text).unwrap_or_else(|error| panic!("job id: {error}"))
}

fn stage(name: &str, source: StageSource, settle: Settle) -> StageSpec {
    let program = ProgramName::parse("count").unwrap_or_else(|error| panic!("program: {error}"));
    StageSpec {
        name: StageName::parse(name).unwrap_or_else(|error| panic!("stage: {error}")),
        program: ProgramRef {
            name: program,
            kind: ProgramKind::Handler,
            digest: None,
            entry: None,
        },
        settings: Vec::new(),
        source,
        after: Vec::new(),
        settle,
    }
}

/// A map over a range of numbers, and what puts it together.
pub fn map_reduce(tasks: u64, settle: Settle, ttl_ms: u32, attempts_max: u16) -> JobSpec {
    let range = StageSource::Range { from: 0, to: tasks, step: 1 };
    let all = StageSource::Gather { of: vec![0], fan_in: 0 };
    JobSpec {
        name: "simulated".to_owned(),
        queue: queue(JOB_QUEUE),
        stages: vec![stage("map", range, settle), stage("reduce", all, Settle::All)],
        priority: None,
        max_attempts: Some(attempts_max),
        ttl_ms: Some(ttl_ms),
        timeout_ms: None,
        backoff: Some(Backoff { base_ms: 50, cap_ms: 500 }),
        labels: Labels::default(),
        retention_ms: RETENTION_MS,
        reuse: None,
        duplicate_after: None,
        output_url: None,
    }
}
