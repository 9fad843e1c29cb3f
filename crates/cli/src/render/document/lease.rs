//! Leases: who holds them, and who waits.

use ikada_api::v1::{LeaseAnswer, LeaseInfo, LeasePage, LeaseReleased, LeaseState};

use super::{Document, Grid, or_dash, pretty};
use crate::render::time::{moment, span};

const HEADINGS: &[&str] = &["name", "state", "holder", "fence", "ttl", "since", "task", "waiting"];

fn state(state: LeaseState) -> String {
    let word = match state {
        LeaseState::Held => "held",
        LeaseState::Waiting => "waiting",
        LeaseState::Free => "free",
    };
    word.to_owned()
}

fn row(lease: &LeaseInfo) -> Vec<String> {
    vec![
        lease.name.clone(),
        state(lease.state),
        or_dash(lease.holder.clone()),
        or_dash(lease.fence),
        or_dash(lease.ttl_ms.map(|ttl_ms| span(u64::from(ttl_ms)))),
        or_dash(lease.since_ms.map(moment)),
        or_dash(lease.task.clone()),
        lease.waiters.len().to_string(),
    ]
}

impl Document for LeasePage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        vec![Grid { headings: HEADINGS, rows: self.leases.iter().map(row).collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.leases.iter().map(|lease| lease.name.clone()).collect()
    }
}

impl Document for LeaseInfo {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let mut grids = vec![Grid { headings: HEADINGS, rows: vec![row(self)] }];
        if !self.waiters.is_empty() {
            let waiters = self.waiters.iter();
            let rows = waiters.map(|waiter| vec![waiter.holder.clone(), moment(waiter.since_ms)]);
            grids.push(Grid { headings: &["next in line", "since"], rows: rows.collect() });
        }
        grids
    }

    fn names(&self) -> Vec<String> {
        self.holder.clone().into_iter().collect()
    }
}

impl Document for LeaseAnswer {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let row = vec![
            self.name.clone(),
            state(self.state),
            or_dash(self.fence),
            or_dash(self.ttl_ms.map(span)),
            or_dash(self.ahead),
        ];
        vec![Grid { headings: &["name", "state", "fence", "ttl", "ahead"], rows: vec![row] }]
    }

    fn names(&self) -> Vec<String> {
        self.fence.map(|fence| fence.to_string()).into_iter().collect()
    }
}

impl Document for LeaseReleased {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let row = vec![self.name.clone(), "released".to_owned()];
        vec![Grid { headings: &["name", "outcome"], rows: vec![row] }]
    }

    fn names(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
}
