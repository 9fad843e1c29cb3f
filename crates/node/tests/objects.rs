//! Objects over whole servers: real disks, real sockets, stopped nodes, damaged files (CH-1 to CH-10, F-37).

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{Error, GetOptions, ObjectSource, PutOptions};
use ikada_api::v1::ClusterView;
use ikada_node::config::{RawConfig, resolve};
use ikada_node::http::Door;
use ikada_node::{Handle, RunError, run};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct Server {
    handle: Handle,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), RunError>>,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn start(folder: &Path, node: usize, ports: &[u16]) -> Server {
    let raw = RawConfig {
        data: Some(folder.join(format!("n{node}"))),
        listen: Some("127.0.0.1:0".into()),
        peer_listen: Some(format!("127.0.0.1:{}", ports[node])),
        peer: Some(ports.iter().map(|port| format!("127.0.0.1:{port}")).collect()),
        expect: Some(ports.len() as u16),
        shards: Some(2),
        node_id: Some(node as u64 + 1),
        // Tests keep this machine busy.
        shed: Some(vec!["off".into()]),
        ..RawConfig::default()
    };
    let config = resolve(vec![raw]).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let (ready, handle) = oneshot::channel();
    let until = async {
        let _ = stopped.await;
    };
    let running = tokio::spawn(run(config, until, move |started| {
        let _ = ready.send(started.handle);
    }));
    Server { handle: handle.await.unwrap(), stop, running }
}

async fn start_all(folder: &Path, ports: &[u16]) -> Vec<Server> {
    let starting: Vec<_> = (0..ports.len())
        .map(|node| {
            let (folder, ports) = (folder.to_owned(), ports.to_owned());
            tokio::spawn(async move { start(&folder, node, &ports).await })
        })
        .collect();
    let mut servers = Vec::new();
    for server in starting {
        servers.push(server.await.unwrap());
    }
    servers
}

async fn stop(server: Server) {
    let _ = server.stop.send(());
    server.running.await.unwrap().unwrap();
}

fn client_of(server: &Server) -> Client {
    let info = server.handle.info();
    Client::new([format!("http://{}", info.client_addr)]).unwrap()
}

async fn put(client: &Client, key: &str, bytes: &[u8]) -> Result<u64, Error> {
    let source = ObjectSource::Bytes(bytes.to_vec().into());
    let stored = client.put_object("b", key, &source, &PutOptions::default()).await?;
    assert_eq!(stored.digest, blake3::hash(bytes).to_hex().to_string());
    Ok(stored.version.0)
}

async fn read(client: &Client, key: &str) -> Vec<u8> {
    let reader = client.get_object("b", key, &GetOptions::default()).await.unwrap();
    reader.collect().await.unwrap()
}

fn bytes_of(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(..)).collect()
}

fn blob_files(folder: &Path, node: usize) -> Vec<PathBuf> {
    let Ok(folders) = std::fs::read_dir(folder.join(format!("n{node}/blob"))) else {
        return Vec::new();
    };
    let inside = |folder: std::fs::DirEntry| std::fs::read_dir(folder.path()).unwrap();
    folders.flatten().flat_map(inside).map(|file| file.unwrap().path()).collect()
}

/// Waits until a node has so many pieces.
async fn wait_for_pieces(folder: &Path, node: usize, count: usize) {
    for _ in 0..600 {
        if blob_files(folder, node).len() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("node {node} has {} pieces, not {count}", blob_files(folder, node).len());
}

// CH-3, CH-28: five nodes and three.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_3_every_node_serves_what_any_node_took() {
    for nodes in [3, 5] {
        let folder = tempfile::tempdir().unwrap();
        let ports: Vec<u16> = (0..nodes).map(|_| free_port()).collect();
        let servers = start_all(folder.path(), &ports).await;
        let clients: Vec<Client> = servers.iter().map(client_of).collect();
        for round in 0..6u64 {
            let body = bytes_of(round, 2_500_000 + round as usize);
            put(&clients[round as usize % nodes], "same/name", &body).await.unwrap();
            for client in &clients {
                let found = read(client, "same/name").await;
                assert!(found == body, "overwrite, then read on every node");
            }
        }
        let part = GetOptions { from: 2_400_000, ..GetOptions::default() };
        let tail = clients[2].get_object("b", "same/name", &part).await.unwrap().collect().await;
        assert!(tail.unwrap() == bytes_of(5, 2_500_005)[2_400_000..]);
        for server in servers {
            stop(server).await;
        }
    }
}

// CH-2: every node takes uploads, whoever leads; a client that met a dead node begins at a living one from then on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_2_any_node_takes_an_upload_and_a_client_keeps_to_one_that_answers() {
    let folder = tempfile::tempdir().unwrap();
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let servers = start_all(folder.path(), &ports).await;
    for (number, server) in servers.iter().enumerate() {
        // One bucket is one shard, which one of the three leads.
        put(&client_of(server), &format!("k{number}"), b"taken").await.unwrap();
    }
    let dead = format!("http://127.0.0.1:{}", free_port());
    let living = format!("http://{}", servers[0].handle.info().client_addr);
    let client = Client::new([dead, living]).unwrap();
    put(&client, "first", b"1").await.unwrap();
    assert!(client.tries() >= 2, "one of them at the dead node");
    let mut remembered = false;
    for round in 0..20 {
        let before = client.tries();
        put(&client, &format!("more/{round}"), b"2").await.unwrap();
        assert!(read(&client, &format!("more/{round}")).await == b"2");
        // A client that forgets would begin at the dead node every time.
        remembered |= client.tries() == before + 2;
    }
    assert!(remembered, "{} tries", client.tries());
    for server in servers {
        stop(server).await;
    }
}

// CH-4: objects, the log behind them and the members are as before when all nodes were down at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_4_objects_and_members_survive_a_restart_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let servers = start_all(folder.path(), &ports).await;
    let client = client_of(&servers[0]);
    let first = put(&client, "kept", &bytes_of(1, 100)).await.unwrap();
    let newest = put(&client, "kept", &bytes_of(2, 2_500_000)).await.unwrap();
    assert!(newest > first);
    let before = client.cluster().await.unwrap();
    for server in servers {
        stop(server).await;
    }
    let servers = start_all(folder.path(), &ports).await;
    for server in &servers {
        let client = client_of(server);
        assert!(read(&client, "kept").await == bytes_of(2, 2_500_000));
        let old = GetOptions { version: Some(first), ..GetOptions::default() };
        let old = client.get_object("b", "kept", &old).await.unwrap().collect().await.unwrap();
        assert!(old == bytes_of(1, 100));
        let after = client.cluster().await.unwrap();
        assert_eq!(after.cluster, before.cluster);
        let ids = |view: &ClusterView| view.members.iter().map(|node| node.node.0).collect();
        let (then, now): (Vec<u64>, Vec<u64>) = (ids(&before), ids(&after));
        assert_eq!(now, then);
    }
    let again = put(&client_of(&servers[1]), "kept", b"3").await.unwrap();
    assert!(again > newest, "numbers go on");
    for server in servers {
        stop(server).await;
    }
}

// CH-10: how fresh an answer is, is chosen call by call, and no node ever answers a reader with less.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_10_a_reader_chooses_how_fresh_its_answer_is() {
    let folder = tempfile::tempdir().unwrap();
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let servers = start_all(folder.path(), &ports).await;
    let clients: Vec<Client> = servers.iter().map(client_of).collect();
    for round in 0..12u64 {
        let body = bytes_of(round, 300);
        let source = ObjectSource::Bytes(body.clone().into());
        let writer = &clients[round as usize % 3];
        let stored = writer.put_object("b", "k", &source, &PutOptions::default()).await.unwrap();
        let lsn = stored.lsn.expect("a write gives its position");
        for client in &clients {
            // Read-your-writes on any node, without asking a leader.
            let own = GetOptions { min_lsn: Some(lsn.clone()), ..GetOptions::default() };
            let own = client.get_object("b", "k", &own).await.unwrap();
            assert_eq!(own.version, stored.version.0);
            assert!(own.collect().await.unwrap() == body);
        }
        assert!(read(&clients[(round as usize + 1) % 3], "k").await == body, "linearizable");
        let stale = GetOptions { stale: true, ..GetOptions::default() };
        let stale = clients[(round as usize + 2) % 3].get_object("b", "k", &stale).await.unwrap();
        assert!(stale.age_ms.is_some(), "a stale answer is labelled");
    }
    for server in servers {
        stop(server).await;
    }
}

// CH-5, CH-32, F-37: a node that was down fetches what it missed; without a majority nothing is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_5_a_node_that_was_down_gets_what_it_missed() {
    let folder = tempfile::tempdir().unwrap();
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let mut servers = start_all(folder.path(), &ports).await;
    let client = client_of(&servers[0]);
    put(&client, "before", &bytes_of(1, 100)).await.unwrap();
    stop(servers.remove(2)).await;
    let missed = bytes_of(2, 3 << 20);
    put(&client, "missed", &missed).await.unwrap();
    stop(servers.remove(1)).await;
    let refused = put(&client.with_timeout(Duration::from_secs(2)), "alone", b"x").await;
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    servers.push(start(folder.path(), 2, &ports).await);
    // With nobody else up, the node asks the only one that has the pieces, when it is asked for them.
    let late = client_of(&servers[1]);
    assert!(read(&late, "missed").await == missed);
    servers.push(start(folder.path(), 1, &ports).await);
    let names = late.objects("b", "", None, false).await.unwrap();
    let names: Vec<&str> = names.objects.iter().map(|object| object.key.as_str()).collect();
    assert_eq!(names, ["before", "missed"], "what was not acknowledged is not there");
    for node in 0..3 {
        let there = blob_files(folder.path(), node).len();
        wait_for_pieces(folder.path(), node, there.max(4)).await;
    }
    for server in servers {
        stop(server).await;
    }
}

// A1, F-15, F-37: 100 of 100 flipped bits are found, and repaired from peers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flipped_bits_are_found_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let servers = start_all(folder.path(), &ports).await;
    let client = client_of(&servers[0]);
    for number in 0..100u64 {
        put(&client, &format!("o/{number}"), &bytes_of(number, 200)).await.unwrap();
    }
    for node in 0..3 {
        wait_for_pieces(folder.path(), node, 100).await;
    }
    for (number, file) in blob_files(folder.path(), 1).iter().enumerate() {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[number % 200] ^= 1 << (number % 8);
        std::fs::write(file, bytes).unwrap();
    }
    assert_eq!(servers[1].handle.shelf().scrub(false).await, 100);
    wait_for_pieces(folder.path(), 1, 100).await;
    assert_eq!(servers[1].handle.shelf().scrub(false).await, 0);
    let damaged = std::fs::read_dir(folder.path().join("n1/quarantine")).unwrap().count();
    assert_eq!(damaged, 100, "nothing damaged is deleted");
    for number in 0..100u64 {
        assert!(
            read(&client_of(&servers[1]), &format!("o/{number}")).await == bytes_of(number, 200)
        );
    }
    for server in servers {
        stop(server).await;
    }
}

// CH-11, F-38: every node knows how busy the others are, and of nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_11_load_and_cache_facts_reach_every_node() {
    let folder = tempfile::tempdir().unwrap();
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let servers = start_all(folder.path(), &ports).await;
    for server in &servers {
        let client = client_of(server);
        let mut known = Vec::new();
        for _ in 0..600 {
            let view = client.cluster().await.unwrap();
            assert_eq!(view.members.len(), 3);
            known = view.members.into_iter().filter_map(|member| member.load).collect();
            if known.len() == 3 && known.iter().all(|load| load.cache_hit_percent.is_some()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(known.len(), 3, "facts of all nodes: {known:?}");
        assert!(known.iter().all(|load| load.memory_percent > 0.0), "{known:?}");
    }
    for server in servers {
        stop(server).await;
    }
}
