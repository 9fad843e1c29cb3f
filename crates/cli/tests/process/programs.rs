//! Programs over real processes: pushed, run by `ikada worker` in its sandbox, stopped, fenced.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::client::{GetOptions, ObjectSource, PutOptions};
use ikada_api::v1::{NewProgram, NewTask, Task, TaskStateName};
use serde_json::json;
use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::fresh::ikada;
use crate::wait::until;

/// A worker process; ended when dropped.
pub struct WorkerProcess {
    child: Child,
    log: PathBuf,
}

impl WorkerProcess {
    pub fn start(cluster: &Cluster, folder: &TempDir, name: &str, more: &[&str]) -> WorkerProcess {
        let log = folder.path().join(format!("{name}.log"));
        let file = File::create(&log).expect("a log");
        let mut command = ikada();
        command.args(["worker", "--name", name, "--url", &cluster.urls().join(",")]);
        command.args(["--allow-command", "/bin/sh", "--grace-ms", "500", "--until-stdin-closes"]);
        command.arg("--work-dir").arg(folder.path().join(name)).args(more);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(file).spawn();
        WorkerProcess { child: child.expect("the worker starts"), log }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_raw(self.child.id() as i32).expect("an id");
        rustix::process::kill_process(id, signal).expect("it lives");
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // One that has ended is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

/// Keeps a shell script as a program.
pub async fn push(client: &Client, name: &str, script: &str) {
    let source = ObjectSource::Bytes(script.to_owned().into());
    let file = client.upload(&source, &PutOptions::default()).await.expect("an upload");
    let argv = ["/bin/sh", "{file}"].map(str::to_owned).to_vec();
    let (name, kind) = (name.to_owned(), "command".to_owned());
    let program = NewProgram { name, kind, argv, file: Some(file), ..NewProgram::default() };
    client.push_program(&program).await.expect("a good program");
}

async fn submit(client: &Client, task: serde_json::Value) {
    let task: NewTask = serde_json::from_value(task).expect("a task");
    let answer = client.enqueue(vec![task]).await.expect("taken");
    assert_eq!(answer.tasks[0].problem, None);
}

async fn settled(client: &Client, id: &str, state: TaskStateName) -> Task {
    until("the task is settled", || async {
        client.task(id).await.ok().filter(|task| task.state == state)
    })
    .await
}

async fn read(client: &Client, bucket: &str, key: &str) -> String {
    let reader = client.get_object(bucket, key, &GetOptions::default()).await.expect("an object");
    String::from_utf8(reader.collect().await.expect("all bytes")).expect("text")
}

// B4-13, B4-40, A4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_40_a_pushed_command_runs_on_a_worker_and_its_outputs_are_published() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    let text = ObjectSource::Bytes("one two\nthree\n".into());
    client.put_object("texts", "a.txt", &text, &PutOptions::default()).await.expect("an object");
    let script = r#"
        payload=$(cat)
        wc -w < "$IKADA_IN/deep/a.txt" > "$IKADA_OUT/count.txt"
        echo "$IKADA_SETTING_TOP $payload $IKADA_ATTEMPT" > "$IKADA_OUT/seen.txt"
        echo "{\"words\": $(cat "$IKADA_OUT/count.txt")}" > "$IKADA_RESULT"
        echo ikada:progress 0.5 half; echo counted
    "#;
    push(&client, "count", script).await;
    let worker = WorkerProcess::start(&cluster, &folder, "w1", &[]);
    let inputs = json!([{"name": "deep/a.txt", "bucket": "texts", "key": "a.txt"}]);
    let task = json!({"id": "t1", "program": "count", "payload": {"n": 1},
        "settings": {"top": "5"}, "inputs": inputs});
    submit(&client, task).await;
    let done = settled(&client, "t1", TaskStateName::Done).await;
    assert_eq!(done.result.expect("a result").get(), "{\"words\": 3}");
    assert_eq!(read(&client, "tasks", "t1/count.txt").await.trim(), "3");
    assert_eq!(read(&client, "tasks", "t1/seen.txt").await, "5 {\"n\":1} 1\n");
    // Its log is there although the worker may go.
    let log = client.task_log("t1", None, 0).await.expect("a look").expect("a log");
    assert_eq!((log.attempt, log.bytes.ends_with(b"counted\n")), (1, true));
    // What the operator did not allow does not run, and the reason is told.
    let argv = ["/usr/bin/id".to_owned()].to_vec();
    let (name, kind) = ("id".to_owned(), "command".to_owned());
    let program = NewProgram { name, kind, argv, ..NewProgram::default() };
    client.push_program(&program).await.expect("a good program");
    submit(&client, json!({"id": "t2", "program": "id", "max_attempts": 1})).await;
    let dead = settled(&client, "t2", TaskStateName::Dead).await;
    let reason = serde_json::to_string(&dead).expect("text");
    assert!(reason.contains("does not allow the command"), "{reason}");
    drop(worker);
}

/// The promise is the grace time of 0.5 s and two seconds; the rest is for machines with much else to do. A worker that
/// waits for a third of the default lifetime takes longer than this.
const CANCEL_BOUND: Duration = Duration::from_millis(7_500);

/// Waits until no process has this argument, and says whether that was within the bound.
async fn gone_in_time(argument: &str, since: Instant) {
    until("the processes are gone", || async { (!is_running(argument)).then_some(()) }).await;
    let passed = since.elapsed();
    assert!(passed < CANCEL_BOUND, "it took {} ms", passed.as_millis());
}

// B4-30, with the default lifetime of a claim: neither the slot nor the processes wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_30_a_cancelled_task_ends_its_processes_and_frees_the_slot() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    let long = own_seconds(5_711);
    let script = format!("trap '' TERM\nsetsid sleep {long} &\nsleep {long}\nsleep {long}");
    push(&client, "deaf", &script).await;
    push(&client, "quick", "echo '1' > $IKADA_RESULT").await;
    let worker = WorkerProcess::start(&cluster, &folder, "w1", &["--slots", "1"]);
    submit(&client, json!({"id": "long", "program": "deaf"})).await;
    until("the command runs", || async { is_running(&long).then_some(()) }).await;
    let fence = client.task("long").await.expect("a task").fence;
    let cancelled = Instant::now();
    client.cancel("long").await.expect("cancelled");
    submit(&client, json!({"id": "next", "program": "quick"})).await;
    gone_in_time(&long, cancelled).await;
    settled(&client, "next", TaskStateName::Done).await;
    // A result that comes after all is refused, although fence and worker are those of the attempt.
    let late = json!({"worker": "w1", "tasks": [{"id": "long", "fence": fence, "result": 1}]});
    let late = serde_json::from_value(late).expect("a report");
    let answer = client.complete(&late).await.expect("an answer");
    let problem = answer.tasks[0].problem.as_ref().expect("a refusal");
    assert_eq!(problem.code, "task_finished");
    assert_eq!(client.task("long").await.expect("a task").state, TaskStateName::Cancelled);
    drop(worker);
}

// B4-30, B4-33: those who are no longer needed hear of it as soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_33_the_rest_of_a_settled_stage_ends_its_processes_and_frees_the_slots() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    let long = own_seconds(5_717);
    let script = r#"
        if [ "$(cat "$IKADA_IN/range")" != "2 3" ]; then exec sleep LONG; fi
        sleep 1.5; echo 2 > "$IKADA_RESULT"
    "#;
    push(&client, "search", &script.replace("LONG", &long)).await;
    let worker = WorkerProcess::start(&cluster, &folder, "w1", &["--slots", "3"]);
    let job = json!({"id": "found",
        "map": {"program": "search", "range": {"to": 3}, "settle": "any"}});
    let job = serde_json::from_value(job).expect("a job");
    client.submit_job(&job).await.expect("taken");
    until("the others run", || async { is_running(&long).then_some(()) }).await;
    until("the job is done", || async {
        client.job("found").await.ok().filter(|job| job.status == "done")
    })
    .await;
    gone_in_time(&long, Instant::now()).await;
    drop(worker);
}

// B4-26, Q4, A4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a4_a_worker_that_was_paused_beyond_its_ttl_publishes_nothing() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    // The first attempt is slow, every later one is quick.
    let script = r#"
        if [ "$IKADA_ATTEMPT" = 1 ]; then sleep 3; fi
        echo "attempt $IKADA_ATTEMPT" > "$IKADA_OUT/who.txt"
        echo "only-$IKADA_ATTEMPT" > "$IKADA_OUT/only-$IKADA_ATTEMPT.txt"
        echo "$IKADA_ATTEMPT" > "$IKADA_RESULT"
    "#;
    push(&client, "slow", script).await;
    // One slot: with two, the paused worker has a claim waiting and may be handed the next attempt as well.
    let first = WorkerProcess::start(&cluster, &folder, "w1", &["--slots", "1"]);
    submit(&client, json!({"id": "t1", "program": "slow", "ttl_ms": 2_000})).await;
    settled(&client, "t1", TaskStateName::Claimed).await;
    first.signal(rustix::process::Signal::STOP);
    let second = WorkerProcess::start(&cluster, &folder, "w2", &[]);
    let done = settled(&client, "t1", TaskStateName::Done).await;
    // On a slow machine the second worker may lose an attempt of its own; whoever won, it was not the first.
    let winner = done.result.as_ref().expect("a result").get().to_owned();
    assert_ne!(winner, "1");
    first.signal(rustix::process::Signal::CONT);
    // The first one finds its claim lost, or its completion refused; then it takes new work again.
    drop(second);
    push(&client, "quick", "echo '1' > $IKADA_RESULT").await;
    submit(&client, json!({"id": "t2", "program": "quick"})).await;
    settled(&client, "t2", TaskStateName::Done).await;
    let after = client.task("t1").await.expect("a task");
    assert_eq!(after.result.expect("a result").get(), winner);
    let listed = client.objects("tasks", "t1/", None, false).await.expect("a list");
    let names: Vec<String> = listed.objects.into_iter().map(|object| object.key).collect();
    let expected = [format!("t1/only-{winner}.txt"), "t1/who.txt".to_owned()];
    assert_eq!(names, expected, "one result, one set of files");
    assert_eq!(read(&client, "tasks", "t1/who.txt").await, format!("attempt {winner}\n"));
}

/// Seconds to sleep as nobody else on this machine writes them: another run of these tests is not to be taken for this one.
fn own_seconds(seconds: u32) -> String {
    format!("{seconds}.{}", std::process::id())
}

/// Whether a process with this argument lives.
fn is_running(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("proc").flatten();
    let mut lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()))
}

// Q4: what an attempt left is what the next one begins with, whichever worker has it, and a killed worker's too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_26_an_attempt_goes_on_from_the_checkpoint_of_the_one_before() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    let script = r#"
        if [ -e "$IKADA_CHECKPOINT" ]; then before=$(cat "$IKADA_CHECKPOINT"); else before=none; fi
        echo "$before $IKADA_ATTEMPT" > tmp/next && mv tmp/next "$IKADA_CHECKPOINT"
        case "$IKADA_ATTEMPT" in
            1) exit 3 ;;
            2) sleep 60 ;;
        esac
        echo "$before" > "$IKADA_OUT/before.txt"
    "#;
    push(&client, "steps", script).await;
    let first = WorkerProcess::start(&cluster, &folder, "w1", &["--slots", "1"]);
    let backoff = json!({"base_ms": 10, "cap_ms": 10});
    submit(&client, json!({"id": "t1", "program": "steps", "ttl_ms": 1_000, "backoff": backoff}))
        .await;
    // The second attempt has kept its own when its worker is killed.
    until("the second checkpoint is kept", || async {
        let options = GetOptions::default();
        let reader = client.get_object("tasks", "t1/.checkpoint", &options).await.ok()?;
        let kept = reader.collect().await.ok()?;
        (kept == b"none 1 2\n").then_some(())
    })
    .await;
    drop(first);
    let second = WorkerProcess::start(&cluster, &folder, "w2", &["--slots", "1"]);
    let done = settled(&client, "t1", TaskStateName::Done).await;
    assert_eq!(done.attempts.len(), 3);
    assert_eq!(read(&client, "tasks", "t1/before.txt").await, "none 1 2\n");
    let gone = client.get_object("tasks", "t1/.checkpoint", &GetOptions::default()).await;
    assert!(gone.is_err(), "who is done needs none");
    drop(second);
}

// B4-28: through the command line and the workers, over several shards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_28_a_job_that_was_run_before_needs_no_worker() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    push(&client, "length", "cat \"$IKADA_IN\"/* | wc -c > \"$IKADA_OUT/length\"").await;
    for name in ["a", "bb", "ccc"] {
        std::fs::write(folder.path().join(format!("{name}.txt")), name).expect("a file");
    }
    let worker = WorkerProcess::start(&cluster, &folder, "w1", &[]);
    let words = |id: &'static str| {
        let run = ["job", "run", "--map", "length", "--input", "*.txt", "--reuse", "--id"];
        [&run[..], &[id, "--to", id]].concat()
    };
    let (code, _, said) = crate::jobs::cli(&cluster, &folder, &words("first"));
    assert_eq!(code, Some(0), "{said}");
    drop(worker);
    let (code, _, said) = crate::jobs::cli(&cluster, &folder, &words("second"));
    assert_eq!(code, Some(0), "{said}");
    let again = client.job("second").await.expect("a job");
    assert_eq!((again.stages[0].done, again.stages[0].reused), (3, 3), "{again:?}");
    for place in 0..3 {
        let one = read(&client, "jobs", &format!("second/map/{place}/length")).await;
        assert_eq!(one, read(&client, "jobs", &format!("first/map/{place}/length")).await);
    }
}

// B4-26: a slow machine does not hold up a job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_26_a_slow_task_is_begun_a_second_time_and_the_first_is_ended() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    // Whoever reads number 3 in the folder of the slow worker sleeps.
    let script = r#"
        read number rest < "$IKADA_IN/range"
        case "$PWD" in *slow*) if [ "$number" = 3 ]; then sleep LONG; fi ;; esac
        echo "$number" > "$IKADA_OUT/number"
    "#;
    let long = own_seconds(5_713);
    push(&client, "number", &script.replace("LONG", &long)).await;
    let slow = WorkerProcess::start(&cluster, &folder, "slow", &["--slots", "4"]);
    let job: ikada_api::v1::NewJob = serde_json::from_value(json!({
        "id": "j", "duplicate_after": 2, "map": {"program": "number", "range": {"to": 4}}}))
    .expect("a job");
    client.submit_job(&job).await.expect("taken");
    until("three are done", || async {
        client.job("j").await.ok().filter(|job| job.tasks_done == 3)
    })
    .await;
    until("the fourth sleeps", || async { is_running(&long).then_some(()) }).await;
    let fast = WorkerProcess::start(&cluster, &folder, "fast", &[]);
    let ended = until("the job ends", || async {
        client.job("j").await.ok().filter(|job| job.is_finished())
    })
    .await;
    assert_eq!((ended.status.as_str(), ended.stages[0].duplicated), ("done", 1), "{ended:?}");
    let task = client.task("j:map.3").await.expect("a task");
    let shown: Vec<_> =
        task.attempts.iter().map(|one| (one.worker.as_str(), one.outcome.as_str())).collect();
    assert_eq!(shown, [("slow", "outrun"), ("fast", "completed")]);
    until("the first is ended", || async { (!is_running(&long)).then_some(()) }).await;
    drop((slow, fast));
}

/// A module with two exports: `_start` does nothing, `other` breaks off.
const TWO_ENTRIES: &[u8] = b"\0asm\x01\0\0\0\
    \x01\x04\x01\x60\0\0\
    \x03\x03\x02\0\0\
    \x05\x03\x01\0\x01\
    \x07\x1b\x03\x06memory\x02\0\x06_start\0\0\x05other\0\x01\
    \x0a\x08\x02\x02\0\x0b\x03\0\0\x0b";

// B4-39: what a submission names inside a program is checked before it is taken, and is what runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_39_an_entry_is_looked_for_at_submission_and_is_what_runs() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    let source = ObjectSource::Bytes(TWO_ENTRIES.into());
    let file = client.upload(&source, &PutOptions::default()).await.expect("an upload");
    let (name, kind) = ("two".to_owned(), "wasm".to_owned());
    let program = NewProgram { name, kind, file: Some(file), ..NewProgram::default() };
    client.push_program(&program).await.expect("a good program");
    push(&client, "script", "true").await;
    for (program, entry, named) in [
        ("two", "third", "exports no function \"third\""),
        ("two", "memory", "exports no function \"memory\""),
        ("script", "other", "script is a command"),
        ("wordcount", "other", "wordcount is a handler"),
    ] {
        let task = json!({"program": program, "entry": entry});
        let task: NewTask = serde_json::from_value(task).expect("a task");
        let refused = client.enqueue(vec![task]).await;
        let said = match refused {
            Ok(answer) => serde_json::to_string(&answer).expect("text"),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(&named.replace('"', "\\\"")) || said.contains(named), "{said}");
        let job = json!({"map": {"program": program, "entry": entry, "range": {"to": 1}}});
        let job: ikada_api::v1::NewJob = serde_json::from_value(job).expect("a job");
        let said = client.submit_job(&job).await.expect_err("refused").to_string();
        assert!(said.contains(named), "{said}");
    }
    let worker = WorkerProcess::start(&cluster, &folder, "w1", &[]);
    submit(&client, json!({"id": "start", "program": "two"})).await;
    submit(&client, json!({"id": "named", "program": "two", "entry": "_start"})).await;
    submit(&client, json!({"id": "other", "program": "two", "entry": "other", "max_attempts": 1}))
        .await;
    settled(&client, "start", TaskStateName::Done).await;
    settled(&client, "named", TaskStateName::Done).await;
    settled(&client, "other", TaskStateName::Dead).await;
    drop(worker);
}

// Told to end, a worker finishes what it has and leaves with a good word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_told_to_end_finishes_its_task_and_exits_well() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    push(&client, "nap", "sleep 1; echo '1' > $IKADA_RESULT").await;
    let mut worker = WorkerProcess::start(&cluster, &folder, "w1", &["--slots", "1"]);
    submit(&client, json!({"id": "first", "program": "nap"})).await;
    settled(&client, "first", TaskStateName::Claimed).await;
    submit(&client, json!({"id": "second", "program": "nap"})).await;
    worker.signal(rustix::process::Signal::TERM);
    let ended = until("the worker ends", || {
        let ended = worker.child.try_wait().expect("a look");
        async move { ended }
    })
    .await;
    assert_eq!(ended.code(), Some(0));
    let first = client.task("first").await.expect("a task");
    assert_eq!((first.state, first.attempts_begun), (TaskStateName::Done, 1), "{first:?}");
    let second = client.task("second").await.expect("a task");
    assert_eq!((second.state, second.attempts_begun), (TaskStateName::Ready, 0), "{second:?}");
}

// TQ-19: what a program says of its progress comes with its worker's renewals, and goes with the attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tq_19_a_program_says_how_far_it_is() {
    let cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    push(&client, "slow", "echo ikada:progress 0.5 half; sleep 600").await;
    let worker = WorkerProcess::start(&cluster, &folder, "w1", &[]);
    submit(&client, json!({"id": "t1", "program": "slow"})).await;
    let said = until("it says how far it is", || async { client.task("t1").await.ok()?.progress });
    let said = said.await;
    assert_eq!((said.permille, said.note.as_str()), (500, "half"));
    let explained = client.explain("t1").await.expect("an explanation");
    assert!(explained.reasons[0].sentence.ends_with("50.0 % done: half"), "{explained:?}");
    client.cancel("t1").await.expect("cancelled");
    assert_eq!(settled(&client, "t1", TaskStateName::Cancelled).await.progress, None);
    drop(worker);
}
