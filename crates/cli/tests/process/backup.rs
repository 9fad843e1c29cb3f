//! Backups of a running cluster, clusters made of them, and the last disk of a lost one (F-30, F-31).

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ikada_api::Client;
use ikada_api::client::{GetOptions, ObjectSource, PutOptions};
use ikada_api::v1::{ClaimRequest, Number};

use crate::cluster::{Cluster, agree, client};
use crate::fresh::{ikada, ports, refusal};
use crate::wait::until;
use crate::work::{check_all_there, write_all};

/// A server on a folder that was made offline; ended when dropped.
pub struct Lone {
    child: Child,
    url: String,
}

impl Lone {
    pub async fn start(folder: &Path, addresses: &[String]) -> Lone {
        let mut command = ikada();
        command.args(["server", "--until-stdin-closes", "--data"]).arg(folder);
        command.args(["--listen", &addresses[0], "--peer-listen", &addresses[1]]);
        command.current_dir(folder);
        let child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        let url = format!("http://{}", addresses[0]);
        let lone = Lone { child: child.expect("it starts"), url };
        agree(std::slice::from_ref(&lone.url)).await;
        lone
    }

    pub fn client(&self) -> Client {
        client(std::slice::from_ref(&self.url))
    }
}

impl Drop for Lone {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command that must end well; gives its lines.
pub async fn run(mut command: Command) -> Vec<String> {
    let ran = tokio::task::spawn_blocking(move || command.output().expect("it runs")).await;
    let output = ran.expect("joined");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

pub async fn run_refused(mut command: Command) -> String {
    tokio::task::spawn_blocking(move || refusal(&mut command)).await.expect("joined")
}

async fn claim(client: &Client, count_max: u32) -> Vec<u64> {
    let wish = ClaimRequest {
        holds: Vec::new(),
        worker: "w".to_owned(),
        session: Number(1),
        queues: vec!["work".to_owned()],
        count_max,
        wait_ms: 0,
        labels: Default::default(),
    };
    let mut fences = Vec::new();
    while fences.len() < count_max as usize {
        let granted = client.claim(&wish).await.expect("claimed").tasks;
        fences.extend(granted.iter().map(|task| task.fence.0));
    }
    fences
}

fn backup_to(cluster: &Cluster, file: &Path) -> Command {
    let mut command = ikada();
    command.args(["cluster", "--url", &cluster.node(2).url, "backup"]).arg(file);
    command
}

fn restore_from(file: &Path, folder: &Path, addresses: &[String]) -> Command {
    let mut command = ikada();
    command.args(["cluster", "restore"]).arg(file).arg("--data").arg(folder);
    command.args(["--advertise", &addresses[0], "--peer-advertise", &addresses[1]]);
    command
}

// F-31
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_restored_with_its_hashes_and_higher_fences() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("monday.ikada");
    let acked = write_all(&cluster.client(), "kept", 60).await;
    let before = claim(&cluster.client(), 5).await;
    let noted = run(backup_to(&cluster, &file)).await;
    assert_eq!(noted.len(), 3, "a line per shard and one for objects: {noted:?}");
    // Fences that are granted after the backup are exceeded as well.
    let after = claim(&cluster.client(), 5).await;
    let said = run_refused(backup_to(&cluster, &file)).await;
    assert!(said.contains("exists already"), "{said}");

    let addresses = ports(2);
    let made = folder.path().join("made");
    let restored = run(restore_from(&file, &made, &addresses)).await;
    assert_eq!(restored, noted, "same positions, same state hashes");
    // X15, X18: what was done while no node ran is in the audit log, too.
    let audited = std::fs::read_to_string(made.join("audit/00000001.log")).expect("a log");
    assert!(audited.contains("\"action\":\"Restore\""), "{audited}");
    let said = run_refused(restore_from(&file, &made, &addresses)).await;
    assert!(said.contains("not empty"), "{said}");
    let lone = Lone::start(&made, &addresses).await;
    check_all_there(&lone.client(), &acked).await;
    let fresh = claim(&lone.client(), 5).await;
    let highest = before.iter().chain(&after).max();
    assert!(fresh.iter().min() > highest, "{fresh:?} must exceed {before:?} and {after:?}");

    // A file that was cut off or changed is no backup.
    let mut bytes = std::fs::read(&file).expect("the file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged: PathBuf = folder.path().join("damaged");
    std::fs::write(&damaged, &bytes).expect("written");
    let other = folder.path().join("other");
    let said = run_refused(restore_from(&damaged, &other, &addresses)).await;
    assert!(said.contains("damaged") || said.contains("no backup"), "{said}");
    assert!(!other.exists(), "nothing was made of it");
}

/// How many pieces a folder of blobs holds.
fn walk(folder: &Path) -> usize {
    let inside = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    let files = inside(folder).flat_map(|entry| inside(&entry.path()).collect::<Vec<_>>());
    files.filter(|file| file.path().extension().is_none()).count()
}

/// Bytes that no compression and no repetition makes small.
pub fn bytes_of(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(..)).collect()
}

pub async fn put(client: &Client, name: &str, bytes: &[u8]) {
    let source = ObjectSource::Bytes(bytes.to_vec().into());
    client.put_object("b", name, &source, &PutOptions::default()).await.expect("stored");
}

pub async fn get(client: &Client, name: &str) -> Vec<u8> {
    let reader = client.get_object("b", name, &GetOptions::default()).await.expect("there");
    reader.collect().await.expect("whole")
}

// F-31: the bytes of objects come back, each piece carried once, and a changed one is noticed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_carries_the_bytes_of_objects() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("objects.ikada");
    let (large, small) = (bytes_of(1, 2_500_000), bytes_of(2, 10));
    let client = cluster.client();
    put(&client, "large", &large).await;
    put(&client, "same", &large).await;
    put(&client, "small", &small).await;
    put(&client, "empty", &[]).await;
    put(&client, "gone", &bytes_of(3, 2_000_000)).await;
    client.delete_object("b", "gone", None).await.expect("removed");
    let noted = run(backup_to(&cluster, &file)).await;
    let length = std::fs::metadata(&file).expect("the file").len();
    assert!((2_500_000..4_000_000).contains(&length), "{length} bytes: {noted:?}");

    let addresses = ports(2);
    let made = folder.path().join("made");
    assert_eq!(run(restore_from(&file, &made, &addresses)).await, noted);
    let lone = Lone::start(&made, &addresses).await;
    assert_eq!(get(&lone.client(), "large").await, large);
    assert_eq!(get(&lone.client(), "same").await, large);
    assert_eq!(get(&lone.client(), "small").await, small);
    assert_eq!(get(&lone.client(), "empty").await, Vec::<u8>::new());

    let mut bytes = std::fs::read(&file).expect("the file");
    let place = bytes.len() - 1_000;
    bytes[place] ^= 1;
    let damaged = folder.path().join("damaged");
    std::fs::write(&damaged, &bytes).expect("written");
    let other = folder.path().join("other");
    let said = run_refused(restore_from(&damaged, &other, &addresses)).await;
    assert!(said.contains("has other bytes"), "{said}");
    assert!(!other.exists(), "nothing is left of what was begun");
}

// CH-6: a snapshot of the whole store is taken while uploads go on, and what it was taken of comes back byte by byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_6_a_store_that_is_written_to_is_restored_byte_by_byte() {
    const KEYS: u64 = 12;
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("busy.ikada");
    let content = |round: u64, key: u64| bytes_of(round * 100 + key, 300_000);
    let client = cluster.client();
    for key in 0..KEYS {
        put(&client, &format!("k{key}"), &content(0, key)).await;
    }
    // Every key is overwritten all the while, round by round.
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let writing = tokio::spawn(async move {
        let mut round = 0;
        while !*stopped.borrow() {
            round += 1;
            for key in 0..KEYS {
                put(&client, &format!("k{key}"), &content(round, key)).await;
            }
        }
        round
    });
    run(backup_to(&cluster, &file)).await;
    stop.send_replace(true);
    let rounds = writing.await.expect("writing");
    let addresses = ports(2);
    let made = folder.path().join("made");
    run(restore_from(&file, &made, &addresses)).await;
    let lone = Lone::start(&made, &addresses).await;
    for key in 0..KEYS {
        let found = get(&lone.client(), &format!("k{key}")).await;
        let of_round = (0..=rounds).find(|round| found == content(*round, key));
        assert!(of_round.is_some(), "k{key} is what somebody wrote, whole");
    }
    let listed = lone.client().objects("b", "", None, false).await.expect("a page").objects;
    assert_eq!(listed.len() as u64, KEYS, "nothing else has a name");
}

// F-30
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_disk_of_a_lost_majority_becomes_a_new_cluster() {
    let mut cluster = Cluster::start().await;
    let acked = write_all(&cluster.client(), "kept", 40).await;
    let kept = bytes_of(4, 1_200_000);
    put(&cluster.client(), "kept", &kept).await;
    cluster.copies_become_equal().await;
    // An upload is acknowledged by a majority; the third node fetches what it lacks.
    until("node 2 has all pieces", || async {
        let folder = cluster.node(2).data.join("blob");
        let files = walk(&folder);
        (files >= 2).then_some(())
    })
    .await;
    let old = cluster.client().cluster().await.expect("seen").cluster;
    for id in 1..=3 {
        cluster.kill(id);
    }
    for id in [1, 3] {
        std::fs::remove_dir_all(&cluster.node(id).data).expect("lost");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().join("made");
    let addresses = ports(2);
    let recover = |phrase: Option<&str>| {
        let mut command = ikada();
        command.args(["cluster", "recover", "--data"]).arg(&cluster.node(2).data);
        command.arg("--to").arg(&made);
        command.args(["--advertise", &addresses[0], "--peer-advertise", &addresses[1]]);
        command.args(phrase.iter().flat_map(|phrase| ["--phrase", phrase]));
        command
    };
    if cluster.is_in_database() {
        let said = run_refused(recover(Some("acknowledged work may be lost"))).await;
        assert!(said.contains("in a database") && said.contains("backup"), "{said}");
        assert!(!made.exists(), "what a folder holds is older than what was acknowledged");
        return;
    }
    let said = run_refused(recover(None)).await;
    assert!(said.contains("--phrase"), "{said}");
    assert!(!made.exists(), "nothing happens without the phrase");
    let shown = run(recover(Some("acknowledged work may be lost"))).await;
    assert!(shown.iter().all(|line| line.contains("last entry")), "{shown:?}");
    let lone = Lone::start(&made, &addresses).await;
    check_all_there(&lone.client(), &acked).await;
    assert_eq!(get(&lone.client(), "kept").await, kept);
    let new = lone.client().cluster().await.expect("seen");
    assert_ne!(new.cluster, old, "nodes of the old cluster cannot join");
    assert_eq!(new.members.len(), 1);
}
