//! Commands of a worker that isolates nothing: one helper after the other is used again, and nobody notices.

use std::time::Duration;

use ikada_worker::sandbox::Isolation;

use crate::bench::{Bench, shell};
use crate::commands::is_running;

fn plain() -> Bench {
    Bench::with(|config| config.isolation = Isolation::None)
}

/// Says who looks after the command.
const WHO: &str = "echo $PPID";

#[tokio::test]
async fn b4_13_commands_one_after_the_other_share_a_helper_and_nothing_else() {
    let bench = plain();
    let first = bench.shell(WHO).await.log;
    let mut attempt =
        Bench::attempt(shell("cat; echo; ls -A . in out tmp; cat settings.json; umask"));
    attempt.payload = b"payload".to_vec();
    attempt.settings = vec![("a".to_owned(), "1".to_owned())];
    let littered =
        "echo x > out/f; echo y > tmp/g; echo z > h; echo 1 > $IKADA_RESULT; umask 077; exit 3";
    assert_eq!(bench.shell(littered).await.error(), "exit code 3");
    let seen = bench.run(attempt, None).await.log;
    let expected =
        "payload\n.:\nin\nout\nsettings.json\ntmp\n\nin:\nletter\n\nout:\n\ntmp:\n{\"a\":\"1\"}";
    assert!(seen.starts_with(expected), "{seen}");
    assert_eq!(bench.shell(WHO).await.log, first, "the same helper");
    let (one, other) =
        tokio::join!(bench.shell("sleep 0.3; echo $PPID"), bench.shell("sleep 0.3; echo $PPID"));
    assert_ne!(one.log, other.log, "one command at a time each");
    bench.assert_empty();
}

#[tokio::test]
async fn b4_30_what_a_command_left_running_is_gone_before_the_next() {
    let bench = plain();
    let first = bench.shell(WHO).await.log;
    bench.shell("setsid sh -c 'sleep 4713.5 & sleep 4713.5' >/dev/null 2>&1 & exit 0").await.good();
    assert!(!is_running("4713.5"), "a daemon stayed");
    assert_eq!(bench.shell(WHO).await.log, first);
}

#[tokio::test]
async fn b4_30_a_helper_whose_command_was_cut_off_is_not_used_again() {
    let bench = plain();
    let first = bench.shell(WHO).await.log;
    let stopped =
        bench.run(Bench::attempt(shell("sleep 4714.5")), Some(Duration::from_millis(200))).await;
    assert!(stopped.error().contains("stopped"), "{}", stopped.error());
    let second = bench.shell(WHO).await.log;
    assert_ne!(second, first);
    let mut endless = Bench::attempt(shell("sleep 4714.5"));
    endless.timeout = Some(Duration::from_millis(200));
    assert!(bench.run(endless, None).await.error().contains("not done within"));
    assert_ne!(bench.shell(WHO).await.log, second);
    assert!(!is_running("4714.5"), "something outlived its attempt");
}

#[tokio::test]
async fn b4_29_a_helper_that_died_is_replaced_and_its_command_told_of() {
    let bench = plain();
    let killed = bench.shell("kill -KILL $PPID; sleep 0.2").await;
    assert!(killed.error().contains("the helper left no word"), "{}", killed.error());
    let first = bench.shell(WHO).await.log;
    let helper = rustix::process::Pid::from_raw(first.trim().parse().expect("a number"));
    rustix::process::kill_process(helper.expect("a process"), rustix::process::Signal::KILL)
        .expect("killed");
    let cmdline = format!("/proc/{}/cmdline", first.trim());
    // Its name goes with its memory, before its last handle.
    while std::fs::read(&cmdline).is_ok_and(|words| !words.is_empty()) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let second = bench.shell(WHO).await;
    second.good();
    assert_ne!(second.log, first, "one that died while idle is found out");
}

#[tokio::test]
async fn b4_30_a_command_whose_helper_was_killed_is_ended_and_its_folder_serves_nobody() {
    // Without control groups, which would end it as well.
    let bench = Bench::with(|config| {
        config.isolation = Isolation::None;
        config.groups = ikada_worker::exec::GroupRule::Off;
    });
    let first = bench.shell("pwd").await.log;
    assert_eq!(bench.shell("pwd").await.log, first, "a folder serves again");
    let lines = "setsid sleep 4718.5 & pwd; kill -KILL $PPID; \
                 while :; do echo x >> out/stray; sleep 0.01; done";
    let killed = bench.shell(lines).await;
    assert!(killed.error().contains("the helper left no word"), "{}", killed.error());
    assert_eq!(killed.log, first);
    assert!(!is_running("4718.5") && !is_running(lines), "it lives on");
    assert_ne!(bench.shell("pwd").await.log, first, "a stranger could write there");
    bench.assert_empty();
}

#[tokio::test]
async fn b4_30_a_run_that_is_given_up_takes_its_command_with_it() {
    // Without control groups, which would end it as well.
    let bench = Bench::with(|config| {
        config.isolation = Isolation::None;
        config.groups = ikada_worker::exec::GroupRule::Off;
    });
    let running = bench.run(Bench::attempt(shell("sleep 4715.5")), None);
    let given_up = tokio::time::timeout(Duration::from_millis(500), running).await;
    assert!(given_up.is_err(), "it was still at work");
    for _ in 0..500 {
        if !is_running("4715.5") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the command outlived its run");
}
