//! A disk that runs full (F-12): uploads are refused, work goes on from the reserve, and all is well once there is room
//! again. Needs a small filesystem of its own, which only the superuser can mount.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use ikada_api::Client;
use ikada_api::client::{ObjectSource, PutOptions};
use ikada_api::v1::{CompleteRequest, NewTask, NewUpload, OutcomeKind, TaskStateName};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cluster::Cluster;
use crate::jobs::WorkerProcess;
use crate::missing::{is_ci, judge_missing};
use crate::wait::until;
use crate::work::{QUEUE, write_all};

/// Bytes of the filesystem: log and snapshots of one node, the reserve of 64 MiB, and some room.
const DISK_MIB: u64 = 320;
/// What is left free when it is full: less than the reserve, more than a moment's work.
const LEFT_BYTES: u64 = 40 << 20;

/// Bytes of a filesystem that three nodes share: the logs, their spares, and some room.
const SHARED_MIB: u64 = 640;
/// Bytes of a file in three parts, each with a copy per node until the object is there, which has the same pieces.
const PARTED_BYTES: usize = 17 << 20;
/// Bytes of each of the tasks that fill a disk; more than fit are never sent.
const FAT_BYTES: usize = 900 << 10;
const FAT_TASKS_MAX: usize = 600;

/// A filesystem in memory, gone when dropped.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None, said aloud, where mounting is not allowed; a failure in CI.
    pub fn mount(at: &Path, mib: u64) -> Option<SmallDisk> {
        std::fs::create_dir_all(at).expect("a folder");
        let size = format!("size={mib}m");
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk(at.to_owned()));
        }
        judge_missing(Some("the right to mount a filesystem (root)"), "full disks", is_ci());
        None
    }

    pub fn free_bytes(&self) -> u64 {
        let asked = Command::new("df").args(["--output=avail", "-B1"]).arg(&self.0).output();
        let said = String::from_utf8(asked.expect("df").stdout).expect("text");
        said.lines().last().and_then(|line| line.trim().parse().ok()).expect("a number")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Claims so many tasks and completes them.
async fn complete_some(client: &Client, count: usize) {
    let claim = r#"{"worker": "w", "queues": ["work"], "count_max": 20, "wait_ms": 5000}"#;
    let claimed = client.claim(&serde_json::from_str(claim).expect("a claim")).await;
    let held = claimed.expect("claimed").tasks;
    assert_eq!(held.len(), count);
    let items = held.iter().map(|task| {
        let text = format!(r#"{{"id": "{}", "fence": "{}"}}"#, task.id, task.fence);
        serde_json::from_str(&text).expect("a completion")
    });
    let complete = CompleteRequest { worker: "w".into(), tasks: items.collect(), claim: None };
    client.complete(&complete).await.expect("completed");
}

/// Submits a large task; its id, or the code of the refusal.
async fn submit_fat(client: &Client, id: &str) -> Result<String, String> {
    let payload = serde_json::value::to_raw_value(&"x".repeat(FAT_BYTES)).ok();
    let queue = Some(QUEUE.to_owned());
    let task = NewTask { id: Some(id.to_owned()), queue, payload, ..NewTask::default() };
    match client.enqueue_as(id, vec![task]).await {
        Ok(answer) if answer.tasks[0].outcome == OutcomeKind::Created => Ok(id.to_owned()),
        Ok(answer) => Err(format!("{:?}", answer.tasks[0])),
        Err(error) => Err(error.code().map_or(error.to_string(), str::to_owned)),
    }
}

/// Submits a task of the built-in program that counts words, whose only attempt makes a file.
async fn submit_counting(client: &Client, id: &str) {
    let task = json!({"id": id, "program": "wordcount", "max_attempts": 1,
        "inputs": [{"name": "a", "text": "war and peace"}]});
    let task: NewTask = serde_json::from_value(task).expect("a task");
    let answer = client.enqueue_as(id, vec![task]).await.expect("taken");
    assert_eq!(answer.tasks[0].outcome, OutcomeKind::Created);
}

/// How often the node at an address refused bytes for want of room.
async fn refusals(address: &str) -> u64 {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let head = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.expect("an answer");
    let mut lines = heard.lines();
    let count = lines.find_map(|line| line.strip_prefix("ikada_blobs_refused_full_total "));
    count.and_then(|count| count.parse().ok()).expect("a count")
}

/// Sends all parts of a file of fives, as the command would, and does not finish; the upload's id.
async fn send_parts(client: &Client, length: usize) -> String {
    let bytes = vec![5; length];
    let digest = blake3::hash(&bytes).to_hex().to_string();
    let kind = "application/octet-stream";
    let mut hasher = blake3::Hasher::new();
    for word in ["b", "large", kind, &length.to_string(), &digest] {
        hasher.update(&(word.len() as u64).to_le_bytes());
        hasher.update(word.as_bytes());
    }
    let id: String = hasher.finalize().to_hex().chars().take(32).collect();
    let wanted = NewUpload {
        bucket: "b".into(),
        key: "large".into(),
        content_type: Some(kind.into()),
        size: Some(length as u64),
    };
    client.begin_upload(&id, &wanted).await.expect("begun");
    for (part, number) in bytes.chunks(8 << 20).zip(1..) {
        let source = ObjectSource::Bytes(part.to_vec().into());
        client.put_part(&id, number, &source, &PutOptions::default()).await.expect("sent");
    }
    id
}

/// Runs the command; whether it went well, and what it said.
fn put(cluster: &Cluster, file: &Path) -> (bool, String) {
    let urls: Vec<&str> = cluster.nodes.iter().map(|node| node.url.as_str()).collect();
    let mut command = crate::fresh::ikada();
    command.args(["object", "put"]).arg(file).args(["b/large", "--url", &urls.join(",")]);
    let said = command.output().expect("it runs");
    (said.status.success(), String::from_utf8_lossy(&said.stderr).into_owned())
}

// F-12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_12_nodes_that_fill_the_disk_they_share_refuse_and_go_on() {
    let mut cluster = Cluster::prepare(3);
    if cluster.is_in_database() {
        return eprintln!("passed over: tasks are in the database, and fill no node's disk");
    }
    cluster.shards = 1;
    let shared = cluster.node(1).data.with_file_name("shared");
    let Some(disk) = SmallDisk::mount(&shared, SHARED_MIB) else { return };
    for node in &mut cluster.nodes {
        node.data = shared.join(format!("node-{}", node.id));
    }
    (1..=3).for_each(|id| cluster.launch(id));
    cluster.settle().await;
    let client = cluster.client();
    let mut acked: BTreeSet<String> = write_all(&client, "before", 20).await;
    let file = shared.join("../large.bin");
    std::fs::write(&file, vec![5; PARTED_BYTES]).expect("written");
    let upload = send_parts(&client, PARTED_BYTES).await;
    let filler = disk.0.join("filler");
    let bytes = disk.free_bytes().saturating_sub(LEFT_BYTES);
    std::fs::write(&filler, vec![1; bytes as usize]).expect("filled");

    // They are filled as fast as it goes, until a submission is refused.
    let mut refused = None;
    for number in 0..FAT_TASKS_MAX {
        match submit_fat(&client, &format!("fat-{number}")).await {
            Ok(id) => drop(acked.insert(id)),
            Err(code) => {
                refused = Some(code);
                break;
            }
        }
    }
    let logs: Vec<String> = (1..=3).map(|id| cluster.log(id)).collect();
    assert_eq!(refused.as_deref(), Some("disk_full"), "{} were taken: {logs:#?}", acked.len());
    complete_some(&client, 20).await;
    for id in 1..=3 {
        assert!(cluster.is_running(id), "node {id} has ended");
    }
    // CH-1: the object has to wait, and its parts are kept for it.
    let told = put(&cluster, &file);
    assert!(!told.0 && told.1.contains("disk_full") && told.1.contains("goes on"), "{}", told.1);
    let kept = client.upload_view(&upload).await.expect("it is kept");
    assert_eq!(kept.parts.len(), 3);

    // Room comes back, and nobody has to do anything else.
    std::fs::remove_file(&filler).expect("removed");
    let more = until("tasks are taken again", || async { submit_fat(&client, "after").await.ok() });
    acked.insert(more.await);
    let told = put(&cluster, &file);
    assert!(told.0 && told.1.contains("going on: 3 of 3 parts"), "{}", told.1);
    for id in 1..=3 {
        assert!(cluster.is_running(id), "node {id} has ended");
    }
    // One by one: a page of them all would be a hundred megabytes.
    for id in &acked {
        let seen = until("a task is read", || async { client.task(id).await.ok() }).await;
        assert_eq!(&seen.id, id);
    }
    cluster.copies_become_equal().await;
}

// F-12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_12_a_full_disk_refuses_uploads_and_work_goes_on() {
    let mut cluster = Cluster::prepare(1);
    cluster.shards = 1;
    let Some(disk) = SmallDisk::mount(&cluster.node(1).data.clone(), DISK_MIB) else { return };
    cluster.launch(1);
    cluster.settle().await;
    let client = cluster.client();
    let address = cluster.node(1).url.replace("http://", "");
    // Without the client's retries: the answer itself is what counts.
    let put = async |name: &str| {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        let bytes = vec![7; 1 << 20];
        let head = format!(
            "PUT /v1/objects/b/{name} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            bytes.len()
        );
        stream.write_all(head.as_bytes()).await.expect("sent");
        let _ = stream.write_all(&bytes).await;
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard).await;
        String::from_utf8_lossy(&heard).into_owned()
    };
    assert!(put("before").await.starts_with("HTTP/1.1 201"), "there is room");

    let filler = disk.0.join("filler");
    let bytes = disk.free_bytes().saturating_sub(LEFT_BYTES);
    std::fs::write(&filler, vec![1; bytes as usize]).expect("filled");
    let refused = put("full").await;
    assert!(refused.starts_with("HTTP/1.1 507") && refused.contains("disk_full"), "{refused}");

    // Tasks still come, are claimed and completed; what is in the way goes.
    write_all(&client, "full", 20).await;
    complete_some(&client, 20).await;
    client.delete_object("b", "before", None).await.expect("removed");
    let gone = write_all(&client, "gone", 1).await.pop_first().expect("one");
    client.cancel(&gone).await.expect("cancelled");

    // A task whose output finds no room holds its claim until there is some.
    submit_counting(&client, "counted").await;
    let before = refusals(&address).await;
    let folder = tempfile::tempdir().expect("a folder");
    let _worker = WorkerProcess::start(&cluster, &folder, "a");
    until("an output is refused, and again", || async {
        (refusals(&address).await >= before + 2).then_some(())
    })
    .await;
    let waiting = client.task("counted").await.expect("seen");
    assert_eq!((waiting.state, waiting.attempts_begun), (TaskStateName::Claimed, 1));

    // Room comes back, and nobody has to do anything else.
    std::fs::remove_file(&filler).expect("removed");
    until("uploads are taken again", || async {
        put("after").await.starts_with("HTTP/1.1 201").then_some(())
    })
    .await;
    let done = until("the task is completed", || async {
        client.task("counted").await.ok().filter(|task| task.state == TaskStateName::Done)
    });
    let done = done.await;
    assert_eq!((done.attempts_begun, done.outputs), (1, 1));
}
