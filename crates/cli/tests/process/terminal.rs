//! The command line among others: in a pipe whose reader leaves, and at a terminal where somebody can be asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use crate::cluster::Cluster;
use crate::fresh::ikada;

/// A command line against a cluster.
fn line(cluster: &Cluster, words: &str) -> Command {
    let mut command = ikada();
    command.args(words.split(' ')).env("IKADA_URL", cluster.urls().join(","));
    command
}

fn done(cluster: &Cluster, words: &str) -> String {
    let output = line(cluster, words).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Follows until there are so many lines, closes the pipe and waits for the end; gives what was said on standard error.
fn read_some(mut command: Command, lines: usize) -> String {
    let what = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut read = BufReader::new(child.stdout.take().expect("piped"));
    for _ in 0..lines {
        let mut text = String::new();
        assert!(read.read_line(&mut text).expect("text") > 0, "{what} ended early");
    }
    drop(read);
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    let status = child.wait().expect("a child");
    assert!(status.success(), "{what}: {status}: {said}");
    said
}

/// What follows ends calmly with its reader, whether there is more to print or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_follows_ends_when_its_reader_leaves() {
    let cluster = Cluster::start_some(1, 1).await;
    done(&cluster, "task enqueue --id one --queue quiet");
    done(&cluster, "schedule set nightly --cron @daily");
    done(&cluster, "lease acquire lock --holder me --ttl-ms 600000");
    let followed = [
        ("queue list -f", 2),
        ("cluster status -f --every 3600", 1),
        ("task list -f", 2),
        ("task show one -f --every 3600", 1),
        ("schedule list -f", 2),
        ("lease list -f", 2),
        ("namespace list -f", 1),
        // Nothing comes after the first look: the reader is missed all the same.
        ("lease show lock --watch", 2),
        ("cluster events -f", 1),
    ];
    for (words, lines) in followed {
        let said = read_some(line(&cluster, words), lines);
        let strange = said.lines().find(|line| !line.starts_with("role changes of node"));
        assert_eq!(strange, None, "{words}");
    }
}

/// `ikada ... -f` shows what changes; with `--output json` as documents, one after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_followed_to_its_end() {
    let cluster = Cluster::start_some(1, 1).await;
    done(&cluster, "task enqueue --id one --queue quiet");
    let mut child = line(&cluster, "task show one -f --output json")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut read = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut seen = |state: &str| {
        let wanted = format!("\"state\": \"{state}\"");
        read.by_ref().map_while(Result::ok).any(|line| line.contains(&wanted))
    };
    assert!(seen("ready"));
    done(&cluster, "task cancel one");
    assert!(seen("cancelled"));
    let _ = child.kill();
    let _ = child.wait();
}

/// Types an answer at a terminal of its own; gives whether it ended well and what was on the screen.
fn at_a_terminal(cluster: &Cluster, words: &str, typed: &str) -> (bool, String) {
    let program = ikada().get_program().to_string_lossy().into_owned();
    let mut command = line(cluster, "");
    let envs: Vec<_> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    command = Command::new("script");
    for (name, value) in envs {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["--quiet", "--return", "--command", &format!("{program} {words}"), "/dev/null"]);
    command.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("script of util-linux");
    child.stdin.take().expect("piped").write_all(typed.as_bytes()).expect("typed");
    let output = child.wait_with_output().expect("it ends");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What does not come back is confirmed by a person, and only by one: scripts are not asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_asked_before_something_goes_for_good() {
    let cluster = Cluster::start_some(1, 1).await;
    let prepare = || {
        done(&cluster, "schedule set nightly --cron @daily");
        done(&cluster, "queue set mail --max-attempts 1");
    };
    prepare();
    let (ended_well, screen) = at_a_terminal(&cluster, "schedule delete nightly", "n\n");
    assert!(screen.contains("Delete schedule nightly? [y/N]"), "{screen}");
    assert!(screen.contains("nothing was done"), "{screen}");
    assert!(!ended_well);
    assert!(done(&cluster, "schedule list").contains("nightly"));
    let (ended_well, screen) = at_a_terminal(&cluster, "schedule delete nightly", "y\n");
    assert!(ended_well, "{screen}");
    assert!(!done(&cluster, "schedule list").contains("nightly"));
    prepare();
    let (ended_well, screen) = at_a_terminal(&cluster, "schedule delete nightly --yes", "");
    assert!(ended_well && !screen.contains("[y/N]"), "{screen}");
    // A script has no terminal.
    prepare();
    done(&cluster, "schedule delete nightly");
    for (words, question) in [
        ("task drop --queue mail --all", "Remove all dead tasks of queue mail for good?"),
        ("task drop some", "Remove some for good?"),
        ("cluster remove 7", "Remove node 7 for good?"),
    ] {
        let (ended_well, screen) = at_a_terminal(&cluster, words, "\n");
        assert!(!ended_well && screen.contains(question), "{words}: {screen}");
    }
    done(&cluster, "program push --handler shout");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("job.toml");
    let job = "id = \"loud\"\n[map]\nprogram = \"shout\"\nrange = { from = 0, to = 2 }\n";
    std::fs::write(&file, job).expect("written");
    done(&cluster, &format!("job submit {}", file.display()));
    let (ended_well, screen) = at_a_terminal(&cluster, "job cancel loud", "no\n");
    assert!(
        !ended_well && screen.contains("Cancel job loud, 2 of whose 2 tasks are not done?"),
        "{screen}"
    );
    assert!(!done(&cluster, "job show loud").contains("cancelled"));
    done(&cluster, "job cancel loud");
}
