//! B4-34 Job whole: a job is there with all that it is to do, or not at all; its tasks come once, each after all that it reads
//! is settled (B4-10), and none after the end; nothing is brought to a closed stage (B4-30, B4-33); what the job counts is what
//! its tasks are.

use ikada_state::{Job, JobState, SubmitJob, TaskId, TaskState};

use super::{Verdict, violation};
use crate::oracle::jobs::{Jobs, KnownJob, Part};

const NAME: &str = "B4-34 job_whole";

/// A submission was accepted: as the first of its id, or as a resend of it.
pub fn submitted(jobs: &mut Jobs, order: &SubmitJob, created: bool) -> Verdict {
    let known = jobs.known.get(&order.id);
    match known {
        None if created => {}
        None => return violation(NAME, format!("job {} was known and never submitted", order.id)),
        Some(known) if known.spec != *order.spec => {
            return violation(NAME, format!("job {} was accepted with two bodies", order.id));
        }
        // A resend under the same request id is told what the first was told.
        Some(_) => return Ok(()),
    }
    jobs.known.insert(order.id.clone(), KnownJob::new((*order.spec).clone()));
    Ok(())
}

/// A task came into being, before the model follows it.
pub fn born(jobs: &Jobs, id: &TaskId, part: &Part) -> Verdict {
    let Some((job, stage)) = jobs.find(part) else {
        return violation(NAME, format!("task {id} came without its job"));
    };
    let bad = |what: &str| violation(NAME, format!("task {id} came {what}"));
    let known = job.state(stage, part.index);
    if part.twin {
        return if known.is_some() { Ok(()) } else { bad("beside a task that never was") };
    }
    let spec = &job.spec.stages[stage];
    let mut needs = spec.reads().iter().chain(&spec.after);
    match () {
        () if known.is_some() => bad("a second time"),
        () if part.index != job.born(stage) => bad("out of turn"),
        () if part.index >= job.size(stage) => bad("beyond the size of its stage"),
        () if job.is_closed(stage) => bad("after its stage was closed"),
        () if !needs.all(|place| job.is_settled(usize::from(*place))) => {
            bad("before all that it reads was settled")
        }
        () => Ok(()),
    }
}

/// A completion counts, before the model follows it.
pub fn completed(jobs: &Jobs, id: &TaskId, part: &Part) -> Verdict {
    match jobs.is_closed(part) {
        true => violation(NAME, format!("a result of task {id} was taken after its stage closed")),
        false => Ok(()),
    }
}

/// A task was cancelled; only what is closed, or was outrun, may be.
pub fn cancelled(jobs: &Jobs, id: &TaskId, part: &Part) -> Verdict {
    let first = jobs.find(part).and_then(|(job, stage)| job.state(stage, part.index));
    let outrun = part.twin && first.is_some_and(|state| state.is_terminal());
    match outrun || jobs.is_closed(part) {
        true => Ok(()),
        false => violation(NAME, format!("task {id} was cancelled while its stage was open")),
    }
}

/// The product's record against the tasks, after an entry.
pub fn counts(known: &KnownJob, record: &Job) -> Verdict {
    let mut wrong = (known.end() != record.state())
        .then(|| format!("is {:?} and should be {:?}", record.state(), known.end()));
    for (stage, progress) in record.stages().iter().enumerate() {
        let count = |state| known.count(stage, state);
        let tasks = [TaskState::Claimed, TaskState::Done, TaskState::Dead, TaskState::Cancelled];
        let tasks = (known.born(stage), tasks.map(count), known.is_settled(stage));
        let told = [progress.claimed, progress.done, progress.dead, progress.cancelled];
        // A job that has ended is not judged any more.
        let settled = progress.settled || (record.state() != JobState::Running && tasks.2);
        if tasks != (progress.expanded, told, settled) {
            wrong = Some(format!("tells {progress:?} of stage {stage}, whose tasks are {tasks:?}"));
        }
    }
    match wrong {
        None => Ok(()),
        Some(wrong) => violation(NAME, format!("job {} {wrong}", record.id())),
    }
}

/// At the end of a run, when every task has ended: `present` tells of the product's record.
pub fn over(jobs: &Jobs, present: impl Fn(&ikada_state::JobId) -> bool) -> Verdict {
    for id in jobs.known.keys().chain(&jobs.acked) {
        if !present(id) {
            return violation(NAME, format!("job {id} was submitted and is gone"));
        }
    }
    let running = jobs.known.iter().find(|(_, job)| job.end() == JobState::Running);
    match running {
        None => Ok(()),
        Some((id, job)) => violation(NAME, format!("job {id} never ended: {job:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::foreman::{map_reduce, named};
    use ikada_state::Settle;

    fn part(id: &str) -> (TaskId, Part) {
        let id = TaskId::parse(id).unwrap();
        let part = Part::of(&id).unwrap();
        (id, part)
    }

    fn jobs(settle: Settle) -> Jobs {
        let mut jobs = Jobs::default();
        let order = SubmitJob::new(named(1), map_reduce(2, settle, 1_000, 3));
        submitted(&mut jobs, &order, true).unwrap();
        assert!(submitted(&mut jobs, &order, false).is_ok(), "a resend");
        let stranger = SubmitJob { id: named(9), ..order.clone() };
        assert!(submitted(&mut jobs, &stranger, false).is_err(), "known from nowhere");
        let other = Box::new(map_reduce(3, settle, 1_000, 3));
        assert!(submitted(&mut jobs, &SubmitJob { spec: other, ..order }, false).is_err());
        jobs
    }

    #[test]
    fn b4_34_tasks_from_nowhere_twice_and_too_early_are_noticed() {
        let mut jobs = jobs(Settle::All);
        let came = |jobs: &Jobs, id: &str| {
            let (id, part) = part(id);
            born(jobs, &id, &part)
        };
        assert!(came(&jobs, "job-2:map.0").is_err(), "no such job");
        assert!(came(&jobs, "job-1:map.1").is_err(), "out of turn");
        assert!(came(&jobs, "job-1:map.0.twin").is_err(), "beside nobody");
        for id in ["job-1:map.0", "job-1:map.1"] {
            assert!(came(&jobs, id).is_ok());
            jobs.stands(&part(id).1, TaskState::Ready);
            assert!(came(&jobs, id).is_err(), "twice");
        }
        assert!(came(&jobs, "job-1:map.2").is_err(), "beyond the size");
        jobs.stands(&part("job-1:map.0").1, TaskState::Done);
        assert!(came(&jobs, "job-1:reduce.0").is_err(), "B4-10: not everything is there");
        jobs.stands(&part("job-1:map.1").1, TaskState::Done);
        assert!(came(&jobs, "job-1:reduce.0").is_ok());
        assert!(over(&jobs, |_| true).is_err(), "the reduce never ran");
        assert!(over(&jobs, |_| false).is_err());
    }

    #[test]
    fn b4_33_late_results_and_early_cancels_are_noticed() {
        let mut jobs = jobs(Settle::Any);
        let ((first, one), (second, other)) = (part("job-1:map.0"), part("job-1:map.1"));
        jobs.stands(&one, TaskState::Claimed);
        jobs.stands(&other, TaskState::Claimed);
        assert!(cancelled(&jobs, &second, &other).is_err());
        assert!(completed(&jobs, &first, &one).is_ok());
        jobs.stands(&one, TaskState::Done);
        assert!(completed(&jobs, &second, &other).is_err());
        assert!(cancelled(&jobs, &second, &other).is_ok());
    }
}
