//! What can be shown, and how each document looks as a table.

use ikada_api::v1::{
    ClusterView, EnqueueAnswer, EventView, ItemOutcome, QueueInfo, QueuePage, Task, TaskPage,
    TransferResult,
};
use serde::Serialize;

/// Headings and rows.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    /// One per column.
    pub(crate) headings: &'static [&'static str],
    /// Each as wide as the headings.
    pub(crate) rows: Vec<Vec<String>>,
}

/// Something to show.
pub(crate) trait Document {
    /// As JSON.
    fn json(&self) -> Result<String, serde_json::Error>;
    /// As tables.
    fn grids(&self) -> Vec<Grid>;
    /// As bare names.
    fn names(&self) -> Vec<String>;
}

fn pretty<T: Serialize>(document: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(document)
}

fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

impl Document for TaskPage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.tasks.iter().map(|task| {
            vec![
                task.id.clone(),
                task.queue.clone(),
                task.state.as_str().to_owned(),
                task.priority.to_string(),
                format!("{}/{}", task.attempts_begun, task.max_attempts),
                or_dash(task.worker.as_ref()),
            ]
        });
        let headings = &["id", "queue", "state", "priority", "attempts", "worker"];
        vec![Grid { headings, rows: rows.collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.tasks.iter().map(|task| task.id.clone()).collect()
    }
}

impl Document for Task {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let raw = |json: &Option<Box<serde_json::value::RawValue>>, base64: &Option<String>| match (
            json, base64,
        ) {
            (Some(json), _) => json.get().to_owned(),
            (None, Some(text)) => format!("base64 {text}"),
            (None, None) => "-".to_owned(),
        };
        let facts: Vec<(&str, String)> = vec![
            ("id", self.id.clone()),
            ("queue", self.queue.clone()),
            ("state", self.state.as_str().to_owned()),
            ("priority", self.priority.to_string()),
            ("attempts", format!("{}/{}", self.attempts_begun, self.max_attempts)),
            ("claim lifetime", format!("{} ms", self.ttl_ms)),
            ("worker", or_dash(self.worker.as_ref())),
            ("dead because", or_dash(self.dead_reason.as_ref())),
            ("payload", raw(&self.payload, &self.payload_base64)),
            ("result", raw(&self.result, &self.result_base64)),
        ];
        let rows = facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        let mut grids = vec![Grid { headings: &["field", "value"], rows }];
        if !self.attempts.is_empty() {
            let rows = self.attempts.iter().map(|attempt| {
                let ended = attempt.ended_ms.map(|end| end.saturating_sub(attempt.started_ms));
                vec![
                    attempt.fence.to_string(),
                    attempt.worker.clone(),
                    attempt.outcome.clone(),
                    ended.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms")),
                    or_dash(attempt.error.as_ref()),
                ]
            });
            let headings = &["fence", "worker", "outcome", "took", "error"];
            grids.push(Grid { headings, rows: rows.collect() });
        }
        grids
    }

    fn names(&self) -> Vec<String> {
        vec![self.id.clone()]
    }
}

fn outcome_row(item: &ItemOutcome) -> Vec<String> {
    let word = serde_json::to_value(item.outcome).ok();
    let word = word.as_ref().and_then(|value| value.as_str()).unwrap_or("?").to_owned();
    let problem = item.problem.as_ref().map(|problem| problem.to_string());
    vec![item.id.clone(), word, or_dash(problem)]
}

impl Document for EnqueueAnswer {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.tasks.iter().map(outcome_row).collect();
        vec![Grid { headings: &["id", "outcome", "problem"], rows }]
    }

    fn names(&self) -> Vec<String> {
        self.tasks.iter().map(|task| task.id.clone()).collect()
    }
}

impl Document for ItemOutcome {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        vec![Grid { headings: &["id", "outcome", "problem"], rows: vec![outcome_row(self)] }]
    }

    fn names(&self) -> Vec<String> {
        vec![self.id.clone()]
    }
}

fn queue_row(queue: &QueueInfo) -> Vec<String> {
    let counts = queue.counts;
    vec![
        queue.name.clone(),
        if queue.settings.paused { "paused".to_owned() } else { "running".to_owned() },
        counts.scheduled.to_string(),
        counts.ready.to_string(),
        counts.claimed.to_string(),
        counts.done_total.to_string(),
        counts.dead_total.to_string(),
        counts.cancelled_total.to_string(),
    ]
}

const QUEUE_HEADINGS: &[&str] =
    &["name", "state", "scheduled", "ready", "claimed", "done", "dead", "cancelled"];

impl Document for QueuePage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.queues.iter().map(queue_row).collect();
        vec![Grid { headings: QUEUE_HEADINGS, rows }]
    }

    fn names(&self) -> Vec<String> {
        self.queues.iter().map(|queue| queue.name.clone()).collect()
    }
}

impl Document for QueueInfo {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let settings = &self.settings;
        let facts = [
            ("version", settings.version.to_string()),
            ("max attempts", settings.max_attempts.to_string()),
            ("claim lifetime", format!("{} ms", settings.ttl_ms)),
            ("backoff", format!("{} to {} ms", settings.backoff.base_ms, settings.backoff.cap_ms)),
            (
                "retention",
                format!("{} tasks, {} ms", settings.retention_count, settings.retention_ms),
            ),
            ("pending max", settings.pending_max.to_string()),
        ];
        let rows = facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        vec![
            Grid { headings: QUEUE_HEADINGS, rows: vec![queue_row(self)] },
            Grid { headings: &["setting", "value"], rows },
        ]
    }

    fn names(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
}

impl Document for ClusterView {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let members = self.members.iter().map(|member| {
            vec![
                member.node.to_string(),
                member.client_addr.clone(),
                if member.connected { "up".to_owned() } else { "down".to_owned() },
                member.leads.to_string(),
            ]
        });
        let shards = self.shards.iter().map(|shard| {
            vec![
                shard.shard.to_string(),
                or_dash(shard.leader),
                shard.term.to_string(),
                shard.commit.to_string(),
                shard.ready.to_string(),
                shard.claimed.to_string(),
            ]
        });
        let status = vec![vec![self.cluster.to_string(), self.status.clone()]];
        vec![
            Grid { headings: &["cluster", "status"], rows: status },
            Grid { headings: &["node", "address", "link", "leads"], rows: members.collect() },
            Grid {
                headings: &["shard", "leader", "term", "commit", "ready", "claimed"],
                rows: shards.collect(),
            },
        ]
    }

    fn names(&self) -> Vec<String> {
        vec![self.status.clone()]
    }
}

impl Document for Vec<EventView> {
    fn json(&self) -> Result<String, serde_json::Error> {
        // One line per event, so that a followed stream can be read line by line.
        let lines: Result<Vec<String>, _> = self.iter().map(serde_json::to_string).collect();
        Ok(lines?.join("\n"))
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.iter().map(|event| {
            vec![
                event.sequence.to_string(),
                event.wall_ms.to_string(),
                event.shard.to_string(),
                event.term.to_string(),
                event.role.clone(),
                or_dash(event.leader),
                event.reason.clone(),
            ]
        });
        let headings = &["sequence", "time ms", "shard", "term", "role", "leader", "reason"];
        vec![Grid { headings, rows: rows.collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.iter().map(|event| event.sequence.to_string()).collect()
    }
}

impl Document for TransferResult {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.shards.iter().map(|shard| {
            let word = if shard.accepted { "begun" } else { "refused" };
            let problem = shard.problem.as_ref().map(|problem| problem.to_string());
            vec![shard.shard.to_string(), word.to_owned(), or_dash(problem)]
        });
        vec![Grid { headings: &["shard", "transfer", "problem"], rows: rows.collect() }]
    }

    fn names(&self) -> Vec<String> {
        let accepted = self.shards.iter().filter(|shard| shard.accepted);
        accepted.map(|shard| shard.shard.to_string()).collect()
    }
}
