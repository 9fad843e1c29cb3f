//! How many tasks of a stage come into being at one time, and how many there are at one time, by what each of them reads.
//!
//! Promise: an entry looks at a bounded number of earlier tasks' outputs, and the unfinished tasks of a stage name a bounded
//! number of them, however wide a shuffle or a gather is. It follows from the job alone.

use super::Job;
use crate::limits::{JOB_READS_MAX, JOB_READS_PER_STEP, JOB_STEPS_PER_ENTRY_MAX, JobPace};

/// The newest rules that jobs follow. With 1, what a task reads counts when tasks are brought into being, the reason of a job
/// that reads too much says what to do, and a task that its twin did is not counted as reused. None is without.
pub const JOB_RULES: u32 = 1;

/// What bringing a task into being costs that reads so much.
pub(super) fn steps_of(reads: u32) -> u32 {
    1 + reads / JOB_READS_PER_STEP
}

impl Job {
    /// Whether it follows rules of that number.
    pub(crate) fn follows(&self, rules: u32) -> bool {
        self.rules.is_some_and(|own| own >= rules)
    }

    /// The pace of one stage.
    pub(crate) fn pace_of(&self, stage: usize, pace: JobPace) -> JobPace {
        let reads = self.spec.reads_each(stage);
        if reads == 0 || !self.follows(1) {
            return pace;
        }
        let chunk = pace.chunk.min(JOB_STEPS_PER_ENTRY_MAX / steps_of(reads)).max(1);
        JobPace { chunk, window: pace.window.min(JOB_READS_MAX / reads).max(chunk) }
    }
}
