//! A4 Winner's outputs: what is visible of a task is what the completion that counts brought, and nothing that any other attempt
//! uploaded; who reads it is told of exactly that. A checkpoint is the newest that a live claim kept (Q4).
//!
//! The simulated workers give every output a digest that names task, fence and worker, so that it shows whose it is.

use std::collections::BTreeMap;

use ikada_state::{
    BucketName, Complete, Digest, Grant, InputSource, Namespace, Shard, StageSource, TaskId,
};

use super::{Verdict, violation};
use crate::oracle::jobs::{Jobs, Part};

const NAME: &str = "A4 winner_outputs";
/// More objects than a run can have.
const ALL: usize = 1 << 20;
/// How the name of a checkpoint ends.
const CHECKPOINT: &str = "/.checkpoint";

/// Bucket and name of an object.
type Place = (&'static str, String);

/// What may be seen.
#[derive(Debug, Default)]
pub struct WinnerOutputs {
    named: BTreeMap<Place, Digest>,
    checkpoints: BTreeMap<TaskId, Digest>,
}

/// Where the outputs of a task are seen.
fn place(id: &TaskId) -> Place {
    match Part::of(id) {
        Some(part) => ("jobs", format!("{}/{}/{}/", part.job, part.stage, part.index)),
        None => ("tasks", format!("{id}/")),
    }
}

fn objects(state: &Shard, (bucket, prefix): &Place) -> Vec<(String, Vec<Digest>)> {
    let Ok(bucket) = BucketName::parse(bucket) else {
        return Vec::new();
    };
    let page = state.objects(&Namespace::default(), &bucket, prefix, None, ALL);
    let shown = page.objects.iter().map(|object| {
        let digests = object.versions.iter().map(|version| version.digest);
        (object.name.as_str().to_owned(), digests.collect())
    });
    shown.collect()
}

impl WinnerOutputs {
    /// A completion counts.
    pub fn completed(&mut self, order: &Complete) {
        let (bucket, beginning) = place(&order.id);
        for output in &order.outputs {
            self.named.insert((bucket, format!("{beginning}{}", output.name)), output.digest);
        }
        self.ended(&order.id);
    }

    /// A task is done: its checkpoint goes.
    pub fn ended(&mut self, id: &TaskId) {
        self.checkpoints.remove(id);
    }

    /// A checkpoint was kept.
    pub fn kept(&mut self, id: &TaskId, digest: Digest) {
        self.checkpoints.insert(id.clone(), digest);
    }

    /// What is visible of one task, after an entry that tried to complete it.
    pub fn check_task(&self, state: &Shard, id: &TaskId) -> Verdict {
        let place = place(id);
        self.check_place(state, &place)?;
        let kept = Part::of(id).and_then(|part| part.first()).unwrap_or_else(|| id.clone());
        if state.task(&Namespace::default(), &kept).is_none() {
            return Ok(());
        }
        let shown = objects(state, &place);
        let own = self
            .named
            .range(place.clone()..)
            .take_while(|((bucket, name), _)| *bucket == place.0 && name.starts_with(&place.1));
        for ((_, name), _) in own {
            if !shown.iter().any(|(other, _)| other == name) {
                return violation(NAME, format!("output {name} was brought and is not there"));
            }
        }
        Ok(())
    }

    /// All that is visible in a shard.
    pub fn check(&self, state: &Shard) -> Verdict {
        ["tasks", "jobs"]
            .iter()
            .try_for_each(|bucket| self.check_place(state, &(*bucket, String::new())))
    }

    fn check_place(&self, state: &Shard, place: &Place) -> Verdict {
        for (name, digests) in objects(state, place) {
            let allowed = match name.strip_suffix(CHECKPOINT).map(TaskId::parse) {
                Some(Ok(id)) => self.checkpoints.get(&id).copied(),
                _ => self.named.get(&(place.0, name.clone())).copied(),
            };
            if allowed.is_none_or(|digest| digests != [digest]) {
                let what = format!("{}/{name} is {digests:?} and may be {allowed:?}", place.0);
                return violation(NAME, what);
            }
        }
        Ok(())
    }

    /// What a worker is told to read, and whether it is told of a checkpoint.
    pub fn granted(&self, jobs: &Jobs, grant: &Grant) -> Verdict {
        let told = grant.checkpoint == Some(true);
        if told != self.checkpoints.contains_key(&grant.id) {
            let what = format!("task {} was granted with a checkpoint: {told}", grant.id);
            return violation(NAME, what);
        }
        let Some(work) = &grant.work else {
            return Ok(());
        };
        let mut read = Vec::new();
        for input in &work.inputs {
            if let InputSource::Object { key, digest, .. } = &input.source {
                let winner = self.named.get(&("jobs", key.as_str().to_owned())).copied();
                if winner.is_none() || *digest != winner {
                    let what = format!("task {} reads {key} as {digest:?}", grant.id);
                    return violation(NAME, format!("{what}, which is {winner:?}"));
                }
                read.push(key.as_str());
            }
        }
        self.all_read(jobs, &grant.id, read.len())
    }

    /// B4-10: whoever gathers everything gets everything.
    fn all_read(&self, jobs: &Jobs, id: &TaskId, read: usize) -> Verdict {
        let part = Part::of(id);
        let Some((job, stage)) = part.as_ref().and_then(|part| jobs.find(part)) else {
            return Ok(());
        };
        let StageSource::Gather { of, fan_in: 0 } = &job.spec.stages[stage].source else {
            return Ok(());
        };
        let names = of.iter().map(|place| &job.spec.stages[usize::from(*place)].name);
        let brought: usize = names
            .map(|name| {
                let beginning = format!("{}/{name}/", id.routing_key());
                let from = ("jobs", beginning.clone());
                let own = self.named.range(from..);
                own.take_while(|((_, name), _)| name.starts_with(&beginning)).count()
            })
            .sum();
        match read == brought {
            true => Ok(()),
            false => violation(NAME, format!("task {id} reads {read} of {brought} outputs")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::worker::bring;
    use ikada_state::{
        BatchBuilder, Claim, Command, Enqueue, Fence, Limits, Lsn, Order, QueueName, Reply,
        SessionId, WorkerId,
    };

    /// A shard with one task, claimed and completed with an output.
    fn done() -> (Shard, Complete) {
        let mut state = Shard::genesis_with(0, 1, &[], Limits::default());
        let (id, queue) = (TaskId::parse("t1").unwrap(), QueueName::parse("q").unwrap());
        let worker = WorkerId::parse("w").unwrap();
        let mut index = 1;
        let mut run = |command: Command| {
            index += 1;
            let mut batch = BatchBuilder::new();
            batch.push(&Order { namespace: Namespace::default(), request: None, command });
            state.apply(Lsn { term: 1, index }, &batch.finish(index)).replies.remove(0)
        };
        run(Command::Enqueue(Enqueue::new(id.clone(), queue.clone(), Vec::new())));
        let (session, labels) = (SessionId(1), ikada_state::Labels::default());
        let claim = Claim {
            worker: worker.clone(),
            session,
            queues: vec![queue],
            max: 1,
            labels,
            share: None,
            holds: None,
        };
        let Reply::Claimed { tasks } = run(Command::Claim(claim)) else { panic!("a grant") };
        let fence = tasks[0].fence;
        let outputs = bring(&id, fence, &worker);
        let complete =
            Complete { keeps_digest: None, id, fence, worker, result: None, then: None, outputs };
        assert_eq!(run(Command::Complete(complete.clone())), Reply::Completed);
        (state, complete)
    }

    #[test]
    fn a4_outputs_of_another_attempt_and_missing_ones_are_noticed() {
        let (state, winner) = done();
        let mut check = WinnerOutputs::default();
        assert!(check.check(&state).is_err(), "nobody brought them");
        let outputs = bring(&winner.id, Fence(99), &winner.worker);
        check.completed(&Complete { outputs, ..winner.clone() });
        assert!(check.check_task(&state, &winner.id).is_err(), "another attempt's");
        check.completed(&winner);
        assert!(check.check(&state).is_ok() && check.check_task(&state, &winner.id).is_ok());
        let mut more = winner.clone();
        more.outputs[0].name = ikada_state::ObjectName::parse("part-9").unwrap();
        check.completed(&more);
        assert!(check.check_task(&state, &winner.id).is_err(), "one is missing");
    }
}
