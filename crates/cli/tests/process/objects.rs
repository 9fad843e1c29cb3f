//! Objects as a user handles them: real processes, files and folders, a server killed in mid-upload (CH-1, CH-3, F-37).

use std::path::Path;
use std::process::Output;

use ikada_api::client::{GetOptions, ObjectSource, PutOptions};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cluster::Cluster;
use crate::fresh::ikada;
use crate::relay::{Cut, Relay};

fn run(cluster: &Cluster, args: &[&str], folder: &Path) -> Output {
    let urls: Vec<&str> = cluster.nodes.iter().map(|node| node.url.as_str()).collect();
    ikada().args(args).args(["--url", &urls.join(",")]).current_dir(folder).output().expect("ran")
}

pub fn bytes_of(seed: u64, length: usize) -> Vec<u8> {
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
    // What has no length before it is read is taken whole, too; a link is told of.
    let version = run(&cluster, &["object", "put", "/proc/version", "site/kernel"], folder.path());
    assert!(version.status.success(), "{version:?}");
    let kernel = run(&cluster, &["object", "get", "site/kernel", "-"], folder.path());
    assert!(kernel.stdout == std::fs::read("/proc/version").expect("read"), "{kernel:?}");
    std::os::unix::fs::symlink("a.txt", folder.path().join("up/link")).expect("made");
    let linked = run(&cluster, &["object", "put", "up", "site/v1", "--recursive"], folder.path());
    let talk = String::from_utf8_lossy(&linked.stderr);
    assert!(linked.status.success() && talk.contains("up/link: no file"), "{talk}");
    let gone = run(&cluster, &["object", "delete", "site/kernel"], folder.path());
    assert!(gone.status.success(), "{gone:?}");
    let shown = run(&cluster, &["object", "get", "site/v1/a.txt", "-"], folder.path());
    assert_eq!(shown.stdout, bytes_of(0, 10));
    let refused = run(&cluster, &["object", "put", "up/a.txt", "site/../x"], folder.path());
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    let missing = run(&cluster, &["object", "get", "site/none"], folder.path());
    assert_eq!(missing.status.code(), Some(4), "{missing:?}");
    // A folder is no beginning of names: what only begins like it stays where it is.
    for other in ["site/v10/a.txt", "site/v1.txt"] {
        let put = run(&cluster, &["object", "put", "up/a.txt", other], folder.path());
        assert!(put.status.success(), "{put:?}");
    }
    let down = run(&cluster, &["object", "get", "site/v1", "some", "-r"], folder.path());
    assert!(down.status.success(), "{down:?}");
    let some = std::fs::read_dir(folder.path().join("some")).expect("a folder").flatten();
    assert_eq!(some.map(|entry| entry.file_name()).collect::<Vec<_>>(), ["v1"]);
    let gone = run(&cluster, &["object", "delete", "site/v1", "-r", "--yes"], folder.path());
    assert!(gone.status.success(), "{gone:?}");
    let listed = run(&cluster, &["object", "list", "site", "-o", "quiet"], folder.path());
    assert_eq!(listed.stdout, b"site/v1.txt\nsite/v10/a.txt\n");
    let none = run(&cluster, &["object", "delete", "site/v1", "-r", "--yes"], folder.path());
    let talk = String::from_utf8_lossy(&none.stderr);
    assert!(none.status.success() && talk.contains("nothing in site/v1/"), "{none:?}");
    let gone = run(&cluster, &["object", "delete", "site", "-r", "--yes"], folder.path());
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

/// A file name of a download that is not whole.
fn part_in(folder: &Path) -> Option<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "part"))
}

// CH-1: a connection that breaks again and again costs time, and no byte is fetched twice for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_1_a_cut_download_goes_on_where_it_ended() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = bytes_of(7, 6 << 20);
    let source = ObjectSource::Bytes(bytes.clone().into());
    cluster.client().put_object("b", "k", &source, &PutOptions::default()).await.expect("stored");
    let to = cluster.node(1).url.trim_start_matches("http://").to_owned();
    let relay = Relay::start(&to, Cut::Answered(1_500_000), 3).await;
    let (url, place) = (relay.url.clone(), folder.path().to_owned());
    let got = tokio::task::spawn_blocking(move || {
        let mut command = ikada();
        command.args(["object", "get", "b/k", "--url", &url]).current_dir(place);
        command.output().expect("ran")
    });
    let got = got.await.expect("joined");
    assert!(got.status.success(), "{got:?}");
    assert_eq!(relay.left(), 0, "it was cut three times");
    assert!(String::from_utf8_lossy(&got.stderr).contains("going on"), "{got:?}");
    assert!(std::fs::read(folder.path().join("k")).expect("the file") == bytes);
    assert_eq!(part_in(folder.path()), None);
}

// CH-1: an upload that breaks off is sent again, also when it comes by a pipe, and makes one version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_1_a_cut_upload_is_sent_again_and_counts_once() {
    const MARK: &str = "cut-me-here";
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = bytes_of(8, 3 << 20);
    bytes[2 << 20..][..MARK.len()].copy_from_slice(MARK.as_bytes());
    std::fs::write(folder.path().join("file"), &bytes).expect("written");
    let to = cluster.node(2).url.trim_start_matches("http://").to_owned();
    for (source, key) in [("file", "b/file"), ("-", "b/pipe")] {
        let relay = Relay::start(&to, Cut::Asked(MARK), 2).await;
        let (url, place) = (relay.url.clone(), folder.path().to_owned());
        let put = tokio::task::spawn_blocking(move || {
            let input = std::fs::File::open(place.join("file")).expect("the file");
            let mut command = ikada();
            command.args(["object", "put", source, key, "--url", &url]).current_dir(&place);
            command.stdin(input).output().expect("ran")
        });
        let put = put.await.expect("joined");
        assert!(put.status.success(), "{put:?}");
        assert_eq!(relay.left(), 0, "it was cut twice");
    }
    let client = cluster.client();
    let all = client.objects("b", "", None, true).await.expect("a page").objects;
    let versions: Vec<_> =
        all.iter().map(|object| (object.key.as_str(), object.version.0)).collect();
    assert_eq!(versions.len(), 2, "one version each: {versions:?}");
    for key in ["file", "pipe"] {
        let read = client.get_object("b", key, &GetOptions::default()).await.expect("there");
        assert!(read.collect().await.expect("whole") == bytes, "{key}");
    }
}

/// Fetches an object to standard output.
async fn print(url: String) -> Output {
    let printed = tokio::task::spawn_blocking(move || {
        ikada().args(["object", "get", "b/k", "-", "--url", &url]).output().expect("ran")
    });
    printed.await.expect("joined")
}

// CH-1, A1: what goes down a pipe is continued and checked like what goes into a file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_1_a_download_to_a_pipe_goes_on_and_is_checked() {
    let cluster = Cluster::start().await;
    let bytes = bytes_of(11, 6 << 20);
    let source = ObjectSource::Bytes(bytes.clone().into());
    cluster.client().put_object("b", "k", &source, &PutOptions::default()).await.expect("stored");
    let to = cluster.node(1).url.trim_start_matches("http://").to_owned();
    let relay = Relay::start(&to, Cut::Answered(1_500_000), 3).await;
    let printed = print(relay.url.clone()).await;
    assert!(printed.status.success() && printed.stdout == bytes, "{:?}", printed.stderr);
    assert_eq!(relay.left(), 0, "it was cut three times");
    // Whoever answers says one thing and sends another.
    let lied =
        print(liar(&bytes_of(12, 900), blake3::hash(b"other").to_hex().as_str()).await).await;
    assert_eq!(lied.status.code(), Some(1), "{lied:?}");
    assert!(String::from_utf8_lossy(&lied.stderr).contains("another digest"), "{lied:?}");
}

/// A server whose objects have other bytes than their tag says; gives its address.
async fn liar(bytes: &[u8], tag: &str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\netag: \"{tag}\"\r\nconnection: close\r\n\r\n",
        bytes.len()
    );
    let answer = [head.as_bytes(), bytes].concat();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.flush().await;
        }
    });
    url
}

/// A server that gives so many bytes of an object and then breaks off, however often it is asked; gives its address.
async fn stingy(bytes: Vec<u8>, given: usize) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = vec![0; 4096];
            let count = stream.read(&mut asked).await.unwrap_or(0);
            let asked = String::from_utf8_lossy(&asked[..count]).to_ascii_lowercase();
            let from = asked.split_once("range: bytes=").and_then(|(_, rest)| rest.split_once('-'));
            let from: usize = from.and_then(|(from, _)| from.parse().ok()).unwrap_or(0);
            let (length, tag) = (bytes.len() - from, blake3::hash(&bytes).to_hex());
            let head = format!(
                "HTTP/1.1 206 Part\r\ncontent-length: {length}\r\netag: \"{tag}\"\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(bytes.get(from..given).unwrap_or_default()).await;
            let _ = stream.flush().await;
        }
    });
    url
}

// CH-1: when nothing comes any more, what has come is kept for the next run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_1_a_download_that_is_given_up_keeps_what_arrived() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = bytes_of(9, 5_000);
    let fetch = async |url: String| {
        let place = folder.path().to_owned();
        let fetched = tokio::task::spawn_blocking(move || {
            let mut command = ikada();
            command.args(["object", "get", "b/k", "--url", &url]).current_dir(place);
            command.output().expect("ran")
        });
        fetched.await.expect("joined")
    };
    let cut = fetch(stingy(bytes.clone(), 1_000).await).await;
    assert!(!cut.status.success(), "{cut:?}");
    let said = String::from_utf8_lossy(&cut.stderr);
    assert!(said.contains("run the command again") && !said.contains("digest"), "{said}");
    let part = part_in(folder.path()).expect("it is kept");
    assert!(std::fs::read(part).expect("the part") == bytes[..1_000]);
    assert!(!folder.path().join("k").exists());
    let whole = fetch(stingy(bytes.clone(), 5_000).await).await;
    assert!(whole.status.success(), "{whole:?}");
    assert!(std::fs::read(folder.path().join("k")).expect("the file") == bytes);
}

// CH-31, CH-32: shedding on demand, each outcome counted once, and no acknowledged upload is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_32_the_bench_shows_shedding_and_loses_nothing() {
    let ran = tokio::task::spawn_blocking(|| {
        let mut command = ikada();
        // The nodes are to turn away what the bench says.
        command.env_remove("IKADA_SHED").args([
            "bench",
            "objects",
            "--nodes",
            "3",
            "--clients",
            "2",
        ]);
        command.args(["--seconds", "5", "--object-bytes", "20000", "--spike", "0"]);
        command.args(["--shed", "off", "--shed", "upload=0:50", "--output", "json"]);
        command.output().expect("ran")
    });
    let ran = ran.await.expect("joined");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("a document");
    let of = |kind: &str| {
        let mut calls = report["calls"].as_array().expect("calls").iter();
        let calls = calls.find(|calls| calls["kind"] == kind).expect(kind);
        ["good", "shed", "failed"].map(|name| calls[name].as_u64().expect(name))
    };
    let ([stored, turned_away, failed], [read, shed, broken]) = (of("upload"), of("download"));
    assert!(stored >= 20 && turned_away > 0, "{stored} stored, {turned_away} turned away");
    assert!(read > 0 && shed == 0, "downloads are favoured: {read} read, {shed} turned away");
    assert_eq!((failed, broken), (0, 0));
    assert_eq!(report["checked"], stored, "each acknowledged upload is counted once");
    assert_eq!(report["lost"], 0);
    let figures = report["figures"].to_string();
    assert!(figures.contains("a decision about an upload"), "{figures}");
}
