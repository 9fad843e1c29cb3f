//! Every bound of the state machine, with its reason. The values are part of the state (stored in
//! the snapshot), so that replicas agree; they are fixed when a shard is created.

use minicbor::{Decode, Encode};

/// Most orders in one batch: far above what one loop turn gathers, low enough to bound one apply.
pub const BATCH_ORDERS_MAX: usize = 65_536;

/// Lowest task priority is 0; this is the highest, claimed first.
pub const PRIORITY_MAX: u8 = 9;

/// Priority of a task that names none: the middle.
pub const PRIORITY_DEFAULT: u8 = 5;

/// Most live claims that a key may allow: beyond it a key limits nothing.
pub const KEY_LIMIT_MAX: u16 = 1000;

/// Most labels that a task may want of its worker.
pub const LABELS_WANTED_MAX: usize = 8;

/// Most labels that a claim may carry.
pub const LABELS_OFFERED_MAX: usize = 32;

/// Most marks of programs and inputs that a claim may carry: what a worker used last, in 300 bytes.
pub const HOLDS_MAX: usize = 32;

/// Most tasks at the head of a line among which one is looked for that wants what the worker has.
pub const NEAR_TASKS_MAX: usize = 32;

/// How many places behind the first in line such a task may stand: so often, at most, is a task passed over.
pub const NEAR_PLACES: u64 = 256;

/// Most inputs of a task that are compared with what the worker has.
pub const NEAR_INPUTS_MAX: usize = 16;

/// Most different label sets wanted by the unfinished tasks of one queue: a claim looks at each.
pub const LABEL_SETS_MAX: usize = 64;

/// Most follow-ups of one completion.
pub const THEN_COUNT_MAX: usize = 16;

/// Most tasks in the whole tree of follow-ups of one task.
pub const THEN_TOTAL_MAX: usize = 64;

/// How deep follow-ups of follow-ups may go.
pub const THEN_DEPTH_MAX: usize = 4;

/// Most schedules of a cluster: their leader looks at each of them on every tick.
pub const SCHEDULES_MAX: usize = 1_000;

/// Most workers that the cluster records.
pub const WORKERS_MAX: usize = 10_000;

/// Most slots of a worker: a renewal names every claim, and lists have bounds.
pub const WORKER_SLOTS_MAX: u32 = 10_000;

/// Most queues that a worker names.
pub const WORKER_QUEUES_MAX: usize = 64;

/// Longest version of a worker's program.
pub const WORKER_VERSION_BYTES_MAX: usize = 64;

/// Most leases of a shard that are held (about 100 MiB with long names).
pub const LEASES_MAX: usize = 100_000;

/// Most who wait for one lease: each change of the lease writes the line anew.
pub const LEASE_WAITERS_MAX: usize = 128;

/// Most running attempts of a shard that leases are bound to.
pub const BINDINGS_MAX: usize = 100_000;

/// Most leases bound to one attempt.
pub const BOUND_LEASES_MAX: usize = 16;

/// Most tokens of a cluster: every node keeps them at hand.
pub const TOKENS_MAX: usize = 1_000;

/// Most namespaces that have a quota: every shard keeps them, and every node at hand.
pub const QUOTAS_MAX: usize = 1_000;

/// Most namespaces that one token is bound to.
pub const TOKEN_NAMESPACES_MAX: usize = 16;

/// Longest life of a token that ends at all.
pub const TOKEN_TTL_MS_MAX: u64 = 10 * 366 * 24 * 60 * 60 * 1000;

/// Most tasks beyond a shard's own bound that schedules of another shard bring: what they wait for, all messages behind
/// them wait for too.
pub const FIRED_OVER_MAX: u64 = 10_000;

/// Most bytes of them beyond the shard's own bound.
pub const FIRED_OVER_BYTES_MAX: u64 = 64 << 20;

/// Most label sets wanted by the unfinished tasks of one queue, once those of schedules come on top.
pub const FIRED_LABEL_SETS_MAX: usize = 2 * LABEL_SETS_MAX;

/// Longest name of a schedule: its tasks' ids add an instant to it.
pub const SCHEDULE_NAME_BYTES_MAX: usize = 96;

/// Longest cron line and zone name together.
pub const TIMING_BYTES_MAX: usize = 512;

/// Largest payload of a schedule's tasks: all schedules live in one shard.
pub const SCHEDULE_TASK_BYTES_MAX: usize = 64 << 10;

/// Shortest interval of a schedule; what must run more often is not a schedule.
pub const EVERY_MS_MIN: u64 = 1_000;

/// Longest interval of a schedule.
pub const EVERY_MS_MAX: u64 = 10 * 366 * 24 * 60 * 60 * 1000;

/// Longest grace time of a schedule.
pub const GRACE_MS_MAX: u64 = 31 * 24 * 60 * 60 * 1000;

/// Size of an object's pieces; only the last may be smaller. What a node stores, sends and checks at one time.
pub const OBJECT_CHUNK_BYTES: u64 = 1 << 20;

/// Most pieces of one object (16 GiB): their digests travel in one log entry.
pub const OBJECT_CHUNKS_MAX: usize = 16_384;

/// Versions kept of one object; the oldest goes first.
pub const OBJECT_VERSIONS_MAX: usize = 8;

/// Most versions of all objects of a shard (about 500 MiB with long names).
pub const OBJECT_VERSIONS_TOTAL_MAX: u64 = 1_000_000;

/// Most pieces of all versions of a shard (4 TiB of data, 500 MiB of memory).
pub const OBJECT_REFERENCES_MAX: u64 = 4_000_000;

/// Longest content type.
pub const CONTENT_TYPE_BYTES_MAX: usize = 128;

/// Most blobs of one `Collect`: 32 KiB of digests.
pub const COLLECT_DIGESTS_MAX: usize = 1_024;

/// Most settings of one task's work.
pub const WORK_SETTINGS_MAX: usize = 128;

/// Longest name of a setting: it becomes the name of a variable.
pub const SETTING_NAME_BYTES_MAX: usize = 128;

/// Most inputs of one task: each is a file that the worker fetches.
pub const WORK_INPUTS_MAX: usize = 4_096;

/// Most bytes of one task's work: it travels with every claim.
pub const WORK_BYTES_MAX: usize = 512 << 10;

/// Longest name of an entry of a program.
pub const ENTRY_BYTES_MAX: usize = 256;

/// Longest address that outputs are brought below.
pub const OUTPUT_URL_BYTES_MAX: usize = 512;

/// Longest address of an output.
pub const ADDRESS_BYTES_MAX: usize = 2_048;

/// Most outputs of one completion: all become objects in one step.
pub const OUTPUTS_MAX: usize = 1_024;

/// Largest checkpoint of a task.
pub const CHECKPOINT_BYTES_MAX: u64 = 1 << 30;

/// Most stages of a job.
pub const JOB_STAGES_MAX: usize = 32;

/// Most inputs that one stage of a job lists; more are named by ranges or by an earlier stage.
pub const JOB_INPUTS_MAX: usize = 10_000;

/// Most tasks of a job.
pub const JOB_TASKS_MAX: u32 = 10_000_000;

/// Most bytes of one job's inputs: they travel in one log entry.
pub const JOB_SPEC_BYTES_MAX: usize = 2 << 20;

/// Longest name of a job.
pub const JOB_NAME_BYTES_MAX: usize = 128;

/// How many times as long as its brothers a task may be told to run before it is begun a second time.
pub const DUPLICATE_FACTORS: std::ops::RangeInclusive<u16> = 2..=1000;

/// A task is not begun a second time before it has run so long: what is short is over before a second one begins.
pub const DUPLICATE_AFTER_MS_MIN: u64 = 1_000;

/// Brothers that must be done before anybody can tell what is slow.
pub const DUPLICATE_BROTHERS_MIN: u32 = 3;

/// Most tasks of one stage that are begun a second time.
pub const DUPLICATES_PER_STAGE_MAX: u32 = 1_000;

/// Longest reason of a job's error.
pub const JOB_REASON_BYTES_MAX: usize = 2 << 10;

/// Most tasks whose outputs one task reads: all of them are named in its work.
pub const SHUFFLE_TASKS_MAX: u32 = 2_048;

/// Most unfinished tasks of one stage that exist at one time; the others follow as these end.
pub const JOB_WINDOW: u32 = 10_000;

/// Tasks of a stage that come into being, or are cancelled, at one time.
pub const JOB_CHUNK: u32 = 1_000;

/// Most tasks of jobs that one entry makes or cancels.
pub const JOB_STEPS_PER_ENTRY_MAX: u32 = 2_000;

/// Outputs of earlier tasks to look up that cost as much as a new task.
pub const JOB_READS_PER_STEP: u32 = 8;

/// Most tasks before them that the unfinished tasks of one stage read from, all together: about 256 MiB of names.
pub const JOB_READS_MAX: u32 = 1 << 20;

/// Most jobs of a shard, finished ones that are still kept included.
pub const JOBS_MAX: usize = 10_000;

/// Most bytes of what all jobs of a shard are to do.
pub const JOBS_BYTES_MAX: u64 = 256 << 20;

/// How long a finished job is kept if it does not say.
pub const JOB_RETENTION_MS_DEFAULT: u64 = 24 * 60 * 60 * 1000;

/// Most results that a shard remembers for tasks with the same work.
pub const REMEMBERED_MAX: usize = 10_000;

/// Most bytes of them in memory.
pub const REMEMBERED_BYTES_MAX: u64 = 64 << 20;

/// Most bytes of one of them in memory: it travels in one message.
pub const REMEMBERED_EACH_BYTES_MAX: usize = 256 << 10;

/// Most bytes of the files of all of them: blobs that nobody else may need any more.
pub const REMEMBERED_STORED_BYTES_MAX: u64 = 64 << 30;

/// How long a result is remembered.
pub const REMEMBERED_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1000;

/// How long a task waits for the shard that may remember its result; then it runs.
pub const RECALL_WAIT_MS: u64 = 5_000;

/// Longest words beside the figure of an attempt's progress.
pub const PROGRESS_NOTE_BYTES_MAX: usize = 256;

/// How far waits between attempts are spread either way, in thousandths, if the queue's settings do not say: enough to
/// spread a burst of failures.
pub const JITTER_PERMILLE_DEFAULT: u16 = 100;

/// Widest spread: half the wait.
pub const JITTER_PERMILLE_MAX: u16 = 500;

/// Most dead tasks of a queue in one shard, if its settings do not say.
pub const DEAD_MAX_DEFAULT: u32 = 100_000;

/// How long a dead task is kept, if its queue's settings do not say.
pub const DEAD_RETENTION_MS_DEFAULT: u64 = 14 * 24 * 60 * 60 * 1000;

/// Longest time for a whole attempt; a task that may run for ever names none.
pub const TIMEOUT_MS_MAX: u32 = 40 * 24 * 60 * 60 * 1000;

/// Most shards of a cluster: every node takes part in all of them.
pub const SHARDS_MAX: u16 = 256;

/// Most slots on their way during growth: enough to keep the shards busy, few enough that little is unavailable.
pub const MOVES_IN_FLIGHT_MAX: usize = 8;

/// A part of a moving slot is closed once it holds about this much.
pub const PART_BYTES_MAX: usize = 256 << 10;

/// Most queues whose settings one message brings to a new shard.
pub const SETTINGS_PER_MESSAGE_MAX: usize = 256;

/// Bounds of one shard (Q13). At a bound the shard refuses; it never drops what it acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Limits {
    /// Largest payload; bigger data belongs into the object store.
    #[n(0)]
    pub payload_bytes_max: u32,
    /// Largest result kept in the state.
    #[n(1)]
    pub result_bytes_max: u32,
    /// Errors are cut to this length: enough for a message, too little for a log.
    #[n(2)]
    pub error_bytes_max: u32,
    /// Newest attempts kept per task; older ones are forgotten first.
    #[n(3)]
    pub attempts_kept_max: u32,
    /// Highest attempt limit a task may ask for.
    #[n(4)]
    pub attempts_max: u16,
    /// Most tasks granted by one claim.
    #[n(5)]
    pub claim_tasks_max: u32,
    /// Most queues named by one claim.
    #[n(6)]
    pub claim_queues_max: u32,
    /// A claim stops granting once its payloads reach this size, so that replies stay bounded.
    #[n(7)]
    pub claim_bytes_max: u64,
    /// Most unfinished tasks (about 2 GiB of small ones).
    #[n(8)]
    pub pending_tasks_max: u64,
    /// Most payload bytes of unfinished tasks.
    #[n(9)]
    pub pending_bytes_max: u64,
    /// Most finished tasks kept over all queues, since each queue's own count adds up.
    #[n(10)]
    pub finished_tasks_max: u64,
    /// Most payload and result bytes of finished tasks; the oldest go first.
    #[n(11)]
    pub finished_bytes_max: u64,
    /// Most queues; a queue is small but never removed.
    #[n(12)]
    pub queues_max: u32,
    /// How long a request id is remembered, in log time.
    #[n(13)]
    pub submit_window_ms: u64,
    /// Most request ids remembered (about 50 MiB).
    #[n(14)]
    pub submit_window_max: u32,
    /// How long a claim's request id is remembered, in log time.
    #[n(15)]
    pub claim_window_ms: u64,
    /// Most claim request ids remembered.
    #[n(16)]
    pub claim_window_max: u32,
    /// Most messages waiting for other shards.
    #[n(17)]
    pub outbox_max: u32,
    /// Most members of the cluster.
    #[n(18)]
    pub members_max: u32,
    /// Most due tasks made ready per entry; the rest follow with the next entries.
    #[n(19)]
    pub promote_per_entry_max: u32,
    /// Most finished tasks removed by age per entry.
    #[n(20)]
    pub retain_per_entry_max: u32,
    /// Most queues looked at for aged tasks per entry.
    #[n(21)]
    pub retain_queues_per_entry_max: u32,
    /// Most request ids forgotten by age per entry.
    #[n(22)]
    pub forget_per_entry_max: u32,
    /// Shortest claim lifetime; below it renewals cannot keep up.
    #[n(23)]
    pub ttl_ms_min: u32,
    /// Longest claim lifetime.
    #[n(24)]
    pub ttl_ms_max: u32,
    /// Furthest a task may be scheduled ahead.
    #[n(25)]
    pub delay_ms_max: u64,
    /// Most grants held by all remembered claims (16 MiB), since one claim may hold many.
    #[n(26)]
    pub claim_marks_max: u64,
    /// Tasks of a stage that come into being, or are cancelled, at one time; none is `JOB_CHUNK`.
    #[n(27)]
    pub job_chunk: Option<u32>,
    /// Most unfinished tasks of one stage that exist at one time; none is `JOB_WINDOW`.
    #[n(28)]
    pub job_window: Option<u32>,
}

/// How fast jobs bring their tasks into being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobPace {
    /// Tasks of a stage at one time.
    pub(crate) chunk: u32,
    /// Most unfinished tasks of one stage.
    pub(crate) window: u32,
}

impl Default for JobPace {
    fn default() -> Self {
        JobPace { chunk: JOB_CHUNK, window: JOB_WINDOW }
    }
}

impl Default for Limits {
    fn default() -> Self {
        const DAY_MS: u64 = 24 * 60 * 60 * 1000;
        Self {
            payload_bytes_max: 1 << 20,
            result_bytes_max: 64 << 10,
            error_bytes_max: 1 << 10,
            attempts_kept_max: 32,
            attempts_max: 1000,
            claim_tasks_max: 1024,
            claim_queues_max: 64,
            claim_bytes_max: 8 << 20,
            pending_tasks_max: 5_000_000,
            pending_bytes_max: 4 << 30,
            finished_tasks_max: 1_000_000,
            finished_bytes_max: 512 << 20,
            queues_max: 10_000,
            submit_window_ms: DAY_MS,
            submit_window_max: 1_000_000,
            claim_window_ms: DAY_MS,
            claim_window_max: 65_536,
            outbox_max: 65_536,
            members_max: 64,
            promote_per_entry_max: 4096,
            retain_per_entry_max: 1024,
            retain_queues_per_entry_max: 16,
            forget_per_entry_max: 4096,
            ttl_ms_min: 100,
            ttl_ms_max: DAY_MS as u32,
            delay_ms_max: 10 * 366 * DAY_MS,
            claim_marks_max: 1 << 20,
            job_chunk: None,
            job_window: None,
        }
    }
}

impl Limits {
    /// Most tasks of any kind: what the slab and its indexes can number with ease.
    const TASKS_MAX: u64 = 1 << 27;

    /// Whether a shard can hold what these bounds allow.
    pub(crate) fn is_valid(&self) -> bool {
        let JobPace { chunk, window } = self.job_pace();
        self.pending_tasks_max <= Self::TASKS_MAX
            && self.finished_tasks_max <= Self::TASKS_MAX
            && (1..=JOB_CHUNK).contains(&chunk)
            && (chunk..=JOB_WINDOW).contains(&window)
    }

    pub(crate) fn job_pace(&self) -> JobPace {
        JobPace {
            chunk: self.job_chunk.unwrap_or(JOB_CHUNK),
            window: self.job_window.unwrap_or(JOB_WINDOW),
        }
    }
}
