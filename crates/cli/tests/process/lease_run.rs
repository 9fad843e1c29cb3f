//! `ikada lease run` and the processes under it: they end with the lease, with their runner, and with the command (LS-1, LS-6).

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use ikada_api::Client;
use ikada_api::v1::{AcquireLease, ClaimedTask, CompleteRequest, ReleaseLease};

use crate::cluster::Cluster;
use crate::fresh::{ikada, ports};
use crate::wait::until;
use crate::work::write;

const LEASE: &str = "job";
const TTL_MS: &str = "1500";

/// A runner; killed when dropped.
struct Runner {
    child: Child,
    notes: PathBuf,
}

impl Runner {
    /// Starts a runner whose command notes its own process and one that it left in the background.
    fn start(cluster: &Cluster, folder: &Path, name: &str, then: &str) -> Runner {
        Runner::start_with(cluster, folder, name, &[], then)
    }

    fn start_with(
        cluster: &Cluster,
        folder: &Path,
        name: &str,
        flags: &[&str],
        then: &str,
    ) -> Runner {
        let notes = folder.join(name);
        let script = format!(
            "sleep 600 & echo $$ $! > {0}.part && mv {0}.part {0}; {then}",
            notes.display()
        );
        let mut command = ikada();
        command.args(["lease", "--url", &cluster.urls().join(","), "run", "--name", LEASE]);
        command.args(["--holder", name, "--ttl-ms", TTL_MS]).args(flags);
        command.args(["--", "sh", "-c", &script]);
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        Runner { child: child.expect("it starts"), notes }
    }

    /// Waits until the command runs: its process, and the one in the background.
    async fn runs(&self) -> Vec<u32> {
        until("the command runs", || async {
            let text = std::fs::read_to_string(&self.notes).ok()?;
            let pids: Vec<u32> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
            (pids.len() == 2).then_some(pids)
        })
        .await
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = std::process::Command::new("kill").arg(format!("-{name}")).arg(pid).status();
        assert!(sent.expect("kill").success());
    }

    async fn ended(&mut self) -> i32 {
        let child = &mut self.child;
        let status = until("the runner ends", || {
            let status = child.try_wait().expect("a child");
            async move { status }
        });
        status.await.code().expect("an exit code")
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a process still does something; one that nobody has buried yet does not.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

async fn all_gone(pids: &[u32]) {
    until("the processes are gone", || async {
        (!pids.iter().any(|pid| lives(*pid))).then_some(())
    })
    .await;
}

async fn a_command_lives_as_long_as_its_lease(cluster: &Cluster) {
    let folder = tempfile::tempdir().expect("a folder");
    let client = cluster.client();
    let mut first = Runner::start(cluster, folder.path(), "first", "wait");
    let of_first = first.runs().await;
    let mut second = Runner::start(cluster, folder.path(), "second", "wait");
    until("the second waits", || async {
        let seen = client.lease(LEASE).await.ok()?;
        (!seen.waiters.is_empty()).then_some(())
    })
    .await;
    assert!(!second.notes.exists(), "two run at once");
    // Somebody takes the lease from it by hand.
    let release = ReleaseLease { holder: "first".to_owned(), ..ReleaseLease::default() };
    client.release_lease(LEASE, &release).await.expect("released");
    assert_eq!(first.ended().await, 3, "a lost lease has an exit code of its own");
    all_gone(&of_first).await;
    let of_second = second.runs().await;
    // The runner is killed: nobody is there to end the group but its companion, and the lease ends by its ttl.
    second.child.kill().expect("killed");
    all_gone(&of_second).await;
    let mut third = Runner::start(cluster, folder.path(), "third", "exit 7");
    let of_third = third.runs().await;
    assert_eq!(third.ended().await, 7, "the command's own exit code");
    assert!(!of_third.iter().any(|pid| lives(*pid)), "it left something running");
    let free = client.lease(LEASE).await.expect("seen");
    assert_eq!(free.fence, None, "given back at once: {free:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_1_ls_6_a_command_lives_as_long_as_its_lease() {
    let cluster = Cluster::start().await;
    a_command_lives_as_long_as_its_lease(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_1_ls_6_a_command_lives_as_long_as_its_lease_with_logs_in_postgres() {
    let Some(cluster) = Cluster::start_in_postgres(2).await else { return };
    a_command_lives_as_long_as_its_lease(&cluster).await;
}

// LS-1: whoever stands by does so through a time without a cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_1_a_runner_that_stands_by_waits_for_the_cluster() {
    let folder = tempfile::tempdir().expect("a folder");
    let addresses = ports(2);
    let url = format!("http://{}", addresses[0]);
    let (notes, said) = (folder.path().join("ran"), folder.path().join("said"));
    let mut command = ikada();
    command.args(["lease", "--url", &url, "--timeout", "1", "run", "--name", LEASE, "--again"]);
    command.arg("--").arg("touch").arg(&notes);
    let errors = std::fs::File::create(&said).expect("a file");
    let child = command.stdin(Stdio::null()).stderr(errors).spawn().expect("it starts");
    let mut runner = Runner { child, notes: notes.clone() };
    until("it asks again", || async {
        std::fs::read_to_string(&said).ok()?.contains("asking again").then_some(())
    })
    .await;
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let _lone = crate::backup::Lone::start(&data, &addresses).await;
    assert_eq!(runner.ended().await, 0);
    assert!(notes.exists());
}

// LS-1: whoever stands by again is told to stop like anybody else, and leaves no place in line behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_1_a_runner_that_waits_for_its_lease_again_hears_that_it_shall_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = Cluster::start().await;
    let client = cluster.client();
    let mut runner = Runner::start_with(&cluster, folder.path(), "again", &["--again"], "wait");
    let processes = runner.runs().await;
    let wish = AcquireLease {
        holder: "other".to_owned(),
        ttl_ms: Some(600_000),
        wait_ms: 1,
        ..AcquireLease::default()
    };
    client.acquire_lease(LEASE, &wish).await.expect("a place in line");
    let release = ReleaseLease { holder: "again".to_owned(), ..ReleaseLease::default() };
    client.release_lease(LEASE, &release).await.expect("released");
    all_gone(&processes).await;
    until("it waits again", || async {
        let seen = client.lease(LEASE).await.ok()?;
        (seen.holder.as_deref() == Some("other") && !seen.waiters.is_empty()).then_some(())
    })
    .await;
    runner.signal("TERM");
    assert_eq!(runner.ended().await, 1);
    let seen = client.lease(LEASE).await.expect("seen");
    assert!(seen.waiters.is_empty(), "it still stands in line: {seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_1_whoever_watches_a_lease_goes_on_while_no_node_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, shown, said) =
        (folder.path().join("data"), folder.path().join("shown"), folder.path().join("said"));
    std::fs::create_dir(&data).expect("a folder");
    let addresses = ports(2);
    let lone = crate::backup::Lone::start(&data, &addresses).await;
    let mut command = ikada();
    let url = format!("http://{}", addresses[0]);
    command.args(["lease", "--url", &url, "--timeout", "1", "show", LEASE, "-f"]);
    let (out, errors) = (std::fs::File::create(&shown), std::fs::File::create(&said));
    command.stdin(Stdio::null()).stdout(out.expect("a file")).stderr(errors.expect("a file"));
    let child = command.spawn().expect("it starts");
    let _watcher = Runner { child, notes: shown.clone() };
    let has = async |path: &Path, word: &str| {
        until(word, || async { std::fs::read_to_string(path).ok()?.contains(word).then_some(()) })
            .await;
    };
    has(&shown, "free").await;
    drop(lone);
    has(&said, "asking again").await;
    let lone = crate::backup::Lone::start(&data, &addresses).await;
    let wish = AcquireLease { holder: "somebody".to_owned(), ..AcquireLease::default() };
    lone.client().acquire_lease(LEASE, &wish).await.expect("taken");
    has(&shown, "somebody").await;
}

// LS-6: no node answers, so nobody can say that the lease is still held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_6_a_command_is_ended_when_no_node_answers_its_runner() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut runner = Runner::start(&cluster, folder.path(), "alone", "wait");
    let processes = runner.runs().await;
    for id in 1..=3 {
        cluster.signal(id, "STOP");
    }
    let code = runner.ended().await;
    all_gone(&processes).await;
    for id in 1..=3 {
        cluster.signal(id, "CONT");
    }
    assert_eq!(code, 3, "as when the lease is lost");
    cluster.settle().await;
}

// LS-6, LS-9: a runner that was stopped finds its lease gone. Its command could not be stopped meanwhile: for that there is the fence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_6_ls_9_a_runner_that_was_paused_past_its_lease_ends_its_command() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = Runner::start(&cluster, folder.path(), "first", "wait");
    let of_first = first.runs().await;
    let fence = cluster.client().lease(LEASE).await.expect("seen").fence;
    let second = Runner::start(&cluster, folder.path(), "second", "wait");
    first.signal("STOP");
    let of_second = second.runs().await;
    let now = cluster.client().lease(LEASE).await.expect("seen");
    assert_eq!(now.holder.as_deref(), Some("second"));
    assert!(now.fence > fence, "what the first still writes is refused by its fence");
    first.signal("CONT");
    assert_eq!(first.ended().await, 3);
    all_gone(&of_first).await;
    assert!(of_second.iter().all(|pid| lives(*pid)), "the other's command is not touched");
}

/// Claims the one task there is.
async fn claim_one(client: &Client) -> ClaimedTask {
    let claim = r#"{"worker": "w", "queues": ["work"], "count_max": 1, "wait_ms": 20000}"#;
    let claimed = client.claim(&serde_json::from_str(claim).expect("a claim")).await;
    claimed.expect("claimed").tasks.pop().expect("a task")
}

/// Takes a lease with the command line, bound to an attempt.
fn acquire_bound(cluster: &Cluster, name: &str, (task, fence): (&str, u64)) {
    let mut command = ikada();
    command.args(["lease", "--url", &cluster.urls().join(","), "acquire", name, "--holder", "h"]);
    command.args(["--ttl-ms", "3600000", "--task", task, "--task-fence", &fence.to_string()]);
    let ran = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
}

async fn is_freed(client: &Client, name: &str) {
    until("the lease ends with its attempt", || async {
        client.lease(name).await.ok()?.fence.is_none().then_some(())
    })
    .await;
}

// LS-1: an hour before its ttl, a lease ends with the attempt that it was bound to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ls_1_a_lease_bound_to_an_attempt_ends_with_it() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    assert!(write(&client, "bound").await);
    let task = claim_one(&client).await;
    // Names on several shards: the word goes by the outbox.
    let names: Vec<String> = (0..6).map(|number| format!("with-{number}")).collect();
    for name in &names {
        acquire_bound(&cluster, name, (&task.id, task.fence.0));
    }
    let other = client.lease(&names[0]).await.expect("seen");
    assert_eq!((other.task.as_deref(), other.fence.is_some()), (Some("bound"), true));
    let item = format!(r#"{{"id": "{}", "fence": "{}"}}"#, task.id, task.fence);
    let item = serde_json::from_str(&item).expect("a completion");
    let complete = CompleteRequest { worker: "w".into(), tasks: vec![item], claim: None };
    client.complete(&complete).await.expect("completed");
    for name in &names {
        is_freed(&client, name).await;
    }
    // An attempt that is over holds nothing.
    acquire_bound(&cluster, "too-late", (&task.id, task.fence.0));
    is_freed(&client, "too-late").await;
}
