//! Every route, in the order in which they are tried.

use super::callers::CALLERS;
use super::cluster::CLUSTER;
use super::holders::HOLDERS;
use super::parameters::*;
use super::policy::*;
use super::shape::{NONE, WRITE, act, look, of, one_or_many};
use super::uploads::UPLOADS;
use super::{Operation, Route, Verb};
use crate::v1;

/// All routes.
pub const ROUTES: &[Route] = &join::<{ count(TABLES) }>(TABLES);

const TABLES: &[&[Route]] = &[HOLDERS, CALLERS, UPLOADS, OTHERS, CLUSTER];

const fn count(tables: &[&[Route]]) -> usize {
    let (mut table, mut count) = (0, 0);
    while table < tables.len() {
        (table, count) = (table + 1, count + tables[table].len());
    }
    count
}

/// Puts tables one behind the other.
const fn join<const COUNT: usize>(tables: &[&[Route]]) -> [Route; COUNT] {
    let mut all = [tables[0][0]; COUNT];
    let (mut table, mut at) = (0, 0);
    while table < tables.len() {
        let mut row = 0;
        while row < tables[table].len() {
            all[at] = tables[table][row];
            (row, at) = (row + 1, at + 1);
        }
        table += 1;
    }
    all
}

const OTHERS: &[Route] = &[
    Route {
        body: Some(one_or_many),
        answer: Some(of::<v1::EnqueueAnswer>),
        ..act(
            "/v1/tasks",
            Operation::Enqueue,
            SUBMIT,
            "Submit one task (the object itself) or several ({\"tasks\": [..]}).",
        )
    },
    Route {
        query: &[
            NAMESPACE,
            CONSISTENCY,
            MIN_LSN,
            FIND_ID,
            QUEUE,
            STATE,
            WORKER,
            BRIEF,
            AFTER_ID,
            LIMIT,
        ],
        answer: Some(of::<v1::TaskPage>),
        ..look(
            "/v1/tasks",
            Operation::ListTasks,
            LIST,
            "List tasks, a page at a time, in no particular order.",
        )
    },
    Route {
        body: Some(of::<v1::ClaimRequest>),
        answer: Some(of::<v1::ClaimAnswer>),
        ..act(
            "/v1/tasks/claim",
            Operation::Claim,
            CLAIM,
            "Take ready tasks, waiting for some if there are none.",
        )
    },
    Route {
        body: Some(of::<v1::CompleteRequest>),
        answer: Some(of::<v1::OutcomeList>),
        ..act("/v1/tasks/complete", Operation::Complete, SETTLE, "Settle claimed tasks as done.")
    },
    Route {
        body: Some(of::<v1::FailRequest>),
        answer: Some(of::<v1::OutcomeList>),
        ..act(
            "/v1/tasks/fail",
            Operation::Fail,
            SETTLE,
            "End attempts as failed; tasks are tried again while attempts are left.",
        )
    },
    Route {
        body: Some(of::<v1::RenewRequest>),
        answer: Some(of::<v1::OutcomeList>),
        keyed: false,
        ..act("/v1/tasks/renew", Operation::Renew, RENEW, "Keep claims alive; costs no log entry.")
    },
    Route {
        answer: Some(of::<v1::Task>),
        ..look("/v1/tasks/{id}", Operation::ShowTask, VIEW, "Show one task.")
    },
    Route {
        answer: Some(of::<v1::ItemOutcome>),
        ..act(
            "/v1/tasks/{id}/cancel",
            Operation::CancelTask,
            SUBMIT,
            "Cancel a task that is not finished.",
        )
    },
    Route {
        answer: Some(of::<v1::ItemOutcome>),
        ..act(
            "/v1/tasks/{id}/retry",
            Operation::RetryTask,
            OPERATE,
            "Give a dead or cancelled task fresh attempts; it keeps its history.",
        )
    },
    Route {
        body: Some(of::<v1::NewCheckpoint>),
        answer: Some(of::<v1::ItemOutcome>),
        keyed: false,
        ..act(
            "/v1/tasks/{id}/checkpoint",
            Operation::Checkpoint,
            SETTLE,
            "Keep how far the running attempt has come; its bytes were uploaded before. The next attempt reads tasks/{id}/.checkpoint.",
        )
    },
    Route {
        query: WRITE,
        answer: Some(of::<v1::TaskExplanation>),
        ..look(
            "/v1/tasks/{id}/explain",
            Operation::ExplainTask,
            VIEW,
            "Tell why a task is not running, as its shard's leader sees it.",
        )
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, ATTEMPT, FOLLOW],
        ..look(
            "/v1/tasks/{id}/logs",
            Operation::TaskLogs,
            FETCH,
            "What an attempt of a task's program has said so far, as text; ranges work as for objects. With Accept: text/event-stream a live stream of all attempts (log, gap, end), gone on with Last-Event-ID.",
        )
    },
    Route {
        verb: Verb::Delete,
        answer: Some(of::<v1::ItemOutcome>),
        ..act("/v1/tasks/{id}", Operation::DropTask, OPERATE, "Remove a finished task.")
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, FIND, ORDER, AFTER_ID, SOME],
        answer: Some(of::<v1::QueuePage>),
        ..look("/v1/queues", Operation::ListQueues, LIST, "List the queues of the namespace.")
    },
    Route {
        answer: Some(of::<v1::QueueInfo>),
        ..look(
            "/v1/queues/{name}",
            Operation::ShowQueue,
            VIEW,
            "Show a queue's settings and counts.",
        )
    },
    Route {
        verb: Verb::Put,
        body: Some(of::<v1::QueueSettingsBody>),
        answer: Some(of::<v1::QueueInfo>),
        ..act("/v1/queues/{name}", Operation::SetQueue, OPERATE, "Change a queue's settings.")
    },
    Route {
        answer: Some(of::<v1::QueueInfo>),
        ..act(
            "/v1/queues/{name}/pause",
            Operation::PauseQueue,
            OPERATE,
            "Hold a queue's tasks back.",
        )
    },
    Route {
        answer: Some(of::<v1::QueueInfo>),
        ..act(
            "/v1/queues/{name}/resume",
            Operation::ResumeQueue,
            OPERATE,
            "Hand a queue's tasks out again.",
        )
    },
    Route {
        answer: Some(of::<v1::SweepAnswer>),
        ..act(
            "/v1/queues/{name}/retry",
            Operation::RetryQueue,
            OPERATE,
            "Give all dead tasks of a queue fresh attempts.",
        )
    },
    Route {
        query: &[NAMESPACE, FINISHED],
        answer: Some(of::<v1::SweepAnswer>),
        ..act(
            "/v1/queues/{name}/drop",
            Operation::DropQueue,
            ADMINISTER,
            "Remove all dead tasks of a queue.",
        )
    },
    Route {
        query: &[NAMESPACE, CLAIMED],
        answer: Some(of::<v1::SweepAnswer>),
        ..act(
            "/v1/queues/{name}/purge",
            Operation::PurgeQueue,
            ADMINISTER,
            "Cancel all tasks of a queue that wait: scheduled and ready.",
        )
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, AFTER_ID, SCHEDULES_LIMIT],
        answer: Some(of::<v1::SchedulePage>),
        ..look(
            "/v1/schedules",
            Operation::ListSchedules,
            LIST,
            "List the schedules of the namespace in order of their names.",
        )
    },
    Route {
        answer: Some(of::<v1::ScheduleInfo>),
        ..look(
            "/v1/schedules/{name}",
            Operation::ShowSchedule,
            VIEW,
            "Show a schedule: settings, last and next instants, what was missed.",
        )
    },
    Route {
        verb: Verb::Put,
        body: Some(of::<v1::ScheduleBody>),
        answer: Some(of::<v1::ScheduleInfo>),
        ..act(
            "/v1/schedules/{name}",
            Operation::SetSchedule,
            OPERATE,
            "Make or replace a schedule.",
        )
    },
    Route {
        verb: Verb::Delete,
        answer: Some(of::<v1::ScheduleRemoved>),
        ..act(
            "/v1/schedules/{name}",
            Operation::DeleteSchedule,
            OPERATE,
            "Remove a schedule; the tasks it submitted stay.",
        )
    },
    Route {
        answer: Some(of::<v1::ScheduleInfo>),
        ..act(
            "/v1/schedules/{name}/pause",
            Operation::PauseSchedule,
            OPERATE,
            "Let a schedule rest.",
        )
    },
    Route {
        answer: Some(of::<v1::ScheduleInfo>),
        ..act(
            "/v1/schedules/{name}/resume",
            Operation::ResumeSchedule,
            OPERATE,
            "Let a schedule go on; instants that passed meanwhile do not count.",
        )
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, ITEM],
        answer: Some(of::<v1::RequestInfo>),
        ..look(
            "/v1/requests/{id}",
            Operation::ShowRequest,
            VIEW,
            "Tell what became of a request id.",
        )
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, AFTER_ID, LIMIT],
        answer: Some(of::<v1::BucketPage>),
        ..look("/v1/objects", Operation::ListBuckets, LIST, "List the buckets that have objects.")
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, PREFIX, DELIMITER, AFTER_ID, LIMIT, VERSIONS],
        answer: Some(of::<v1::ObjectPage>),
        ..look(
            "/v1/objects/{bucket}",
            Operation::ListObjects,
            LIST,
            "List a bucket's objects in order of their names.",
        )
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, VERSION, PIECES],
        ..look(
            "/v1/objects/{bucket}/{key*}",
            Operation::GetObject,
            FETCH,
            "Download an object, or a range of its bytes.",
        )
    },
    Route {
        verb: Verb::Put,
        answer: Some(of::<v1::ObjectInfo>),
        ..act(
            "/v1/objects/{bucket}/{key*}",
            Operation::PutObject,
            STORE,
            "Upload an object; an existing one gets a new version.",
        )
    },
    Route {
        verb: Verb::Delete,
        query: &[NAMESPACE, VERSION],
        answer: Some(of::<v1::ObjectRemoved>),
        ..act(
            "/v1/objects/{bucket}/{key*}",
            Operation::DeleteObject,
            REMOVE,
            "Remove an object with all its versions, or one version.",
        )
    },
    Route {
        body: Some(of::<v1::NewJob>),
        answer: Some(of::<v1::JobInfo>),
        ..act("/v1/jobs", Operation::SubmitJob, SUBMIT, "Submit a job: all its tasks, or none.")
    },
    Route {
        query: &[
            NAMESPACE,
            CONSISTENCY,
            MIN_LSN,
            JOB_FIND,
            JOB_STATUS,
            JOB_ORDER,
            AFTER_ID,
            JOBS_LIMIT,
        ],
        answer: Some(of::<v1::JobPage>),
        ..look("/v1/jobs", Operation::ListJobs, LIST, "List jobs, by id or the newest first.")
    },
    Route {
        answer: Some(of::<v1::JobInfo>),
        ..look("/v1/jobs/{id}", Operation::ShowJob, VIEW, "Show where a job stands.")
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, AFTER_ID, OUTPUTS_LIMIT],
        answer: Some(of::<v1::JobResult>),
        ..look(
            "/v1/jobs/{id}/result",
            Operation::ShowJobResult,
            VIEW,
            "Show what a job came to; before it is done, only its status.",
        )
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, STAGE, AFTER_ID, LIMIT],
        answer: Some(of::<v1::JobTaskPage>),
        ..look("/v1/jobs/{id}/tasks", Operation::ListJobTasks, LIST, "List a job's tasks in order.")
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, AFTER_REVISION, CHANGE_WAIT_MS],
        answer: Some(of::<v1::JobInfo>),
        ..look(
            "/v1/jobs/{id}/events",
            Operation::FollowJob,
            VIEW,
            "Wait until a job has changed or ended, and show it; a live stream (job) with Accept: text/event-stream, gone on with Last-Event-ID.",
        )
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, FOLLOW],
        ..look(
            "/v1/jobs/{id}/logs",
            Operation::JobLogs,
            FETCH,
            "What the tasks of a job have said so far, as lines with the task's name; a live stream (log, gap, end) with Accept: text/event-stream, gone on with Last-Event-ID.",
        )
    },
    Route {
        answer: Some(of::<v1::JobInfo>),
        ..act(
            "/v1/jobs/{id}/cancel",
            Operation::CancelJob,
            SUBMIT,
            "Cancel a job with all its tasks.",
        )
    },
    Route {
        body: Some(of::<v1::NewProgram>),
        answer: Some(of::<v1::ProgramInfo>),
        ..act(
            "/v1/programs",
            Operation::PushProgram,
            SUBMIT,
            "Check a program and keep it under its name; its file is uploaded before.",
        )
    },
    Route {
        answer: Some(of::<v1::ProgramPage>),
        ..look("/v1/programs", Operation::ListPrograms, LIST, "List the programs of the namespace.")
    },
    Route {
        answer: Some(of::<v1::ProgramInfo>),
        ..look(
            "/v1/programs/{name}",
            Operation::ShowProgram,
            VIEW,
            "Show a program: how it is run, and what it consists of.",
        )
    },
    Route {
        verb: Verb::Delete,
        answer: Some(of::<v1::ProgramRemoved>),
        ..act(
            "/v1/programs/{name}",
            Operation::DeleteProgram,
            SUBMIT,
            "Remove a program's name; tasks that were submitted for it keep it.",
        )
    },
    Route {
        query: &[NAMESPACE, ITEM],
        answer: Some(of::<v1::RequestInfo>),
        keyed: false,
        ..act(
            "/v1/requests/{id}/void",
            Operation::VoidRequest,
            SUBMIT,
            "Rule a request id out: what is not committed of it never will be.",
        )
    },
    Route {
        query: NONE,
        ..look(
            "/v1/pipe",
            Operation::Pipe,
            PIPE,
            "Upgrade to a pipe: many calls at once over one connection, in CBOR frames.",
        )
    },
];
