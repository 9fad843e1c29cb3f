//! Jobs: public words to the state's and back. A reduce becomes a tree of stages here, and stages are put in order.
//!
//! A job that cannot be taken is told everything that is wrong with it at one time (B4-3).

use std::collections::BTreeMap;

use ikada_state::limits::{
    DUPLICATE_FACTORS, JOB_INPUTS_MAX, JOB_NAME_BYTES_MAX, JOB_RETENTION_MS_DEFAULT,
    JOB_STAGES_MAX, JOB_TASKS_MAX, LABELS_WANTED_MAX, PRIORITY_MAX, SHUFFLE_TASKS_MAX,
};
use ikada_state::{
    CancelJob, Command, Job, JobId, JobSpec, JobTask, Limits, Namespace, Order, ProgramRef,
    QueueName, RequestKey, Settle, StageName, StageSource, StageSpec, SubmitJob, derive_task_id,
};

use super::check::{
    check_attempts, check_retention, check_timeout, check_ttl, read_backoff, read_labels,
};
use super::field::{FieldError, Found, parse_name};
use super::program::{FindProgram, read_inputs, read_output_url, read_program, read_settings};
use crate::v1::{JobInfo, JobTaskInfo, NewJob, NewReduce, NewStage, SettleBody, StageInfo};

/// The queue of a job that names none.
const QUEUE_DEFAULT: &str = "default";
/// Most tasks whose outputs one task of a reduce reads, if it does not say.
const FAN_IN_DEFAULT: u32 = 64;

/// A job to submit. A missing id is derived from the key.
pub fn submit_job_order(
    namespace: &Namespace,
    key: RequestKey,
    job: &NewJob,
    programs: &dyn FindProgram,
) -> Result<Order, FieldError> {
    let derived = || derive_task_id(namespace, &key).to_string();
    let mut found = Found::default();
    let id = job.id.clone().unwrap_or_else(derived);
    let id = found.take(parse_name("id", &id, JobId::parse));
    let spec = read_job(namespace, job, programs, &mut found);
    found.verdict()?;
    let (Some(id), Some(spec)) = (id, spec) else {
        return Err(FieldError::bad_value("stages", "the job cannot be read"));
    };
    let command = Command::SubmitJob(SubmitJob::new(id, spec));
    Ok(Order { namespace: namespace.clone(), request: Some(key), command })
}

/// A job to cancel.
pub fn cancel_job_order(
    namespace: &Namespace,
    key: RequestKey,
    id: &str,
) -> Result<Order, FieldError> {
    let id = parse_name("id", id, JobId::parse)?;
    let command = Command::CancelJob(CancelJob { id });
    Ok(Order { namespace: namespace.clone(), request: Some(key), command })
}

/// The job, unless something is found that is wrong with it.
fn read_job(
    namespace: &Namespace,
    job: &NewJob,
    programs: &dyn FindProgram,
    found: &mut Found,
) -> Option<JobSpec> {
    let limits = Limits::default();
    found.take(check_own(job));
    found.take(check_attempts(job.max_attempts, &limits));
    found.take(check_ttl(job.ttl_ms, &limits));
    found.take(check_timeout(job.timeout_ms));
    found.take(check_retention("retention_ms", job.retention_ms, &limits));
    found.take(check_duplicates(job));
    let queue = job.queue.as_deref().unwrap_or(QUEUE_DEFAULT);
    let queue = found.take(parse_name("queue", queue, QueueName::parse));
    let mut spec = JobSpec {
        name: job.name.clone().unwrap_or_default(),
        // In place of a name that is refused, so that the stages are looked at too.
        queue: queue.or_else(|| QueueName::parse(QUEUE_DEFAULT).ok())?,
        stages: Vec::new(),
        priority: job.priority,
        max_attempts: job.max_attempts,
        ttl_ms: job.ttl_ms,
        timeout_ms: job.timeout_ms,
        backoff: found.take(job.backoff.map(read_backoff).transpose()).flatten(),
        labels: found.take(read_labels(&job.labels, LABELS_WANTED_MAX)).unwrap_or_default(),
        retention_ms: job.retention_ms.unwrap_or(JOB_RETENTION_MS_DEFAULT),
        reuse: job.reuse.then_some(true),
        duplicate_after: job.duplicate_after,
        output_url: found.take(read_job_output_url(job)).flatten(),
    };
    let reader = Reader { namespace, programs, job };
    match (&job.map, job.stages.is_empty()) {
        (Some(map), true) => reader.read_map(map, &mut spec, found)?,
        (None, false) if job.reduce.is_none() => reader.read_stages(&mut spec, found)?,
        (None, true) => found.take(Err(FieldError::bad_value("map", "give map, or stages")))?,
        _ => {
            let detail = "give map and reduce, or stages, not both";
            found.take(Err(FieldError::bad_value("stages", detail)))?;
        }
    }
    found.take(check_counts(&spec))?;
    Some(spec)
}

fn check_own(job: &NewJob) -> Result<(), FieldError> {
    let mut found = Found::default();
    if job.name.as_ref().is_some_and(|name| name.len() > JOB_NAME_BYTES_MAX) {
        let detail = format!("may have {JOB_NAME_BYTES_MAX} bytes");
        found.take(Err::<(), _>(FieldError::too_large("name", detail)));
    }
    if job.priority.is_some_and(|priority| priority > PRIORITY_MAX) {
        let detail = format!("must be 0 to {PRIORITY_MAX}");
        found.take(Err::<(), _>(FieldError::bad_value("priority", detail)));
    }
    found.verdict()
}

fn check_duplicates(job: &NewJob) -> Result<(), FieldError> {
    if job.duplicate_after.is_some_and(|factor| !DUPLICATE_FACTORS.contains(&factor)) {
        let (least, most) = (DUPLICATE_FACTORS.start(), DUPLICATE_FACTORS.end());
        let detail = format!("must be {least} to {most}");
        return Err(FieldError::bad_value("duplicate_after", detail));
    }
    Ok(())
}

/// Remembered results are objects of the cluster, which nobody would bring anywhere.
fn read_job_output_url(job: &NewJob) -> Result<Option<String>, FieldError> {
    match &job.output_url {
        Some(_) if job.reuse => {
            Err(FieldError::bad_value("output_url", "cannot be together with reuse"))
        }
        Some(url) => read_output_url(url).map(Some),
        None => Ok(None),
    }
}

fn check_counts(spec: &JobSpec) -> Result<(), FieldError> {
    if spec.stages.len() > JOB_STAGES_MAX {
        let detail = format!("a job may have {JOB_STAGES_MAX} stages");
        return Err(FieldError::too_large("stages", detail));
    }
    let mut tasks = 0u64;
    for (place, stage) in spec.stages.iter().enumerate() {
        let (count, name) = (spec.count(place), &stage.name);
        if count == 0 {
            let detail = format!("stage {name} has no tasks; give it inputs, or a range");
            return Err(FieldError::bad_value("inputs", detail));
        }
        if let Settle::Quorum(wanted) = stage.settle
            && !(1..=count).contains(&wanted)
        {
            let detail = format!("stage {name} has {count} tasks; the quorum must be 1 to {count}");
            return Err(FieldError::bad_value("settle", detail));
        }
        let reads: u64 = stage.reads().iter().map(|of| u64::from(spec.count((*of).into()))).sum();
        let each = match stage.source {
            StageSource::Gather { fan_in, .. } if fan_in > 0 => u64::from(fan_in),
            _ => reads,
        };
        if each > u64::from(SHUFFLE_TASKS_MAX) {
            let detail = format!(
                "a task of stage {name} would read from {each} tasks; {SHUFFLE_TASKS_MAX} are allowed"
            );
            return Err(FieldError::too_large("stages", detail));
        }
        tasks += u64::from(count);
    }
    match tasks > u64::from(JOB_TASKS_MAX) {
        true => {
            Err(FieldError::too_large("stages", format!("a job may have {JOB_TASKS_MAX} tasks")))
        }
        false => Ok(()),
    }
}

struct Reader<'a> {
    namespace: &'a Namespace,
    programs: &'a dyn FindProgram,
    job: &'a NewJob,
}

impl Reader<'_> {
    fn settings(
        &self,
        own: &BTreeMap<String, String>,
    ) -> Result<Vec<(String, String)>, FieldError> {
        let mut all = self.job.settings.clone();
        all.extend(own.clone());
        read_settings(&all)
    }

    /// None if the rest cannot be judged.
    fn read_map(&self, map: &NewStage, spec: &mut JobSpec, found: &mut Found) -> Option<()> {
        if map.gather.is_some() || map.shuffle.is_some() || !map.after.is_empty() {
            let detail = "a map reads inputs or a range; use stages for more";
            return found.take(Err(FieldError::bad_value("map", detail)));
        }
        let name = map.name.as_deref().unwrap_or("map");
        let stage = self.read_stage(name, map, &[]).map_err(|error| error.inside("map"));
        let stage = found.take(stage);
        if let Some(reduce) = &self.job.reduce {
            let program = self.read_reducer(reduce).map_err(|error| error.inside("reduce"));
            let (program, stage) = (found.take(program), stage?);
            spec.stages.push(stage);
            let tree = self.read_reduce(reduce, &program?, spec);
            return found.take(tree.map_err(|error| error.inside("reduce")));
        }
        spec.stages.push(stage?);
        Some(())
    }

    fn read_reducer(&self, reduce: &NewReduce) -> Result<ProgramRef, FieldError> {
        let entry = reduce.entry.as_deref();
        read_program(self.namespace, "program", &reduce.program, entry, self.programs)
    }

    /// A tree: as many stages as it takes until one task is left.
    fn read_reduce(
        &self,
        reduce: &NewReduce,
        program: &ProgramRef,
        spec: &mut JobSpec,
    ) -> Result<(), FieldError> {
        let fan_in = reduce.fan_in.unwrap_or(FAN_IN_DEFAULT);
        if !(2..=SHUFFLE_TASKS_MAX).contains(&fan_in) {
            let detail = format!("must be 2 to {SHUFFLE_TASKS_MAX}");
            return Err(FieldError::bad_value("fan_in", detail));
        }
        let settings = self.settings(&reduce.settings)?;
        for level in 1.. {
            let of = (spec.stages.len() - 1) as u16;
            let last = spec.count(usize::from(of)) <= fan_in;
            let name = if last { "reduce".to_owned() } else { format!("reduce-{level}") };
            let name = parse_name("name", &name, StageName::parse)?;
            if spec.stages.iter().any(|stage| stage.name == name) {
                return Err(FieldError::bad_value("name", "the map is named like the reduce"));
            }
            spec.stages.push(StageSpec {
                name,
                program: program.clone(),
                settings: settings.clone(),
                source: StageSource::Gather { of: vec![of], fan_in: if last { 0 } else { fan_in } },
                after: Vec::new(),
                settle: Settle::All,
            });
            if last {
                break;
            }
        }
        Ok(())
    }

    /// Stages in an order in which each reads only from those before it. None if they cannot be put in order.
    fn read_stages(&self, spec: &mut JobSpec, found: &mut Found) -> Option<()> {
        let given = &self.job.stages;
        let names = found.take(read_names(given))?;
        let mut ordered: Vec<&str> = Vec::new();
        while ordered.len() < given.len() {
            let ready = given.iter().enumerate().find(|(place, stage)| {
                !ordered.contains(&names[*place])
                    && needs(stage).all(|need| ordered.contains(&need))
            });
            let Some((place, stage)) = ready else {
                return found.take(Err(unordered(given, &names, &ordered)));
            };
            let read = self.read_stage(names[place], stage, &ordered);
            let read = read.map_err(|error| error.inside(&format!("stages[{place}]")));
            spec.stages.extend(found.take(read));
            ordered.push(names[place]);
        }
        // With one stage missing the counts of others would be wrong.
        (spec.stages.len() == given.len()).then_some(())
    }

    fn read_stage(
        &self,
        name: &str,
        stage: &NewStage,
        before: &[&str],
    ) -> Result<StageSpec, FieldError> {
        let places = |of: &[String]| -> Vec<u16> {
            let place = |name: &String| before.iter().position(|known| known == name);
            of.iter().filter_map(place).map(|place| place as u16).collect()
        };
        let given = [
            !stage.inputs.is_empty(),
            stage.range.is_some(),
            stage.gather.is_some(),
            stage.shuffle.is_some(),
        ];
        if given.iter().filter(|given| **given).count() > 1 {
            let detail = "give inputs, range, gather or shuffle, one of them";
            return Err(FieldError::bad_value("inputs", detail));
        }
        let source = match (&stage.range, &stage.gather, &stage.shuffle) {
            (Some(range), ..) => {
                let step = range.step.unwrap_or(1);
                if range.to <= range.from || step == 0 {
                    let detail = "must hold a number, and its step must be at least 1";
                    return Err(FieldError::bad_value("range", detail));
                }
                StageSource::Range { from: range.from, to: range.to, step }
            }
            (_, Some(gather), _) => {
                StageSource::Gather { of: places(&gather.of), fan_in: gather.fan_in }
            }
            (.., Some(shuffle)) => {
                StageSource::Shuffle { of: places(&shuffle.of), partitions: shuffle.partitions }
            }
            _ => StageSource::Inputs(self.read_many(stage)?),
        };
        if matches!(&source, StageSource::Gather { of, .. } | StageSource::Shuffle { of, .. } if of.is_empty())
        {
            return Err(FieldError::bad_value("of", "must name an earlier stage"));
        }
        let entry = stage.entry.as_deref();
        let program = &stage.program;
        Ok(StageSpec {
            name: parse_name("name", name, StageName::parse)?,
            program: read_program(self.namespace, "program", program, entry, self.programs)?,
            settings: self.settings(&stage.settings)?,
            source,
            after: places(&stage.after),
            settle: match stage.settle {
                None | Some(SettleBody::All) => Settle::All,
                Some(SettleBody::Any) => Settle::Any,
                Some(SettleBody::Quorum(wanted)) => Settle::Quorum(wanted),
            },
        })
    }

    fn read_many(&self, stage: &NewStage) -> Result<Vec<ikada_state::Input>, FieldError> {
        if stage.inputs.len() > JOB_INPUTS_MAX {
            let detail = format!(
                "may be {JOB_INPUTS_MAX} at most; give larger parts, or a range of numbers"
            );
            return Err(FieldError::too_large("inputs", detail));
        }
        let mut inputs = Vec::with_capacity(stage.inputs.len());
        for (place, input) in stage.inputs.iter().enumerate() {
            let mut one = read_inputs(std::slice::from_ref(input)).map_err(|mut error| {
                error.field = error.field.replacen("inputs[0]", &format!("inputs[{place}]"), 1);
                error
            })?;
            inputs.append(&mut one);
        }
        Ok(inputs)
    }
}

/// The stages' names, each once.
fn read_names(given: &[NewStage]) -> Result<Vec<&str>, FieldError> {
    let (mut names, mut found) = (Vec::new(), Found::default());
    for (place, stage) in given.iter().enumerate() {
        let field = format!("stages[{place}].name");
        let read = match stage.name.as_deref() {
            None => Err(FieldError::bad_value(field, "must be given")),
            Some(name) if names.contains(&name) => {
                Err(FieldError::bad_value(field, format!("two stages are named {name}")))
            }
            Some(name) => Ok(name),
        };
        names.extend(found.take(read));
    }
    found.verdict().map(|()| names)
}

/// The names that a stage waits for.
fn needs(stage: &NewStage) -> impl Iterator<Item = &str> {
    let gather = stage.gather.iter().flat_map(|gather| &gather.of);
    let shuffle = stage.shuffle.iter().flat_map(|shuffle| &shuffle.of);
    gather.chain(shuffle).chain(&stage.after).map(String::as_str)
}

/// Why stages cannot be put in order: a name that is no stage, or a circle.
fn unordered(given: &[NewStage], names: &[&str], ordered: &[&str]) -> FieldError {
    for (place, stage) in given.iter().enumerate() {
        if let Some(need) = needs(stage).find(|need| !names.contains(need)) {
            let detail = format!("there is no stage {need:?}");
            return FieldError::bad_value(format!("stages[{place}]"), detail);
        }
    }
    let left: Vec<&str> = names.iter().copied().filter(|name| !ordered.contains(name)).collect();
    let detail = format!("the stages {} wait for each other", left.join(", "));
    FieldError::bad_value("stages", detail)
}

/// A job for readers.
pub fn show_job(job: &Job) -> JobInfo {
    let spec = job.spec();
    let stages: Vec<StageInfo> = spec
        .stages
        .iter()
        .zip(job.stages())
        .enumerate()
        .map(|(place, (stage, progress))| StageInfo {
            name: stage.name.to_string(),
            program: stage.program.name.to_string(),
            tasks: spec.count(place),
            begun: progress.expanded,
            claimed: progress.claimed,
            done: progress.done,
            dead: progress.dead,
            cancelled: progress.cancelled,
            settled: progress.settled,
            reused: progress.reused.unwrap_or(0),
            duplicated: progress.duplicated.unwrap_or(0),
        })
        .collect();
    let sum =
        |count: fn(&StageInfo) -> u32| stages.iter().map(|it| u64::from(count(it))).sum::<u64>();
    let open = sum(|stage| stage.begun - stage.done - stage.dead - stage.cancelled);
    let assignment = match sum(|stage| stage.claimed) {
        0 => "not_assigned",
        claimed if claimed >= open => "fully_assigned",
        _ => "partially_assigned",
    };
    JobInfo {
        id: job.id().to_string(),
        name: spec.name.clone(),
        queue: spec.queue.to_string(),
        status: job.status().as_str().to_owned(),
        assignment: assignment.to_owned(),
        tasks_total: sum(|stage| stage.tasks),
        tasks_done: sum(|stage| stage.done),
        created_ms: job.submitted_ms(),
        started_ms: job.started_ms(),
        finished_ms: job.finished_ms(),
        reason: job.reason().map(|reason| String::from_utf8_lossy(reason).into_owned()),
        revision: job.revision(),
        output_url: spec.output_url.clone(),
        stages,
    }
}

/// A job's task for readers.
pub fn show_job_task(task: &JobTask) -> JobTaskInfo {
    let last = task.task.as_ref().and_then(|task| task.attempts.last());
    let state = match &task.task {
        Some(task) => task.state.as_str(),
        None if task.expanded => "gone",
        None => "to_come",
    };
    let words = |error: &ikada_state::SharedBytes| String::from_utf8_lossy(error).into_owned();
    JobTaskInfo {
        id: task.id.to_string(),
        stage: task.stage.to_string(),
        index: task.index,
        state: state.to_owned(),
        attempts_begun: task.task.as_ref().map_or(0, |task| task.attempt),
        worker: last.map(|attempt| attempt.worker.to_string()),
        error: last.and_then(|attempt| attempt.error.as_ref()).map(words),
    }
}
