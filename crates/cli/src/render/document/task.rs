//! Tasks and what became of them.

use ikada_api::v1::{
    AttemptInfo, ClaimAnswer, EnqueueAnswer, ItemOutcome, Task, TaskExplanation, TaskPage,
};

use super::{Document, Grid, or_dash, pretty};
use crate::render::time::{moment, span};

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

impl Document for ClaimAnswer {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.tasks.iter().map(|task| {
            let payload = task.payload.as_ref().map(|json| json.get().to_owned());
            let base64 = task.payload_base64.as_ref().map(|text| format!("base64 {text}"));
            vec![
                task.id.clone(),
                task.fence.to_string(),
                task.queue.clone(),
                format!("{}/{}", task.attempt, task.max_attempts),
                span(u64::from(task.ttl_ms)),
                or_dash(payload.or(base64)),
            ]
        });
        let headings = &["id", "fence", "queue", "attempt", "lives for", "payload"];
        vec![Grid { headings, rows: rows.collect() }]
    }

    /// With the fence, which whoever settles the task has to name.
    fn names(&self) -> Vec<String> {
        self.tasks.iter().map(|task| format!("{} {}", task.id, task.fence)).collect()
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
        let mut facts: Vec<(&str, String)> = vec![
            ("id", self.id.clone()),
            ("queue", self.queue.clone()),
            ("state", self.state.as_str().to_owned()),
            ("priority", self.priority.to_string()),
            ("attempts", format!("{}/{}", self.attempts_begun, self.max_attempts)),
            ("claim lifetime", span(u64::from(self.ttl_ms))),
            ("submitted", moment(self.created_ms)),
            ("ready at", or_dash(self.ready_at_ms.map(moment))),
            ("finished", or_dash(self.finished_ms.map(moment))),
            ("worker", or_dash(self.worker.as_ref())),
            ("dead because", or_dash(self.dead_reason.as_ref())),
            ("payload", raw(&self.payload, &self.payload_base64)),
            ("result", raw(&self.result, &self.result_base64)),
        ];
        facts.extend(rare_facts(self));
        let rows = facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        let mut grids = vec![Grid { headings: &["field", "value"], rows }];
        if !self.attempts.is_empty() {
            let rows = self.attempts.iter().map(|attempt| {
                let ended = attempt.ended_ms.map(|end| end.saturating_sub(attempt.started_ms));
                vec![
                    attempt.fence.to_string(),
                    attempt.worker.clone(),
                    moment(attempt.started_ms),
                    attempt.outcome.clone(),
                    ended.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms")),
                    or_dash(attempt.error.as_ref()),
                ]
            });
            let headings = &["fence", "worker", "started", "outcome", "took", "error"];
            grids.push(Grid { headings, rows: rows.collect() });
        }
        let rows: Vec<Vec<String>> = self.attempts.iter().filter_map(digests_row).collect();
        if !rows.is_empty() {
            grids.push(Grid { headings: &["fence", "program", "inputs", "outputs"], rows });
        }
        grids
    }

    fn names(&self) -> Vec<String> {
        vec![self.id.clone()]
    }
}

/// What an attempt ran, read and brought, if it is known by its content.
fn digests_row(attempt: &AttemptInfo) -> Option<Vec<String>> {
    let digests = [&attempt.program_digest, &attempt.inputs_digest, &attempt.outputs_digest];
    let known = digests.iter().any(|digest| digest.is_some());
    let cells = digests.into_iter().map(|digest| or_dash(digest.as_ref()));
    known.then(|| [attempt.fence.to_string()].into_iter().chain(cells).collect())
}

/// What only some tasks have.
fn rare_facts(task: &Task) -> Vec<(&'static str, String)> {
    let labels: Vec<String> =
        task.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let progress = task.progress.as_ref().map(|progress| {
        let share = format!("{}.{} %", progress.permille / 10, progress.permille % 10);
        format!("{share} {}", progress.note).trim_end().to_owned()
    });
    let facts = [
        ("progress", progress),
        ("key", task.key.clone()),
        ("running per key", task.key_limit.map(|limit| format!("at most {limit}"))),
        ("wants a worker with", (!labels.is_empty()).then(|| labels.join(", "))),
        ("attempt timeout", task.timeout_ms.map(|ms| span(u64::from(ms)))),
        ("deadline", task.deadline_ms.map(moment)),
        ("kept when finished", task.retention_ms.map(span)),
        (
            "attempts not kept",
            (task.attempts_dropped > 0).then(|| task.attempts_dropped.to_string()),
        ),
        ("then", (!task.then.is_empty()).then(|| task.then.join(", "))),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn outcome_row(item: &ItemOutcome) -> Vec<String> {
    let word = serde_json::to_value(item.outcome).ok();
    let word = word.as_ref().and_then(|value| value.as_str()).unwrap_or("?").to_owned();
    let problem = item.problem.as_ref().map(|problem| problem.to_string());
    vec![item.id.clone(), word, or_dash(problem)]
}

impl Document for TaskExplanation {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.reasons.iter().map(|reason| {
            vec![
                self.state.as_str().to_owned(),
                reason.code.clone(),
                or_dash(reason.since_ms.map(moment)),
                or_dash(reason.until_ms.map(moment)),
                reason.sentence.clone(),
            ]
        });
        vec![Grid {
            headings: &["state", "reason", "since", "until", "in words"],
            rows: rows.collect(),
        }]
    }

    fn names(&self) -> Vec<String> {
        self.reasons.iter().map(|reason| reason.code.clone()).collect()
    }
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

impl Document for Vec<ItemOutcome> {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.iter().map(outcome_row).collect();
        vec![Grid { headings: &["id", "outcome", "problem"], rows }]
    }

    fn names(&self) -> Vec<String> {
        self.iter().map(|item| item.id.clone()).collect()
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
