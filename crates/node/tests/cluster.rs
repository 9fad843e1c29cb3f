//! Whole servers in one process, over loopback and real disks.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use ikada_node::config::{RawConfig, resolve};
use ikada_node::http::Door;
use ikada_node::{Handle, RunError, run};
use ikada_replica::call::{Answer, Consistency, Outcome, Query, Request, Routing, View};
use ikada_replica::state::{
    Command, Enqueue, Namespace, Order, QueueName, Reply, RequestId, RequestKey, TaskId,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct Server {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), RunError>>,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("bind").local_addr().expect("addr").port()
}

fn raw(folder: &Path, node: u64, ports: &[u16]) -> RawConfig {
    let own = ports[node as usize - 1];
    RawConfig {
        data: Some(folder.join(format!("n{node}"))),
        listen: Some("127.0.0.1:0".into()),
        peer_listen: Some(format!("127.0.0.1:{own}")),
        peer: Some(ports.iter().map(|port| format!("127.0.0.1:{port}")).collect()),
        expect: Some(ports.len() as u16),
        shards: Some(2),
        node_id: Some(node),
        // Tests keep this machine busy.
        shed: Some(vec!["off".into()]),
        ..RawConfig::default()
    }
}

async fn start(raw: RawConfig) -> Server {
    let config = resolve(vec![raw]).expect("valid");
    let (stop, stopped) = oneshot::channel::<()>();
    let (ready, handle) = oneshot::channel();
    let running = tokio::spawn(run(
        config,
        async {
            let _ = stopped.await;
        },
        move |started| {
            let _ = ready.send(started.handle);
        },
    ));
    let handle = handle.await.expect("started");
    Server { handle, stop: Some(stop), running }
}

async fn start_all(folder: &Path, ports: &[u16]) -> Vec<Server> {
    let mut starting = Vec::new();
    for node in 1..=ports.len() as u64 {
        starting.push(tokio::spawn(start(raw(folder, node, ports))));
    }
    let mut servers = Vec::new();
    for server in starting {
        servers.push(server.await.expect("started"));
    }
    servers
}

async fn stop(mut server: Server) {
    let _ = server.stop.take().expect("once").send(());
    server.running.await.expect("joined").expect("stopped cleanly");
}

fn order(id: &str) -> Order {
    let id = TaskId::parse(id).expect("id");
    let key = RequestKey { id: RequestId::parse(id.as_str()).expect("id"), item: 0 };
    let queue = QueueName::parse("q").expect("queue");
    let command = Command::Enqueue(Enqueue::new(id, queue, b"x".to_vec()));
    Order { namespace: Namespace::default(), request: Some(key), command }
}

async fn write(handle: &Handle, id: &str) -> bool {
    let request = Request::Write(vec![order(id)]);
    match handle.call(request, Duration::from_secs(10), Routing::Forward).await {
        Answer::Written(outcomes) => {
            matches!(&outcomes[0], Outcome::Reply { reply: Reply::Enqueued { .. }, .. })
        }
        other => panic!("{other:?}"),
    }
}

async fn exists(handle: &Handle, id: &str) -> bool {
    let query = Query::Task(Namespace::default(), TaskId::parse(id).expect("id"));
    let request = Request::Read(query, Consistency::Linearizable);
    match handle.call(request, Duration::from_secs(10), Routing::Forward).await {
        Answer::View { view: View::Task(task), .. } => task.is_some(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_found_a_cluster_and_survive_a_rolling_restart() {
    let folder = tempfile::tempdir().expect("folder");
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let mut servers = start_all(folder.path(), &ports).await;
    for n in 0..30 {
        assert!(write(&servers[n % 3].handle, &format!("t{n}")).await);
    }
    for node in 0..3 {
        let server = servers.remove(0);
        stop(server).await;
        let id = format!("during-{node}");
        assert!(write(&servers[0].handle, &id).await);
        let server = start(raw(folder.path(), node + 1, &ports)).await;
        assert!(exists(&server.handle, &id).await, "a restarted node serves what it missed");
        servers.push(server);
    }
    for server in &servers {
        for n in 0..30 {
            assert!(exists(&server.handle, &format!("t{n}")).await);
        }
    }
    for server in servers {
        stop(server).await;
    }
}

// CH-11: one DNS name, the same for all, is enough; addresses of it where nobody answers do not matter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ch_11_nodes_find_each_other_through_one_dns_name() {
    let folder = tempfile::tempdir().expect("folder");
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let starting: Vec<_> = (1..=3)
        .map(|node| {
            let seed = Some(vec![format!("localhost:{}", ports[1])]);
            tokio::spawn(start(RawConfig { peer: seed, ..raw(folder.path(), node, &ports) }))
        })
        .collect();
    let mut servers = Vec::new();
    for server in starting {
        servers.push(server.await.expect("started"));
    }
    let clusters: Vec<u64> = servers.iter().map(|server| server.handle.info().cluster).collect();
    assert!(clusters.iter().all(|cluster| *cluster == clusters[0]), "CH-13: {clusters:?}");
    assert!(write(&servers[0].handle, "t").await);
    for server in &servers {
        assert!(exists(&server.handle, "t").await);
    }
    for server in servers {
        stop(server).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_works_alone() {
    // B4-51
    let folder = tempfile::tempdir().expect("folder");
    let ports = [free_port()];
    let server = start_all(folder.path(), &ports).await.remove(0);
    assert!(write(&server.handle, "alone").await);
    stop(server).await;
    let server = start(raw(folder.path(), 1, &ports)).await;
    assert!(exists(&server.handle, "alone").await);
    stop(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_a_cluster_says_so() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let folder = tempfile::tempdir().expect("folder");
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let client = format!("127.0.0.1:{}", free_port());
    let mut raw = raw(folder.path(), 1, &ports);
    raw.listen = Some(client.clone());
    let config = resolve(vec![raw]).expect("valid");
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(run(config, async { drop(stopped.await) }, |_| ()));
    let mut answer = String::new();
    while answer.is_empty() {
        if let Ok(mut stream) = tokio::net::TcpStream::connect(&client).await {
            stream.write_all(b"GET /v1/cluster HTTP/1.1\r\n\r\n").await.expect("asked");
            stream.read_to_string(&mut answer).await.expect("answered");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("not_founded"), "{answer}");
    let _ = stop.send(());
    running.await.expect("joined").expect("stopped while founding");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_starts_are_refused_and_change_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let ports = [free_port()];
    let server = start_all(folder.path(), &ports).await.remove(0);
    let refused = |raw: RawConfig| async move {
        let config = resolve(vec![raw]).expect("valid");
        run(config, std::future::pending(), |_| ()).await.expect_err("refused").to_string()
    };
    // The port is taken.
    let error = refused(raw(folder.path(), 1, &ports)).await;
    assert!(error.contains("cannot listen on"), "{error}");
    // The folder is taken.
    let other = RawConfig {
        peer_listen: Some(format!("127.0.0.1:{}", free_port())),
        ..raw(folder.path(), 1, &ports)
    };
    let error = refused(other).await;
    assert!(error.contains("in use"), "{error}");
    stop(server).await;
    // The folder belongs to another node.
    let other = RawConfig { node_id: Some(9), ..raw(folder.path(), 1, &ports) };
    let error = refused(other).await;
    assert!(error.contains("belongs to node 1") && error.contains('9'), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_node_is_refused_under_its_old_id() {
    // F-17, R9
    let folder = tempfile::tempdir().expect("folder");
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let mut servers = start_all(folder.path(), &ports).await;
    assert!(write(&servers[0].handle, "before").await);
    stop(servers.remove(2)).await;
    std::fs::remove_dir_all(folder.path().join("n3")).expect("wiped");
    let config = resolve(vec![raw(folder.path(), 3, &ports)]).expect("valid");
    let error = run(config, std::future::pending(), |_| ()).await.expect_err("refused").to_string();
    assert!(error.contains("wiped") && error.contains("may not come back"), "{error}");
    assert!(write(&servers[0].handle, "after").await, "two of three go on");
    // A node that lost its log but not its papers would have forgotten its votes.
    stop(servers.remove(1)).await;
    std::fs::remove_dir_all(folder.path().join("n2/wal")).expect("wiped");
    let config = resolve(vec![raw(folder.path(), 2, &ports)]).expect("valid");
    let error = run(config, std::future::pending(), |_| ()).await.expect_err("refused").to_string();
    assert!(error.contains("log of node 2 is gone"), "{error}");
    for server in servers {
        stop(server).await;
    }
}
