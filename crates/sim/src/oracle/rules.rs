//! What each task asked for (key, labels, deadline, follow-ups) and where it stands, in log order.
//!
//! Fed with the orders of an entry first and its effects afterwards, one by one; so at each effect everything before it
//! is known. Shares no code with the lines that the product keeps: it looks at all tasks of a key every time.

use std::collections::{BTreeMap, BTreeSet};

use ikada_state::{
    Command, Enqueue, Fence, Labels, Message, Order, QueueName, Reply, ScheduleName, TaskId,
    TaskOptions, TaskState, decode_then, derive_fire_id,
};

/// What a task asked for.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Its queue.
    pub queue: QueueName,
    /// Most live claims of its key; 0 if its key limits nothing.
    pub key_limit: u16,
    /// Its rare settings.
    pub options: TaskOptions,
    /// Its follow-ups.
    pub then: Vec<TaskId>,
}

/// Where a task stands.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Its state.
    pub state: TaskState,
    /// Its place among all tasks, by creation.
    pub place: u64,
    /// Whether it was ever claimed.
    pub begun: bool,
    /// Log time from which on it may not be claimed.
    pub deadline_ms: Option<u64>,
}

/// A task on its way to another shard.
#[derive(Debug, Clone)]
pub struct Travelling {
    standing: Standing,
    wishes: Vec<(TaskId, Wish)>,
}

/// All tasks of one shard.
#[derive(Debug, Default)]
pub struct Rules {
    wishes: BTreeMap<TaskId, Wish>,
    /// What each schedule submits.
    templates: BTreeMap<ScheduleName, Enqueue>,
    /// Tasks that exist.
    pub standings: BTreeMap<TaskId, Standing>,
    /// Labels of the claim that a fence was granted to.
    pub labels: BTreeMap<Fence, Labels>,
    /// Tasks that this entry may create: submitted in it, or following one that it completes.
    pub expected: BTreeSet<TaskId>,
    places: u64,
    /// Log time.
    pub time_ms: u64,
}

impl Rules {
    /// A new entry begins.
    pub fn begin(&mut self, time_ms: u64) {
        self.time_ms = self.time_ms.max(time_ms);
        self.expected.clear();
        self.labels.clear();
    }

    /// An order of the entry and its reply.
    pub fn order(&mut self, order: &Order, reply: &Reply) {
        match (&order.command, reply) {
            (Command::Enqueue(task), Reply::Enqueued { .. }) => {
                self.expected.insert(task.id.clone());
                if !self.wishes.contains_key(&task.id) {
                    self.learn(task, 1);
                }
            }
            (Command::Claim(claim), Reply::Claimed { tasks }) => {
                for grant in tasks {
                    self.labels.insert(grant.fence, claim.labels.clone());
                }
            }
            (Command::Complete(complete), Reply::Completed) => {
                let given = complete.then.as_ref().and_then(|then| decode_then(then));
                for task in given.unwrap_or_default() {
                    let limit = self.wishes.get(&complete.id).map_or(0, |wish| wish.key_limit);
                    if !self.wishes.contains_key(&task.id) {
                        self.learn(&task, limit);
                    }
                    if let Some(parent) = self.wishes.get_mut(&complete.id) {
                        parent.then.push(task.id);
                    }
                }
            }
            (Command::SetSchedule(set), Reply::ScheduleSet { .. }) => {
                if let Some(spec) = &set.spec {
                    self.templates.insert(set.name.clone(), spec.task.clone());
                }
            }
            (Command::Fire(fire), Reply::Fired { fresh: true }) if fire.run => {
                let id = TaskId::parse(&derive_fire_id(&fire.name, fire.instant_ms));
                if let (Ok(id), Some(template)) = (id, self.templates.get(&fire.name)) {
                    let task = Enqueue { id, ..template.clone() };
                    self.expect(&task);
                }
            }
            (Command::Deliver(deliver), Reply::Delivered { fresh: true }) => {
                if let Message::Submit { task, .. } = &deliver.message {
                    self.expect(task);
                }
            }
            _ => {}
        }
    }

    /// A task that comes of a schedule.
    fn expect(&mut self, task: &Enqueue) {
        self.expected.insert(task.id.clone());
        if !self.wishes.contains_key(&task.id) {
            self.learn(task, 1);
        }
    }

    fn learn(&mut self, task: &Enqueue, key_limit: u16) {
        let options = task.options.as_deref().cloned().unwrap_or_default();
        let default = if task.id.key().is_some() { key_limit } else { 0 };
        let key_limit = options.key_limit.unwrap_or(default);
        let below = options.then.as_ref().and_then(|then| decode_then(then)).unwrap_or_default();
        for follow_up in &below {
            if !self.wishes.contains_key(&follow_up.id) {
                self.learn(follow_up, key_limit);
            }
        }
        let then = below.into_iter().map(|follow_up| follow_up.id).collect();
        let wish = Wish { queue: task.queue.clone(), key_limit, options, then };
        self.wishes.insert(task.id.clone(), wish);
    }

    /// What a task asked for.
    pub fn wish(&self, id: &TaskId) -> Option<&Wish> {
        self.wishes.get(id)
    }

    /// Follows one transition.
    pub fn moved(&mut self, id: &TaskId, to: Option<TaskState>) {
        let Some(to) = to else {
            self.standings.remove(id);
            return;
        };
        if let Some(standing) = self.standings.get_mut(id) {
            let revived = standing.state.is_terminal();
            standing.state = to;
            standing.begun |= to == TaskState::Claimed;
            // A task that is tried again although it is late has no deadline any more.
            let late = standing.deadline_ms.is_some_and(|deadline_ms| deadline_ms <= self.time_ms);
            if revived && late {
                standing.deadline_ms = None;
            }
            return;
        }
        self.places += 1;
        let options = self.wishes.get(id).map(|wish| &wish.options);
        let in_ms = options.and_then(|options| options.deadline_in_ms).filter(|in_ms| *in_ms > 0);
        let deadline_ms = options.and_then(|options| options.deadline_ms);
        let deadline_ms = deadline_ms.or(in_ms.map(|in_ms| self.time_ms + in_ms));
        let standing = Standing { state: to, place: self.places, begun: false, deadline_ms };
        self.standings.insert(id.clone(), standing);
    }

    /// A task leaves with its slot: where it stood, and what it and its kin asked for.
    pub fn leave(&mut self, id: &TaskId) -> Option<Travelling> {
        let standing = self.standings.remove(id)?;
        let kin = |other: &&TaskId| other.routing_key() == id.routing_key();
        let ids: Vec<TaskId> = self.wishes.keys().filter(kin).cloned().collect();
        let wishes =
            ids.into_iter().filter_map(|id| Some((id.clone(), self.wishes.get(&id)?.clone())));
        Some(Travelling { standing, wishes: wishes.collect() })
    }

    /// A task comes with its slot.
    pub fn arrive(&mut self, id: &TaskId, travelling: Travelling) {
        // Whoever is submitted from now on stands behind it.
        self.places = self.places.max(travelling.standing.place);
        self.standings.insert(id.clone(), travelling.standing);
        for (id, wish) in travelling.wishes {
            self.wishes.entry(id).or_insert(wish);
        }
    }

    /// Tasks in the line of a task's key: ready, claimed or waiting for a retry.
    pub fn line(&self, id: &TaskId) -> Vec<(&TaskId, &Standing, u16)> {
        let (Some(key), Some(wish)) = (id.key(), self.wish(id)) else {
            return Vec::new();
        };
        let members = self.standings.iter().filter_map(|(other, standing)| {
            let theirs = self.wishes.get(other)?;
            let in_line = match standing.state {
                TaskState::Ready | TaskState::Claimed => true,
                TaskState::Scheduled => standing.begun,
                _ => false,
            };
            let same = other.key() == Some(key) && theirs.queue == wish.queue;
            (same && in_line && theirs.key_limit > 0).then_some((other, standing, theirs.key_limit))
        });
        members.collect()
    }
}
