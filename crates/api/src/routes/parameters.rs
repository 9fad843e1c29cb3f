//! The query parameters of all routes, each with its meaning.

use super::Parameter;

pub(super) const NAMESPACE: Parameter =
    Parameter { name: "namespace", about: "The namespace; `default` when absent." };
pub(super) const CONSISTENCY: Parameter = Parameter {
    name: "consistency",
    about: "`linearizable` (default) or `stale`; a stale answer carries Ikada-Age-Ms.",
};
pub(super) const MIN_LSN: Parameter = Parameter {
    name: "min_lsn",
    about: "Wait until the node is at least this far: `shard:term:index`, several separated by commas.",
};
pub(super) const QUEUE: Parameter = Parameter { name: "queue", about: "Only tasks of this queue." };
pub(super) const STATE: Parameter = Parameter { name: "state", about: "Only tasks in this state." };
pub(super) const WORKER: Parameter =
    Parameter { name: "worker", about: "Only tasks whose newest attempt is this worker's." };
pub(super) const BRIEF: Parameter = Parameter {
    name: "brief",
    about: "`true`: without payloads and results; `false` when absent.",
};
pub(super) const FIND: Parameter =
    Parameter { name: "find", about: "Only those with this text in their names." };
pub(super) const FIND_ID: Parameter =
    Parameter { name: "find", about: "Only tasks with this text in their ids." };
pub(super) const ORDER: Parameter = Parameter {
    name: "order",
    about: "`name` (default), or `need`: those with alerts or paused first, then by unfinished tasks; the first page only.",
};
pub(super) const JOB_FIND: Parameter =
    Parameter { name: "find", about: "Only jobs with this text in their ids or names." };
pub(super) const JOB_STATUS: Parameter = Parameter {
    name: "status",
    about: "Only jobs that stand so: `not_started`, `in_progress`, `halted`, `done`, `error` or `cancelled`.",
};
pub(super) const JOB_ORDER: Parameter = Parameter {
    name: "order",
    about: "`id` (default), or `newest`: those first that were submitted last.",
};
pub(super) const JOBS_LIMIT: Parameter =
    Parameter { name: "limit", about: "Most jobs on the page: 1 to 1000, 100 when absent." };
pub(super) const SOME: Parameter =
    Parameter { name: "limit", about: "Most of them on the page: 1 to 1000; all when absent." };
pub(super) const DELIMITER: Parameter = Parameter {
    name: "delimiter",
    about: "Names that go on behind this after the prefix are told once, as one of `prefixes`.",
};
pub(super) const AFTER_ID: Parameter =
    Parameter { name: "after", about: "Continue where the page before ended: its `next`." };
pub(super) const LIMIT: Parameter =
    Parameter { name: "limit", about: "Most tasks on the page: 1 to 1000, 100 when absent." };
pub(super) const UPLOADS_LIMIT: Parameter =
    Parameter { name: "limit", about: "Most uploads on the page: 1 to 100, 100 when absent." };
pub(super) const SCHEDULES_LIMIT: Parameter =
    Parameter { name: "limit", about: "Most schedules on the page: 1 to 1000, 100 when absent." };
pub(super) const OUTPUTS_LIMIT: Parameter =
    Parameter { name: "limit", about: "Most outputs on the page: 1 to 1000, 1000 when absent." };
pub(super) const ITEM: Parameter =
    Parameter { name: "item", about: "Which item of the request, from 0; 0 when absent." };
pub(super) const CLAIMED: Parameter = Parameter {
    name: "claimed",
    about: "`true`: cancel tasks that workers hold, too; `false` when absent.",
};
pub(super) const FINISHED: Parameter = Parameter {
    name: "finished",
    about: "`true`: remove done and cancelled tasks, too; `false` when absent.",
};
pub(super) const ATTEMPT: Parameter = Parameter {
    name: "attempt",
    about: "Which attempt, from 1; the newest that has said anything when absent.",
};
pub(super) const FOLLOW: Parameter = Parameter {
    name: "follow",
    about: "`false`: end a stream with what was said so far; `true` when absent.",
};
pub(super) const AFTER_EVENT: Parameter =
    Parameter { name: "after", about: "Only events with a higher sequence." };

pub(super) const PREFIX: Parameter =
    Parameter { name: "prefix", about: "Only objects whose names begin with this." };
pub(super) const VERSIONS: Parameter = Parameter {
    name: "versions",
    about: "`true`: every version, the newest first; `false` when absent.",
};
pub(super) const PIECES: Parameter = Parameter {
    name: "pieces",
    about: "`true`: size and digests of its pieces as JSON, instead of its bytes.",
};
pub(super) const VERSION: Parameter =
    Parameter { name: "version", about: "This version instead of the newest (or of all)." };

pub(super) const WAIT_MS: Parameter = Parameter {
    name: "wait_ms",
    about: "Wait this long for another holder than the one `seen`; 0 when absent.",
};
pub(super) const SEEN: Parameter = Parameter {
    name: "seen",
    about: "Fence of the holder that the caller knows; 0 (and absent): knows of none.",
};
pub(super) const STAGE: Parameter = Parameter { name: "stage", about: "Only tasks of this stage." };
pub(super) const AFTER_REVISION: Parameter =
    Parameter { name: "after", about: "The revision that the caller has seen; 0 when absent." };
pub(super) const CHANGE_WAIT_MS: Parameter = Parameter {
    name: "wait_ms",
    about: "How long to wait for a change; 0 when absent, at most 60000.",
};
