//! Reports under way: how many, of what, and what they leave of the slots.

use std::collections::{BTreeMap, BTreeSet};

use ikada_api::v1::{ClaimedTask, Number};

use super::report::REPORTS_MAX;
use super::*;

/// Steps of one random run.
const STEPS: u32 = 4_000;
/// Random runs.
const RUNS: u64 = 40;

/// An agent, and the reports and tasks that are out.
struct World {
    agent: Agent,
    random: fastrand::Rng,
    now_ms: u64,
    claim: Option<u32>,
    /// A claim that goes with the report of this number, and most tasks of it.
    behind: Option<(u64, u32)>,
    renewal: Option<Vec<Ticket>>,
    reports: BTreeMap<u64, Vec<Ticket>>,
    running: BTreeSet<Ticket>,
    /// Claims that live at the cluster.
    live: BTreeSet<Ticket>,
    settled: usize,
    /// Most reports that were under way at once.
    most: usize,
}

impl World {
    fn new(slots: u32, seed: u64) -> World {
        let config = AgentConfig { slots, report_max: 5, seed, ..AgentConfig::default() };
        let mut world = World {
            agent: Agent::new(config),
            random: fastrand::Rng::with_seed(seed),
            now_ms: 1_000,
            claim: None,
            behind: None,
            renewal: None,
            reports: BTreeMap::new(),
            running: BTreeSet::new(),
            live: BTreeSet::new(),
            settled: 0,
            most: 0,
        };
        world.feed(Input::Tick);
        world
    }

    fn feed(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.agent.step(input, self.now_ms, &mut outputs);
        for output in outputs {
            self.take(output);
        }
        self.most = self.most.max(self.reports.len());
        assert!(self.reports.len() <= REPORTS_MAX, "{:?}", self.reports);
        let slots = self.agent.config.slots as usize;
        assert!(self.live.len() <= slots, "more claims live than there are slots");
    }

    fn take(&mut self, output: Output) {
        match output {
            Output::Claim { count_max, .. } => {
                assert_eq!((self.claim, self.behind), (None, None), "one claim at a time");
                self.claim = Some(count_max);
            }
            Output::Run(ticket, _) => {
                assert!(self.running.insert(ticket) && self.live.insert(ticket));
            }
            Output::Report { number, reports, claim } => {
                let done = reports.iter().filter(|report| report.result.is_ok()).count();
                if let Some(claim) = claim {
                    assert_eq!((self.claim, self.behind), (None, None), "one claim at a time");
                    let room = self.agent.free_slots() as usize + done;
                    assert!(done > 0 && claim.count_max as usize <= room, "{claim:?}: {room}");
                    self.behind = Some((number, claim.count_max));
                }
                let tickets: Vec<Ticket> = reports.iter().map(|it| it.claim.ticket).collect();
                let out: Vec<&Ticket> = self.reports.values().flatten().collect();
                assert!(!tickets.is_empty());
                assert!(tickets.iter().all(|it| !out.contains(&it)), "a task is in one report");
                assert!(tickets.iter().all(|it| !self.running.contains(it)));
                assert!(self.reports.insert(number, tickets).is_none(), "numbers are new");
            }
            Output::Renew(claims) => {
                let tickets = claims.iter().map(|claim| claim.ticket).collect();
                assert!(self.renewal.replace(tickets).is_none(), "one renewal at a time");
            }
            Output::Lost(_) | Output::Cancel(_) => {}
            Output::Stopped { .. } => panic!("nobody told it to stop"),
        }
    }

    fn grant(&mut self, count_max: u32) {
        let count = self.random.u32(0..=count_max);
        self.claim = None;
        self.feed(Input::Claimed(Ok((0..count).map(|_| task()).collect())));
    }

    fn end_one(&mut self) {
        let ended = self.random.choice(&self.running).copied();
        if let Some(ticket) = ended {
            self.running.remove(&ticket);
            let result =
                if self.random.bool() { Ok(Done::default()) } else { Err(Failure::new("broken")) };
            self.feed(Input::Finished(ticket, result));
        }
    }

    /// Answers any report under way, not the oldest: calls overtake each other.
    fn answer(&mut self) {
        let Some(number) = self.random.choice(self.reports.keys()).copied() else {
            return;
        };
        let tickets = self.reports.remove(&number).unwrap_or_default();
        let mut verdicts = Vec::new();
        for ticket in tickets {
            let verdict = match self.random.u32(0..6) {
                0 => continue,
                1 => ReportVerdict::Undecided,
                2 => ReportVerdict::Lost,
                3 => ReportVerdict::Refused("odd".to_owned()),
                _ => ReportVerdict::Settled,
            };
            if matches!(verdict, ReportVerdict::Settled | ReportVerdict::Lost) {
                self.settled += 1;
                self.live.remove(&ticket);
            }
            verdicts.push((ticket, verdict));
        }
        self.forget_refused(&verdicts);
        self.feed(Input::Reported(number, verdicts));
        if let Some((_, count_max)) = self.behind.take_if(|behind| behind.0 == number) {
            match self.random.u32(0..4) {
                0 => self.feed(Input::Claimed(Err(CallFailed))),
                _ => self.grant(count_max),
            }
        }
    }

    /// A failure that is refused is left to expire; the cluster's bound on claims is not its worker's business then.
    fn forget_refused(&mut self, verdicts: &[(Ticket, ReportVerdict)]) {
        for (ticket, verdict) in verdicts {
            if matches!(verdict, ReportVerdict::Refused(_)) {
                self.live.remove(ticket);
            }
        }
    }

    fn renew(&mut self) {
        let Some(tickets) = self.renewal.take() else {
            return;
        };
        let lost = self.random.u32(0..20) == 0;
        if lost {
            self.live.retain(|ticket| !tickets.contains(ticket));
        }
        let verdict = |ticket| match lost {
            true => (ticket, RenewVerdict::Lost),
            false => (ticket, RenewVerdict::Renewed { ttl_ms: 9_000 }),
        };
        self.feed(Input::Renewed(tickets.into_iter().map(verdict).collect()));
    }
}

fn task() -> ClaimedTask {
    ClaimedTask {
        work: None,
        checkpoint: false,
        traceparent: None,
        timeout_ms: None,
        id: "t".to_owned(),
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

/// One agent with its slots filled; what it reports of those that end one by one.
fn reports_of(slots: u32, ended: usize) -> Vec<usize> {
    let config = AgentConfig { slots, ..AgentConfig::default() };
    let mut agent = Agent::new(config);
    let mut outputs = Vec::new();
    agent.step(Input::Tick, 1_000, &mut outputs);
    let tasks = (0..slots).map(|_| task()).collect();
    agent.step(Input::Claimed(Ok(tasks)), 1_000, &mut outputs);
    outputs.clear();
    for ticket in 1..=ended as u64 {
        agent.step(Input::Finished(Ticket(ticket), Ok(Done::default())), 1_000, &mut outputs);
    }
    let reports = outputs.iter().filter_map(|output| match output {
        Output::Report { reports, .. } => Some(reports.len()),
        _ => None,
    });
    reports.collect()
}

#[test]
fn a_task_that_ends_need_not_wait_for_the_report_of_another() {
    assert_eq!(reports_of(2, 2), [1, 1]);
    assert_eq!(reports_of(4, 4), [1, 1, 1, 1]);
}

#[test]
fn a_worker_with_many_slots_gathers_a_share_of_them_for_a_further_report() {
    assert_eq!(reports_of(64, 16), [1], "15 more are not yet a share of 64");
    assert_eq!(reports_of(64, 17), [1, 16]);
    assert_eq!(reports_of(64, 64), [1, 16, 16, 16], "the last ones wait for an answer");
}

// TQ-15: whatever order answers come in, a task is in one report at a time and keeps its slot until it is settled.
#[test]
fn tq_15_reports_that_overtake_each_other_never_free_a_slot_too_early() {
    let (mut settled, mut most) = (0, 0);
    for seed in 0..RUNS {
        let mut world = World::new(1 + (seed % 9) as u32, seed);
        for _ in 0..STEPS {
            match world.random.u32(0..6) {
                0 => match world.claim {
                    Some(count_max) => world.grant(count_max),
                    None => world.feed(Input::Tick),
                },
                1 => world.renew(),
                2 => world.answer(),
                3 | 4 => world.end_one(),
                _ => {
                    world.now_ms += world.random.u64(0..400);
                    world.feed(Input::Tick);
                }
            }
        }
        settled += world.settled;
        most = most.max(world.most);
    }
    assert_eq!(most, REPORTS_MAX, "the runs are worth something");
    assert!(settled > RUNS as usize * 100, "{settled}");
}
