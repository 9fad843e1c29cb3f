//! The S3 door as boto3 meets it: real processes, keys made by the command line, over plain HTTP and over TLS.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::cluster::Cluster;
use crate::fresh::{ikada, ports};
use crate::missing::{is_ci, judge_missing};
use crate::wait::until;

/// A Python with boto3, as `.ci/run` makes one. Without it there is nothing to test with: passed over at home, a failure in CI.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("IKADA_TEST_PYTHON").map(PathBuf::from);
    let found = named.filter(|python| {
        let import = Command::new(python).args(["-c", "import boto3"]).output();
        import.is_ok_and(|output| output.status.success())
    });
    let missing = found
        .is_none()
        .then_some("a Python with boto3, named by IKADA_TEST_PYTHON as .ci/run does,");
    judge_missing(missing, "the S3 door", is_ci());
    found
}

/// Runs a command as the first administrator.
fn run(cluster: &Cluster, words: &[&str]) -> Output {
    let data = &cluster.node(1).data;
    let mut command = ikada();
    command.args(words).env("IKADA_URL", &cluster.node(1).url);
    command.env("IKADA_TOKEN_FILE", data.join("admin-token"));
    if data.join("tls/ca.pem").exists() {
        command.env("IKADA_CA_FILE", data.join("tls/ca.pem"));
    }
    command.output().expect("the command runs")
}

/// Makes a key, lets boto3 use it, ends it, and shows that it has ended.
async fn use_boto3(cluster: &Cluster, python: &PathBuf, endpoint: &str) {
    let made = until("a key is made", || async {
        let words =
            ["auth", "s3-key", "create", "--name", "ci", "--role", "submitter", "-o", "quiet"];
        let made = run(cluster, &words);
        made.status.success().then(|| String::from_utf8(made.stdout).expect("text"))
    })
    .await;
    let (key, secret) = made.trim().split_once('\n').expect("two lines");
    let authority = cluster.node(1).data.join("tls/ca.pem");
    let authority = if authority.exists() { authority } else { PathBuf::from("-") };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/process/s3.py");
    let mut boto3 = Command::new(python);
    boto3.arg(script).args([endpoint, key, secret]).arg(&authority);
    // No proxy and no settings of whoever runs the tests.
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy().to_ascii_lowercase();
        if name_text.ends_with("_proxy") || name_text.starts_with("aws_") {
            boto3.env_remove(&name);
        }
    }
    let said = boto3.output().expect("python runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(said.stdout, b"ok\n");
    let listed = run(cluster, &["auth", "s3-key", "list", "-o", "quiet"]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout).trim(), key);
    assert!(run(cluster, &["auth", "s3-key", "revoke", key]).status.success());
    let log: String = cluster.nodes.iter().map(|node| cluster.log(node.id)).collect();
    assert!(!log.contains(secret), "X6: a secret is in a log");
}

// CH-1
#[tokio::test]
async fn ch_1_boto3_works_unchanged() {
    let Some(python) = python() else { return };
    let mut cluster = Cluster::prepare(3);
    let doors = ports(3);
    for id in 1..=3u64 {
        let mut program = ikada();
        program.env("IKADA_AUTH", "true").env("IKADA_S3_LISTEN", &doors[id as usize - 1]);
        cluster.launch_by(id, program);
    }
    use_boto3(&cluster, &python, &format!("http://{}", doors[1])).await;
}

// CH-1, X2
#[tokio::test]
async fn ch_1_boto3_works_over_tls() {
    let Some(python) = python() else { return };
    let mut cluster = Cluster::prepare(1);
    let doors = ports(1);
    let mut program = ikada();
    program.env("IKADA_TLS", "true").env("IKADA_S3_LISTEN", &doors[0]);
    cluster.launch_by(1, program);
    cluster.nodes[0].url = cluster.nodes[0].url.replace("http://", "https://");
    use_boto3(&cluster, &python, &format!("https://{}", doors[0])).await;
}
