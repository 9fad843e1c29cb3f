//! Workers with free slots, as the leader of a shard knows them from their claims; and what part of few tasks is one worker's.
//!
//! A claim that waits is asked for again every second, so whoever was not heard of for a few of those is gone or busy. Kept by
//! the leader alone: a new one knows nobody, and hands out as if each were the only one, until they have asked again.

use std::collections::BTreeMap;

use ikada_state::{Labels, Namespace, QueueName, WorkerId};

/// Most pairs of queue and worker remembered; whoever is not gets a share all the same.
const WAITING_MAX: usize = 4_096;
/// For so many rounds of a waiting claim it counts.
const ROUNDS: u64 = 3;

#[derive(Debug)]
struct Wish {
    labels: Labels,
    free: u32,
    asked_ms: u64,
    /// It got its part after this entry was applied; once another is, it has it, and will ask again.
    served_at: Option<u64>,
}

/// By name: a queue is waited for before it is there.
type Key = (Namespace, QueueName);

/// The time, how often a claim that waits is asked for again, and the entry that was applied last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    pub now_ms: u64,
    pub again_ms: u64,
    pub applied: u64,
}

impl Round {
    fn is_recent(self, wish: &Wish) -> bool {
        self.now_ms < wish.asked_ms + ROUNDS * self.again_ms
    }

    /// Whether it waits, or what it gets is not taken off the tasks that are ready.
    fn counts(self, wish: &Wish) -> bool {
        self.is_recent(wish) && wish.served_at.is_none_or(|applied| applied == self.applied)
    }
}

/// Free slots by queue and worker; empty on nodes that do not lead.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    queues: BTreeMap<Key, BTreeMap<WorkerId, Wish>>,
    count: usize,
}

impl Waiting {
    pub fn clear(&mut self) {
        *self = Waiting::default();
    }

    /// A worker has so many free slots for tasks of a queue; it gets a part of them now, or nothing.
    pub fn note(
        &mut self,
        queue: &Key,
        worker: &WorkerId,
        (labels, free): (&Labels, u32),
        served: bool,
        round: Round,
    ) {
        if self.count >= WAITING_MAX {
            self.forget_silent(round);
        }
        let known = self.queues.get(queue).is_some_and(|workers| workers.contains_key(worker));
        if self.count >= WAITING_MAX && !known {
            return;
        }
        let (asked_ms, served_at) = (round.now_ms, served.then_some(round.applied));
        let wish = Wish { labels: labels.clone(), free, asked_ms, served_at };
        let workers = self.queues.entry(queue.clone()).or_default();
        self.count += usize::from(workers.insert(worker.clone(), wish).is_none());
    }

    fn forget_silent(&mut self, round: Round) {
        self.queues.retain(|_, workers| {
            workers.retain(|_, wish| round.is_recent(wish));
            !workers.is_empty()
        });
        self.count = self.queues.values().map(BTreeMap::len).sum();
    }

    /// A worker gets all that it asked for.
    pub fn forget(&mut self, queue: &Key, worker: &WorkerId) {
        if let Some(workers) = self.queues.get_mut(queue) {
            self.count -= usize::from(workers.remove(worker).is_some());
            if workers.is_empty() {
                self.queues.remove(queue);
            }
        }
    }

    /// A worker's part of the tasks of a queue that are ready, by its free slots and those of all others who may have such
    /// tasks; never less than one. None if there are enough for everybody.
    pub fn share(
        &self,
        queue: &Key,
        worker: &WorkerId,
        (wanted, free): (Option<&Labels>, u32),
        ready: u64,
        round: Round,
    ) -> Option<u32> {
        let others = self.queues.get(queue)?.iter().filter(|(other, wish)| {
            *other != worker
                && round.counts(wish)
                && wanted.is_none_or(|wanted| wish.labels.satisfy(wanted))
        });
        let others: u64 = others.map(|(_, wish)| u64::from(wish.free)).sum();
        let all = others + u64::from(free);
        if others == 0 || ready >= all {
            return None;
        }
        let part = (ready * u64::from(free)).div_ceil(all).max(1);
        Some(part as u32).filter(|part| *part < free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::Label;

    const AGAIN_MS: u64 = 1_000;

    fn queue(name: &str) -> Key {
        (Namespace::default(), QueueName::parse(name).unwrap())
    }

    fn at(now_ms: u64) -> Round {
        Round { now_ms, again_ms: AGAIN_MS, applied: 0 }
    }

    fn worker(name: &str) -> WorkerId {
        WorkerId::parse(name).unwrap()
    }

    fn note(waiting: &mut Waiting, name: &str, labels: &Labels, free: u32, now_ms: u64) {
        waiting.note(&queue("q"), &worker(name), (labels, free), false, at(now_ms));
    }

    fn share(
        waiting: &Waiting,
        name: &str,
        wanted: &Labels,
        ready: u64,
        now_ms: u64,
    ) -> Option<u32> {
        waiting.share(&queue("q"), &worker(name), (Some(wanted), 8), ready, at(now_ms))
    }

    #[test]
    fn b4_36_few_tasks_are_shared_by_free_slots_and_many_are_not() {
        let (mut waiting, none) = (Waiting::default(), Labels::default());
        assert_eq!(share(&waiting, "a", &none, 8, 0), None, "nobody else waits");
        note(&mut waiting, "b", &none, 8, 0);
        note(&mut waiting, "a", &none, 8, 0);
        assert_eq!(share(&waiting, "a", &none, 8, 10), Some(4));
        assert_eq!(share(&waiting, "a", &none, 1, 10), Some(1), "nobody is sent away");
        assert_eq!(share(&waiting, "a", &none, 16, 10), None, "there are enough for both");
        note(&mut waiting, "b", &none, 2, 20);
        assert_eq!(share(&waiting, "a", &none, 5, 20), Some(4), "who has more room gets more");
        assert_eq!(share(&waiting, "a", &none, 5, 20 + ROUNDS * AGAIN_MS), None, "b is silent");
        waiting.forget(&queue("q"), &worker("b"));
        assert_eq!(share(&waiting, "a", &none, 5, 20), None, "b is busy");
        waiting.note(&queue("other"), &worker("b"), (&none, 8), false, at(20));
        assert_eq!(share(&waiting, "a", &none, 5, 20), None, "b waits for something else");
    }

    #[test]
    fn b4_36_who_has_its_part_does_not_count_until_it_asks_again() {
        let (mut waiting, none) = (Waiting::default(), Labels::default());
        let part = |waiting: &Waiting, ready: u64, applied: u64| {
            let round = Round { applied, ..at(0) };
            waiting.share(&queue("q"), &worker("b"), (Some(&none), 8), ready, round)
        };
        waiting.note(&queue("q"), &worker("a"), (&none, 8), true, at(0));
        assert_eq!(part(&waiting, 8, 0), Some(4), "both are in the same entry");
        assert_eq!(part(&waiting, 4, 1), None, "the rest is for the other one");
        note(&mut waiting, "a", &none, 4, 0);
        assert_eq!(part(&waiting, 3, 1), Some(2));
    }

    #[test]
    fn b4_36_only_those_count_who_may_have_the_task() {
        let label = |text: &str| Label::parse(text).unwrap();
        let gpu = Labels::new(vec![(label("gpu"), label("yes"))]).unwrap();
        let mut waiting = Waiting::default();
        note(&mut waiting, "b", &Labels::default(), 8, 0);
        assert_eq!(share(&waiting, "a", &gpu, 4, 0), None);
        note(&mut waiting, "c", &gpu, 8, 0);
        assert_eq!(share(&waiting, "a", &gpu, 4, 0), Some(2));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_silent_make_room() {
        let (mut waiting, none) = (Waiting::default(), Labels::default());
        for number in 0..WAITING_MAX + 5 {
            note(&mut waiting, &format!("w{number}"), &none, 1, 0);
        }
        assert_eq!(waiting.count, WAITING_MAX);
        note(&mut waiting, "late", &none, 1, ROUNDS * AGAIN_MS);
        assert_eq!(waiting.count, 1);
    }
}
