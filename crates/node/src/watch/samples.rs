//! The newest figures of each queue.

use std::collections::{BTreeMap, VecDeque};

use ikada_replica::state::{AlertThresholds, Namespace, QueueName, QueueView};

use super::SAMPLE_EVERY;

/// Samples kept per queue: as long as growth may be watched.
const SAMPLES_MAX: usize =
    AlertThresholds::GROWING_S_MAX as usize / SAMPLE_EVERY.as_secs() as usize + 1;
/// Queues watched, in order of name; others have no rates and no alert for growth (about 4 MiB).
const QUEUES_MAX: usize = 2_000;

/// Figures of a queue at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) at_ms: u64,
    pub(crate) unfinished: u64,
    pub(crate) submitted: u64,
    pub(crate) done: u64,
    pub(crate) dead: u64,
    pub(crate) failed: u64,
}

impl Sample {
    pub(crate) fn of(view: &QueueView, at_ms: u64) -> Sample {
        Sample {
            at_ms,
            unfinished: view.scheduled + view.ready + view.claimed,
            submitted: view.counters.submitted,
            done: view.counters.done,
            dead: view.counters.dead,
            failed: view.counters.failed,
        }
    }
}

/// All samples.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    queues: BTreeMap<(Namespace, QueueName), VecDeque<Sample>>,
}

impl Samples {
    /// Takes a sample of every queue.
    pub(crate) fn take(&mut self, views: &[QueueView], at_ms: u64) {
        for view in views {
            let name = (view.namespace.clone(), view.name.clone());
            if self.queues.len() >= QUEUES_MAX && !self.queues.contains_key(&name) {
                continue;
            }
            let samples = self.queues.entry(name).or_default();
            samples.push_back(Sample::of(view, at_ms));
            if samples.len() > SAMPLES_MAX {
                samples.pop_front();
            }
        }
    }

    /// The samples of a queue, oldest first.
    pub(crate) fn of(&self, view: &QueueView) -> Vec<Sample> {
        let samples = self.queues.get(&(view.namespace.clone(), view.name.clone()));
        samples.map(|samples| samples.iter().copied().collect()).unwrap_or_default()
    }
}
