//! Every order of events in a small world (S-6): two workers, messages that get lost, late, out of order or doubled,
//! claims that expire at any moment. The model drives the real `Shard::apply`. With one task it visits every state; with
//! two there are too many for a test, and it stops after a number of them.
//!
//! Promises: a task is completed at most once, and only by the claim that is live; an expiry ends the claim that it names
//! and no other; fences of a task only rise; attempts stay within their limit. Without the fence check of completions, and
//! without that of expiries, the model finds a counterexample, so that a pass means something.
//!
//! Leaves out: log time (nothing here waits for it), request ids, cancels, and who may propose (consensus).

mod common;

use std::hash::{Hash, Hasher};

use common::*;
use ikada_state::*;
use stateright::{Checker, HasDiscoveries, Model, Property};

const TASKS: [&str; 2] = ["a", "b"];
const WORKERS: [&str; 2] = ["v", "w"];
const ATTEMPTS_MAX: u16 = 2;
/// Messages on their way at a time.
const FLYING_MAX: usize = 3;
/// Where the world of two tasks stops.
const STATES_MAX: usize = 500_000;
/// Messages that arrive twice.
const DOUBLES_MAX: u8 = 1;

/// A message on its way. Workers, tasks and fences by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Letter {
    Claim { worker: usize },
    Granted { worker: usize, task: usize, fence: u64 },
    Renew { worker: usize, task: usize, fence: u64 },
    Complete { worker: usize, task: usize, fence: u64 },
    Expire { task: usize, fence: u64 },
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Send(Letter),
    Arrive(Letter),
    ArriveAndStay(Letter),
    Lose(Letter),
}

/// What the model remembers of the past, to judge by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Past {
    completions: [u8; 2],
    wrong_completion: bool,
    wrong_expiry: bool,
    renewal_refused: bool,
    fence_went_back: bool,
    fence_max: [u64; 2],
    stale_refused: bool,
}

#[derive(Clone, Debug)]
struct State {
    shard: Shard,
    flying: Vec<Letter>,
    /// Claims that each worker believes to hold.
    held: [Vec<(usize, u64)>; 2],
    doubles: u8,
    past: Past,
}

impl State {
    fn live(&self, task: usize) -> Option<ClaimView> {
        self.shard.claim_of(&Namespace::default(), &task_id(TASKS[task]))
    }

    fn is_live(&self, worker: usize, task: usize, fence: u64) -> bool {
        self.live(task)
            .is_some_and(|live| live.fence.0 == fence && live.worker.as_str() == WORKERS[worker])
    }

    /// What decides the future: positions in the log do not.
    fn essence(&self) -> impl Hash + PartialEq + '_ {
        let tasks = TASKS.map(|name| {
            let view = self.shard.task(&Namespace::default(), &task_id(name));
            view.map(|view| {
                let holder = view.attempts.last().map(|attempt| attempt.worker.as_str().to_owned());
                (view.state.as_str(), view.attempt, view.fence.0, holder)
            })
        });
        (tasks, self.shard.grants(), &self.flying, &self.held, self.doubles, &self.past)
    }

    fn send(&mut self, letter: Letter) {
        let place = self.flying.partition_point(|other| *other <= letter);
        self.flying.insert(place, letter);
    }

    fn take_out(&mut self, letter: Letter) {
        if let Some(place) = self.flying.iter().position(|other| *other == letter) {
            self.flying.remove(place);
        }
    }

    fn apply(&mut self, command: Command) -> Reply {
        let mut builder = BatchBuilder::new();
        builder.push(&order(command));
        let index = self.shard.applied().index + 1;
        let entry = builder.finish(self.shard.time_ms());
        self.shard.apply(Lsn { term: 1, index }, &entry).replies.remove(0)
    }
}

impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        self.essence() == other.essence()
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.essence().hash(hasher);
    }
}

/// The world. Without fences a completion counts for whichever claim is live.
struct Desk {
    tasks: usize,
    fenced: bool,
    #[cfg(feature = "planted")]
    bug: Option<planted::Bug>,
}

impl Desk {
    fn sound(tasks: usize) -> Desk {
        Desk {
            tasks,
            fenced: true,
            #[cfg(feature = "planted")]
            bug: None,
        }
    }

    fn arrive(&self, state: &mut State, letter: Letter) {
        // The checker's threads are its own, and the choice of a defect belongs to a thread.
        #[cfg(feature = "planted")]
        planted::set(self.bug);
        match letter {
            Letter::Claim { worker } => self.claim(state, worker),
            Letter::Granted { worker, task, fence } => state.held[worker].push((task, fence)),
            Letter::Renew { worker, task, fence } => {
                let told = state.is_live(worker, task, fence);
                state.past.renewal_refused |= !told;
                if !told {
                    state.held[worker].retain(|held| *held != (task, fence));
                }
            }
            Letter::Complete { worker, task, fence } => self.complete(state, worker, task, fence),
            Letter::Expire { task, fence } => {
                let before = state.live(task);
                let id = task_id(TASKS[task]);
                state.apply(expire(id, Fence(fence)));
                let another = before.is_some_and(|live| {
                    live.fence.0 != fence
                        && state.live(task).is_none_or(|after| after.fence != live.fence)
                });
                state.past.wrong_expiry |= another;
            }
        }
    }

    fn claim(&self, state: &mut State, worker: usize) {
        let reply = state.apply(Command::Claim(claim(WORKERS[worker], &["q"], 1)));
        let Reply::Claimed { tasks } = reply else { return };
        for grant in tasks {
            let Some(task) = TASKS.iter().position(|name| *name == grant.id.as_str()) else {
                continue;
            };
            let fence = grant.fence.0;
            state.past.fence_went_back |= fence <= state.past.fence_max[task];
            state.past.fence_max[task] = fence;
            state.send(Letter::Granted { worker, task, fence });
        }
    }

    fn complete(&self, state: &mut State, worker: usize, task: usize, fence: u64) {
        let is_live = state.is_live(worker, task, fence);
        let (mut name, mut token) = (WORKERS[worker].to_owned(), fence);
        if let Some(live) = state.live(task)
            && !self.fenced
        {
            (name, token) = (live.worker.as_str().to_owned(), live.fence.0);
        }
        let was_done = state.past.completions[task] > 0;
        let reply = state.apply(Command::Complete(Complete {
            keeps_digest: None,
            id: task_id(TASKS[task]),
            fence: Fence(token),
            worker: common::worker(&name),
            result: None,
            then: None,
            outputs: Vec::new(),
        }));
        match reply {
            // A resend of the completion that counted is answered as the first time.
            Reply::Completed if was_done => {
                state.past.wrong_completion |= state.past.fence_max[task] != fence;
            }
            Reply::Completed => {
                state.past.completions[task] += 1;
                state.past.wrong_completion |= !is_live;
            }
            _ => state.past.stale_refused |= !is_live,
        }
        state.held[worker].retain(|held| *held != (task, fence));
    }
}

impl Model for Desk {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            shard: Shard::genesis(0, 1, &[]),
            flying: Vec::new(),
            held: Default::default(),
            doubles: 0,
            past: Past::default(),
        };
        for name in &TASKS[..self.tasks] {
            let mut task = enqueue(name, "q");
            task.max_attempts = Some(ATTEMPTS_MAX);
            state.apply(Command::Enqueue(task));
        }
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.flying.len() < FLYING_MAX {
            for worker in 0..WORKERS.len() {
                let asking = Letter::Claim { worker };
                if state.held[worker].is_empty() && !state.flying.contains(&asking) {
                    steps.push(Step::Send(asking));
                }
                for (task, fence) in state.held[worker].iter().copied() {
                    steps.push(Step::Send(Letter::Complete { worker, task, fence }));
                    steps.push(Step::Send(Letter::Renew { worker, task, fence }));
                }
            }
            for task in 0..self.tasks {
                if let Some(live) = state.live(task) {
                    steps.push(Step::Send(Letter::Expire { task, fence: live.fence.0 }));
                }
            }
        }
        let mut letters = state.flying.clone();
        letters.dedup();
        for letter in letters {
            steps.push(Step::Arrive(letter));
            steps.push(Step::Lose(letter));
            if state.doubles < DOUBLES_MAX {
                steps.push(Step::ArriveAndStay(letter));
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Send(letter) if state.flying.contains(&letter) => return None,
            Step::Send(letter) => state.send(letter),
            Step::Lose(letter) => state.take_out(letter),
            Step::Arrive(letter) => {
                state.take_out(letter);
                self.arrive(&mut state, letter);
            }
            Step::ArriveAndStay(letter) => {
                state.doubles += 1;
                self.arrive(&mut state, letter);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Desk>> {
        vec![
            Property::always(COMPLETED_ONCE, |_, state: &State| {
                !state.past.wrong_completion && state.past.completions.iter().all(|n| *n <= 1)
            }),
            Property::always(EXPIRED_AS_NAMED, |_, state: &State| !state.past.wrong_expiry),
            Property::always("fences rise", |_, state: &State| !state.past.fence_went_back),
            Property::always("attempts stay within their limit", |_, state: &State| {
                invariants::attempts_bounded(&state.shard).is_ok()
                    && invariants::one_live_claim(&state.shard).is_ok()
                    && invariants::accounting(&state.shard).is_ok()
            }),
            Property::sometimes("all tasks are done", |desk: &Desk, state: &State| {
                state.past.completions[..desk.tasks].iter().all(|count| *count == 1)
            }),
            Property::sometimes("a renewal is refused", |_, state: &State| {
                state.past.renewal_refused
            }),
            Property::sometimes("a late completion is refused", |_, state: &State| {
                state.past.stale_refused
            }),
        ]
    }
}

const COMPLETED_ONCE: &str = "completed once, by the live claim";
const EXPIRED_AS_NAMED: &str = "an expiry that names another fence ends nothing";

#[test]
fn s_6_no_order_of_events_breaks_a_claim() {
    let checker = Desk::sound(1).checker().threads(2).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    assert!(checker.unique_state_count() > 1_000, "the world is not trivial");
    checker.assert_properties();
}

#[test]
fn s_6_two_tasks_do_not_disturb_each_other() {
    let checker = Desk::sound(2).checker().target_state_count(STATES_MAX).spawn_dfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn s_6_without_fences_the_model_finds_the_zombie() {
    for tasks in [1, 2] {
        let desk = Desk { fenced: false, ..Desk::sound(tasks) };
        let checker = desk.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        assert!(checker.discovery(COMPLETED_ONCE).is_some());
    }
}

#[cfg(feature = "planted")]
#[test]
fn s_6_the_planted_defect_is_found() {
    let desk = Desk { bug: Some(planted::Bug::CompleteStaleFence), ..Desk::sound(1) };
    let checker = desk.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.discovery(COMPLETED_ONCE).is_some());
}

#[cfg(feature = "planted")]
#[test]
fn s_6_an_expiry_without_its_fence_is_found() {
    let desk = Desk { bug: Some(planted::Bug::ExpireUnfenced), ..Desk::sound(1) };
    let checker = desk.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.discovery(EXPIRED_AS_NAMED).is_some());
}
