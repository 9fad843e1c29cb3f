//! A worker that reads pieces of objects from the disk of a node beside it: what is damaged or missing there comes over the
//! connection, and every word is counted once (B4-35, A1).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::cluster::Cluster;
use crate::fresh::ikada;
use crate::wait::until;

/// More than two pieces of 1 MiB, so that words lie across their ends.
const TEXT_BYTES: usize = (5 << 20) / 2;

/// A worker whose words are kept; ended when dropped.
struct WorkerProcess(Child);

impl WorkerProcess {
    fn start(cluster: &Cluster, folder: &Path, near: &Path) -> WorkerProcess {
        let log = std::fs::File::create(folder.join("worker.log")).expect("a log");
        let mut command = ikada();
        command.args(["worker", "--name", "near", "--url", &cluster.urls().join(",")]);
        command.args(["--isolation", "best", "--until-stdin-closes", "--near"]).arg(near);
        command.arg("--work-dir").arg(folder.join("work"));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
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

/// Words that are another number in each text.
fn text(number: usize) -> String {
    let mut text = String::with_capacity(TEXT_BYTES + 16);
    for place in 0.. {
        text.push_str(["war", "peace", "prince", "of"][(place * place + number * place) % 4]);
        text.push_str(&format!("{} ", place % 97));
        if text.len() >= TEXT_BYTES {
            return text;
        }
    }
    text
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a list").map(|entry| entry.expect("an entry")) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copy(&from, &to),
            false => drop(std::fs::copy(&from, &to).expect("copied")),
        }
    }
}

/// The pieces of a text where a node keeps them.
fn pieces(blob: &Path, text: &str) -> Vec<PathBuf> {
    let place = |piece: &[u8]| {
        let digest = blake3::hash(piece).to_hex().to_string();
        blob.join(&digest[..2]).join(&digest)
    };
    text.as_bytes().chunks(1 << 20).map(place).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_35_inputs_are_read_from_the_disk_beside_and_what_is_bad_there_over_the_connection() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    let texts: Vec<String> = (0..3).map(text).collect();
    for (number, text) in texts.iter().enumerate() {
        text.split_whitespace().for_each(|word| *expected.entry(word.to_owned()).or_insert(0) += 1);
        std::fs::write(folder.path().join(format!("{number}.txt")), text).expect("a file");
    }
    let inputs = folder.path().join("*.txt").display().to_string();
    let count = || {
        let mut run = ikada();
        run.env("IKADA_URL", cluster.urls().join(",")).args(["job", "run", "--map", "wordcount"]);
        let run = run.args(["--input", &inputs, "--reduce", "merge"]).output().expect("it runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let lines = String::from_utf8(run.stdout).expect("text");
        let counted = lines.lines().map(|line| {
            let (word, count) = line.split_once('\t').expect("two columns");
            (word.to_owned(), count.parse().expect("a count"))
        });
        counted.collect::<BTreeMap<String, u64>>()
    };
    let log = || std::fs::read_to_string(folder.path().join("worker.log")).expect("a log");
    // The files go up with the first job. Of the two nodes that have them first this one may be the third.
    let first = WorkerProcess::start(&cluster, folder.path(), &cluster.node(1).data);
    assert_eq!(count(), expected);
    drop(first);
    let blob = cluster.node(1).data.join("blob");
    let all: Vec<PathBuf> = texts.iter().flat_map(|text| pieces(&blob, text)).collect();
    until("the node has all pieces", || async {
        all.iter().all(|piece| piece.exists()).then_some(())
    })
    .await;
    let near = folder.path().join("near");
    copy(&blob, &near.join("blob"));
    std::fs::remove_file(&pieces(&near.join("blob"), &texts[1])[1]).expect("removed");
    let damaged = &pieces(&near.join("blob"), &texts[2])[1];
    let mut bytes = std::fs::read(damaged).expect("a piece");
    bytes[1_000] ^= 1;
    std::fs::write(damaged, bytes).expect("written");
    let _second = WorkerProcess::start(&cluster, folder.path(), &near);
    assert_eq!(count(), expected, "A1: no damaged byte is counted, and no word twice");
    let told = log().matches("a piece could not be read from the node's disk").count();
    assert_eq!(told, 1, "the operator is told once: {}", log());
}
