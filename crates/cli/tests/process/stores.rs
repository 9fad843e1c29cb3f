//! Jobs whose inputs and results lie in an object store: the S3 door of another cluster (B4-35, X13).

use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::backup_store::{Storehouse, as_admin};
use crate::cluster::Cluster;
use crate::fresh::ikada;

/// A worker that knows the store; ended when dropped.
struct WorkerProcess(Child);

impl WorkerProcess {
    fn start(cluster: &Cluster, house: &Storehouse, folder: &TempDir, allowed: &str) -> Self {
        let mut command = house.knows(ikada(), &format!("http://{}", house.door));
        command.args(["worker", "--name", "w1", "--url", &cluster.urls().join(",")]);
        command.args(["--isolation", "best", "--until-stdin-closes", "--allow-url", allowed]);
        command.args(["--allow-command", "/bin/sh"]);
        command.arg("--work-dir").arg(folder.path().join("w1"));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        WorkerProcess(command.spawn().expect("the worker starts"))
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
    let (code, said) = run(&["--input", "s3://texts/in/a.txt", "--lines", "1"]);
    assert!(code == Some(2) && said.contains("can be cut"), "{said}");
}
