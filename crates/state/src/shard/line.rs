//! The lines of one queue: what may be claimed, by labels wanted; what waits behind its key; what is
//! finished; how many tasks are in each state.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::key_line::{KeyLine, Turn};
use super::row::{ReadyRows, Row};
use crate::Labels;
use crate::limits::LABEL_SETS_MAX;
use crate::planted::{self, Bug};
use crate::task::{Extras, Task, TaskState};

/// Ready tasks that want the same labels of their worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LabelLine {
    ready: BTreeMap<u64, u32>,
    /// Unfinished tasks with these labels, ready or not: the set counts while there is one.
    pending: u64,
}

/// The lines of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Slots of claimable tasks that want no labels, by ready key: priority, then place in line.
    ready: ReadyRows,
    /// The same for each set of labels that unfinished tasks want.
    labelled: BTreeMap<Labels, LabelLine>,
    /// Slots of claimable tasks that run beside others; they come after all that nobody runs yet.
    twins: BTreeMap<u64, u32>,
    /// Tasks whose key orders or caps them.
    keys: BTreeMap<Arc<str>, KeyLine>,
    /// Slots by place of finished tasks that the queue's settings keep, oldest first; without the dead, once those
    /// are kept apart.
    pub(crate) finished: Row,
    /// The same for dead tasks, once they are kept apart.
    pub(crate) dead: Row,
    counts: [u64; TaskState::ALL.len()],
}

impl Line {
    /// Number of tasks in a state.
    pub(crate) fn count(&self, state: TaskState) -> u64 {
        self.counts[state as usize]
    }

    /// Number of unfinished tasks.
    pub(crate) fn pending(&self) -> u64 {
        self.count(TaskState::Scheduled)
            + self.count(TaskState::Ready)
            + self.count(TaskState::Claimed)
    }

    /// Number of finished tasks.
    pub(crate) fn finished_count(&self) -> u64 {
        self.count(TaskState::Done) + self.count(TaskState::Dead) + self.count(TaskState::Cancelled)
    }

    /// The task that a worker with these labels claims next.
    pub(crate) fn first_ready(&self, labels: &Labels) -> Option<u32> {
        let plain = self.ready.first();
        if self.labelled.is_empty() {
            return plain.map(|(_, slot)| slot);
        }
        let heedless = planted::active(Bug::LabelsIgnored);
        let suited = self.labelled.iter().filter(|(wanted, _)| heedless || labels.satisfy(wanted));
        let firsts = suited.filter_map(|(_, line)| line.ready.first_key_value());
        let firsts = firsts.map(|(ready_key, slot)| (*ready_key, *slot));
        firsts.chain(plain).min().map(|(_, slot)| slot)
    }

    /// Tasks that such a worker may claim, from one ready key to another, in order and up to a number.
    pub(crate) fn near(&self, labels: &Labels, from: u64, to: u64, count_max: usize) -> Vec<u32> {
        let mut found: Vec<(u64, u32)> = self.ready.range(from, to).take(count_max).collect();
        for (_, line) in self.labelled.iter().filter(|(wanted, _)| labels.satisfy(wanted)) {
            let ready = line.ready.range(from..=to).take(count_max);
            found.extend(ready.map(|(ready_key, slot)| (*ready_key, *slot)));
        }
        found.sort_unstable();
        found.into_iter().take(count_max).map(|(_, slot)| slot).collect()
    }

    /// Claimable tasks that run beside others, in order.
    pub(crate) fn twins(&self) -> impl Iterator<Item = u32> + '_ {
        self.twins.values().copied()
    }

    /// Their number.
    pub(crate) fn twins_ready(&self) -> usize {
        self.twins.len()
    }

    /// The first claimable task of each priority and label set.
    pub(crate) fn firsts(&self) -> impl Iterator<Item = u32> + '_ {
        let labelled = self.labelled.values().filter_map(|line| line.ready.first_key_value());
        self.ready.firsts().chain(labelled.map(|(_, slot)| *slot))
    }

    /// How many claimable tasks that want the same labels come before a task, counted up to a bound; none if its key
    /// holds it back.
    pub(crate) fn ahead(&self, task: &Task, count_max: u64) -> Option<u64> {
        let ready_key = task.ready_key();
        if task
            .ordering_key()
            .is_some_and(|key| self.keys.get(key).is_none_or(|line| !line.is_offered(ready_key)))
        {
            return None;
        }
        let labels = task.extras.as_ref().map(|extras| &extras.labels);
        match labels.and_then(|labels| self.labelled.get(labels)) {
            Some(line) => {
                Some(line.ready.range(..ready_key).take(count_max as usize).count() as u64)
            }
            None => Some(self.ready.ahead(ready_key, count_max)),
        }
    }

    /// The task for whose sake the key of another lets that one wait.
    pub(crate) fn key_holder(&self, task: &Task) -> Option<u32> {
        self.keys.get(task.ordering_key()?)?.holder()
    }

    /// Whether any task at all may be claimed.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
            || !self.twins.is_empty()
            || self.labelled.values().any(|line| !line.ready.is_empty())
    }

    /// Number of claimable tasks that want no labels.
    pub(crate) fn plain_ready(&self) -> usize {
        self.ready.len()
    }

    /// Number of claimable tasks that want labels.
    pub(crate) fn labelled_ready(&self) -> usize {
        self.labelled.values().map(|line| line.ready.len()).sum()
    }

    /// Number of ready tasks that wait behind their key.
    pub(crate) fn held_back(&self) -> usize {
        self.keys.values().map(KeyLine::waiting).sum()
    }

    /// Number of label sets that unfinished tasks want.
    pub(crate) fn label_sets(&self) -> usize {
        self.labelled.len()
    }

    /// Whether one more task with these labels would keep the bound on label sets.
    pub(crate) fn has_room_for(&self, labels: &Labels) -> bool {
        self.has_room_within(labels, LABEL_SETS_MAX)
    }

    /// The same with another bound on label sets.
    pub(crate) fn has_room_within(&self, labels: &Labels, sets_max: usize) -> bool {
        labels.is_empty() || self.labelled.len() < sets_max || self.knows_labels(labels)
    }

    /// Whether an unfinished task wants exactly these labels.
    pub(crate) fn knows_labels(&self, labels: &Labels) -> bool {
        self.labelled.contains_key(labels)
    }

    /// Counts a task in, and puts it into line if it is ready.
    pub(crate) fn link(&mut self, slot: u32, task: &Task) {
        self.counts[task.state as usize] += 1;
        let Some(extras) = &task.extras else {
            if task.state == TaskState::Ready {
                self.ready.insert(task.ready_key(), slot);
            }
            return;
        };
        if !task.state.is_terminal() && !extras.labels.is_empty() {
            self.labelled.entry(extras.labels.clone()).or_default().pending += 1;
        }
        match task.ordering_key() {
            Some(key) if task.is_in_key_line() => self.link_keyed(slot, task, extras, key),
            None if task.state == TaskState::Ready && task.is_twin() => {
                self.twins.insert(task.ready_key(), slot);
            }
            None if task.state == TaskState::Ready => {
                self.offer(task.ready_key(), slot, &extras.labels);
            }
            _ => {}
        }
    }

    /// Takes a task out.
    pub(crate) fn unlink(&mut self, task: &Task) {
        self.counts[task.state as usize] -= 1;
        let Some(extras) = &task.extras else {
            if task.state == TaskState::Ready {
                self.ready.remove(task.ready_key());
            }
            return;
        };
        match task.ordering_key() {
            Some(key) if task.is_in_key_line() => {
                let claimed = task.state == TaskState::Claimed;
                let line = self.keys.get_mut(key);
                let offered =
                    line.and_then(|line| line.remove(extras.place, extras.key_limit, claimed));
                if let Some((ready_key, (_, labels))) = offered {
                    self.withdraw(ready_key, &labels);
                }
            }
            None if task.state == TaskState::Ready && task.is_twin() => {
                self.twins.remove(&task.ready_key());
            }
            None if task.state == TaskState::Ready => {
                self.withdraw(task.ready_key(), &extras.labels);
            }
            _ => {}
        }
        if !task.state.is_terminal()
            && let Some(line) = self.labelled.get_mut(&extras.labels)
        {
            line.pending -= 1;
            if line.pending == 0 {
                self.labelled.remove(&extras.labels);
            }
        }
    }

    fn link_keyed(&mut self, slot: u32, task: &Task, extras: &Extras, key: &str) {
        if !self.keys.contains_key(key) {
            self.keys.insert(Arc::from(key), KeyLine::default());
        }
        let Some(line) = self.keys.get_mut(key) else {
            return;
        };
        let (place, limit) = (extras.place, extras.key_limit);
        match task.state {
            TaskState::Ready => {
                let waiting = (slot, extras.labels.clone());
                line.add_ready(place, limit, task.ready_key(), waiting);
            }
            state => line.add_busy(place, limit, slot, state == TaskState::Claimed),
        }
    }

    /// Offers what a key allows after one of its tasks changed; tells whether anything was offered.
    pub(crate) fn settle_key(&mut self, key: &str) -> bool {
        let mut offered = false;
        loop {
            let Some(line) = self.keys.get_mut(key) else {
                return offered;
            };
            match line.next_turn() {
                Some(Turn::Offer(ready_key, (slot, labels))) => {
                    self.offer(ready_key, slot, &labels);
                    offered = true;
                }
                Some(Turn::Withdraw(ready_key, (_, labels))) => self.withdraw(ready_key, &labels),
                None => break,
            }
        }
        if self.keys.get(key).is_some_and(KeyLine::is_empty) {
            self.keys.remove(key);
        }
        offered
    }

    /// The same for all keys, after a restore.
    pub(crate) fn settle_all_keys(&mut self) {
        let keys: Vec<Arc<str>> = self.keys.keys().cloned().collect();
        for key in keys {
            self.settle_key(&key);
        }
    }

    fn offer(&mut self, ready_key: u64, slot: u32, labels: &Labels) {
        match self.labelled.get_mut(labels) {
            Some(line) => {
                line.ready.insert(ready_key, slot);
            }
            None => self.ready.insert(ready_key, slot),
        }
    }

    fn withdraw(&mut self, ready_key: u64, labels: &Labels) {
        match self.labelled.get_mut(labels) {
            Some(line) => {
                line.ready.remove(&ready_key);
            }
            None => {
                self.ready.remove(ready_key);
            }
        }
    }
}
