//! The manifests of `deploy/kubernetes`: their start script and arguments, word for word but for addresses and folders, with
//! what Kubernetes tells every pod, on loopback.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fresh::{ports, without_settings};
use crate::wait::until;

/// What pods are told about a service called `ikada` where service links are on.
const LINKS: [(&str, &str); 7] = [
    ("IKADA_SERVICE_HOST", "10.96.0.7"),
    ("IKADA_SERVICE_PORT", "7400"),
    ("IKADA_SERVICE_PORT_CLIENT", "7400"),
    ("IKADA_PORT", "tcp://10.96.0.7:7400"),
    ("IKADA_PORT_7400_TCP", "tcp://10.96.0.7:7400"),
    ("IKADA_PORT_7400_TCP_PORT", "7400"),
    ("IKADA_PORT_7400_TCP_ADDR", "10.96.0.7"),
];

fn manifests() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/ikada.yml");
    std::fs::read_to_string(file).expect("the manifests")
}

/// The script that a node's pod runs.
fn start_script() -> String {
    let all = manifests();
    let (_, after) = all.split_once("            - |\n").expect("a script");
    let indented = after.lines().map_while(|line| line.strip_prefix("              "));
    indented.collect::<Vec<_>>().join("\n")
}

/// The arguments of a worker's container.
fn worker_arguments() -> Vec<String> {
    let all = manifests();
    let line = all.lines().find_map(|line| line.trim().strip_prefix("args: [\"worker\""));
    let list = format!("[\"worker\"{}", line.expect("a worker"));
    serde_json::from_str(&list).expect("a list of words")
}

/// Puts something in the place of what must be there.
fn replace(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the script does not say {from}");
    text.replace(from, to)
}

/// A process, ended by its id when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(mut command: Command) -> Running {
    let binary = Path::new(env!("CARGO_BIN_EXE_ikada")).parent().expect("a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    command.env("PATH", path).envs(LINKS).env("IKADA_LOG", "warn");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Running(command.spawn().expect("it starts"))
}

/// The pod of this number, with addresses of its own for those of its network.
fn start_pod(number: usize, addresses: &[String], folder: &TempDir) -> Running {
    let (client, peer) = (&addresses[number], &addresses[3 + number]);
    let mut script = start_script();
    // The script names its peers in a loop.
    let begin = "for other in 0 1 2; do";
    script = replace(&script, begin, &format!("{begin}\n  eval \"address=\\$PEER_$other\""));
    script = replace(&script, "ikada-$other.ikada-nodes:7401", "$address");
    script = replace(&script, "--data /data", "--data \"$DATA\"");
    script = replace(&script, "0.0.0.0:7400", client);
    script = replace(&script, "0.0.0.0:7401", peer);
    script = replace(&script, "$HOSTNAME.ikada-nodes:7400", client);
    script = replace(&script, "$HOSTNAME.ikada-nodes:7401", peer);
    let mut shell = without_settings(Command::new("sh"));
    shell.args(["-c", &script]).env("HOSTNAME", format!("ikada-{number}"));
    shell.env("DATA", folder.path().join(format!("data-{number}")));
    for other in 0..3 {
        shell.env(format!("PEER_{other}"), &addresses[3 + other]);
    }
    start(shell)
}

/// The status of an answer to a caller who names this host.
async fn status(address: &str, path: &str, host: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let head = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.ok()?;
    Some(heard.lines().next()?.split(' ').nth(1)?.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_14_pods_start_beside_a_service_of_their_name_and_are_called_by_it() {
    let (addresses, folder) = (ports(6), tempfile::tempdir().expect("a folder"));
    let pods: Vec<Running> = (0..3).map(|number| start_pod(number, &addresses, &folder)).collect();
    for address in &addresses[..3] {
        until("the pod is ready for those who call it by the service's name", || async {
            let seen = status(address, "/readyz", "ikada:7400").await;
            assert_ne!(seen.as_deref(), Some("403"), "a node does not know the service's name");
            (seen.as_deref() == Some("200")).then_some(())
        })
        .await;
        let stranger = status(address, "/readyz", "elsewhere:7400").await;
        assert_eq!(stranger.as_deref(), Some("403"), "any name would do");
    }
    let mut worker = without_settings(Command::new(env!("CARGO_BIN_EXE_ikada")));
    worker.args(worker_arguments()).args(["--name", "pod"]);
    worker.env("IKADA_URL", format!("http://{}", addresses[0]));
    worker.env("IKADA_WORK_DIR", folder.path().join("scratch"));
    let worker = start(worker);
    until("the worker is known", || async {
        let seen = status(&addresses[1], "/v1/workers/pod", "ikada").await;
        (seen.as_deref() == Some("200")).then_some(())
    })
    .await;
    drop((worker, pods));
}

#[test]
fn x_14_no_pod_is_told_of_services_by_its_environment() {
    let all = manifests();
    let pods = all.matches("securityContext:\n        runAsNonRoot: true").count();
    assert_eq!(all.matches("\n      enableServiceLinks: false\n").count(), pods, "in every pod");
    assert!(pods >= 2);
    assert!(all.contains("value: \"http://ikada:7400\""), "workers call the service by its name");
}
