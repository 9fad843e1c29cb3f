//! Jobs whose inputs and results lie in an object store: the S3 door of another cluster (B4-35, X13).

use std::process::{Child, Stdio};

use ikada_api::Client;
use ikada_api::client::{ObjectSource, PutOptions};
use ikada_api::v1::{JobResult, NewJob, TaskStateName};
use serde_json::json;
use tempfile::TempDir;

use crate::backup_store::{Storehouse, as_admin};
use crate::cluster::Cluster;
use crate::fresh::ikada;
use crate::wait::until;

/// A worker that knows the store; ended when dropped.
struct WorkerProcess(Child);

impl WorkerProcess {
    fn start(cluster: &Cluster, house: &Storehouse, folder: &TempDir, allowed: &str) -> Self {
        WorkerProcess::named(cluster, house, folder, "w1", &["--allow-url", allowed])
    }

    /// One slot: with two, a worker that is stopped has a claim waiting and may be handed the next attempt as well.
    fn named(
        cluster: &Cluster,
        house: &Storehouse,
        folder: &TempDir,
        name: &str,
        allowed: &[&str],
    ) -> Self {
        let mut command = house.knows(ikada(), &format!("http://{}", house.door));
        command.args(["worker", "--name", name, "--url", &cluster.urls().join(",")]);
        command.args(["--isolation", "best", "--until-stdin-closes"]).args(allowed);
        command.args(["--allow-command", "/bin/sh", "--slots", "1"]);
        command.arg("--work-dir").arg(folder.path().join(name));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        WorkerProcess(command.spawn().expect("the worker starts"))
    }
}

impl WorkerProcess {
    fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_raw(self.0.id() as i32).expect("an id");
        rustix::process::kill_process(id, signal).expect("it lives");
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // One that has ended is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_35_a_job_reads_from_an_object_store_and_its_result_goes_to_one() {
    let house = Storehouse::start(false).await;
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("a.txt", "one two"), ("b.txt", "three"), ("secret.txt", "canary")] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        let bucket = if name == "secret.txt" { "private" } else { "texts" };
        let place = format!("{bucket}/in/{name}");
        let put =
            as_admin(&house.cluster, "object", &["put", path.to_str().expect("text"), &place]);
        assert!(put.status.success(), "{}", String::from_utf8_lossy(&put.stderr));
    }
    crate::programs::push(&cluster.client(), "copy", "cat \"$IKADA_IN\"/* > \"$IKADA_OUT/copy\"")
        .await;
    let _worker = WorkerProcess::start(&cluster, &house, &folder, "s3://texts/in");
    let run = |words: &[&str]| {
        let mut command = house.knows(ikada(), &format!("http://{}", house.door));
        command.env("IKADA_URL", cluster.urls().join(",")).args(["job", "run", "--map", "copy"]);
        let ran = command.args(["--max-attempts", "1"]).args(words).output().expect("it runs");
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let inputs = ["--input", "s3://texts/in/a.txt", "--input", "s3://texts/in/b.txt"];
    let (code, said) = run(&[&inputs[..], &["--to", "s3://results/copies/"]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        house.holds("results"),
        ["results/copies/map/0/copy", "results/copies/map/1/copy"],
        "{said}"
    );
    let got = as_admin(&house.cluster, "object", &["get", "results/copies/map/0/copy", "-"]);
    assert_eq!(String::from_utf8_lossy(&got.stdout), "one two");
    // What is built in reads through the same door (B4-35).
    let mut count = house.knows(ikada(), &format!("http://{}", house.door));
    count.env("IKADA_URL", cluster.urls().join(",")).args(["job", "run", "--map", "wordcount"]);
    let counted = count.args(inputs).args(["--reduce", "merge"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&counted.stderr);
    assert_eq!(String::from_utf8_lossy(&counted.stdout), "one\t1\nthree\t1\ntwo\t1\n", "{said}");
    // What the operator did not allow is not read, whatever the key opens; nor does a program see the key.
    let (code, said) = run(&["--input", "s3://private/in/secret.txt"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("may not open s3://private/in/secret.txt"), "{said}");
    let (code, said) = run(&["--input", "s3://texts/in/none.txt"]);
    assert!(code == Some(1) && said.contains("there is no such object"), "{said}");
}

// B4-35: the command lists and looks for line ends, and each task reads its part of the object.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_35_patterns_and_parts_of_addresses_become_tasks() {
    let house = Storehouse::start(false).await;
    let cluster = Cluster::start().await;
    cluster.level_is_raised().await;
    let folder = tempfile::tempdir().expect("a folder");
    let lines: String = (0..300_000).map(|number| format!("line {}\n", number % 7)).collect();
    for (name, text) in [
        ("in/a.txt", "one two\nthree\nfour\n"),
        ("in/b.txt", "five"),
        ("in/deep/c.txt", "six"),
        ("in/d.csv", "seven"),
        ("large", lines.as_str()),
    ] {
        let path = folder.path().join("file");
        std::fs::write(&path, text).expect("a file");
        let place = format!("texts/{name}");
        let put =
            as_admin(&house.cluster, "object", &["put", path.to_str().expect("text"), &place]);
        assert!(put.status.success(), "{}", String::from_utf8_lossy(&put.stderr));
    }
    // The cluster's own objects are cut in the same way.
    for (key, text) in [("large", lines.as_str()), ("in/a.txt", "one two\nthree\nfour\n")] {
        let source = ObjectSource::Bytes(text.to_owned().into());
        let (client, options) = (cluster.client(), PutOptions::default());
        client.put_object("stored", key, &source, &options).await.expect("stored");
    }
    let _worker = WorkerProcess::start(&cluster, &house, &folder, "s3://texts");
    let count = |words: &[&str]| {
        let mut command = house.knows(ikada(), &format!("http://{}", house.door));
        command.env("IKADA_URL", cluster.urls().join(","));
        command.args(["job", "run", "--map", "wordcount", "--reduce", "merge"]);
        let ran = command.args(["--max-attempts", "1"]).args(words).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    };
    for (words, tasks, counts) in [
        (vec!["--input", "s3://texts/in/*.txt"], 3, "five\t1\nfour\t1\none\t1\nthree\t1\ntwo\t1\n"),
        (vec!["--input", "s3://texts/in/**/c.*"], 2, "six\t1\n"),
        (vec!["--input", "s3://texts/in/deep/"], 2, "six\t1\n"),
        (
            vec!["--input", "s3://texts/in/a.txt", "--lines", "2"],
            3,
            "four\t1\none\t1\nthree\t1\ntwo\t1\n",
        ),
        // Two megabytes and some, cut without being read.
        (
            vec!["--input", "s3://texts/large", "--split", "1MiB"],
            4,
            "line\t300000\n0\t42858\n1\t42857\n2\t42857\n3\t42857\n4\t42857\n5\t42857\n6\t42857\n",
        ),
        (
            vec!["--input", "object:stored/large", "--split", "1MiB"],
            4,
            "line\t300000\n0\t42858\n1\t42857\n2\t42857\n3\t42857\n4\t42857\n5\t42857\n6\t42857\n",
        ),
        (
            vec!["--input", "object:stored/in/", "--lines", "2"],
            3,
            "four\t1\none\t1\nthree\t1\ntwo\t1\n",
        ),
    ] {
        let (code, said, told) = count(&words);
        assert_eq!((code, said.as_str()), (Some(0), counts), "{words:?}: {told}");
        assert!(told.contains(&format!(": {tasks} tasks")), "{words:?}: {told}");
    }
    for (pattern, why) in [
        ("s3://texts/in/*.pdf", "no object is named so"),
        ("s3://none/*", "no object is named so"),
        ("s3://te*/in", "may not be in the bucket"),
    ] {
        let (code, _, told) = count(&["--input", pattern]);
        assert!(code != Some(0) && told.contains(why), "{pattern}: {told}");
    }
    let (code, _, told) = count(&["--input", "object:stored/large", "--lines", "1"]);
    assert!(code != Some(0) && told.contains("more than 10000 inputs"), "{told}");
}

/// Submits a job that brings what it makes somewhere.
async fn submit_to(client: &Client, id: &str, program: &str, output_url: &str) {
    let job = json!({"id": id, "ttl_ms": 2_000, "max_attempts": 4,
        "backoff": {"base_ms": 10, "cap_ms": 10}, "output_url": output_url,
        "map": {"program": program, "inputs": [{"name": "x", "text": "a b a"}]}});
    let job: NewJob = serde_json::from_value(job).expect("a job");
    client.submit_job(&job).await.expect("taken");
}

async fn ended(client: &Client, id: &str) -> JobResult {
    until("the job has ended", || async {
        let result = client.job_result(id).await.ok()?;
        ["done", "error"].contains(&result.status.as_str()).then_some(result)
    })
    .await
}

// A4, B4-26, B4-35: the completion that counts decides which address does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a4_an_address_in_the_result_holds_what_the_attempt_that_counted_made() {
    let house = Storehouse::start(false).await;
    let cluster = Cluster::start().await;
    cluster.level_is_raised().await;
    let (client, folder) = (cluster.client(), tempfile::tempdir().expect("a folder"));
    // The first attempt is slow, every later one is quick.
    let script = r#"
        if [ "$IKADA_ATTEMPT" = 1 ]; then sleep 3; fi
        mkdir "$IKADA_OUT/deep"
        echo "$IKADA_FENCE" > "$IKADA_OUT/deep/fence"
    "#;
    crate::programs::push(&client, "slow", script).await;
    // What may be read may not be written for that.
    let allowed = ["--allow-url", "s3://private", "--allow-output-url", "s3://results/out"];
    let first = WorkerProcess::named(&cluster, &house, &folder, "w1", &allowed);
    submit_to(&client, "j1", "slow", "s3://results/out/").await;
    until("the first worker has it", || async {
        let tasks = client.job_tasks("j1", None, None).await.ok()?.tasks;
        tasks.iter().any(|task| task.state == TaskStateName::Claimed.as_str()).then_some(())
    })
    .await;
    first.signal(rustix::process::Signal::STOP);
    let second = WorkerProcess::named(&cluster, &house, &folder, "w2", &allowed);
    let won = ended(&client, "j1").await;
    assert_eq!((won.status.as_str(), won.outputs.len()), ("done", 1), "{won:?}");
    first.signal(rustix::process::Signal::CONT);
    // The first one finds its claim lost, or its completion refused; then it takes new work again.
    drop(second);
    submit_to(&client, "j2", "wordcount", "s3://results/out").await;
    let counted = ended(&client, "j2").await;

    let after = ended(&client, "j1").await;
    assert_eq!(after.outputs, won.outputs, "one result");
    let holds = house.holds("results");
    for (result, name) in [(&won, "deep/fence"), (&counted, "counts.tsv")] {
        let address = result.outputs[0].address.as_deref().expect("an address");
        let place = address.strip_prefix("s3://").expect("in the store").to_owned();
        assert!(holds.contains(&place), "{place}: {holds:?}");
        let parts: Vec<&str> = place.splitn(7, '/').collect();
        assert_eq!(parts[..5], ["results", "out", result.id.as_str(), "map", "0"]);
        assert_eq!(parts[6], name);
        let got = as_admin(&house.cluster, "object", &["get", &place, "-"]);
        let fence = format!("{}\n", parts[5]);
        let expected = if name == "counts.tsv" { "a\t2\nb\t1\n" } else { fence.as_str() };
        assert_eq!(String::from_utf8_lossy(&got.stdout), expected);
        let show = |words: &[&str]| {
            let mut show = ikada();
            show.env("IKADA_URL", cluster.urls().join(",")).args(["job", "result", &result.id]);
            show.args(words).output().expect("it runs")
        };
        for words in [&[][..], &["-o", "quiet"]] {
            let shown = show(words).stdout;
            assert_eq!(String::from_utf8_lossy(&shown), format!("{address}\n"), "{words:?}");
        }
        let shown: serde_json::Value =
            serde_json::from_slice(&show(&["-o", "json"]).stdout).expect("a document");
        assert_eq!(shown["objects"][0]["address"].as_str(), Some(address), "{shown}");
        // The line that says where it lies is not the output.
        let file = folder.path().join("saved");
        let refused = show(&["--to", file.to_str().expect("text")]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(address), "{said}");
        assert!(!file.exists(), "it was saved");
    }
    // Where no operator allows it, nothing is brought.
    submit_to(&client, "j3", "wordcount", "s3://private/").await;
    let refused = ended(&client, "j3").await;
    assert!(
        refused.reason.is_some_and(|why| why.contains("may not bring outputs to s3://private/j3"))
    );
    assert_eq!(house.holds("private"), Vec::<String>::new());
}
