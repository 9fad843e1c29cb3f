//! Which of the first tasks in line a worker is handed: one whose program or inputs it has at hand, if there is one near.
//!
//! Promises: a task is passed over by no more than `NEAR_PLACES` others, for only those that joined the line so shortly after
//! it may go before it; never by one of another priority, nor by one whose key orders it. One that runs no program is not
//! passed over at all. A claim that holds nothing costs what it did. Nothing is stored: the places tell it all.

use super::{Claim, Task};
use crate::limits::{NEAR_INPUTS_MAX, NEAR_PLACES, NEAR_TASKS_MAX};
use crate::shard::Shard;
use crate::{InputSource, Work};

impl Work {
    /// How much of it is among these marks: its program and its first inputs, each counts as one.
    fn held(&self, holds: &[u64]) -> usize {
        let digests = self.inputs.iter().take(NEAR_INPUTS_MAX).map(|input| match &input.source {
            InputSource::Object { digest, .. } => *digest,
            InputSource::Url { .. } | InputSource::Text(_) => None,
        });
        let all = digests.chain([self.program.digest]).flatten();
        all.filter(|digest| holds.contains(&digest.mark())).count()
    }
}

impl Task {
    fn work(&self) -> Option<&Work> {
        self.extras.as_ref()?.work.as_deref()
    }
}

impl Shard {
    /// The task of a queue that a claim is handed next.
    pub(super) fn next_near(&self, queue: u32, claim: &Claim) -> Option<u32> {
        let first = self.next_for(queue, &claim.labels, Some(&claim.worker))?;
        let holds = claim.holds.as_deref().unwrap_or_default();
        match holds.is_empty() {
            true => Some(first),
            false => Some(self.nearest(queue, first, claim, holds)),
        }
    }

    /// The one of the first tasks that wants most of what the worker has; of several the first.
    fn nearest(&self, queue: u32, first: u32, claim: &Claim, holds: &[u64]) -> u32 {
        let Some(task) = self.core.tasks.get(first).filter(|task| !task.is_twin()) else {
            return first;
        };
        let Some(work) = task.work() else {
            return first;
        };
        // The upper bits of a ready key are the priority, and no line is so long that it would run into them.
        let begin = task.ready_key();
        let line = &self.index.lines[queue as usize];
        let near = line.near(&claim.labels, begin, begin + NEAR_PLACES, NEAR_TASKS_MAX);
        let (mut best, mut most) = (first, work.held(holds));
        for slot in near {
            let Some(other) = self.core.tasks.get(slot) else { continue };
            let free = other.ordering_key().is_none();
            let held = other.work().filter(|_| free).map_or(0, |work| work.held(holds));
            if held > most {
                (best, most) = (slot, held);
            }
        }
        best
    }
}
