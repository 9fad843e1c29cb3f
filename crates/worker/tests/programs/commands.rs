//! Commands: what they see, what they give, how they end.

use std::time::{Duration, Instant};

use ikada_worker::exec::Code;
use ikada_worker::sandbox::Isolation;

use crate::bench::{Bench, shell};

// B4-13
#[tokio::test]
async fn b4_13_a_command_sees_payload_inputs_settings_fence_and_gives_outputs() {
    for isolation in [Isolation::Full, Isolation::None] {
        let bench = Bench::with(|config| config.isolation = isolation);
        let mut attempt = Bench::attempt(shell(
            r#"
        payload=$(cat)
        echo "$IKADA_TASK_ID $IKADA_QUEUE $IKADA_ATTEMPT $IKADA_FENCE $payload" > "$IKADA_OUT/seen"
        mkdir "$IKADA_OUT/deep"; cat "$IKADA_IN/letter" "$IKADA_SETTINGS" > "$IKADA_OUT/deep/more"
        echo "{\"top\": \"$IKADA_SETTING_TOP_K\"}" > "$IKADA_RESULT"
        echo ikada:progress 0.25 a quarter
        echo some words; echo other words >&2
        "#,
        ));
        attempt.payload = b"{\"n\":1}".to_vec();
        attempt.settings = vec![("top-k".to_owned(), "5 'quoted'".to_owned())];
        let ran = bench.run(attempt, None).await;
        let good = ran.good();
        let expected = [
            ("deep/more", "dear reader\n{\"top-k\":\"5 'quoted'\"}"),
            ("seen", "t1 q 2 7 {\"n\":1}\n"),
        ];
        assert_eq!(good.outputs, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
        assert!(good.result == b"{\"top\": \"5 'quoted'\"}".to_vec().into());
        assert!(
            ran.log.contains("some words\n") && ran.log.contains("other words\n"),
            "{}",
            ran.log
        );
        bench.assert_empty();
    }
}

#[tokio::test]
async fn b4_29_exit_codes_signals_and_missing_programs_are_failures_with_reasons() {
    for isolation in [Isolation::Full, Isolation::None] {
        let bench = Bench::with(|config| config.isolation = isolation);
        let ran = bench.shell("echo broken pipe dream >&2; exit 3").await;
        assert_eq!(ran.error(), "exit code 3: broken pipe dream");
        assert_eq!(bench.shell("exit 65").await.error(), "exit code 65");
        assert_eq!(bench.shell("kill -SEGV $$").await.error(), "ended by signal 11");
        let argv = vec!["/usr/bin/no-such-thing".to_owned()];
        let attempt = Bench::attempt(ikada_worker::exec::Code::Command { argv, file: None });
        assert!(
            bench.run(attempt, None).await.error().starts_with("not started"),
            "a missing program"
        );
        let bad = bench.shell("echo no json > $IKADA_RESULT").await;
        assert!(bad.error().contains("no JSON"), "{}", bad.error());
        bench.assert_empty();
    }
}

#[tokio::test]
async fn b4_30_a_stopped_attempt_is_gone_within_the_grace_time() {
    for isolation in [Isolation::Full, Isolation::None] {
        let bench = Bench::with(|config| config.isolation = isolation);
        // Deaf to the polite signal, and with a child in a session of its own.
        let lines = "trap '' TERM; setsid sleep 4711.25 & echo up; sleep 4711.25; sleep 4711.25";
        let begun = Instant::now();
        let attempt = Bench::attempt(shell(lines));
        let ran = bench.run(attempt, Some(Duration::from_millis(500))).await;
        assert!(ran.error().contains("stopped"), "{}", ran.error());
        assert_eq!(ran.log, "up\n");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert!(!is_running("4711.25"), "something outlived its attempt ({isolation:?})");
        bench.assert_empty();
    }
}

// The example that the guide pushes.
#[tokio::test]
async fn the_python_example_counts_words() {
    let bench = Bench::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/programs/wordcount.py");
    let file = bench.share("wordcount.py", &std::fs::read(source).expect("the example"));
    let argv = vec!["/usr/bin/python3".to_owned(), file.to_string_lossy().into_owned()];
    let mut attempt = Bench::attempt(Code::Command { argv, file: Some(file) });
    attempt.settings = vec![("top".to_owned(), "1".to_owned())];
    let ran = bench.run(attempt, None).await;
    let good = ran.good();
    assert_eq!(good.outputs, [("counts.tsv".to_owned(), "dear\t1\nreader\t1\n".to_owned())]);
    assert!(good.result == br#"{"words": 2, "top": [["dear", 1]]}"#.to_vec().into());
    assert_eq!(ran.log, "1 files, 2 words\n");
}

#[tokio::test]
async fn only_allowed_commands_run() {
    let bench = Bench::with(|config| config.commands = vec!["/bin/true".to_owned()]);
    let ran = bench.shell("true").await;
    assert!(ran.error().contains("does not allow the command \"/bin/sh\""), "{}", ran.error());
}

/// Whether a process with this argument lives.
pub fn is_running(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("proc").flatten();
    let mut lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()))
}
