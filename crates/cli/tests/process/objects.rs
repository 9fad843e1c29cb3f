//! Objects as a user handles them: real processes, files and folders, a server killed in mid-upload (CH-1, CH-3, F-37).

use std::path::Path;
use std::process::Output;

use ikada_api::client::{GetOptions, ObjectSource, PutOptions};

use crate::cluster::Cluster;
use crate::fresh::ikada;

fn run(cluster: &Cluster, args: &[&str], folder: &Path) -> Output {
    let urls: Vec<&str> = cluster.nodes.iter().map(|node| node.url.as_str()).collect();
    ikada().args(args).args(["--url", &urls.join(",")]).current_dir(folder).output().expect("ran")
}

fn bytes_of(seed: u64, length: usize) -> Vec<u8> {
    let mut random = seed;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as u8
    };
    (0..length).map(|_| next()).collect()
}

// CH-1, CH-3
#[tokio::test]
async fn ch_1_folders_go_up_and_come_down_again() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let files =
        [("a.txt", 10), ("deep/er/b.bin", 3 << 20), ("deep/empty", 0), ("\u{e4} b.csv", 1_000)];
    for (number, (name, length)) in files.iter().enumerate() {
        let path = folder.path().join("up").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, bytes_of(number as u64, *length)).expect("written");
    }
    let up = run(&cluster, &["object", "put", "up", "site/v1", "--recursive"], folder.path());
    assert!(up.status.success(), "{up:?}");
    let again = run(&cluster, &["object", "put", "up", "site/v1", "--recursive"], folder.path());
    let talk = String::from_utf8_lossy(&again.stderr);
    assert!(talk.contains("0 uploaded, 4 were there already"), "{talk}");
    let listed = run(&cluster, &["object", "list", "site/v1/deep", "-o", "quiet"], folder.path());
    assert_eq!(listed.stdout, b"site/v1/deep/empty\nsite/v1/deep/er/b.bin\n");
    let down = run(&cluster, &["object", "get", "site/v1/", "down", "--recursive"], folder.path());
    assert!(down.status.success(), "{down:?}");
    for (number, (name, length)) in files.iter().enumerate() {
        let found = std::fs::read(folder.path().join("down").join(name)).expect("downloaded");
        assert!(found == bytes_of(number as u64, *length), "{name}");
    }
    let shown = run(&cluster, &["object", "get", "site/v1/a.txt", "-"], folder.path());
    assert_eq!(shown.stdout, bytes_of(0, 10));
    let refused = run(&cluster, &["object", "put", "up/a.txt", "site/../x"], folder.path());
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    let missing = run(&cluster, &["object", "get", "site/none"], folder.path());
    assert_eq!(missing.status.code(), Some(4), "{missing:?}");
    let gone = run(&cluster, &["object", "delete", "site/v1/", "-r", "--yes"], folder.path());
    assert!(gone.status.success(), "{gone:?}");
    let listed = run(&cluster, &["object", "list", "-o", "quiet"], folder.path());
    assert_eq!(listed.stdout, b"");
}

/// Files below a folder that hold some bytes.
fn holders(folder: &Path, mark: &[u8], found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            holders(&path, mark, found);
        } else if std::fs::read(&path).unwrap_or_default().windows(mark.len()).any(|at| at == mark)
        {
            found.push(path.display().to_string());
        }
    }
}

// CH-8: bytes are in blobs, and neither in the log, nor in snapshots, nor in what a node says; and an object may be
// larger than any message.
#[tokio::test]
async fn ch_8_bytes_stay_outside_the_log_and_are_never_told() {
    let mut cluster = Cluster::prepare(3);
    for id in 1..=3 {
        let mut program = ikada();
        program.env("IKADA_LOG", "debug");
        cluster.launch_by(id, program);
    }
    cluster.settle().await;
    let mark = b"canary-c7f0b1d2-in-the-middle-of-it";
    let mut body = bytes_of(3, 20 << 20);
    for place in [100, 5 << 20, 19 << 20] {
        body[place..place + mark.len()].copy_from_slice(mark);
    }
    let (client, source) = (cluster.client(), ObjectSource::Bytes(body.clone().into()));
    client.put_object("b", "large", &source, &PutOptions::default()).await.expect("stored");
    let read = client.get_object("b", "large", &GetOptions::default()).await.expect("there");
    assert!(read.collect().await.expect("whole") == body);
    for id in 1..=3 {
        cluster.signal(id, "TERM");
        assert!(cluster.ended(id).await.success());
        assert!(!cluster.log(id).contains("canary-c7f0b1d2"), "told by node {id}");
    }
    let mut found = Vec::new();
    holders(cluster.node(1).data.parent().expect("a folder"), mark, &mut found);
    assert!(!found.is_empty(), "it is somewhere");
    assert!(found.iter().all(|file| file.contains("/blob/")), "{found:?}");
}

// F-37: a node that dies in the middle of uploads costs none that was acknowledged, and shows none that was not.
#[tokio::test]
async fn a_node_killed_during_uploads_loses_nothing_acknowledged() {
    let mut cluster = Cluster::start().await;
    let client = cluster.client();
    let uploads = tokio::spawn(async move {
        let mut acknowledged = Vec::new();
        for number in 0..30u64 {
            let source = ObjectSource::Bytes(bytes_of(number, 1_500_000).into());
            let key = format!("k/{number}");
            let put = client.put_object("b", &key, &source, &PutOptions::default()).await;
            acknowledged.extend(put.ok().map(|_| number));
        }
        acknowledged
    });
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    cluster.kill(2);
    let acknowledged = uploads.await.expect("uploads");
    assert!(acknowledged.len() >= 25, "two of three nodes are enough: {acknowledged:?}");
    cluster.launch(2);
    cluster.settle().await;
    let returned = ikada_api::Client::new([&cluster.node(2).url]).expect("a client");
    for number in acknowledged {
        let key = format!("k/{number}");
        let read = returned.get_object("b", &key, &GetOptions::default()).await.expect("there");
        assert!(read.collect().await.expect("whole") == bytes_of(number, 1_500_000), "{key}");
    }
    let page = returned.objects("b", "", None, false).await.expect("a page");
    for object in page.objects {
        assert_eq!(object.size, 1_500_000, "nothing half is shown");
    }
}
