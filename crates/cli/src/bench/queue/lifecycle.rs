//! Whole lives: enqueue, claim and complete at the same time.

use std::sync::Arc;
use std::time::Instant;

use super::Bench;
use super::report::{Line, Phase};
use super::tasks::consume;
use crate::failure::Failure;

/// Submitters at one time, as peers were measured.
pub(in crate::bench) const SUBMITTERS: usize = 256;
/// Consumers at one time, as peers were measured.
pub(in crate::bench) const CONSUMERS: usize = 8;

impl Bench<'_> {
    pub(super) async fn lifecycle(&mut self) -> Result<(), Failure> {
        for batched in [false, true] {
            let queue = format!("lifecycle-{batched}");
            let total = self.args.tasks;
            let mark = self.servers.cpu_seconds();
            let began = Instant::now();
            let (sent, done) = tokio::join!(
                self.send_all(&queue, SUBMITTERS, total, batched),
                consume(&self.client, &queue, CONSUMERS, total, Arc::new(|_| {})),
            );
            sent?;
            let seconds = (done? - began).as_secs_f64();
            let how = if batched { "batched by the client" } else { "one task per enqueue" };
            let what = format!("lifecycle, {SUBMITTERS} submitters, {CONSUMERS} consumers, {how}");
            self.note(Line::rate(what, total, seconds).of(Phase::Lifecycle), mark);
        }
        Ok(())
    }
}
