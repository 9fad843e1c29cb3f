//! Follows jobs, the files that tasks bring, checkpoints, and workers that are removed (A4, B4-10, B4-19, B4-33, B4-34).

use ikada_state::{
    Checkpoint, Command, Complete, Effect, FailNext, JobId, Message, Namespace, Order, RefusalCode,
    Reply, SessionId, ShardId, TaskId, TaskState, WorkerId,
};

use super::World;
use crate::check::fence::{self, Came};
use crate::check::{Verdict, job_whole, predicate, violation, worker_gone};
use crate::marks::Mark;
use crate::oracle::jobs::{Jobs, Part};
use crate::oracle::ledger::ShardLedger;
use crate::oracle::model::End;
use ikada_state::{Fence, JobState, Shard};

/// The end of a task whose twin was done first: no fence of its own brought it.
const BY_TWIN: End = End::Done(Fence(u64::MAX));

impl World {
    /// Orders about jobs, checkpoints and workers.
    pub(super) fn follow_job_order(
        &mut self,
        shard: ShardId,
        order: &Order,
        reply: &Reply,
        effects: &[Effect],
    ) -> Verdict {
        match (&order.command, reply) {
            (Command::SubmitJob(submit), Reply::JobSubmitted { created }) => {
                self.marks.hit_if(*created, Mark::JobSubmitted);
                job_whole::submitted(&mut self.watch.jobs, submit, *created)
            }
            (Command::CancelJob(cancel), Reply::JobCancelled) => {
                if let Some(job) = self.watch.jobs.known.get_mut(&cancel.id) {
                    self.marks.hit_if(!job.cancelled, Mark::JobCancelled);
                    job.cancelled = true;
                }
                Ok(())
            }
            (Command::Duplicate(_), Reply::Enqueued { .. }) => {
                self.marks.hit(Mark::TwinBegun);
                Ok(())
            }
            (Command::Checkpoint(kept), _) => self.follow_checkpoint(kept, reply),
            (Command::RemoveWorker(gone), Reply::WorkerGone) if !gone.forget => {
                let session = gone.session.unwrap_or(SessionId(0));
                // A resend is told the same, and nothing happens.
                match self.watch.gone.insert((gone.id.clone(), session)) {
                    true => self.follow_gone(shard, &gone.id, session, effects),
                    false => Ok(()),
                }
            }
            (Command::Deliver(deliver), Reply::Delivered { fresh: true }) => {
                match &deliver.message {
                    Message::WorkerGone { worker, session, .. } => {
                        self.follow_gone(shard, worker, *session, effects)
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn follow_checkpoint(&mut self, kept: &Checkpoint, reply: &Reply) -> Verdict {
        let came = match reply {
            Reply::ObjectPut { .. } => Came::Accepted,
            Reply::Refused { code } if code.is_transient() => return Ok(()),
            _ => Came::Refused,
        };
        let (model, worker) = (&self.watch.model, Some(&kept.worker));
        if fence::check(model, "checkpoint", &kept.id, kept.fence, worker, came)? {
            self.watch.outputs.kept(&kept.id, kept.digest);
            self.marks.hit(Mark::CheckpointKept);
        }
        Ok(())
    }

    /// A shard learns that a session is over: its claims end here, and count as after silence.
    fn follow_gone(
        &mut self,
        shard: ShardId,
        worker: &WorkerId,
        session: SessionId,
        effects: &[Effect],
    ) -> Verdict {
        let model = &self.watch.model;
        let claims: Vec<TaskId> =
            worker_gone::claims(model, shard, worker, session).cloned().collect();
        for id in claims {
            let live = self.watch.model.task(&id).and_then(|task| task.claim);
            let ended = effects.iter().find_map(|effect| match effect {
                Effect::Moved { id: of, from: Some(TaskState::Claimed), to, fence, .. }
                    if *of == id && Some(*fence) == live =>
                {
                    *to
                }
                _ => None,
            });
            let next = match ended {
                Some(TaskState::Ready) => FailNext::Ready,
                Some(TaskState::Scheduled) => FailNext::Scheduled { at_ms: 0 },
                Some(TaskState::Dead) => FailNext::Dead,
                _ => continue,
            };
            self.marks.hit(Mark::WorkerRemoved);
            self.attempt_ended(usize::from(shard), &id, true, next)?;
        }
        let travels = |id: &TaskId| self.watch.travelling.contains_key(id);
        worker_gone::check(&self.watch.model, shard, worker, session, travels)
    }

    /// Whether a completion by a live claim may be refused: its stage is closed, or it was outrun.
    pub(super) fn may_be_late(&self, id: &TaskId, reply: &Reply) -> bool {
        let Some(part) = Part::of(id) else {
            return false;
        };
        let first = part.first().and_then(|first| self.watch.model.task(&first));
        let outrun = part.twin && first.is_some_and(|first| first.end.is_some());
        *reply == Reply::refused(RefusalCode::TaskFinished)
            && (outrun || self.watch.jobs.is_closed(&part))
    }

    /// A completion counts: what it brought is the task's, and ends the one beside which it ran.
    pub(super) fn follow_completion(&mut self, order: &Complete) -> Verdict {
        self.watch.outputs.completed(order);
        let Some(part) = Part::of(&order.id) else {
            return Ok(());
        };
        job_whole::completed(&self.watch.jobs, &order.id, &part)?;
        if let (true, Some(first)) = (part.twin, part.first()) {
            self.marks.hit(Mark::TwinWon);
            self.watch.outputs.ended(&first);
            self.watch.model.settle(&first, BY_TWIN);
        }
        let part = Part { twin: false, ..part };
        self.watch.jobs.stands(&part, TaskState::Done);
        Ok(())
    }

    /// An attempt was a task's last.
    pub(super) fn follow_death(&mut self, id: &TaskId) {
        if let Some(part) = Part::of(id) {
            self.watch.jobs.stands(&part, TaskState::Dead);
        }
    }

    /// A job's task came into being.
    pub(super) fn job_task_born(&mut self, id: &TaskId, part: &Part) -> Verdict {
        if part.twin {
            // One whose record is gone may come again.
            let task = self.watch.model.task_mut(id);
            (task.claim, task.end, task.attempts, task.removed) = (None, None, 0, false);
            return Ok(());
        }
        self.watch.model.task_mut(id).created += 1;
        self.watch.submits.created(id)
    }

    /// What became of jobs' tasks in an entry, once its orders were followed.
    pub(super) fn follow_job_moves(
        &mut self,
        shard: ShardId,
        term: u64,
        effects: &[Effect],
    ) -> Verdict {
        let mut touched = Vec::new();
        for effect in effects {
            let Effect::Moved { id, from, to: Some(to), .. } = effect else {
                continue;
            };
            let Some(part) = Part::of(id) else {
                continue;
            };
            if from.is_none() {
                job_whole::born(&self.watch.jobs, id, &part)?;
                let by_another = self.watch.jobs.born_in(&part, term);
                self.marks.hit_if(by_another, Mark::JobExpandedByTwo);
            }
            match to {
                TaskState::Cancelled => {
                    job_whole::cancelled(&self.watch.jobs, id, &part)?;
                    if self.watch.model.task_mut(id).end.is_none() {
                        self.watch.model.settle(id, End::Cancelled);
                    }
                    self.marks.hit_if(*from == Some(TaskState::Claimed), Mark::JobTaskStopped);
                }
                TaskState::Done if !is_done(&self.watch.jobs, &part) => {
                    let what = format!("task {id} is done, and nobody completed it");
                    return violation("B4-34 job_whole", what);
                }
                _ => {}
            }
            self.watch.jobs.stands(&part, *to);
            touched.push(part.job);
        }
        touched.dedup();
        for id in touched {
            let state = self.watch.ledgers[usize::from(shard)].reference();
            let record = state.and_then(|state| state.job(&Namespace::default(), &id));
            if let (Some(record), Some(known)) = (record, self.watch.jobs.known.get(&id)) {
                job_whole::counts(known, record)?;
            }
        }
        Ok(())
    }

    /// A4, after an entry that tried to complete something, whether or not it could.
    pub(super) fn check_outputs(&self, shard: ShardId, orders: &[Option<Order>]) -> Verdict {
        // Files travel with their tasks: while some do, only what is there is looked at.
        let Some(state) = self.watch.ledgers[usize::from(shard)].reference() else {
            return Ok(());
        };
        let grows = self.plan.grows_to > self.plan.shards;
        for order in orders.iter().flatten() {
            match &order.command {
                Command::Complete(complete) if !complete.outputs.is_empty() && !grows => {
                    self.watch.outputs.check_task(state, &complete.id)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Everything that is visible in a shard, and its jobs' own counts.
    pub(super) fn check_jobs_of(&self, state: &Shard) -> Verdict {
        predicate("B4-34 job_whole", ikada_state::invariants::jobs_add_up(state))?;
        self.watch.outputs.check(state)
    }

    /// Whether some job has not ended, by the committed entries alone.
    pub(super) fn jobs_run(&self) -> bool {
        self.watch.jobs.known.values().any(|job| job.end() == JobState::Running)
    }

    /// At the end, when all is settled.
    pub(super) fn check_jobs_over(&mut self) -> Verdict {
        for job in self.watch.jobs.known.values() {
            self.marks.hit(match job.end() {
                JobState::Done => Mark::JobDone,
                JobState::Error => Mark::JobFailed,
                _ => continue,
            });
        }
        let has = |ledger: &ShardLedger, id: &JobId| {
            ledger.reference().is_some_and(|state| state.job(&Namespace::default(), id).is_some())
        };
        let ledgers = &self.watch.ledgers;
        job_whole::over(&self.watch.jobs, |id| ledgers.iter().any(|ledger| has(ledger, id)))
    }
}

fn is_done(jobs: &Jobs, part: &Part) -> bool {
    let state = jobs.find(part).and_then(|(job, stage)| job.state(stage, part.index));
    state == Some(TaskState::Done)
}
