//! Brings a chunk of a stage's tasks into being. What earlier stages brought is looked up here, by the objects that
//! they published, so that each task names its inputs exactly.

use std::sync::Arc;

use super::pace::steps_of;
use super::tend::task_id;
use super::{Job, JobSpec, StageSource};
use crate::ids::task_hash;
use crate::limits::{JOB_STEPS_PER_ENTRY_MAX, WORK_BYTES_MAX, WORK_INPUTS_MAX};
use crate::object::BUCKET_JOBS;
use crate::shard::{Batch, Shard};
use crate::task::{BodyHashes, Enqueue, SharedWork, Task, TaskOptions};
use crate::{BucketName, Input, InputSource, ObjectName, RefusalCode, SharedBytes};

/// Name of the file that tells a task its part of a range.
const RANGE_FILE: &str = "range";

impl Shard {
    /// Brings the next chunk of a stage into being; tells how many steps that took.
    pub(crate) fn expand(&mut self, batch: &mut Batch, job: &Arc<Job>, stage: usize) -> u32 {
        let first = job.progress.stages[stage].expanded;
        let chunk = job.pace_of(stage, self.index.job_pace).chunk;
        let end = first.saturating_add(chunk).min(job.spec.count(stage));
        let mut steps = 0;
        for index in first..end {
            // Looked at first: what a task reads is looked up for those only that there is room for, so that jobs without room
            // cost those behind them nothing.
            if job.follows(1) && !self.has_job_room(&job.namespace) {
                return steps;
            }
            match self.bear_part(batch, job, stage, index) {
                Ok(reads) if job.follows(1) => {
                    steps += steps_of(reads);
                    // Each task before may have brought many.
                    if steps >= JOB_STEPS_PER_ENTRY_MAX {
                        return steps;
                    }
                }
                Ok(_) => steps += 1,
                // No room: the rest follows when there is some.
                Err(
                    RefusalCode::QueueFull
                    | RefusalCode::NamespaceFull
                    | RefusalCode::NamespaceBytes,
                ) => return steps,
                Err(code) => {
                    let why = job.refusal_in_words(stage, index, code);
                    let now_ms = self.core.time_ms;
                    self.change_job(&job.key(), |job| job.fail(why.as_bytes(), now_ms));
                    return steps + 1;
                }
            }
        }
        steps
    }

    /// Brings one task into being; tells how many outputs of earlier tasks were looked up for it.
    fn bear_part(
        &mut self,
        batch: &mut Batch,
        job: &Job,
        stage: usize,
        index: u32,
    ) -> Result<u32, RefusalCode> {
        let spec = &job.spec;
        let id = task_id(&job.id, spec.stages[stage].name.as_str(), index);
        let id = id.ok_or(RefusalCode::BadValue)?;
        let name_hash = task_hash(job.namespace.as_str(), id.as_str());
        if let Some(slot) = self.find_task_hashed(&job.namespace, &id, name_hash) {
            // What is left of an earlier job of this id makes way; any other task does not.
            let old = |task: &Task| task.state.is_terminal() && task.is_part_of_job();
            if !self.core.tasks.get(slot).is_some_and(old) {
                return Err(RefusalCode::Conflict);
            }
            self.remove_task(batch, slot);
        }
        let inputs = self.part_inputs(job, stage, index)?;
        let reads = match job.spec.reads_each(stage) {
            0 => 0,
            tasks => tasks.max(inputs.len() as u32),
        };
        let work = spec.work(&job.id, stage, index, inputs);
        work.check()?;
        let queue = self.open_queue(&job.namespace, &spec.queue)?;
        let options = TaskOptions {
            // The key only routes: the tasks of a job run side by side.
            key_limit: Some(0),
            labels: spec.labels.clone(),
            timeout_ms: spec.timeout_ms,
            work: Some(SharedWork::from(work)),
            ..TaskOptions::default()
        };
        let order = Enqueue {
            priority: spec.priority,
            max_attempts: spec.max_attempts,
            ttl_ms: spec.ttl_ms,
            backoff: spec.backoff,
            options: Some(Box::new(options)),
            ..Enqueue::new(id, spec.queue.clone(), SharedBytes::from(&b""[..]))
        };
        self.check_room(order.weight() as u64)?;
        // The same measure by which a leader tells whether it is worth another entry.
        self.check_quota(&job.namespace, WORK_BYTES_MAX as u64)?;
        let hashes = BodyHashes::of(&order);
        self.bear(batch, order, hashes, queue, name_hash, None);
        Ok(reads)
    }

    /// What task number `index` of a stage reads.
    fn part_inputs(&self, job: &Job, stage: usize, index: u32) -> Result<Vec<Input>, RefusalCode> {
        match &job.spec.stages[stage].source {
            StageSource::Inputs(inputs) => {
                Ok(inputs.get(index as usize).cloned().into_iter().collect())
            }
            StageSource::Range { from, to, step } => {
                let first = from.saturating_add(u64::from(index).saturating_mul(*step));
                let end = first.saturating_add(*step).min(*to);
                let source = InputSource::Text(format!("{first} {end}\n"));
                Ok(vec![Input { name: file_name(RANGE_FILE)?, source }])
            }
            StageSource::Gather { of, fan_in } => {
                let all = job.spec.read_count(of);
                let each = if *fan_in == 0 { all } else { *fan_in };
                let first = index.saturating_mul(each);
                self.brought(job, of, first, first.saturating_add(each).min(all), None)
            }
            StageSource::Shuffle { of, .. } => {
                let all = job.spec.read_count(of);
                self.brought(job, of, 0, all, JobSpec::partition_name(index).as_ref())
            }
        }
    }

    /// What tasks of earlier stages brought, counted over all of them; of one name only, if one is given.
    fn brought(
        &self,
        job: &Job,
        of: &[u16],
        first: u32,
        end: u32,
        only: Option<&ObjectName>,
    ) -> Result<Vec<Input>, RefusalCode> {
        let bucket = BucketName::parse(BUCKET_JOBS).map_err(|_| RefusalCode::BadValue)?;
        let (mut inputs, mut before) = (Vec::new(), 0u32);
        for stage in of {
            let stage = usize::from(*stage);
            let count = job.spec.count(stage);
            let name = &job.spec.stages[stage].name;
            for index in first.max(before)..end.min(before.saturating_add(count)) {
                let index = index - before;
                let place = format!("{}/{name}/{index}/", job.id);
                let found = match only {
                    Some(only) => {
                        let key = ObjectName::parse(&format!("{place}{only}")).ok();
                        let key = key.map(|key| (job.namespace.clone(), bucket.clone(), key));
                        key.and_then(|key| self.object(&key).cloned()).into_iter().collect()
                    }
                    None => {
                        let limit = WORK_INPUTS_MAX;
                        self.objects(&job.namespace, &bucket, &place, None, limit).objects
                    }
                };
                for object in &found {
                    let own = object.name.as_str().strip_prefix(&place).unwrap_or_default();
                    let Some(version) = object.newest() else {
                        continue;
                    };
                    if inputs.len() >= WORK_INPUTS_MAX {
                        return Err(RefusalCode::TooLarge);
                    }
                    inputs.push(Input {
                        name: file_name(&format!("{name}.{index}.{}", own.replace('/', ".")))?,
                        source: InputSource::Object {
                            bucket: bucket.clone(),
                            key: object.name.clone(),
                            version: Some(version.version),
                            digest: Some(version.digest),
                            offset: 0,
                            length: None,
                        },
                    });
                }
            }
            before = before.saturating_add(count);
        }
        Ok(inputs)
    }
}

impl Job {
    /// Why a task cannot come into being, for whoever submitted the job.
    fn refusal_in_words(&self, stage: usize, index: u32, code: RefusalCode) -> String {
        let spec = &self.spec.stages[stage];
        let (name, code_name) = (&spec.name, code.as_str());
        let advice = match (code, &spec.source) {
            (RefusalCode::TooLarge, StageSource::Gather { .. }) => {
                "give the stage a fan_in, or a smaller one, or let the tasks before it bring fewer files"
            }
            (RefusalCode::TooLarge, StageSource::Shuffle { .. }) => {
                "let fewer tasks come before it, as a stage between that gathers with a fan_in"
            }
            _ => "",
        };
        match advice.is_empty() || !self.follows(1) {
            true => format!("task {index} of stage {name}: {code_name}"),
            false => format!(
                "task {index} of stage {name} would read too much ({code_name}): {WORK_INPUTS_MAX} files, \
                 whose names and settings take {} KiB, are the most; {advice}",
                WORK_BYTES_MAX >> 10
            ),
        }
    }
}

fn file_name(text: &str) -> Result<ObjectName, RefusalCode> {
    ObjectName::parse(text).map_err(|_| RefusalCode::BadValue)
}
