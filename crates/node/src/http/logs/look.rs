//! Looks at the logs of a task or of all tasks of a job, and at whether more can come.

use std::sync::Arc;
use std::time::Duration;

use ikada_api::convert::{Form, show_job, show_task};
use ikada_api::state::{BUCKET_LOGS, BucketName, JobId, Namespace, Object, ObjectVersion, TaskId};
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};

use crate::http::door::Door;

/// How long one look may take; the next one comes soon.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);
/// Logs in one page.
const PAGE: usize = 1_000;
/// Most logs of one stream: their places are kept in memory. More are told as a gap.
pub(super) const LOGS_MAX: usize = 10_000;

/// Whose logs are wanted.
#[derive(Debug, Clone)]
pub(super) enum Scope {
    Task(TaskId, Option<u16>),
    Job(JobId),
}

/// Whose logs are wanted, and where.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) namespace: Namespace,
    pub(super) scope: Scope,
}

/// How the task or job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// More may come.
    Open,
    /// Nothing more will come; the public word for how it ended.
    Over(String),
    /// There is no such thing, or no longer.
    Gone,
}

/// One log as a look found it.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) task: String,
    pub(super) attempt: u16,
    pub(super) object: Arc<Object>,
}

impl Found {
    pub(super) fn newest(&self) -> Option<&ObjectVersion> {
        self.object.newest()
    }
}

/// All logs that a look found.
#[derive(Debug, Default)]
pub(super) struct Logs {
    pub(super) found: Vec<Found>,
    /// Whether there are more than are looked at.
    pub(super) more: bool,
}

impl Subject {
    /// What every name of its logs begins with.
    fn prefix(&self) -> String {
        match &self.scope {
            Scope::Task(id, _) => format!("{id}/"),
            Scope::Job(id) => format!("{id}:"),
        }
    }

    /// How a task is called beside its siblings.
    pub(super) fn shorten<'a>(&self, task: &'a str) -> &'a str {
        match &self.scope {
            Scope::Task(..) => task,
            Scope::Job(id) => {
                let rest = task.strip_prefix(id.as_str());
                rest.and_then(|rest| rest.strip_prefix(':')).unwrap_or(task)
            }
        }
    }

    /// How it stands; none while this node cannot tell.
    pub(super) async fn standing<D: Door>(
        &self,
        door: &D,
        consistency: Consistency,
    ) -> Option<Standing> {
        let owner = self.namespace.clone();
        let query = match &self.scope {
            Scope::Task(id, _) => Query::Task(owner, id.clone()),
            Scope::Job(id) => Query::Job((owner, id.clone())),
        };
        Some(match look(door, query, consistency).await? {
            View::Task(Some(task)) => match show_task(&task, Form::Json).state {
                state if state.is_finished() => Standing::Over(state.as_str().to_owned()),
                _ => Standing::Open,
            },
            View::Job(Some(job)) => match show_job(&job) {
                job if job.is_finished() => Standing::Over(job.status),
                _ => Standing::Open,
            },
            View::Task(None) | View::Job(None) => Standing::Gone,
            _ => return None,
        })
    }

    /// Its logs, by task and attempt, as this node has them; none while it cannot tell.
    pub(super) async fn logs<D: Door>(&self, door: &D) -> Option<Logs> {
        let bucket = BucketName::parse(BUCKET_LOGS).ok()?;
        let (prefix, mut after, mut logs) = (self.prefix(), None, Logs::default());
        loop {
            let query = Query::Objects {
                namespace: self.namespace.clone(),
                bucket: bucket.clone(),
                prefix: prefix.clone(),
                after,
                limit: PAGE,
            };
            let View::Objects(page) = look(door, query, Consistency::Stale).await? else {
                return None;
            };
            logs.found.extend(page.objects.iter().filter_map(|object| self.name(object)));
            after = page.next.map(|name| name.to_string());
            if after.is_none() || logs.found.len() >= LOGS_MAX {
                break;
            }
        }
        logs.more = after.is_some();
        logs.found.sort_by(|one, other| {
            (one.task.as_str(), one.attempt).cmp(&(other.task.as_str(), other.attempt))
        });
        Some(logs)
    }

    /// How many of a job's tasks were retained away, and what they said with them; of the first so many tasks whose logs
    /// would be told. None for a task, and while this node cannot tell.
    pub(super) async fn forgotten<D: Door>(&self, door: &D) -> Option<u64> {
        let Scope::Job(id) = &self.scope else {
            return None;
        };
        let key = (self.namespace.clone(), id.clone());
        let View::Job(Some(job)) = look(door, Query::Job(key.clone()), Consistency::Stale).await?
        else {
            return None;
        };
        let (mut gone, mut left) = (0, LOGS_MAX);
        for (stage, progress) in job.stages().iter().enumerate() {
            let mut from = 0;
            while from < progress.expanded && left > 0 {
                let limit = (PAGE.min(left) as u32).min(progress.expanded - from);
                let query = Query::JobTasks { job: key.clone(), stage, from, limit };
                let View::JobTasks(tasks) = look(door, query, Consistency::Stale).await? else {
                    return None;
                };
                gone +=
                    tasks.iter().filter(|one| one.expanded && one.task.is_none()).count() as u64;
                from += limit;
                left -= limit as usize;
            }
        }
        Some(gone)
    }

    /// Which task and attempt an object is of; none if it is not wanted.
    fn name(&self, object: &Arc<Object>) -> Option<Found> {
        let (task, attempt) = object.name.as_str().rsplit_once('/')?;
        let attempt: u16 = attempt.parse().ok()?;
        if let Scope::Task(_, Some(wanted)) = &self.scope
            && *wanted != attempt
        {
            return None;
        }
        Some(Found { task: task.to_owned(), attempt, object: object.clone() })
    }
}

async fn look<D: Door>(door: &D, query: Query, consistency: Consistency) -> Option<View> {
    let read = Request::Read(query, consistency);
    match door.call(read, LOOK_PATIENCE, Routing::Forward).await {
        Answer::View { view, .. } => Some(view),
        _ => None,
    }
}
