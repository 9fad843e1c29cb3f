//! Working off a backlog that is already there.

use std::sync::Arc;
use std::time::Instant;

use super::Bench;
use super::lifecycle::CONSUMERS;
use super::report::{Line, Phase};
use super::tasks::consume;
use crate::failure::Failure;

/// Callers that fill the queue beforehand; not measured.
const FILLERS: usize = 1_024;

impl Bench<'_> {
    pub(super) async fn drain(&mut self) -> Result<(), Failure> {
        let (queue, total) = ("drain", self.args.tasks);
        self.send_all(queue, FILLERS, total, true).await?;
        let mark = self.servers.cpu_seconds();
        let began = Instant::now();
        let ended = consume(&self.client, queue, CONSUMERS, total, Arc::new(|_| {})).await?;
        let what = format!("drain of a backlog, {CONSUMERS} consumers");
        let line = Line::rate(what, total, (ended - began).as_secs_f64());
        self.note(line.of(Phase::Drain), mark);
        Ok(())
    }
}
