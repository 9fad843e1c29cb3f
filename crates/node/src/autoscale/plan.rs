//! What one look leads to, as values: whom to drain, and what the platform is told. A pure function of what was seen and of what
//! is remembered.
//!
//! Promise: where the platform does not drain by itself, workers are drained first and the driver hears the lower number once
//! they are gone; a number that could not be told is told again after a cooldown. Who does not bear the autoscaler's label
//! is never drained.

use ikada_replica::peer::WorkerTold;
use ikada_replica::state::{QueueName, QueueView, WorkerKey, WorkerStanding};

use super::{Decision, Look, Looks, Memory, OWN_LABEL, ScaleRule, Seen, Wish, decide};

/// What is remembered while this node leads.
#[derive(Debug, Default)]
pub struct Held {
    /// What the next decision needs.
    pub memory: Memory,
    /// How long tasks take.
    pub looks: Looks,
    /// A lower number that the driver hears once the drained workers are gone, and not before this time.
    pub lowering: Option<(Wish, u64)>,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// These shall finish what they have and leave; the platform hears the number afterwards.
    Drain(Vec<WorkerKey>, Wish),
    /// The platform is told.
    Tell(Wish),
}

/// Decides what to do about a look, in this order.
pub fn plan(
    rule: &ScaleRule,
    drains: bool,
    held: &mut Held,
    (queues, workers): (&[QueueView], &[WorkerTold]),
    now_ms: u64,
) -> Vec<Act> {
    let mut acts = Vec::new();
    let seen = see(rule, &mut held.looks, queues, workers, now_ms);
    let leaving =
        workers.iter().any(|worker| is_own(worker) && worker.alive && !is_working(worker));
    let due = held.lowering.take_if(|(_, from_ms)| !leaving && now_ms >= *from_ms);
    if let Some((wish, _)) = due {
        acts.push(Act::Tell(Wish { current: seen.workers, ..wish }));
    }
    let Decision { desired, reason } = decide(rule, &seen, &mut held.memory, now_ms);
    let wish = Wish { desired, current: seen.workers, reason };
    if desired < seen.workers && !drains {
        let chosen = victims(workers, (seen.workers - desired) as usize);
        let keys = chosen.iter().map(|worker| worker.record.key()).collect();
        acts.push(Act::Drain(keys, wish.clone()));
        held.lowering = Some((wish, now_ms));
    } else if desired != seen.workers {
        held.lowering = None;
        acts.push(Act::Tell(wish));
    }
    acts
}

impl Held {
    /// The platform could not be told. A higher number is decided anew after the cooldown; a lower one is told again then.
    pub fn failed(&mut self, rule: &ScaleRule, wish: Wish, now_ms: u64) {
        if wish.desired <= wish.current && self.lowering.is_none() {
            let again_ms = now_ms.saturating_add(rule.cooldown.as_millis() as u64);
            self.lowering = Some((wish, again_ms));
        }
    }
}

fn is_working(worker: &WorkerTold) -> bool {
    worker.alive && worker.record.standing == WorkerStanding::Active
}

/// Whether an autoscaler started it.
fn is_own(worker: &WorkerTold) -> bool {
    let (name, value) = OWN_LABEL;
    let mut pairs = worker.record.labels.pairs().iter();
    pairs.any(|(own, its)| (own.as_str(), its.as_str()) == (name, value))
}

fn see(
    rule: &ScaleRule,
    looks: &mut Looks,
    queues: &[QueueView],
    workers: &[WorkerTold],
    now_ms: u64,
) -> Seen {
    let counts = |name: &QueueName| {
        rule.queues.is_empty() || rule.queues.iter().any(|queue| queue == name.as_str())
    };
    let queues = || queues.iter().filter(|queue| counts(&queue.name));
    let claimed = queues().map(|queue| queue.claimed).sum();
    let ended = queues().map(|queue| queue.counters.done + queue.counters.failed).sum();
    looks.add(Look { at_ms: now_ms, claimed, ended });
    let working = || workers.iter().filter(|worker| is_working(worker));
    let foreign = working().filter(|worker| !is_own(worker));
    let helpful = foreign.filter(|worker| worker.record.queues.iter().any(counts));
    Seen {
        backlog: queues().filter(|queue| !queue.settings.paused).map(|queue| queue.ready).sum(),
        claimed,
        service_ms: looks.service_ms(),
        workers: working().filter(|worker| is_own(worker)).count() as u32,
        foreign_slots: helpful.map(|worker| u64::from(worker.record.slots)).sum(),
    }
}

/// Own workers with the least to do, and of those the youngest.
fn victims(workers: &[WorkerTold], count: usize) -> Vec<&WorkerTold> {
    let mut working: Vec<&WorkerTold> =
        workers.iter().filter(|w| is_own(w) && is_working(w)).collect();
    working.sort_by_key(|worker| (worker.busy, std::cmp::Reverse(worker.record.since_ms)));
    working.truncate(count);
    working
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use ikada_replica::state::{
        Label, Labels, Namespace, QueueCounters, QueueHandle, QueueSettings, SessionId, WorkerId,
        WorkerRecord,
    };

    fn rule(min: u32, max: u32) -> ScaleRule {
        let (target, cooldown) = (Duration::from_secs(10), Duration::from_secs(60));
        ScaleRule { min, max, slots: 2, queues: Vec::new(), target, cooldown }
    }

    fn label(text: &str) -> Label {
        Label::parse(text).unwrap()
    }

    /// A worker that somebody else started.
    fn foreign(name: &str, queue: &str) -> WorkerTold {
        let mut worker = worker(name, 0, 9);
        worker.record.labels = Labels::default();
        worker.record.queues = vec![QueueName::parse(queue).unwrap()];
        worker
    }

    fn worker(name: &str, busy: u32, since_ms: u64) -> WorkerTold {
        let record = WorkerRecord {
            namespace: Namespace::default(),
            id: WorkerId::parse(name).unwrap(),
            session: SessionId(1),
            slots: 2,
            labels: Labels::new(vec![(label(OWN_LABEL.0), label(OWN_LABEL.1))]).unwrap(),
            queues: vec![QueueName::parse("q").unwrap()],
            version: String::new(),
            since_ms,
            standing: WorkerStanding::Active,
        };
        WorkerTold { record, alive: true, heard_ms_ago: 1, busy, impostor: None }
    }

    fn named(acts: &[Act]) -> Vec<String> {
        let words = acts.iter().map(|act| match act {
            Act::Drain(keys, wish) => {
                let ids: Vec<&str> = keys.iter().map(|key| key.1.as_str()).collect();
                format!("drain {} to {}", ids.join(" "), wish.desired)
            }
            Act::Tell(wish) => format!("tell {} of {}", wish.desired, wish.current),
        });
        words.collect()
    }

    #[test]
    fn b4_23_those_with_the_least_to_do_leave_first() {
        let mut workers =
            [worker("a", 2, 1), worker("b", 0, 2), worker("c", 1, 3), worker("d", 0, 4)];
        workers[3].alive = false;
        let names: Vec<String> =
            victims(&workers, 2).iter().map(|worker| worker.record.id.to_string()).collect();
        assert_eq!(names, ["b", "c"], "a dead worker is not drained");
        let mut looks = Looks::default();
        assert_eq!(see(&rule(1, 4), &mut looks, &[], &workers, 1).workers, 3);
    }

    #[test]
    fn b4_23_workers_of_others_are_left_alone_and_their_slots_count() {
        let (rule, mut held) = (rule(0, 4), Held::default());
        let workers = [foreign("theirs", "q"), worker("ours", 1, 1)];
        assert!(plan(&rule, false, &mut held, (&[], &workers), 0).is_empty());
        let acts = plan(&rule, false, &mut held, (&[], &workers), 60_000);
        assert_eq!(named(&acts), ["drain ours to 0"], "theirs has less to do, and stays");
        let mut leaving = foreign("theirs", "q");
        leaving.record.standing = WorkerStanding::Draining;
        let acts = plan(&rule, false, &mut held, (&[], &[leaving]), 65_000);
        assert_eq!(named(&acts), ["tell 0 of 0"], "whoever else leaves is not waited for");
        let idle = [foreign("one", "q"), foreign("two", "other")];
        let seen = see(&rule, &mut Looks::default(), &[], &idle, 1);
        assert_eq!((seen.workers, seen.foreign_slots), (0, 4));
    }

    #[test]
    fn b4_23_only_the_queues_that_are_named_count() {
        let rule = ScaleRule { queues: vec!["mail".to_owned()], ..rule(0, 4) };
        let mut mail = queue(3, 1);
        mail.name = QueueName::parse("mail").unwrap();
        let workers = [foreign("one", "q"), foreign("two", "mail")];
        let seen = see(&rule, &mut Looks::default(), &[mail, queue(100, 7)], &workers, 1);
        assert_eq!((seen.backlog, seen.claimed, seen.foreign_slots), (3, 1, 2));
    }

    #[test]
    fn b4_23_workers_are_drained_first_and_the_driver_hears_the_lower_number_when_they_are_gone() {
        let (rule, mut held) = (rule(1, 4), Held::default());
        let mut workers = vec![worker("a", 1, 1), worker("b", 0, 2), worker("c", 0, 3)];
        let look = |held: &mut Held, workers: &[WorkerTold], now_ms| {
            named(&plan(&rule, false, held, (&[], workers), now_ms))
        };
        assert!(look(&mut held, &workers, 0).is_empty(), "not before a whole cooldown");
        assert_eq!(look(&mut held, &workers, 60_000), ["drain c b to 1"]);
        workers[1].record.standing = WorkerStanding::Draining;
        workers[2].record.standing = WorkerStanding::Draining;
        assert!(look(&mut held, &workers, 65_000).is_empty(), "they have not gone yet");
        workers.truncate(1);
        assert_eq!(look(&mut held, &workers, 70_000), ["tell 1 of 1"]);
        assert!(look(&mut held, &workers, 75_000).is_empty(), "once");
        // What could not be told is told again, after a while.
        held.failed(&rule, Wish { desired: 1, current: 1, reason: String::new() }, 75_000);
        assert!(look(&mut held, &workers, 80_000).is_empty());
        assert_eq!(look(&mut held, &workers, 135_000), ["tell 1 of 1"]);
    }

    fn queue(ready: u64, claimed: u64) -> QueueView {
        QueueView {
            handle: QueueHandle(0),
            namespace: Namespace::default(),
            name: QueueName::parse("q").unwrap(),
            settings: QueueSettings::default(),
            counters: QueueCounters::default(),
            scheduled: 0,
            ready,
            claimed,
            finished: 0,
            dead: 0,
            oldest_ready_ms: None,
            oldest_claim_ms: None,
            claim_alert_ms: None,
            settled: true,
        }
    }

    #[test]
    fn b4_23_what_a_paused_queue_holds_back_asks_for_nobody() {
        let mut paused = queue(1_000, 2);
        paused.settings.paused = true;
        let seen = see(&rule(1, 4), &mut Looks::default(), &[paused, queue(5, 1)], &[], 1);
        assert_eq!((seen.backlog, seen.claimed), (5, 3), "what runs, runs");
    }

    #[test]
    fn b4_23_a_lower_number_is_forgotten_once_more_are_wanted() {
        let (rule, mut held) = (rule(1, 4), Held::default());
        let mut workers = vec![worker("a", 0, 1), worker("b", 0, 2), worker("c", 0, 3)];
        let look = |held: &mut Held, ready: u64, workers: &[WorkerTold], now_ms| {
            named(&plan(&rule, false, held, (&[queue(ready, 0)], workers), now_ms))
        };
        assert!(look(&mut held, 0, &workers, 0).is_empty());
        assert_eq!(look(&mut held, 0, &workers, 60_000), ["drain c b to 1"]);
        workers[1].record.standing = WorkerStanding::Draining;
        workers[2].record.standing = WorkerStanding::Draining;
        assert!(look(&mut held, 1_000_000, &workers, 119_999).is_empty(), "a cooldown between");
        assert_eq!(look(&mut held, 1_000_000, &workers, 120_000), ["tell 4 of 1"]);
        // The drained ones are gone; their lower number would end those who come.
        workers.truncate(1);
        assert!(look(&mut held, 1_000_000, &workers, 125_000).is_empty());
    }

    #[test]
    fn b4_23_a_platform_that_drains_by_itself_is_told_at_once() {
        let (rule, mut held) = (rule(1, 4), Held::default());
        let workers = [worker("a", 0, 1), worker("b", 0, 2)];
        assert!(plan(&rule, true, &mut held, (&[], &workers), 0).is_empty());
        let acts = plan(&rule, true, &mut held, (&[], &workers), 60_000);
        assert_eq!(named(&acts), ["tell 1 of 2"]);
        assert_eq!(held.lowering, None);
    }

    #[test]
    fn b4_23_workers_that_never_register_are_asked_for_once_per_cooldown() {
        let (rule, mut held) = (rule(2, 4), Held::default());
        let looks = (0..25).map(|look| look * 5_000);
        let told: Vec<u64> = looks
            .filter(|now_ms| !plan(&rule, false, &mut held, (&[], &[]), *now_ms).is_empty())
            .collect();
        assert_eq!(told, [0, 60_000, 120_000]);
    }
}
