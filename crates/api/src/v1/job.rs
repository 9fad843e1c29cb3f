//! Jobs: how they are submitted, and how they look.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::v1::{BackoffBody, ObjectInfo, RawBytes, WorkInput};

/// When a stage is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettleBody {
    /// All its tasks are done.
    All,
    /// One task is done; the others are cancelled.
    Any,
    /// So many tasks are done; the others are cancelled.
    Quorum(u32),
}

/// A range of numbers, cut into tasks. Each reads its first number and the one after its last from its input `range`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RangeBody {
    /// First number.
    #[serde(default)]
    pub from: u64,
    /// The number after the last.
    pub to: u64,
    /// Numbers per task; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
}

/// What a stage reads of earlier ones: all that so many tasks brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatherBody {
    /// The earlier stages.
    pub of: Vec<String>,
    /// Tasks per task; 0, or absent, is all.
    #[serde(default)]
    pub fan_in: u32,
}

/// What a stage reads of earlier ones: the task of partition p reads the output `part-p` of every task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShuffleBody {
    /// The earlier stages.
    pub of: Vec<String>,
    /// How many partitions, and so tasks.
    pub partitions: u32,
}

/// One stage of a job. It has as many tasks as it has inputs, parts of its range, groups to gather, or partitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewStage {
    /// Its name, unique in the job: letters, digits and hyphens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The program that its tasks run.
    pub program: String,
    /// What to call inside the program; its default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Settings for its tasks, beyond those of the job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// One task per input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<WorkInput>,
    /// One task per part of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeBody>,
    /// One task per group of tasks of earlier stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gather: Option<GatherBody>,
    /// One task per partition of what earlier stages brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<ShuffleBody>,
    /// Stages that must be settled before, besides those that it reads from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// When it is settled; `all` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<SettleBody>,
}

/// What puts the outputs of `map` together: a tree of tasks, the last of which brings the job's result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewReduce {
    /// The program that its tasks run.
    pub program: String,
    /// What to call inside the program; its default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Settings for its tasks, beyond those of the job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Most tasks whose outputs one task reads: 2 to 2048; 64 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_in: Option<u32>,
}

/// A job to submit: `map`, perhaps with `reduce`, or `stages`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJob {
    /// Its id. When absent it is derived from the Idempotency-Key, so that a resend finds the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The queue of its tasks; `default` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Settings for all tasks. Every attempt sees them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The stage that reads the inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<NewStage>,
    /// What puts its outputs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduce: Option<NewReduce>,
    /// Stages, instead of map and reduce.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<NewStage>,
    /// 0 to 9, 9 first; 5 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Most attempts of a task; the queue's setting when absent. When they run out, the job ends in error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u16>,
    /// How long a claim lives without renewal; the queue's setting when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u32>,
    /// Longest time for an attempt; the queue's setting when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Waits between attempts; the queue's setting when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffBody>,
    /// What the workers must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How long the finished job and its outputs are kept; a day when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_ms: Option<u64>,
    /// Whether results of the same program, settings and inputs, by their digests, may be used instead of running a task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reuse: bool,
    /// A task that runs this many times as long as those of its stage that are done did on average, and more than a second, is
    /// begun a second time on another worker; whichever is done first counts. 2 to 1000; never when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_after: Option<u16>,
    /// An address below which workers bring what the last stages make, instead of objects of the cluster: `s3://bucket/folder/`,
    /// `gs://`, `az://` or `file:///`. The result lists where each output lies (`address`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_url: Option<String>,
}

/// How far a stage is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageInfo {
    /// Its name.
    pub name: String,
    /// The program that its tasks run.
    pub program: String,
    /// How many tasks it has, those to come included.
    pub tasks: u32,
    /// Tasks that came into being.
    pub begun: u32,
    /// Tasks that workers hold now.
    pub claimed: u32,
    /// Tasks done.
    pub done: u32,
    /// Tasks dead.
    pub dead: u32,
    /// Tasks cancelled.
    pub cancelled: u32,
    /// Whether enough of its tasks are done.
    pub settled: bool,
    /// Tasks done with a result that was remembered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reused: u32,
    /// Slow tasks that were begun a second time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duplicated: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A job as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobInfo {
    /// Its id.
    pub id: String,
    /// Its name; empty when it has none.
    pub name: String,
    /// The queue of its tasks.
    pub queue: String,
    /// `not_started`, `in_progress`, `halted` (open tasks, none held), `done`, `error` or `cancelled`.
    pub status: String,
    /// How many of the open tasks workers hold: `not_assigned`, `partially_assigned` or `fully_assigned`.
    pub assignment: String,
    /// Tasks of all stages.
    pub tasks_total: u64,
    /// Tasks done.
    pub tasks_done: u64,
    /// Its stages.
    pub stages: Vec<StageInfo>,
    /// When it was submitted, in log time.
    pub created_ms: u64,
    /// When its first task was claimed; absent before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// When it ended; absent before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_ms: Option<u64>,
    /// Why it ended in error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Rises with each change.
    pub revision: u64,
    /// An address below which what the last stages make is brought; absent for objects of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_url: Option<String>,
}

impl JobInfo {
    /// Whether nothing can happen to it any more.
    pub fn is_finished(&self) -> bool {
        matches!(self.status.as_str(), "done" | "error" | "cancelled")
    }
}

/// A page of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<JobInfo>,
    /// Pass this as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What a job came to. Before it is done, only its status.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct JobResult {
    /// The job.
    pub id: String,
    /// Where it stands.
    pub status: String,
    /// Why it ended in error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The task whose result this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Its result, when it is a JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub result: Option<Box<RawValue>>,
    /// Its result, when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_base64: Option<String>,
    /// Its result as a byte string; in CBOR only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub result_bytes: Option<RawBytes>,
    /// What the tasks of the last stages brought: objects of the bucket `jobs`, which have an `address` if the job has an
    /// `output_url`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<ObjectInfo>,
    /// Pass this as `after` for more outputs; absent when these are the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One task of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobTaskInfo {
    /// Its handle.
    pub id: String,
    /// Its stage.
    pub stage: String,
    /// Its place in the stage.
    pub index: u32,
    /// Its state; `to_come` before it came into being, `gone` when its record was removed.
    pub state: String,
    /// Attempts begun so far.
    pub attempts_begun: u16,
    /// Who holds it, or ran it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A page of a job's tasks, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobTaskPage {
    /// The tasks.
    pub tasks: Vec<JobTaskInfo>,
    /// Pass this as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
