//! What an admin has set holds whatever a submitter writes into its tasks, in whatever order both come (X10).

mod common;
use common::*;
use ikada_state::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    /// An admin bounds the namespace's waiting tasks; 0 is no bound.
    Bound(u64),
    /// An operator pauses or resumes the queue.
    Pause(bool),
    /// A submitter sends a task, with fields that are its own to choose.
    Submit { priority: Option<u8>, max_attempts: Option<u16>, ttl_ms: Option<u32>, timeout_ms: u32 },
    /// A worker asks for tasks.
    Claim,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let submit = (
        prop::option::of(0_u8..=9),
        prop::option::of(1_u16..100),
        prop::option::of(1_000_u32..100_000),
        0_u32..100_000,
    );
    let submit = submit.prop_map(|(priority, max_attempts, ttl_ms, timeout_ms)| Step::Submit {
        priority,
        max_attempts,
        ttl_ms,
        timeout_ms,
    });
    let step = prop_oneof![
        2 => (0_u64..6).prop_map(Step::Bound),
        1 => any::<bool>().prop_map(Step::Pause),
        6 => submit,
        1 => Just(Step::Claim),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn x_10_what_an_admin_set_is_judged_last(steps in steps()) {
        let mut world = World::new();
        let (mut bound, mut paused, mut pending) = (0, false, 0);
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Bound(count) => {
                    let change = QuotaChange { pending_max: Some(count), ..QuotaChange::default() };
                    world.run(Command::SetQuota(SetQuota { change }));
                    bound = count;
                }
                Step::Pause(wanted) => {
                    let change = QueueChange { paused: Some(wanted), ..QueueChange::default() };
                    let name = queue("q");
                    world.run(Command::SetQueue(SetQueue { queue: name, change, expected_version: None }));
                    paused = wanted;
                }
                Step::Submit { priority, max_attempts, ttl_ms, timeout_ms } => {
                    let id = format!("t{number}");
                    let mut task = enqueue_with(&id, "q", |options| options.timeout_ms = Some(timeout_ms));
                    (task.priority, task.max_attempts, task.ttl_ms) = (priority, max_attempts, ttl_ms);
                    let full = bound > 0 && pending >= bound;
                    let wanted = match full {
                        true => refused(RefusalCode::NamespaceFull),
                        false => Reply::Enqueued { id: task_id(&id), created: true },
                    };
                    prop_assert_eq!(world.run(Command::Enqueue(task)), wanted);
                    pending += u64::from(!full);
                }
                Step::Claim => {
                    let waiting = world.shard.namespaces(false);
                    let waiting = waiting.iter().map(|view| view.pending).sum::<u64>();
                    prop_assert_eq!(waiting, pending);
                    let granted = world.take(1);
                    prop_assert!(!paused || granted.is_empty(), "a paused queue gave a task");
                    for grant in &granted {
                        prop_assert_eq!(world.run(complete(grant, "w")), Reply::Completed);
                        pending -= 1;
                    }
                }
            }
        }
    }
}
