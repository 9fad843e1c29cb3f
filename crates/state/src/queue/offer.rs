//! What a queue has for claims, as a leader asks before it proposes one. Nothing here changes anything.

use crate::shard::Shard;
use crate::task::Task;
use crate::{Labels, ProgramRef, QueueHandle, WorkerId};

/// The task that a claim would be handed first.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// The program that it runs, if it runs one.
    pub program: Option<&'a ProgramRef>,
    /// The labels that it wants.
    pub wanted: Option<&'a Labels>,
}

fn program(task: &Task) -> Option<&ProgramRef> {
    task.extras.as_ref()?.work.as_ref().map(|work| &work.program)
}

impl Shard {
    /// What a claim on a queue by this worker would be handed first; none if nothing.
    pub fn offer_at(
        &self,
        queue: QueueHandle,
        labels: &Labels,
        worker: &WorkerId,
    ) -> Option<Offer<'_>> {
        self.core.queues.get(queue.0 as usize).filter(|record| !record.settings.paused)?;
        let task = self.core.tasks.get(self.next_for(queue.0, labels, Some(worker))?)?;
        let wanted = task.extras.as_ref().map(|extras| &extras.labels);
        Some(Offer { program: program(task), wanted })
    }

    /// How many tasks of a queue may be claimed, by one worker or another.
    pub fn offered_count(&self, queue: QueueHandle) -> u64 {
        let line = self.index.lines.get(queue.0 as usize);
        let count =
            line.map(|line| line.plain_ready() + line.labelled_ready() + line.twins_ready());
        count.unwrap_or(0) as u64
    }

    /// The program of one of the tasks that come first in a queue, if one of them runs any.
    pub fn offered_program(&self, queue: QueueHandle) -> Option<&ProgramRef> {
        let mut firsts = self.index.lines.get(queue.0 as usize)?.firsts();
        firsts.find_map(|slot| self.core.tasks.get(slot).and_then(program))
    }
}
