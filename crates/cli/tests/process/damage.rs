//! Disks that lost or changed bytes while the node was down.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::cluster::{Cluster, is_passed_over};
use crate::fresh::{ikada, refusal};
use crate::work::{check_all_there, write_all};

/// The segments of a node's log, oldest first.
fn segments(data: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data.join("wal")).expect("a log");
    let mut all: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "log"))
        .collect();
    all.sort();
    all
}

/// Where a segment's written part ends; the rest is room for more.
fn written(path: &Path) -> u64 {
    let mut bytes = Vec::new();
    File::open(path).expect("a segment").read_to_end(&mut bytes).expect("read");
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
}

fn follower(leader: u64) -> u64 {
    if leader == 3 { 2 } else { 3 }
}

// F-14
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torn_tail_is_cut_and_caught_up() {
    let mut cluster = Cluster::start().await;
    let mut acked = write_all(&cluster.client(), "first", 60).await;
    let victim = follower(cluster.settle().await[&0]);
    cluster.kill(victim);
    let last = segments(&cluster.node(victim).data).pop().expect("a segment");
    let end = written(&last);
    assert!(end > 64, "nothing was written");
    OpenOptions::new().write(true).open(&last).expect("open").set_len(end - 3).expect("cut");
    acked.extend(write_all(&cluster.client(), "second", 20).await);
    cluster.launch(victim);
    cluster.settle().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
}

// F-15
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_is_quarantined_and_fetched_again() {
    let mut cluster = Cluster::start().await;
    let mut acked = write_all(&cluster.client(), "first", 60).await;
    let victim = follower(cluster.settle().await[&0]);
    cluster.kill(victim);
    let data = cluster.node(victim).data.clone();
    let last = segments(&data).pop().expect("a segment");
    flip(&last, written(&last) / 2);
    acked.extend(write_all(&cluster.client(), "second", 20).await);
    cluster.launch(victim);
    cluster.settle().await;
    check_all_there(&cluster.client(), &acked).await;
    cluster.copies_become_equal().await;
    let log = cluster.log(victim);
    assert!(log.contains("set aside as quarantine/"), "{log}");
    let set_aside = std::fs::read_dir(data.join("quarantine")).expect("a folder").count();
    assert!(set_aside > 0, "the damaged segment is kept");
}

// F-15: with nobody to fetch from, a lost entry must not be forgotten by trying again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_node_that_lost_an_entry_refuses_each_time() {
    if is_passed_over("no entry is on a node's disk") {
        return;
    }
    let mut cluster = Cluster::prepare(1);
    cluster.launch(1);
    cluster.settle().await;
    write_all(&cluster.client(), "first", 60).await;
    cluster.kill(1);
    let data = cluster.node(1).data.clone();
    let last = segments(&data).pop().expect("a segment");
    flip(&last, place_of(&last, b"first-00030"));
    for _ in 0..3 {
        let said = refusal(&mut cluster.command(1, ikada()));
        assert!(said.contains("damaged") && said.contains("quarantine/"), "{said}");
    }
    assert!(std::fs::read_dir(data.join("quarantine")).expect("a folder").count() > 0);
}

// F-15: wherever the bit is, a lone node either refuses or has lost nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_never_costs_a_lone_node_anything_unnoticed() {
    let mut cluster = Cluster::prepare(1);
    cluster.launch(1);
    cluster.settle().await;
    let acked = write_all(&cluster.client(), "first", 60).await;
    cluster.kill(1);
    let data = cluster.node(1).data.clone();
    let pristine = data.with_extension("pristine");
    copy(&data, &pristine);
    let name = segments(&data).pop().expect("a segment");
    let end = written(&name);
    for part in 1..=8 {
        flip(&name, end * part / 9);
        cluster.launch(1);
        if cluster.serves_or_ends(1).await {
            check_all_there(&cluster.client(), &acked).await;
            cluster.kill(1);
        } else {
            let log = cluster.log(1);
            assert!(log.contains("damaged"), "{log}");
        }
        std::fs::remove_dir_all(&data).expect("removed");
        copy(&pristine, &data);
    }
}

fn copy(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-r").arg(from).arg(to).status();
    assert!(done.expect("cp").success());
}

/// Where these bytes stand in a file.
fn place_of(path: &Path, wanted: &[u8]) -> u64 {
    let bytes = std::fs::read(path).expect("a segment");
    let place = bytes.windows(wanted.len()).position(|window| window == wanted);
    place.expect("the bytes are there") as u64
}

/// Changes one bit.
fn flip(path: &Path, offset: u64) {
    let mut file = OpenOptions::new().read(true).write(true).open(path).expect("open");
    let mut byte = [0];
    file.seek(SeekFrom::Start(offset)).expect("seek");
    file.read_exact(&mut byte).expect("read");
    file.seek(SeekFrom::Start(offset)).expect("seek");
    file.write_all(&[byte[0] ^ 0x10]).expect("write");
}
