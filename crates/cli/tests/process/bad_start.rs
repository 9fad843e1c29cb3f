//! Starts that must be refused: a clear message, a non-zero exit, and not a byte changed (X1, F-16, F-17).

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::fresh::{fingerprint, ikada, ports, refusal};
use crate::network::Network;
use crate::wait::until;

/// A server in `folder`, with its data below.
fn server(folder: &Path) -> Command {
    server_on(&folder.join("data"))
}

/// A server with this data, on ports of its own.
fn server_on(data: &Path) -> Command {
    let addresses = ports(2);
    let mut command = ikada();
    command
        .args(["server", "--listen", &addresses[0], "--peer-listen", &addresses[1], "--data"])
        .arg(data)
        .current_dir(data.parent().expect("a folder"));
    command
}

fn empty_folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing in: {said}");
    }
}

/// A one-node cluster that has worked and was stopped; gives its data folder.
async fn used_folder() -> (Cluster, PathBuf) {
    let mut cluster = Cluster::prepare(1);
    cluster.launch(1);
    cluster.settle().await;
    assert!(crate::work::write(&cluster.client(), "kept").await);
    cluster.signal(1, "TERM");
    assert!(cluster.ended(1).await.success());
    let data = cluster.node(1).data.clone();
    (cluster, data)
}

/// Starts node 1 of a stopped cluster, which must refuse and change nothing.
fn refused_unchanged(cluster: &Cluster, data: &Path) -> String {
    let before = fingerprint(data);
    let said = refusal(&mut cluster.command(1, ikada()));
    assert_eq!(before, fingerprint(data), "the folder was changed");
    said
}

#[test]
fn unknown_settings_are_named() {
    let folder = empty_folder();
    fs::write(folder.path().join("ikada.toml"), "shards = 2\ncolour = 7\n").expect("written");
    says(&refusal(&mut server(folder.path())), &["colour", "ikada.toml"]);
    fs::remove_file(folder.path().join("ikada.toml")).expect("removed");
    let said = refusal(server(folder.path()).env("IKADA_COLOUR", "7"));
    says(&said, &["IKADA_COLOUR", "unknown"]);
    assert!(!folder.path().join("data").exists(), "a refused start leaves nothing");
}

#[test]
fn a_port_in_use_is_named() {
    let folder = empty_folder();
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let held = (held.local_addr().expect("an address").to_string(), held);
    for flag in ["--listen", "--peer-listen"] {
        let other = if flag == "--listen" { "--peer-listen" } else { "--listen" };
        let mut command = ikada();
        command.args(["server", "--data", "data", flag, &held.0, other, &ports(1)[0]]);
        let said = refusal(command.current_dir(folder.path()));
        says(&said, &[&held.0, flag]);
    }
    assert!(!folder.path().join("data").exists(), "a refused start leaves nothing");
}

#[test]
fn an_open_address_needs_its_flag() {
    let folder = empty_folder();
    let mut command = ikada();
    command.args(["server", "--data", "data", "--listen", "0.0.0.0:0"]);
    let said = refusal(command.current_dir(folder.path()));
    says(&said, &["loopback", "--insecure-listen-anywhere"]);
    assert!(!folder.path().join("data").exists(), "a refused start leaves nothing");
}

/// The metrics of a node that asks nobody who calls.
fn metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let head = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

// X1: a node that anybody can reach says so in its log and its metrics, and one on loopback does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_1_an_open_node_says_so_loudly() {
    let mut here = Cluster::prepare(1);
    here.launch(1);
    here.settle().await;
    assert!(!here.log(1).contains("INSECURE"), "{}", here.log(1));
    assert!(metrics(&here.node(1).client).contains("\nikada_insecure 0\n"));
    let Some(network) = Network::make(2) else { return };
    let open = Cluster::start_in(&network, 1, 1).await;
    let banner = "INSECURE: listening beyond loopback without TLS and tokens";
    assert!(open.log(1).contains(banner), "{}", open.log(1));
    assert!(metrics(&open.node(1).client).contains("\nikada_insecure 1\n"));
}

// B4-43
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_42_b4_43_an_even_number_of_voters_is_warned_about() {
    let mut cluster = Cluster::prepare(2);
    cluster.launch(1);
    if !cluster.is_in_database() {
        until("a warning", || async { cluster.log(1).contains("odd number").then_some(()) }).await;
    }
    // It is a warning: the cluster works.
    cluster.launch(2);
    cluster.settle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_in_use_or_of_another_node_is_refused() {
    let mut cluster = Cluster::prepare(1);
    cluster.launch(1);
    cluster.settle().await;
    let data = cluster.node(1).data.clone();
    let said = refusal(&mut server_on(&data));
    says(&said, &["in use by another"]);
    cluster.signal(1, "TERM");
    assert!(cluster.ended(1).await.success());
    let before = fingerprint(&data);
    let said = refusal(server_on(&data).args(["--node-id", "2"]));
    says(&said, &["belongs to node 1", "--node-id 2"]);
    assert_eq!(before, fingerprint(&data), "the folder was changed");
}

// F-16
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_another_cluster_are_refused() {
    let (cluster, data) = used_folder().await;
    let (_other, foreign) = used_folder().await;
    for name in ["identity", "wal", "snap", "founding"] {
        assert!(data.join(name).exists(), "{name} is not there");
        let aside = data.with_extension("aside");
        fs::rename(data.join(name), &aside).expect("moved");
        fs::rename(foreign.join(name), data.join(name)).expect("swapped");
        let said = refused_unchanged(&cluster, &data);
        // Where nodes are entered in a database, that knows the folder which the id belongs to.
        let is_known = name == "founding" && cluster.is_in_database();
        says(&said, &[if is_known { "another data folder" } else { "cluster" }]);
        fs::rename(data.join(name), foreign.join(name)).expect("back");
        fs::rename(&aside, data.join(name)).expect("restored");
    }
    let mut cluster = cluster;
    cluster.launch(1);
    cluster.settle().await;
    assert!(cluster.client().task("kept").await.is_ok(), "its own files still serve");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_log_is_refused() {
    let (cluster, data) = used_folder().await;
    fs::remove_dir_all(data.join("wal")).expect("removed");
    says(&refused_unchanged(&cluster, &data), &["node 1", "log", "is gone"]);
}

// F-17
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_node_may_not_return_under_its_old_id() {
    let mut cluster = Cluster::start().await;
    cluster.kill(3);
    fs::remove_dir_all(&cluster.node(3).data).expect("wiped");
    let said = refusal(&mut cluster.command(3, ikada()));
    says(&said, &["node 3"]);
    // It got no say: the others go on by themselves.
    cluster.settle().await;
    assert!(crate::work::write(&cluster.client(), "after").await);
}
