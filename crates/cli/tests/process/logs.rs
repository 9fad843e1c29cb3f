//! What programs say, as a user follows it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use ikada_api::client::{ObjectSource, PutOptions};
use ikada_api::v1::{NewJob, NewProgram};
use serde_json::json;

use crate::cluster::Cluster;
use crate::fresh::ikada;
use crate::jobs::cli;
use crate::programs::WorkerProcess;
use crate::wait::until;

/// Tasks of the job.
const TASKS: usize = 3;

/// A command of the command line, read line by line; ended when dropped.
struct Follower {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Follower {
    fn start(words: &[&str], url: &str) -> Follower {
        let mut command = ikada();
        command.args(words).args(["--url", url]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let told = BufReader::new(child.stdout.take().expect("piped"));
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = lines.clone();
        std::thread::spawn(move || {
            for line in told.lines().map_while(Result::ok) {
                kept.lock().expect("no panic").push(line);
            }
        });
        Follower { child, lines }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no panic").clone()
    }

    /// Waits until it has ended by itself.
    async fn ends(&mut self) -> Option<i32> {
        let status = until("the follower ends", || {
            let ended = self.child.try_wait().expect("a look");
            async move { ended }
        });
        status.await.code()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// A4: only the job's leader is named, and it is killed while programs speak. Every line is told once, and stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_followed_through_the_death_of_the_node_that_tells() {
    let mut cluster = Cluster::start().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    // Each task speaks, and then waits until the test lets it go on.
    let script =
        r#"echo begins; while ! [ -e "$IKADA_SETTING_GATE" ]; do sleep 0.2; done; echo ends"#;
    let gate = folder.path().join("gate");
    let file = client.upload(&ObjectSource::Bytes(script.into()), &PutOptions::default()).await;
    let program = NewProgram {
        name: "speaker".to_owned(),
        kind: "command".to_owned(),
        argv: ["/bin/sh", "{file}"].map(str::to_owned).to_vec(),
        file: Some(file.expect("an upload")),
        ..NewProgram::default()
    };
    client.push_program(&program).await.expect("a good program");
    let readable = folder.path().to_string_lossy().into_owned();
    let worker = WorkerProcess::start(
        &cluster,
        &folder,
        "w1",
        &["--slots", "3", "--allow-read", &readable, "--isolation", "none"],
    );
    let job: NewJob = serde_json::from_value(json!({
        "id": "talk", "settings": {"gate": gate}, "max_attempts": 1,
        "map": {"program": "speaker", "range": {"to": TASKS}}}))
    .expect("a job");
    client.submit_job(&job).await.expect("taken");
    let leader = *cluster.settle().await.values().max().expect("a leader");
    let mut follower = Follower::start(&["job", "logs", "talk", "-f"], &cluster.node(leader).url);
    until("every task has spoken", || {
        let lines = follower.lines();
        async move { (lines.len() == TASKS).then_some(()) }
    })
    .await;
    cluster.kill(leader);
    std::fs::write(&gate, "").expect("a file");
    assert_eq!(follower.ends().await, Some(0));
    let mut lines = follower.lines();
    lines.sort();
    let expected: Vec<String> = (0..TASKS)
        .flat_map(|task| ["begins", "ends"].map(|word| format!("map.{task}: {word}")))
        .collect();
    assert_eq!(lines, expected, "every line once");
    // Kept after the end, without the worker, on every node.
    drop(worker);
    cluster.launch(leader);
    cluster.settle().await;
    let (code, printed, said) = cli(&cluster, &folder, &["job", "logs", "talk"]);
    assert_eq!((code, printed.lines().count()), (Some(0), TASKS * 2), "{said}");
    let (code, printed, said) = cli(&cluster, &folder, &["task", "logs", "talk:map.1", "-f"]);
    assert_eq!((code, printed.as_str()), (Some(0), "begins\nends\n"), "{said}");
    let (code, _, said) = cli(&cluster, &folder, &["job", "logs", "nothing", "-f"]);
    assert_eq!(code, Some(4), "{said}");
}
