//! Workers with free slots, as the leader of a shard knows them from their claims; and what part of few tasks is one worker's.
//!
//! A claim that waits is asked for again every second, so whoever was not heard of for a few of those is gone or busy. Kept by
//! the leader alone: a new one knows nobody, and hands out as if each were the only one, until they have asked again.

use std::collections::BTreeMap;

use ikada_state::{Labels, QueueHandle, WorkerId};

/// Most pairs of queue and worker remembered; whoever is not gets a share all the same.
const WAITING_MAX: usize = 4_096;
/// For so many rounds of a waiting claim it counts.
const ROUNDS: u64 = 3;

#[derive(Debug)]
struct Wish {
    labels: Labels,
    free: u32,
    asked_ms: u64,
}

/// Free slots by queue and worker; empty on nodes that do not lead.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    wishes: BTreeMap<(u32, WorkerId), Wish>,
}

impl Waiting {
    pub fn clear(&mut self) {
        *self = Waiting::default();
    }

    /// A worker has so many free slots for tasks of a queue, and asks for them every so often.
    pub fn note(
        &mut self,
        queue: QueueHandle,
        worker: &WorkerId,
        (labels, free): (&Labels, u32),
        (now_ms, again_ms): (u64, u64),
    ) {
        let key = (queue.0, worker.clone());
        if self.wishes.len() >= WAITING_MAX && !self.wishes.contains_key(&key) {
            self.wishes.retain(|_, wish| now_ms < wish.asked_ms + ROUNDS * again_ms);
            if self.wishes.len() >= WAITING_MAX {
                return;
            }
        }
        self.wishes.insert(key, Wish { labels: labels.clone(), free, asked_ms: now_ms });
    }

    /// A worker gets all that it asked for.
    pub fn forget(&mut self, queue: QueueHandle, worker: &WorkerId) {
        if !self.wishes.is_empty() {
            self.wishes.remove(&(queue.0, worker.clone()));
        }
    }

    /// A worker's part of the tasks of a queue that are ready, by its free slots and those of all others who may have such
    /// tasks; never less than one. None if there are enough for everybody.
    pub fn share(
        &self,
        queue: QueueHandle,
        worker: &WorkerId,
        (wanted, free): (Option<&Labels>, u32),
        ready: u64,
        (now_ms, again_ms): (u64, u64),
    ) -> Option<u32> {
        let of_queue = self.wishes.iter().skip_while(|((of, _), _)| *of < queue.0);
        let of_queue = of_queue.take_while(|((of, _), _)| *of == queue.0);
        let others = of_queue.filter(|((_, other), wish)| {
            other != worker
                && now_ms < wish.asked_ms + ROUNDS * again_ms
                && wanted.is_none_or(|wanted| wish.labels.satisfy(wanted))
        });
        let all = others.map(|(_, wish)| u64::from(wish.free)).sum::<u64>() + u64::from(free);
        if ready >= all || all == u64::from(free) {
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

    const QUEUE: QueueHandle = QueueHandle(1);
    const AGAIN_MS: u64 = 1_000;

    fn worker(name: &str) -> WorkerId {
        WorkerId::parse(name).unwrap()
    }

    fn note(waiting: &mut Waiting, name: &str, labels: &Labels, free: u32, now_ms: u64) {
        waiting.note(QUEUE, &worker(name), (labels, free), (now_ms, AGAIN_MS));
    }

    fn share(
        waiting: &Waiting,
        name: &str,
        wanted: &Labels,
        ready: u64,
        now_ms: u64,
    ) -> Option<u32> {
        waiting.share(QUEUE, &worker(name), (Some(wanted), 8), ready, (now_ms, AGAIN_MS))
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
        waiting.forget(QUEUE, &worker("b"));
        assert_eq!(share(&waiting, "a", &none, 5, 20), None, "b is busy");
        waiting.note(QueueHandle(2), &worker("b"), (&none, 8), (20, AGAIN_MS));
        assert_eq!(share(&waiting, "a", &none, 5, 20), None, "b waits for something else");
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
        assert_eq!(waiting.wishes.len(), WAITING_MAX);
        note(&mut waiting, "late", &none, 1, ROUNDS * AGAIN_MS);
        assert_eq!(waiting.wishes.len(), 1);
    }
}
