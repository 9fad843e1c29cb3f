//! Modules that try to use everything up or to get out (X11): each is a row, stopped by the limit that the row names, and
//! others go on.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ikada_worker::sandbox::{Isolation, Limits};

use crate::bench::{Bench, limits};
use crate::modules::{run, write_module};
use crate::report::{Probe, note};

/// Short for those that only time stops.
const SHORT_MS: u64 = 1_500;
/// Long enough for the other limits to be met first, also where the machine is busy.
const LONG_MS: u64 = 60_000;

/// A module is gone this long after its deadline at the latest (X11).
const AFTER_DEADLINE: Duration = Duration::from_secs(1);
/// How often a module is tried that took longer.
const TRIES: u32 = 3;
/// What a module's process may take beyond the memory that it is allowed and what the engine takes for any (X11).
const BEYOND_MEMORY: u64 = 32 << 20;

/// What a module attempts, its text, and the reason that must be told: one of those between the bars.
type Row<'a> = (&'a str, &'a str, &'a str);

/// Each must fail for its reason; nothing of it is left, and a plain program runs afterwards.
async fn all_stopped(wall: &'static str, wall_ms: u64, rows: &[Row<'_>]) {
    let bench = Bench::with(|config| config.limits = Limits { wall_ms, ..limits() });
    all_stopped_in(&bench, wall, rows).await;
}

async fn all_stopped_in(bench: &Bench, wall: &'static str, rows: &[Row<'_>]) {
    let limits = bench.sandbox.config().limits;
    let deadline = Duration::from_millis(limits.wall_ms) + AFTER_DEADLINE;
    let mut wrong = Vec::new();
    for (name, text, reasons) in rows {
        // A busy machine may hold one try up, and not all of them.
        for left in (0..TRIES).rev() {
            let file = write_module(bench, "hostile.wasm", text);
            let began = Instant::now();
            let ran = run(bench, file, "_start").await;
            let told = match &ran.end {
                Ok(_) => "it met no limit".to_owned(),
                Err(error) => error.message().to_owned(),
            };
            let contained = reasons.split('|').any(|reason| told.contains(reason));
            let (tried, took) = (*name, began.elapsed());
            if contained && took > deadline && left > 0 {
                continue;
            }
            note(&Probe { kind: "module", wall, tried, ended: &told, contained, took });
            if !contained || took > deadline {
                let log = &ran.log;
                wrong.push(format!("{name}: {told:?}, not {reasons:?}; {took:?}; log: {log:?}"));
            }
            break;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(bench.shell("echo fine").await.log, "fine\n");
    bench.assert_empty();
}

/// Time ended it: the worker's watch, or the engine's own.
const LATE: &str = "not done within|interrupt";
/// The same, or the steps that go with the time: a byte of a bulk operation is one, and a fast machine spends them first.
const LATE_OR_SPENT: &str = "not done within|interrupt|fuel";
/// The engine ended it, or it gave up by an instruction that traps.
const TRAP: &str = "exit code 70";
/// The interface refused, which these modules tell by this exit code.
const REFUSED: &str = "exit code 9";

#[tokio::test]
async fn x_11_time_and_steps_are_bounded() {
    let rows = [
        ("an endless loop", r#"(func (export "_start") (loop $l (br $l)))"#, LATE),
        (
            "a loop of calls",
            r#"(func $f) (func (export "_start") (loop $l (call $f) (br $l)))"#,
            LATE,
        ),
        (
            "a loop of host calls",
            r#"(func (export "_start") (loop $l (drop (call $fd_close (i32.const 99))) (br $l)))"#,
            LATE,
        ),
        (
            "endless randomness",
            r#"(func (export "_start") (loop $l (drop (call $random_get (i32.const 0) (i32.const 65536))) (br $l)))"#,
            LATE,
        ),
        (
            "bulk copies",
            r#"(func (export "_start") (loop $l (memory.copy (i32.const 0) (i32.const 65536) (i32.const 65536)) (br $l)))"#,
            LATE_OR_SPENT,
        ),
        (
            "bulk fills",
            r#"(func (export "_start") (loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 131072)) (br $l)))"#,
            LATE_OR_SPENT,
        ),
        (
            "a start function that never ends",
            r#"(func $s (loop $l (br $l))) (start $s) (func (export "_start"))"#,
            LATE,
        ),
        (
            "a long sleep",
            r#"(func (export "_start")
            (i32.store (i32.const 16) (i32.const 1)) (i64.store (i32.const 24) (i64.const 3600000000000))
            (drop (call $poll_oneoff (i32.const 0) (i32.const 100) (i32.const 1) (i32.const 200))) (unreachable))"#,
            LATE,
        ),
    ];
    all_stopped("time and steps", SHORT_MS, &rows).await;
}

#[tokio::test]
async fn x_11_steps_are_bounded_where_the_operator_says_so() {
    // An endless loop of few steps a turn, and one whose steps are bytes.
    let rows = [
        ("more steps than allowed", r#"(func (export "_start") (loop $l (br $l)))"#, "fuel"),
        (
            "more bytes than allowed",
            r#"(func (export "_start") (loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 131072)) (br $l)))"#,
            "fuel",
        ),
    ];
    let bench = Bench::with(|config| {
        config.limits = Limits { wall_ms: LONG_MS, module_steps: 10_000_000, ..limits() };
    });
    all_stopped_in(&bench, "steps", &rows).await;
    let few = r#"(func (export "_start") (local $n i32) (local.set $n (i32.const 100000))
        (loop $l (local.set $n (i32.sub (local.get $n) (i32.const 1))) (br_if $l (local.get $n))))"#;
    let file = write_module(&bench, "few.wasm", few);
    run(&bench, file, "_start").await.good();
}

/// Keeps an eye on the processes that run modules of a bench: the most that any of them ever held.
async fn watch_peak(folder: PathBuf, peak: &Cell<u64>) {
    loop {
        for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
            let told = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            let runs = told.contains(&*folder.to_string_lossy()) && told.contains(".wasm");
            let status = runs.then(|| std::fs::read_to_string(entry.path().join("status")).ok());
            let held = status.flatten().and_then(|status| {
                let line = status.lines().find(|line| line.starts_with("VmHWM:"))?.to_owned();
                line.split_whitespace().nth(1)?.parse::<u64>().ok()
            });
            peak.set(peak.get().max(held.unwrap_or(0) << 10));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn x_11_a_module_takes_little_more_than_the_memory_it_is_allowed() {
    let bench = Bench::with(|config| config.limits = Limits { wall_ms: LONG_MS, ..limits() });
    let peak = Cell::new(0);
    let peak_of = async |text: &str| {
        peak.set(0);
        let file = write_module(&bench, "memory.wasm", text);
        tokio::select! {
            () = watch_peak(bench.folder.path().to_owned(), &peak) => {}
            _ = run(&bench, file, "_start") => {}
        }
        peak.get()
    };
    // A short sleep, so that it is seen at all.
    let plain = peak_of(
        r#"(func (export "_start")
            (i32.store (i32.const 16) (i32.const 1)) (i64.store (i32.const 24) (i64.const 300000000))
            (drop (call $poll_oneoff (i32.const 0) (i32.const 100) (i32.const 1) (i32.const 200))))"#,
    )
    .await;
    let greedy = peak_of(GREEDY).await;
    let allowed = limits().memory_bytes;
    assert!(plain > 0 && greedy > plain + allowed / 2, "it was looked at: {plain}, {greedy}");
    let most = plain + allowed + BEYOND_MEMORY;
    assert!(greedy <= most, "it took {greedy} bytes, at most {most} are promised");
}

/// Takes all the memory there is, and uses it.
const GREEDY: &str = r#"(func (export "_start") (local $at i32)
    (loop $l (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then (unreachable)))
        (local.set $at (i32.mul (i32.sub (memory.size) (i32.const 1)) (i32.const 65536)))
        (memory.fill (local.get $at) (i32.const 7) (i32.const 65536)) (br $l)))"#;

#[tokio::test]
async fn x_11_memory_tables_and_stack_are_bounded() {
    let rows = [
        (
            "a growing memory",
            r#"(func (export "_start")
            (loop $l (br_if $l (i32.ne (memory.grow (i32.const 256)) (i32.const -1)))) (unreachable))"#,
            TRAP,
        ),
        ("a growing memory that is used", GREEDY, TRAP),
        (
            "memory at once",
            r#"(func (export "_start")
            (if (i32.eq (memory.grow (i32.const 60000)) (i32.const -1)) (then (unreachable))))"#,
            TRAP,
        ),
        (
            "a growing table",
            r#"(table $t 1 funcref) (func (export "_start")
            (loop $l (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 100000)) (i32.const -1)))) (unreachable))"#,
            TRAP,
        ),
        ("a huge table", r#"(table 10000000 funcref) (func (export "_start"))"#, TRAP),
        ("recursion", r#"(func $f (call $f)) (func (export "_start") (call $f))"#, TRAP),
        (
            "recursion with locals",
            r#"(func $f (param i64 i64 i64 i64) (call $f (local.get 0) (local.get 1) (local.get 2) (local.get 3)))
            (func (export "_start") (call $f (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4)))"#,
            TRAP,
        ),
        (
            "reading beyond memory",
            r#"(func (export "_start") (drop (i32.load (i32.const 0x7ffffff0))))"#,
            TRAP,
        ),
        (
            "writing beyond memory",
            r#"(func (export "_start") (i32.store offset=0xfffffff0 (i32.const 16) (i32.const 1)))"#,
            TRAP,
        ),
        (
            "a call to nowhere",
            r#"(table 1 funcref) (type $v (func)) (func (export "_start") (call_indirect (type $v) (i32.const 0)))"#,
            TRAP,
        ),
        (
            "division by zero",
            r#"(func (export "_start") (drop (i32.div_s (i32.const 1) (i32.const 0))))"#,
            TRAP,
        ),
    ];
    all_stopped("memory, tables and stack", LONG_MS, &rows).await;
}

/// Texts that open a path from folder handle 3; the attack works if that succeeds.
fn open(path: &str, flags: i32) -> String {
    let length = path.len();
    format!(
        r#"(data (i32.const 1000) "{path}") (func (export "_start")
            (if (call $path_open (i32.const 3) (i32.const 1) (i32.const 1000) (i32.const {length}) (i32.const {flags})
                (i64.const 66) (i64.const 66) (i32.const 0) (i32.const 8)) (then (call $proc_exit (i32.const 9)))))"#
    )
}

/// The module's own walls, and then all of them: without isolation the engine alone keeps it in its folder, so that no
/// wall hides a hole in another.
#[tokio::test]
async fn x_11_only_the_tasks_folder_is_reached() {
    let link = r#"(data (i32.const 1000) "/etc/passwd") (data (i32.const 1020) "out/l") (func (export "_start")
        (drop (call $path_symlink (i32.const 1000) (i32.const 11) (i32.const 3) (i32.const 1020) (i32.const 5)))
        (if (call $path_open (i32.const 3) (i32.const 1) (i32.const 1020) (i32.const 5) (i32.const 0)
            (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 8)) (then (call $proc_exit (i32.const 9)))))"#;
    let folders = r#"(func (export "_start")
        (if (call $fd_prestat_get (i32.const 4) (i32.const 8)) (then (call $proc_exit (i32.const 9)))))"#;
    let rows = [
        ("climbing", &*open("../order.json", 0), REFUSED),
        ("climbing further", &open("in/../../../../../../etc/passwd", 0), REFUSED),
        ("climbing and coming back", &open("../task/in/letter", 0), REFUSED),
        ("an absolute path", &open("/etc/passwd", 0), REFUSED),
        ("the folder above, if that were the root", &open("task/in/letter", 0), REFUSED),
        ("the helper's order, likewise", &open("order.json", 0), REFUSED),
        ("making a file outside", &open("../made", 1), REFUSED),
        ("a link to the outside", link, REFUSED),
        ("a second folder", folders, REFUSED),
    ];
    for isolation in [Isolation::None, Isolation::Full] {
        let bench = Bench::with(|config| {
            config.isolation = isolation;
            config.limits = Limits { wall_ms: LONG_MS, ..limits() };
        });
        // The same call reaches what is the module's own: a refusal is the wall's, not the probe's fault.
        let file = write_module(&bench, "own.wasm", &open("in/letter", 0));
        run(&bench, file, "_start").await.good();
        let wall = match isolation {
            Isolation::None => "files, by the engine alone",
            _ => "files",
        };
        all_stopped_in(&bench, wall, &rows).await;
    }
}

#[tokio::test]
async fn x_11_floods_are_bounded() {
    let rows = [
        (
            "open files",
            r#"(data (i32.const 1000) "in/letter") (func (export "_start") (loop $l
            (br_if $l (i32.eqz (call $path_open (i32.const 3) (i32.const 0) (i32.const 1000) (i32.const 9) (i32.const 0)
                (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 8))))) (unreachable))"#,
            TRAP,
        ),
        (
            "endless output",
            r#"(func (export "_start") (i32.store (i32.const 0) (i32.const 0)) (i32.store (i32.const 4) (i32.const 65536))
            (loop $l (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))) (br $l)))"#,
            "it wrote",
        ),
        (
            "a huge list",
            r#"(func (export "_start")
            (if (call $fd_write (i32.const 1) (i32.const 0) (i32.const 0x0fffffff) (i32.const 8)) (then (call $proc_exit (i32.const 9)))))"#,
            "exit code 9|exit code 70",
        ),
        (
            "many folders",
            r#"(data (i32.const 1000) "out/d") (func (export "_start") (local $n i32)
            (loop $l (i32.store8 offset=1005 (local.get $n) (i32.const 97)) (local.set $n (i32.add (local.get $n) (i32.const 1)))
                (br_if $l (i32.eqz (call $mkdir (i32.const 3) (i32.const 1000) (i32.add (i32.const 5) (local.get $n))))))
            (unreachable))"#,
            TRAP,
        ),
    ];
    all_stopped("floods", LONG_MS, &rows).await;
}

#[tokio::test]
async fn x_11_files_that_are_no_modules_end_at_once() {
    let bench = Bench::new();
    let rows: [(&str, Vec<u8>, &str); 4] = [
        ("nothing", Vec::new(), "exit code 70"),
        ("text", b"#!/bin/sh\nid\n".to_vec(), "exit code 70"),
        ("a cut module", b"\0asm\x01\0\0\0\x01".to_vec(), "exit code 70"),
        ("a large file", vec![0; 11 << 20], "at most 10485760 are allowed"),
    ];
    for (name, bytes, reason) in rows {
        let file = bench.share("bad.wasm", &bytes);
        let began = Instant::now();
        let ran = run(&bench, file, "_start").await;
        let (ended, took) = (ran.error(), began.elapsed());
        let (contained, wall) = (ended.contains(reason), "no module");
        note(&Probe { kind: "module", wall, tried: name, ended: &ended, contained, took });
        assert!(contained, "{name}: {ended}");
    }
    bench.assert_empty();
}

#[tokio::test]
async fn x_11_compiling_is_bounded() {
    let calls = "(drop (call $fd_close (i32.const 99)))".repeat(200);
    let functions = format!("(func (param i32) {calls})").repeat(4_000);
    let text = format!("{functions} (func (export \"_start\"))");
    let rows = [("much to compile", &*text, "takes more than 5 s to compile")];
    all_stopped("compiling", LONG_MS, &rows).await;
}
