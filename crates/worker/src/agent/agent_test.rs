//! The agent's conduct, step by step.

use std::collections::VecDeque;

use ikada_api::v1::{ClaimedTask, Number};

use super::*;

/// An agent and what it last asked for.
struct Bench {
    agent: Agent,
    now_ms: u64,
    outputs: Vec<Output>,
    /// Reports under way, oldest first, and whether a claim goes with them.
    open: VecDeque<(u64, bool)>,
}

impl Bench {
    fn new(slots: u32) -> Bench {
        let config = AgentConfig { slots, drain_ms: 10_000, ..AgentConfig::default() };
        let (agent, now_ms) = (Agent::new(config), 1_000);
        let mut bench = Bench { agent, now_ms, outputs: Vec::new(), open: VecDeque::new() };
        bench.feed(Input::Tick);
        bench
    }

    fn feed(&mut self, input: Input) -> &[Output] {
        self.outputs.clear();
        self.agent.step(input, self.now_ms, &mut self.outputs);
        self.open.extend(self.outputs.iter().filter_map(|output| match output {
            Output::Report { number, claim, .. } => Some((*number, claim.is_some())),
            _ => None,
        }));
        &self.outputs
    }

    /// Answers the oldest report under way; a claim that went with it finds nothing.
    fn answer(&mut self, verdicts: Vec<(Ticket, ReportVerdict)>) -> &[Output] {
        self.answer_with(verdicts, Ok(Vec::new()))
    }

    fn answer_with(
        &mut self,
        verdicts: Vec<(Ticket, ReportVerdict)>,
        claimed: Result<Vec<ClaimedTask>, CallFailed>,
    ) -> &[Output] {
        let (number, claims) = self.open.pop_front().expect("a report is under way");
        self.feed(Input::Reported(number, verdicts));
        if claims {
            let before = std::mem::take(&mut self.outputs);
            self.feed(Input::Claimed(claimed));
            self.outputs.splice(0..0, before);
        }
        &self.outputs
    }

    /// Claims that go with reports: number, and most tasks.
    fn claims_behind(&self) -> Vec<(u64, u32)> {
        let behind = self.outputs.iter().filter_map(|output| match output {
            Output::Report { claim, .. } => claim.map(|claim| (claim.number, claim.count_max)),
            _ => None,
        });
        behind.collect()
    }

    /// Lets time pass to the next wake-up.
    fn wake(&mut self) -> &[Output] {
        self.now_ms =
            self.agent.next_wake_ms().expect("the agent waits for something").max(self.now_ms);
        self.feed(Input::Tick)
    }

    fn grant(&mut self, ids: &[&str]) -> Vec<Ticket> {
        self.grant_tasks(ids.iter().map(|id| task(id)).collect())
    }

    fn grant_tasks(&mut self, tasks: Vec<ClaimedTask>) -> Vec<Ticket> {
        self.feed(Input::Claimed(Ok(tasks)));
        self.outputs
            .iter()
            .filter_map(|output| match output {
                Output::Run(ticket, _) => Some(*ticket),
                _ => None,
            })
            .collect()
    }

    fn claims(&self) -> Vec<u32> {
        self.outputs
            .iter()
            .filter_map(|output| match output {
                Output::Claim { count_max, .. } => Some(*count_max),
                _ => None,
            })
            .collect()
    }

    fn reports(&self) -> Vec<Report> {
        self.outputs
            .iter()
            .flat_map(|output| match output {
                Output::Report { reports, .. } => reports.clone(),
                _ => Vec::new(),
            })
            .collect()
    }

    fn stopped(&self) -> Option<usize> {
        self.outputs.iter().find_map(|output| match output {
            Output::Stopped { abandoned } => Some(*abandoned),
            _ => None,
        })
    }
}

fn task(id: &str) -> ClaimedTask {
    ClaimedTask {
        work: None,
        checkpoint: false,
        traceparent: None,
        timeout_ms: None,
        id: id.to_owned(),
        queue: "q".to_owned(),
        fence: Number(7),
        attempt: 1,
        max_attempts: 5,
        ttl_ms: 30_000,
        payload: None,
        payload_base64: None,
        payload_bytes: None,
    }
}

#[test]
fn one_claim_asks_for_all_free_slots() {
    let mut bench = Bench::new(4);
    assert_eq!(bench.claims(), vec![4]);
    bench.feed(Input::Tick);
    assert!(bench.claims().is_empty(), "one claim at a time");
    bench.grant(&["a", "b", "c"]);
    assert_eq!(bench.claims(), vec![1]);
}

#[test]
fn more_tasks_than_asked_for_are_left_alone() {
    let mut bench = Bench::new(2);
    assert_eq!(bench.grant(&["a", "b", "c"]).len(), 2);
    assert_eq!(bench.agent.free_slots(), 0);
    assert!(bench.claims().is_empty());
}

#[test]
fn a_failed_claim_is_repeated_later_not_at_once() {
    let mut bench = Bench::new(1);
    bench.feed(Input::Claimed(Err(CallFailed)));
    assert!(bench.claims().is_empty());
    let before_ms = bench.now_ms;
    bench.wake();
    assert!(bench.now_ms > before_ms);
    assert_eq!(bench.claims(), vec![1]);
}

#[test]
fn an_empty_answer_without_a_wait_is_not_a_tight_loop() {
    let mut bench = Bench::new(1);
    bench.feed(Input::Claimed(Ok(Vec::new())));
    assert!(bench.claims().is_empty());
    bench.wake();
    assert_eq!(bench.claims(), vec![1]);
    // After a real long poll the next one follows at once.
    bench.now_ms += 5_000;
    bench.feed(Input::Claimed(Ok(Vec::new())));
    assert_eq!(bench.claims(), vec![1]);
}

// TQ-15, and requirement 13 of the firsts: a worker outlives leaders.
#[test]
fn tq_15_a_report_is_repeated_until_it_is_settled() {
    let mut bench = Bench::new(1);
    let ticket = bench.grant(&["a"])[0];
    bench.feed(Input::Finished(ticket, Ok(b"1".to_vec().into())));
    for _ in 0..50 {
        assert_eq!(bench.reports().len(), 1);
        assert!(bench.claims().is_empty(), "the slot is not free before the report is settled");
        bench.answer(vec![(ticket, ReportVerdict::Undecided)]);
        assert!(bench.reports().is_empty());
        loop {
            bench.wake();
            if !bench.reports().is_empty() {
                break;
            }
            if bench.outputs.iter().any(|output| matches!(output, Output::Renew(_))) {
                bench.feed(Input::Renewed(Vec::new()));
            }
        }
    }
    bench.answer(vec![(ticket, ReportVerdict::Settled)]);
    assert_eq!(bench.claims(), vec![1]);
}

// TQ-18, F-20
#[test]
fn tq_18_a_lost_claim_is_never_reported_and_keeps_its_slot_while_it_runs() {
    let mut bench = Bench::new(1);
    let ticket = bench.grant(&["a"])[0];
    bench.wake();
    bench.feed(Input::Renewed(vec![(ticket, RenewVerdict::Lost)]));
    assert!(
        bench.outputs.iter().any(|output| matches!(output, Output::Lost(lost) if *lost == ticket))
    );
    assert!(bench.claims().is_empty());
    bench.feed(Input::Finished(ticket, Ok(vec![].into())));
    assert!(bench.reports().is_empty());
    assert_eq!(bench.claims(), vec![1]);
}

#[test]
fn ls_13_renewal_comes_after_a_third_of_the_lifetime_and_repeats_when_undecided() {
    let mut bench = Bench::new(2);
    let granted_ms = bench.now_ms;
    let tasks = ["a", "b"].map(|id| ClaimedTask { ttl_ms: 1_800, ..task(id) });
    let tickets = bench.grant_tasks(tasks.to_vec());
    bench.wake();
    assert_eq!(bench.now_ms, granted_ms + 600);
    let [Output::Renew(claims)] = &bench.outputs[..] else { panic!("{:?}", bench.outputs) };
    assert_eq!(claims.len(), 2);
    bench.feed(Input::Renewed(vec![
        (tickets[0], RenewVerdict::Renewed { ttl_ms: 1_800 }),
        (tickets[1], RenewVerdict::Undecided),
    ]));
    bench.wake();
    assert!(bench.now_ms < granted_ms + 1_000, "an undecided claim is renewed again soon");
    assert!(matches!(&bench.outputs[..], [Output::Renew(claims)] if claims.len() == 2));
}

// However long a claim lives, its worker asks often enough to hear of a cancel in time, and not more often than that.
#[test]
fn b4_30_a_lost_claim_is_heard_of_soon_whatever_its_lifetime() {
    let mut bench = Bench::new(1);
    let ticket = bench.grant(&["long"])[0];
    for _ in 0..5 {
        let before_ms = bench.now_ms;
        bench.wake();
        assert!(matches!(&bench.outputs[..], [Output::Renew(claims)] if claims.len() == 1));
        let pause_ms = bench.now_ms - before_ms;
        assert!((1_000..=1_500).contains(&pause_ms), "{pause_ms}");
        bench.feed(Input::Renewed(vec![(ticket, RenewVerdict::Renewed { ttl_ms: 3_600_000 })]));
    }
    bench.wake();
    bench.feed(Input::Renewed(vec![(ticket, RenewVerdict::Lost)]));
    assert!(matches!(&bench.outputs[..], [Output::Lost(lost)] if *lost == ticket));
}

#[test]
fn large_results_travel_apart_and_too_large_ones_fail() {
    // With eight slots a call beside others brings two tasks.
    let mut bench = Bench::new(8);
    bench.agent.config.report_bytes_max = 100;
    let tickets = bench.grant(&["a", "b", "c"]);
    for (ticket, reported) in tickets.iter().zip([1, 0, 1]) {
        bench.feed(Input::Finished(*ticket, Ok(vec![0; 60].into())));
        assert_eq!(bench.reports().len(), reported, "two would exceed the bound");
    }
    let mut bench = Bench::new(1);
    let ticket = bench.grant(&["a"])[0];
    bench.feed(Input::Finished(ticket, Ok(vec![0; (64 << 10) + 1].into())));
    assert!(
        bench.reports()[0]
            .result
            .as_ref()
            .is_err_and(|failure| failure.error.contains("65537 bytes"))
    );
}

#[test]
fn a_result_that_is_refused_becomes_a_failure() {
    let mut bench = Bench::new(1);
    let ticket = bench.grant(&["a"])[0];
    bench.feed(Input::Finished(ticket, Ok(vec![0; 9].into())));
    bench.answer(vec![(ticket, ReportVerdict::Refused("too large".into()))]);
    let [report] = &bench.reports()[..] else { panic!("{:?}", bench.outputs) };
    assert_eq!(report.result, Err(Failure::new("result refused: too large")));
    bench.answer(vec![(ticket, ReportVerdict::Refused("odd".into()))]);
    assert_eq!(bench.claims(), vec![1], "a failure that is refused is dropped");
}

#[test]
fn draining_finishes_what_is_held_and_takes_nothing_new() {
    let mut bench = Bench::new(2);
    let ticket = bench.grant(&["a"])[0];
    bench.feed(Input::Drain);
    assert_eq!(bench.stopped(), None);
    // The claim under way may still bring a task; it is run.
    let late = bench.grant(&["b"])[0];
    bench.feed(Input::Finished(ticket, Ok(vec![].into())));
    bench.answer(vec![(ticket, ReportVerdict::Settled)]);
    assert!(bench.claims().is_empty());
    bench.feed(Input::Finished(late, Ok(vec![].into())));
    bench.answer(vec![(late, ReportVerdict::Settled)]);
    assert_eq!(bench.stopped(), Some(0));
    assert_eq!(bench.agent.next_wake_ms(), None);
    assert!(bench.feed(Input::Tick).is_empty());
}

#[test]
fn what_runs_too_long_while_draining_is_cancelled_and_given_back() {
    let mut bench = Bench::new(2);
    let tickets = bench.grant(&["a", "b"]);
    bench.feed(Input::Drain);
    bench.feed(Input::Finished(tickets[0], Ok(vec![].into())));
    bench.answer(vec![(tickets[0], ReportVerdict::Settled)]);
    bench.now_ms += 10_000;
    bench.feed(Input::Tick);
    let cancelled = |output: &Output| matches!(output, Output::Cancel(it) if *it == tickets[1]);
    assert!(bench.outputs.iter().any(cancelled), "{:?}", bench.outputs);
    let [report] = &bench.reports()[..] else { panic!("{:?}", bench.outputs) };
    let failure = report.result.as_ref().unwrap_err();
    assert!(failure.retry);
    assert_eq!(failure.delay_ms, Some(0), "another worker may begin at once");
    assert_eq!(bench.stopped(), None, "it insists on giving back");
    // The handler ends when it is cancelled; that changes nothing.
    bench.feed(Input::Finished(tickets[1], Ok(vec![7].into())));
    bench.answer(vec![(tickets[1], ReportVerdict::Settled)]);
    assert_eq!(bench.stopped(), Some(0));
}

#[test]
fn b4_18_b4_19_a_removed_worker_ends_what_runs_at_once_and_takes_nothing() {
    let mut bench = Bench::new(3);
    let tickets = bench.grant(&["a", "b"]);
    // It was told to drain before, and has all the time that this gives.
    bench.feed(Input::Drain);
    bench.feed(Input::Removed);
    for ticket in &tickets {
        let lost = |output: &Output| matches!(output, Output::Lost(it) if it == ticket);
        assert!(bench.outputs.iter().any(lost), "{:?}", bench.outputs);
    }
    assert!(bench.grant(&["c"]).is_empty(), "what a claim under way brings is another's");
    assert_eq!(bench.stopped(), None, "handlers end in their own way");
    bench.feed(Input::Removed);
    bench.feed(Input::Finished(tickets[0], Ok(vec![].into())));
    bench.feed(Input::Finished(tickets[1], Err(Failure::new("told to stop"))));
    assert!(bench.reports().is_empty() && bench.claims().is_empty());
    assert_eq!(bench.stopped(), Some(0));
    let mut bench = Bench::new(1);
    bench.feed(Input::Removed);
    assert_eq!(bench.stopped(), Some(0), "no claim under way is waited for");
    let mut bench = Bench::new(1);
    bench.grant(&["deaf"]);
    bench.feed(Input::Removed);
    bench.now_ms += 5_000;
    bench.feed(Input::Tick);
    assert_eq!(bench.stopped(), Some(1), "whoever does not end is dropped");
}

#[test]
fn leaving_ends_when_nobody_takes_the_tasks_back() {
    let mut bench = Bench::new(1);
    bench.grant(&["a"]);
    bench.feed(Input::Drain);
    for _ in 0..1_000 {
        if bench.stopped().is_some() {
            break;
        }
        let (reports, renews) = (
            bench.reports().len(),
            bench.outputs.iter().filter(|output| matches!(output, Output::Renew(_))).count(),
        );
        if reports > 0 {
            bench.answer(Vec::new());
        } else if renews > 0 {
            bench.feed(Input::Renewed(Vec::new()));
        } else {
            bench.wake();
        }
    }
    assert_eq!(bench.stopped(), Some(1));
    assert_eq!(bench.now_ms, 1_000 + 10_000 + 5_000);
}

#[test]
fn what_ends_together_is_reported_together() {
    let mut bench = Bench::new(3);
    let tickets = bench.grant(&["a", "b", "c"]);
    let inputs: Vec<Input> =
        tickets.iter().map(|ticket| Input::Finished(*ticket, Ok(vec![].into()))).collect();
    let mut outputs = Vec::new();
    bench.agent.step_all(inputs, bench.now_ms, &mut outputs);
    assert!(
        matches!(&outputs[..], [Output::Report { reports, .. }] if reports.len() == 3),
        "{outputs:?}"
    );
}

#[test]
fn late_answers_and_unknown_tickets_change_nothing() {
    let mut bench = Bench::new(1);
    bench.feed(Input::Reported(9, vec![(Ticket(9), ReportVerdict::Settled)]));
    bench.feed(Input::Renewed(vec![(Ticket(9), RenewVerdict::Lost)]));
    bench.feed(Input::Finished(Ticket(9), Ok(vec![].into())));
    let ticket = bench.grant(&["a"])[0];
    bench.feed(Input::Claimed(Ok(vec![task("stray")])));
    assert_eq!(bench.agent.free_slots(), 0);
    bench.feed(Input::Finished(ticket, Ok(vec![1].into())));
    bench.feed(Input::Finished(ticket, Ok(vec![2].into())));
    bench.answer(vec![(ticket, ReportVerdict::Undecided)]);
    bench.wake();
    assert_eq!(bench.reports()[0].result, Ok(vec![1].into()), "the first result counts");
}

/// Claims by number and count, and the lengths of the lists in renewals.
#[derive(Default)]
struct Asked {
    claims: Vec<(u64, u32)>,
    lists: Vec<usize>,
}

impl Asked {
    fn note(&mut self, outputs: &[Output]) {
        for output in outputs {
            match output {
                Output::Claim { number, count_max, .. } => self.claims.push((*number, *count_max)),
                Output::Renew(claims) => self.lists.push(claims.len()),
                _ => {}
            }
        }
    }
}

/// Lets every call come to nothing until the agent waits; tells what was asked for.
fn fail_all(bench: &mut Bench) -> Asked {
    let mut total = Asked::default();
    let mut open = Asked::default();
    open.note(&bench.outputs);
    while !open.claims.is_empty() || !open.lists.is_empty() {
        let now = std::mem::take(&mut open);
        for _ in &now.claims {
            open.note(bench.feed(Input::Claimed(Err(CallFailed))));
        }
        for _ in &now.lists {
            open.note(bench.feed(Input::Renewed(Vec::new())));
        }
        total.claims.extend(now.claims);
        total.lists.extend(now.lists);
    }
    total
}

#[test]
fn a_claim_without_an_answer_is_repeated_under_its_number_while_the_roll_is_called() {
    let mut bench = Bench::new(2);
    let ticket = bench.grant(&["a"])[0];
    let mut second = Asked::default();
    second.note(&bench.outputs);
    assert_eq!(second.claims, [(2, 1)]);
    bench.feed(Input::Finished(ticket, Ok(vec![].into())));
    bench.answer(vec![(ticket, ReportVerdict::Settled)]);
    bench.feed(Input::Claimed(Err(CallFailed)));
    let lost_ms = bench.now_ms;
    let mut asked = fail_all(&mut bench);
    assert_eq!(asked.lists, [0], "an empty list says that nothing is held");
    while bench.now_ms < lost_ms + 3_000 {
        bench.wake();
        let more = fail_all(&mut bench);
        asked.claims.extend(more.claims);
        asked.lists.extend(more.lists);
    }
    assert!(asked.claims.len() > 1);
    let same = asked.claims.iter().all(|claim| *claim == (2, 1));
    assert!(same, "also with two free slots: {:?}", asked.claims);
    assert!((3..=5).contains(&asked.lists.len()), "once a second: {:?}", asked.lists);
}

#[test]
fn an_answered_claim_is_over_and_a_number_is_not_asked_for_ever() {
    let mut bench = Bench::new(1);
    assert_eq!(fail_all(&mut bench).claims, [(1, 1)]);
    let mut numbers = std::collections::BTreeSet::new();
    for _ in 0..200 {
        bench.wake();
        numbers.extend(fail_all(&mut bench).claims.into_iter().map(|claim| claim.0));
    }
    assert!(numbers.len() > 2, "{numbers:?}");
}

// TQ-9, B4-6: a worker whose slots are all in use tells and asks in one call, for no more than it has room for by then.
#[test]
fn b4_6_a_full_worker_claims_with_its_report() {
    let mut bench = Bench::new(2);
    let held = bench.grant(&["a", "b"]);
    bench.feed(Input::Finished(held[0], Ok(Done::default())));
    assert_eq!(bench.claims_behind(), [(2, 1)]);
    assert!(bench.claims().is_empty(), "one claim at a time");
    bench.feed(Input::Finished(held[1], Ok(Done::default())));
    assert!(bench.claims_behind().is_empty(), "one claim at a time");
    bench.answer_with(vec![(held[0], ReportVerdict::Settled)], Ok(vec![task("c"), task("d")]));
    let begun: Vec<_> = bench.outputs.iter().filter(|it| matches!(it, Output::Run(..))).collect();
    assert_eq!(begun.len(), 1, "the other slot's report is not settled yet");
}

// Nothing there: the next claim waits for tasks, and begins at once.
#[test]
fn b4_6_a_claim_that_found_nothing_with_a_report_is_followed_by_one_that_waits() {
    let mut bench = Bench::new(1);
    let held = bench.grant(&["a"]);
    bench.feed(Input::Finished(held[0], Ok(Done::default())));
    assert_eq!(bench.claims_behind(), [(2, 1)]);
    bench.answer(vec![(held[0], ReportVerdict::Settled)]);
    assert_eq!(bench.claims(), [1]);
    // A failure frees its slot after a wait or for good; who has done nothing is asked for nothing in its place.
    let held = bench.grant(&["b"]);
    bench.feed(Input::Finished(held[0], Err(Failure::new("broken"))));
    assert!(bench.claims_behind().is_empty());
}

// TQ-13: no answer at all. What the claim may have been granted is asked for under its number, when there is room for it.
#[test]
fn b4_6_a_claim_lost_with_its_report_is_repeated_once_there_is_room() {
    let mut bench = Bench::new(2);
    let held = bench.grant(&["a", "b"]);
    bench.feed(Input::Finished(held[0], Ok(Done::default())));
    let number = bench.claims_behind()[0].0;
    bench.answer_with(Vec::new(), Err(CallFailed));
    let mut asked = None;
    for _ in 0..20 {
        bench.wake();
        assert!(bench.claims_behind().is_empty(), "the lost one comes first");
        asked = bench.outputs.iter().find_map(|output| match output {
            Output::Claim { number, count_max, .. } => Some((*number, *count_max)),
            _ => None,
        });
        if !bench.reports().is_empty() {
            assert_eq!(asked, None, "its slot is not free");
            bench.answer(vec![(held[0], ReportVerdict::Settled)]);
            let again = bench.outputs.iter().find_map(|output| match output {
                Output::Claim { number, count_max, .. } => Some((*number, *count_max)),
                _ => None,
            });
            asked = asked.or(again);
        }
        if asked.is_some() {
            break;
        }
    }
    assert_eq!(asked, Some((number, 1)));
}

// The slot that a lost claim was to have is free only with its report: until then the claim might bring a task too many.
#[test]
fn b4_6_a_lost_claim_for_two_slots_is_not_repeated_for_one() {
    let mut bench = Bench::new(2);
    let held = bench.grant(&["a"]);
    let (now_ms, mut outputs) = (bench.now_ms + 60_000, Vec::new());
    let together = [Input::Claimed(Ok(Vec::new())), Input::Finished(held[0], Ok(Done::default()))];
    bench.agent.step_all(together, now_ms, &mut outputs);
    bench.now_ms = now_ms;
    let [Output::Report { number, claim: Some(claim), .. }, ..] = outputs.as_slice() else {
        panic!("{outputs:?}");
    };
    assert_eq!((claim.number, claim.count_max), (3, 2), "one slot is free and one will be");
    bench.open.push_back((*number, true));
    bench.answer_with(Vec::new(), Err(CallFailed));
    for _ in 0..50 {
        bench.now_ms += 1_000;
        bench.feed(Input::Tick);
        assert!(bench.claims().is_empty(), "there is room for one");
        if !bench.reports().is_empty() {
            break;
        }
    }
    bench.answer(vec![(held[0], ReportVerdict::Settled)]);
    assert_eq!(bench.claims(), [2]);
}
