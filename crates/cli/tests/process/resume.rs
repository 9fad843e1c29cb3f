//! One large file that is not sent in one go: the command is killed, the node is killed, and what arrived stays arrived (CH-1,
//! F-37).

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::GetOptions;
use ikada_api::v1::{QuotaBody, UploadPart, UploadView};

use crate::cluster::Cluster;
use crate::fresh::ikada;
use crate::objects::bytes_of;
use crate::relay::{Cut, Relay};
use crate::wait::until;

/// What the command makes parts of.
const PART_BYTES: usize = 8 << 20;
/// Five whole parts and a bit: the three that are under way at a time are never all that has passed.
const FILE_BYTES: usize = 5 * PART_BYTES + 1_000;
/// After so many bytes at least one part has passed whole, and at most three have, and the bit.
const HELD_AFTER: usize = 3 * PART_BYTES + PART_BYTES / 2;
/// More than heads and small calls of one upload have.
const HEADS_BYTES: usize = 200_000;

fn put(urls: &[&str], folder: &Path) -> Command {
    let mut command = ikada();
    command.args(["object", "put", "big.bin", "b/big", "--url", &urls.join(",")]);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

async fn output(child: Child) -> Output {
    let waited = tokio::task::spawn_blocking(|| child.wait_with_output().expect("ran"));
    waited.await.expect("joined")
}

fn address(cluster: &Cluster, id: u64) -> String {
    cluster.node(id).url.trim_start_matches("http://").to_owned()
}

/// Parts of full size; the bit at the end may be there as well.
fn whole(parts: &[UploadPart]) -> usize {
    parts.iter().filter(|part| part.size as usize == PART_BYTES).count()
}

/// The only upload, once some of its parts have arrived and no more can come.
async fn held(cluster: &Cluster, relay: &Relay) -> UploadView {
    let client = cluster.client();
    until("some parts have arrived", || async {
        let page = client.uploads(None).await.ok()?;
        let upload = client.upload_view(&page.uploads.first()?.upload).await.ok()?;
        (whole(&upload.parts) > 0 && relay.asked() >= HELD_AFTER).then_some(upload)
    })
    .await
}

/// The object is whole and once there, and nothing is left of its parts.
async fn check(cluster: &Cluster, bytes: &[u8]) {
    let client = cluster.client();
    let read = client.get_object("b", "big", &GetOptions::default()).await.expect("there");
    assert!(read.collect().await.expect("whole") == bytes, "other bytes");
    let versions = client.objects("b", "", None, true).await.expect("a page").objects;
    assert_eq!(versions.len(), 1, "{versions:?}");
    assert_eq!(client.buckets(None).await.expect("a page").buckets, ["b"]);
}

// CH-1: the command is killed, and the node that it spoke to; run again, it sends what is missing, and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_1_a_killed_upload_goes_on_where_it_stopped() {
    let mut cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = bytes_of(11, FILE_BYTES);
    std::fs::write(folder.path().join("big.bin"), &bytes).expect("written");
    let relay = Relay::start(&address(&cluster, 1), Cut::Held(HELD_AFTER), 0).await;
    let mut first = put(&[&relay.url], folder.path()).spawn().expect("it starts");
    held(&cluster, &relay).await;
    first.kill().expect("killed");
    first.wait().expect("ended");
    cluster.kill(1);
    cluster.settle().await;
    let upload = cluster.client().uploads(None).await.expect("a page").uploads.remove(0);
    let there = cluster.client().upload_view(&upload.upload).await.expect("it is kept").parts;
    let arrived: usize = there.iter().map(|part| part.size as usize).sum();
    assert!((1..=3).contains(&whole(&there)), "{there:?}");
    assert_eq!((upload.bucket.as_str(), upload.key.as_str()), ("b", "big"));

    let relay = Relay::start(&address(&cluster, 2), Cut::Held(usize::MAX), 0).await;
    let dead = cluster.node(1).url.clone();
    let again = put(&[&dead, &relay.url], folder.path()).spawn().expect("it starts");
    let again = output(again).await;
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success(), "{said}");
    let wanted = format!("going on: {} of 6 parts are there already", there.len());
    assert!(said.contains(&wanted), "{said}");
    let missing = FILE_BYTES - arrived;
    let sent = relay.asked();
    assert!((missing..missing + HEADS_BYTES).contains(&sent), "{sent} for {missing}");
    check(&cluster, &bytes).await;

    // The object is there: nothing travels.
    let once_more = put(&[&relay.url], folder.path()).spawn().expect("it starts");
    let once_more = output(once_more).await;
    assert!(once_more.status.success(), "{once_more:?}");
    assert!(relay.asked() - sent < HEADS_BYTES, "{} bytes", relay.asked() - sent);
    check(&cluster, &bytes).await;
}

// CH-1, F-37: a node that dies under an upload costs the parts that were on their way to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_1_an_upload_goes_on_at_another_node_when_one_dies() {
    let mut cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = bytes_of(12, FILE_BYTES);
    std::fs::write(folder.path().join("big.bin"), &bytes).expect("written");
    let first = Relay::start(&address(&cluster, 1), Cut::Held(HELD_AFTER), 0).await;
    let second = Relay::start(&address(&cluster, 2), Cut::Held(usize::MAX), 0).await;
    let putting = put(&[&first.url, &second.url], folder.path()).spawn().expect("it starts");
    let there = held(&cluster, &first).await.parts;
    let arrived: usize = there.iter().map(|part| part.size as usize).sum();
    // The command hears of what has arrived before the node dies.
    tokio::time::sleep(Duration::from_millis(500)).await;
    cluster.kill(1);
    let put = output(putting).await;
    assert!(put.status.success(), "{}", String::from_utf8_lossy(&put.stderr));
    let sent = second.asked();
    assert!(sent < FILE_BYTES - arrived + HEADS_BYTES, "{sent} bytes, {arrived} were there");
    check(&cluster, &bytes).await;
}

async fn bound(client: &Client, bytes: usize) {
    let quota = QuotaBody { object_bytes_max: Some(bytes as u64), ..QuotaBody::default() };
    client.set_quota("default", &quota).await.expect("set");
}

// CH-1, X7: parts and object are in one shard here, so that all who judge meet both at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_7_a_file_without_room_is_refused_before_any_byte_and_one_with_room_needs_it_once() {
    let cluster = Cluster::start_with(1).await;
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = bytes_of(13, FILE_BYTES);
    std::fs::write(folder.path().join("big.bin"), &bytes).expect("written");
    let relay = Relay::start(&address(&cluster, 1), Cut::Held(usize::MAX), 0).await;
    // The node that is told of a quota judges by it at once.
    let client = Client::new([&cluster.node(1).url]).expect("a client");
    bound(&client, FILE_BYTES - 1).await;
    let refused = output(put(&[&relay.url], folder.path()).spawn().expect("it starts")).await;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("namespace_objects_full"), "{said}");
    assert!(said.contains("goes on where it stopped"), "{said}");
    assert!(relay.asked() < HEADS_BYTES, "{} bytes", relay.asked());
    assert!(client.uploads(None).await.expect("a page").uploads.is_empty());

    bound(&client, FILE_BYTES + (1 << 20)).await;
    let stored = output(put(&[&relay.url], folder.path()).spawn().expect("it starts")).await;
    assert!(stored.status.success(), "{}", String::from_utf8_lossy(&stored.stderr));
    check(&cluster, &bytes).await;

    // CH-9: what is there already is seen before anything is sent.
    let sent = relay.asked();
    let mut absent = put(&[&relay.url], folder.path());
    let absent = output(absent.arg("--if-absent").spawn().expect("it starts")).await;
    let said = String::from_utf8_lossy(&absent.stderr);
    assert!(!absent.status.success() && said.contains("nothing was sent"), "{said}");
    assert!(relay.asked() - sent < HEADS_BYTES, "{} bytes", relay.asked() - sent);
}

// CH-1: two runs of one command are one upload; whoever is second finds the object.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_1_two_runs_at_once_both_end_well() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = bytes_of(14, FILE_BYTES);
    std::fs::write(folder.path().join("big.bin"), &bytes).expect("written");
    let urls = [cluster.node(1).url.as_str(), cluster.node(2).url.as_str()];
    let one = put(&urls, folder.path()).spawn().expect("it starts");
    let other = put(&urls, folder.path()).spawn().expect("it starts");
    for put in [output(one).await, output(other).await] {
        assert!(put.status.success(), "{}", String::from_utf8_lossy(&put.stderr));
    }
    check(&cluster, &bytes).await;
}

// CH-1: another run ends the upload while this one waits to send a part of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_1_a_run_that_was_overtaken_finds_the_object() {
    let mut cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = bytes_of(15, FILE_BYTES);
    std::fs::write(folder.path().join("big.bin"), &bytes).expect("written");
    let relay = Relay::start(&address(&cluster, 1), Cut::Held(HELD_AFTER), 0).await;
    let urls = [relay.url.as_str(), cluster.node(2).url.as_str()];
    let held_up = put(&urls, folder.path()).spawn().expect("it starts");
    held(&cluster, &relay).await;
    let second = put(&[&cluster.node(3).url], folder.path()).spawn().expect("it starts");
    let second = output(second).await;
    assert!(second.status.success(), "{}", String::from_utf8_lossy(&second.stderr));
    // The first run is sent on to another node, where it meets no upload any more.
    cluster.kill(1);
    let first = output(held_up).await;
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    check(&cluster, &bytes).await;
}
