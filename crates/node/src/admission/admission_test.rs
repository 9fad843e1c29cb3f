//! Every edge of the rules with a fake source of figures, and the real files of control groups (CH-16 to CH-25).

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::measure::{CpuReading, Machine, Source};
use super::rooms::{Rooms, RoomsFull};
use super::sample::Sampler;
use super::{Admission, Ask, Lane, Load, Reason, Rules, decide};

const DRAWS: u32 = 100_000;
const NOW: Ask = Ask { left_us: None, expected_us: 0 };

/// Percent of calls shed at some use of CPU, in hundredths, over many draws.
fn shed(rules: &Rules, lane: Lane, cpu: u16, ask: Ask) -> f64 {
    let mut random = fastrand::Rng::with_seed(u64::from(cpu));
    let load = Load { cpu, memory: 0 };
    let shed =
        (0..DRAWS).filter(|_| decide(rules.of(lane), load, ask, || random.u16(..10_000)).is_err());
    f64::from(shed.count() as u32) * 100.0 / f64::from(DRAWS)
}

fn check(lane: Lane, ask: Ask, edges: &[(u16, f64)]) {
    let rules = Rules::default();
    for (cpu, wanted) in edges {
        let found = shed(&rules, lane, *cpu, ask);
        assert!((found - wanted).abs() <= 1.0, "{lane:?} at {cpu}: {found} % shed, not {wanted}");
    }
}

// CH-19
#[test]
fn ch_19_downloads_are_shed_by_steps() {
    let edges = [
        (0, 0.0),
        (8_499, 0.0),
        (8_500, 5.0),
        (8_999, 5.0),
        (9_000, 10.0),
        (9_499, 10.0),
        (9_500, 25.0),
        (10_000, 25.0),
    ];
    check(Lane::Download, NOW, &edges);
}

// CH-18, CH-20
#[test]
fn ch_20_uploads_are_shed_by_steps_and_ch_18_all_of_them_above_ninety() {
    let edges = [
        (0, 0.0),
        (7_000, 0.0),
        (7_001, 5.0),
        (7_499, 5.0),
        (7_500, 10.0),
        (7_999, 10.0),
        (8_000, 25.0),
        (9_000, 25.0),
        (9_001, 100.0),
        (10_000, 100.0),
    ];
    check(Lane::Upload, NOW, &edges);
    let load = Load { cpu: 9_001, memory: 0 };
    let rules = Rules::default();
    assert_eq!(decide(rules.of(Lane::Upload), load, NOW, || 9_999), Err(Reason::Priority));
    // Downloads are favoured.
    assert_eq!(decide(rules.of(Lane::Download), load, NOW, || 9_999), Ok(()));
}

// F-32: a busy CPU alone does not turn calls about tasks away.
#[test]
fn ch_20_calls_about_tasks_are_shed_when_they_pile_up() {
    let piled_up = Ask { left_us: None, expected_us: 1_000_000 };
    for lane in [Lane::Submit, Lane::Read, Lane::List] {
        check(lane, NOW, &[(10_000, 0.0)]);
    }
    check(Lane::Read, piled_up, &[(8_499, 0.0), (8_500, 5.0), (10_000, 25.0)]);
    check(Lane::Submit, piled_up, &[(7_000, 0.0), (7_001, 5.0), (10_000, 25.0)]);
    check(Lane::List, piled_up, &[(7_000, 0.0), (8_000, 25.0), (9_001, 100.0)]);
}

// CH-17
#[test]
fn ch_17_memory_above_ninety_percent_refuses_new_work() {
    let rules = Rules::default();
    for (memory, wanted) in [(9_000, Ok(())), (9_001, Err(Reason::Memory))] {
        let load = Load { cpu: 0, memory };
        for lane in [Lane::Read, Lane::Download, Lane::Submit, Lane::Upload, Lane::List] {
            assert_eq!(decide(rules.of(lane), load, NOW, || 0), wanted, "{lane:?} {memory}");
        }
    }
}

#[test]
fn ch_18_results_renewals_and_claims_are_never_shed_by_load() {
    let rules = Rules::default();
    let late = Ask { left_us: Some(1), expected_us: 60_000_000 };
    for lane in [Lane::Settle, Lane::Renew, Lane::Claim, Lane::Operate] {
        assert_eq!(decide(rules.of(lane), Load::WORST, late, || 0), Ok(()), "{lane:?}");
        assert!(rules.of(lane).is_free());
    }
    // Nor can an operator ask for it by mistake.
    assert!(Rules::parse(&["settle=50:100".to_owned()]).is_err());
}

// CH-21
#[test]
fn ch_21_whoever_would_be_gone_before_the_answer_is_told_at_once() {
    let rules = Rules::default();
    let idle = Load { cpu: 0, memory: 0 };
    for (left_us, wanted) in
        [(Some(200_000), Ok(())), (Some(199_999), Err(Reason::Deadline)), (None, Ok(()))]
    {
        let ask = Ask { left_us, expected_us: 200_000 };
        assert_eq!(decide(rules.of(Lane::Download), idle, ask, || 0), wanted);
    }
}

// CH-21
#[test]
fn ch_21_the_expected_time_is_a_moving_average() {
    let admission = Admission::new(Rules::default(), 1);
    let expected = |lane| admission.expected(lane).as_millis();
    assert_eq!((expected(Lane::Upload), expected(Lane::Submit)), (200, 0));
    admission.took(Lane::Upload, Duration::from_millis(100));
    assert_eq!(expected(Lane::Upload), 100, "the first sample counts whole");
    admission.took(Lane::Upload, Duration::from_millis(200));
    assert_eq!(expected(Lane::Upload), 110, "then one part in ten");
    let short = Some(Duration::from_millis(100));
    assert_eq!(admission.judge(Lane::Upload, short), Err(Reason::Deadline));
    assert_eq!(admission.shed(Lane::Upload, Reason::Deadline), 1);
}

/// Figures that a test wrote down.
struct Fake(Vec<(Option<u64>, Option<u16>)>, u64);

impl Source for Fake {
    fn cpu(&mut self) -> Option<CpuReading> {
        self.1 += 100;
        self.0[0].0.map(|busy| CpuReading { busy, total: self.1 })
    }

    fn memory(&mut self) -> Option<u16> {
        self.0.remove(0).1
    }
}

#[test]
fn ch_24_what_cannot_be_measured_counts_as_the_worst() {
    let admission = Admission::new(Rules::default(), 1);
    let mut sampler = Sampler::default();
    let figures = vec![
        (Some(0), Some(1_000)),
        (Some(50), Some(1_000)),
        (None, Some(1_000)),
        (Some(60), Some(1_000)),
        (Some(70), None),
        // A counter that goes back.
        (Some(10), Some(1_000)),
    ];
    let wanted = [
        (0, 1_000),
        (5_000, 1_000),
        (10_000, 1_000),
        (10_000, 1_000),
        (1_000, 10_000),
        (10_000, 1_000),
    ];
    let mut source = Fake(figures, 0);
    for (cpu, memory) in wanted {
        sampler.look(&admission, &mut source);
        assert_eq!(admission.load(), Load { cpu, memory });
    }
    assert_eq!(admission.judge(Lane::Upload, None), Err(Reason::Priority));
}

/// A machine that others keep busy, while the node itself uses so much of it.
struct Beside(u16, u64);

impl Source for Beside {
    fn cpu(&mut self) -> Option<CpuReading> {
        self.1 += 100;
        Some(CpuReading { busy: self.1, total: self.1 })
    }

    fn memory(&mut self) -> Option<u16> {
        Some(0)
    }

    fn own_cpu(&mut self) -> Option<u16> {
        Some(self.0)
    }
}

/// The same, on a machine that says nothing of itself.
struct Unseen;

impl Source for Unseen {
    fn cpu(&mut self) -> Option<CpuReading> {
        None
    }

    fn memory(&mut self) -> Option<u16> {
        Some(0)
    }

    fn own_cpu(&mut self) -> Option<u16> {
        Some(0)
    }
}

// CH-24: an idle process proves nothing about a machine that cannot be measured.
#[test]
fn ch_24_an_unknown_cpu_is_the_worst_case_also_for_an_idle_node() {
    let admission = Admission::new(Rules::default(), 1);
    let mut sampler = Sampler::default();
    for _ in 0..3 {
        sampler.look(&admission, &mut Unseen);
        assert_eq!(admission.judge(Lane::Upload, None), Err(Reason::Priority));
    }
    // The first figure after a gap has nothing to be compared with.
    sampler.look(&admission, &mut Beside(0, 0));
    assert_eq!(admission.judge(Lane::Upload, None), Err(Reason::Priority));
    sampler.look(&admission, &mut Beside(0, 100));
    assert_eq!(admission.judge(Lane::Upload, None), Ok(()));
}

#[test]
fn ch_18_a_node_sheds_nothing_for_a_load_that_is_not_its_own() {
    let admission = Admission::new(Rules::default(), 1);
    let mut sampler = Sampler::default();
    let mut source = Beside(499, 0);
    for _ in 0..3 {
        sampler.look(&admission, &mut source);
    }
    assert_eq!(admission.load().cpu, 10_000, "shown as it is");
    assert_eq!(admission.judge(Lane::Upload, None), Ok(()));
    source.0 = 500;
    sampler.look(&admission, &mut source);
    assert_eq!(admission.judge(Lane::Upload, None), Err(Reason::Priority));
}

#[test]
fn ch_21_a_lane_that_was_slow_is_tried_again() {
    let admission = Admission::new(Rules::default(), 1);
    admission.took(Lane::Submit, Duration::from_secs(60));
    let short = Some(Duration::from_secs(1));
    assert_eq!(admission.judge(Lane::Submit, short), Err(Reason::Deadline));
    let mut sampler = Sampler::default();
    let mut source = Fake(vec![(Some(0), Some(0)); 60], 0);
    for _ in 0..60 {
        sampler.look(&admission, &mut source);
    }
    assert_eq!(admission.judge(Lane::Submit, short), Ok(()));
}

// CH-25: measured over many, so that a busy machine cannot make it fail by chance.
#[test]
fn ch_25_a_decision_measures_nothing() {
    let admission = Admission::new(Rules::default(), 1);
    admission.set_load(Load { cpu: 8_000, memory: 0 });
    let begun = Instant::now();
    let shed = (0..DRAWS).filter(|_| admission.judge(Lane::Upload, None).is_err()).count();
    let each = begun.elapsed() / DRAWS;
    println!("one decision takes {each:?}");
    assert!((24_000..=26_000).contains(&shed), "{shed}");
    let facts = admission.facts();
    assert_eq!(facts.admitted_last_minute + facts.shed_last_minute, u64::from(DRAWS));
}

// CH-16
#[tokio::test]
async fn ch_16_transfers_wait_in_bounded_queues_of_their_own() {
    let rooms = Rooms::new(2, 1, 1);
    let soon = Duration::from_millis(1);
    let under_way = rooms.uploads.enter(soon).await.unwrap();
    assert_eq!(rooms.uploads.enter(soon).await.unwrap_err(), RoomsFull, "waited in vain");
    let waiting = rooms.uploads.enter(Duration::from_secs(60));
    tokio::pin!(waiting);
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("there is no place"),
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(rooms.uploads.waiting(), 1);
    assert_eq!(rooms.uploads.enter(Duration::from_secs(60)).await.unwrap_err(), RoomsFull);
    assert!(rooms.downloads.enter(soon).await.is_ok(), "downloads have their own");
    drop(under_way);
    assert!(waiting.await.is_ok());
    assert_eq!(rooms.uploads.waiting(), 0);
}

// CH-23: places are taken as calls come and are free when they end; whoever waits gets the next one, in order.
#[tokio::test]
async fn ch_23_places_grow_with_the_calls_and_shrink_with_them() {
    let rooms = Rooms::new(2, 4, 4);
    let (soon, long) = (Duration::from_millis(1), Duration::from_secs(60));
    let mut held = Vec::new();
    for _ in 0..4 {
        let seat = rooms.downloads.enter(soon).await.unwrap();
        assert_eq!(seat.waited, None, "a free place is taken at once");
        held.push(seat);
    }
    let turns = std::sync::Mutex::new(Vec::new());
    let wait = |number: u32| {
        let (rooms, turns) = (&rooms, &turns);
        async move {
            let seat = rooms.downloads.enter(long).await.unwrap();
            turns.lock().unwrap().push(number);
            assert!(seat.waited.is_some());
        }
    };
    let free = async {
        while rooms.downloads.waiting() < 3 {
            tokio::task::yield_now().await;
        }
        held.pop();
    };
    tokio::join!(wait(1), wait(2), wait(3), free);
    assert_eq!(*turns.lock().unwrap(), [1, 2, 3]);
    assert_eq!(rooms.downloads.waiting(), 0);
    assert_eq!(rooms.downloads.enter(soon).await.unwrap().waited, None, "idle places are free");
}

// F-32: an idle node takes any burst; a busy one no more at a time than it answers in a tenth of a second.
#[test]
fn f_32_a_busy_node_takes_no_more_than_it_answers() {
    let admission = Admission::new(Rules::default(), 1);
    let mut sampler = Sampler::default();
    let mut source = Fake(vec![(Some(0), Some(0)), (Some(0), Some(0))], 0);
    sampler.look(&admission, &mut source);
    admission.settle(Lane::Submit, 500);
    sampler.look(&admission, &mut source);
    assert!(!admission.is_crowded(Lane::Submit, 8_000), "idle");
    admission.set_load(Load { cpu: 9_000, memory: 0 });
    for (under_way, wanted) in [(15, false), (99, false), (100, true), (8_000, true)] {
        assert_eq!(admission.is_crowded(Lane::Submit, under_way), wanted, "{under_way}");
    }
    for (under_way, wanted) in [(15, false), (16, true)] {
        assert_eq!(admission.is_crowded(Lane::List, under_way), wanted, "answers nothing");
    }
    for lane in [Lane::Settle, Lane::Renew, Lane::Claim, Lane::Operate] {
        assert!(!admission.is_crowded(lane, 8_000), "{lane:?}");
    }
    for lane in [Lane::Upload, Lane::Download] {
        assert!(!admission.is_crowded(lane, 8_000), "{lane:?} waits in a queue of its own");
    }
    admission.set_load(Load { cpu: 0, memory: 0 });
    admission.took(Lane::Submit, Duration::from_secs(1));
    assert!(admission.is_crowded(Lane::Submit, 100), "slow disks count as well");
    assert!(!Admission::new(Rules::off(), 1).is_crowded(Lane::Submit, 8_000));
}

// F-32: the least important yields first, and what brings work home never does.
#[test]
fn f_32_submissions_in_line_are_turned_away_and_lists_before_them() {
    let admission = Admission::new(Rules::default(), 1);
    admission.set_load(Load { cpu: 9_000, memory: 0 });
    assert!(Lane::ALL.iter().all(|lane| !admission.is_in_line(*lane, 8_000)), "there is no line");
    admission.put_in_line(Lane::Submit);
    for (under_way, wanted) in [(0, false), (3, false), (4, true), (8_000, true)] {
        assert_eq!(admission.is_in_line(Lane::Submit, under_way), wanted, "{under_way}");
        assert_eq!(admission.is_in_line(Lane::List, under_way), wanted, "{under_way} lists");
    }
    for lane in Lane::ALL.iter().filter(|lane| !matches!(lane, Lane::Submit | Lane::List)) {
        assert!(!admission.is_in_line(*lane, 8_000), "{lane:?}");
    }
    let admission = Admission::new(Rules::default(), 1);
    admission.set_load(Load { cpu: 9_000, memory: 0 });
    admission.put_in_line(Lane::List);
    assert!(!admission.is_in_line(Lane::Submit, 8_000), "lists keep nobody from submitting");
    for words in ["off", "wait=100"] {
        let rules = Rules::parse(&[words.to_owned()]).unwrap();
        let admission = Admission::new(rules, 1);
        admission.put_in_line(Lane::Submit);
        assert!(!admission.is_in_line(Lane::Submit, 8_000), "{words}: the operator's choice");
    }
    assert_eq!(Rules::parse(&["wait=5".into(), "wait=auto".into()]), Ok(Rules::default()));
}

// F-32: how long those who are let in may wait is the operator's choice.
#[test]
fn f_32_a_shorter_wait_lets_fewer_in() {
    let parse = |word: &str| Rules::parse(&[word.to_owned()]);
    for (word, answered, wanted) in [
        ("memory=90", 500, 100),
        ("memory=90", 0, 16),
        ("wait=50", 500, 50),
        ("wait=50", 0, 8),
        ("wait=1", 0, 4),
        ("wait=1000", 500, 1_000),
    ] {
        assert_eq!(parse(word).unwrap().under_way_max(answered, 500), wanted, "{word} {answered}");
    }
    for bad in ["wait=0", "wait=10001", "wait=", "wait=x", "wait=-1"] {
        assert!(matches!(parse(bad), Err(super::BadRule::Wait(_))), "{bad}");
    }
}

// CH-22
#[test]
fn ch_22_misses_are_shed_by_steps_of_their_own() {
    let admission = Admission::new(Rules::default(), 1);
    for (cpu, wanted) in [(8_999, 0.0), (9_000, 25.0), (9_499, 25.0), (9_500, 50.0), (10_000, 50.0)]
    {
        admission.set_load(Load { cpu, memory: 0 });
        let shed = (0..DRAWS).filter(|_| {
            // Admitted before it is known to be a miss.
            let admitted = admission.judge(Lane::Settle, None).is_ok();
            admitted && admission.judge_miss().is_err()
        });
        let found = f64::from(shed.count() as u32) * 100.0 / f64::from(DRAWS);
        assert!((found - wanted).abs() <= 1.0, "at {cpu}: {found} %, not {wanted}");
    }
}

#[test]
fn ch_16_no_lane_takes_the_places_of_another() {
    let rooms = Rooms::new(1, 1, 1);
    let held: Vec<_> = Lane::ALL.iter().map(|lane| rooms.enter(*lane).unwrap()).collect();
    assert!(Lane::ALL.iter().all(|lane| rooms.enter(*lane).is_err()));
    drop(held);
    assert!(Lane::ALL.iter().all(|lane| rooms.under_way(*lane) == 0));
}

#[test]
fn rules_are_read_as_they_are_written() {
    let parse = |words: &[&str]| {
        Rules::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    };
    let rules = parse(&["upload=>50:10,60:100", "memory=80"]).unwrap();
    for (cpu, share) in [(5_000, 0), (5_001, 1_000), (5_999, 1_000), (6_000, 10_000)] {
        assert_eq!(rules.of(Lane::Upload).share(cpu), share);
    }
    assert_eq!(rules.of(Lane::List).memory, Some(8_000));
    assert_eq!(rules.of(Lane::Settle).memory, None);
    assert_eq!(parse(&["off"]), Ok(Rules::off()));
    let misses = parse(&["miss=50:10,60:100"]).unwrap();
    assert_eq!([4_999, 5_000, 6_000].map(|cpu| misses.miss_share(cpu)), [0, 1_000, 10_000]);
    assert_eq!(parse(&["miss=off"]).unwrap().miss_share(10_000), 0);
    assert_eq!(parse(&["upload=off"]).unwrap().of(Lane::Upload).share(10_000), 0);
    for bad in [
        "",
        "on",
        "upload",
        "upload=",
        "upload=5",
        "upload=101:1",
        "upload=70:5,60:1",
        "x=1:1",
        "miss=1",
        "memory=0",
        "memory=x",
    ] {
        assert!(parse(&[bad]).is_err(), "{bad}");
    }
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

const MACHINE: &[(&str, &str)] = &[
    ("proc/stat", "cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 1 1 1 1\n"),
    ("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 250 kB\n"),
];

#[test]
fn ch_17_the_machine_is_read_where_no_group_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = Machine::at(folder.path());
    assert_eq!((machine.cpu(), machine.memory()), (None, None), "nothing to read");
    write(folder.path(), MACHINE);
    assert_eq!(machine.cpu(), Some(CpuReading { busy: 20, total: 100 }));
    assert_eq!(machine.memory(), Some(7_500));
}

#[test]
fn ch_17_groups_of_version_two_are_read_the_tightest_first() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), MACHINE);
    let group = "sys/fs/cgroup/pod/box";
    let files: &[(String, &str)] = &[
        ("proc/self/cgroup".into(), "0::/pod/box\n"),
        (format!("{group}/cpu.max"), "max 100000\n"),
        ("sys/fs/cgroup/pod/cpu.max".into(), "50000 100000\n"),
        ("sys/fs/cgroup/pod/cpu.stat".into(), "usage_usec 1234\nuser_usec 1\n"),
        (format!("{group}/memory.max"), "1000\n"),
        (format!("{group}/memory.current"), "960\n"),
        (format!("{group}/memory.stat"), "anon 1\ninactive_file 60\n"),
        ("sys/fs/cgroup/pod/memory.max".into(), "max\n"),
    ];
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    write(folder.path(), &files);
    let mut machine = Machine::at(folder.path());
    assert_eq!(machine.cpu().unwrap().busy, 1_234);
    assert_eq!(machine.memory(), Some(9_000));
}

#[test]
fn ch_17_groups_of_version_one_are_read() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), MACHINE);
    let files = [
        ("proc/self/cgroup", "4:memory:/box\n3:cpu,cpuacct:/box\n"),
        ("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpuacct/cpuacct.usage", "5000000\n"),
        ("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712\n"),
        ("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "1\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "700\n"),
        ("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 200\n"),
    ];
    write(folder.path(), &files);
    let mut machine = Machine::at(folder.path());
    assert_eq!(machine.cpu().unwrap().busy, 5_000);
    assert_eq!(machine.memory(), Some(5_000));
}

#[test]
fn ch_24_this_machine_can_be_measured() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let mut machine = Machine::default();
    assert!(machine.cpu().is_some());
    assert!(machine.memory().is_some_and(|used| used > 0));
}

#[test]
fn the_use_of_this_process_is_read() {
    let mut machine = Machine::default();
    assert_eq!(machine.own_cpu(), None, "nothing to compare with");
    assert!(machine.own_cpu().is_some());
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("proc/self")).unwrap();
    let stat = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 30 12 0 0";
    std::fs::write(folder.path().join("proc/self/stat"), stat).unwrap();
    let mut machine = Machine::at(folder.path());
    assert_eq!((machine.own_cpu(), machine.own_cpu()), (None, Some(0)));
}
