//! Secrets sent through every flow are found nowhere afterwards (X6), and the audit log of a real server holds (X15).

use std::fs;
use std::path::Path;
use std::process::Command;

use ikada_api::Client;
use ikada_api::client::{AccessToken, ClientOptions};
use ikada_api::v1::{ClaimRequest, NewTask, NewToken, Number};

use crate::cluster::Cluster;
use crate::fresh::ikada;
use crate::wait::until;

fn client(cluster: &Cluster, token: &str) -> Client {
    let token = AccessToken::parse(token).ok();
    Client::with(cluster.urls(), ClientOptions { token, ..ClientOptions::default() }).expect("urls")
}

/// A secret as it could lie on a disk: its text, and the bytes that the text stands for.
fn shapes(secret: &str) -> Vec<Vec<u8>> {
    let byte = |place: usize| u8::from_str_radix(secret.get(place..place + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..secret.len()).step_by(2).map(byte).collect();
    let bytes = bytes.expect("secrets are written as hexadecimal digits");
    vec![secret.as_bytes().to_vec(), bytes]
}

/// The files below a folder that hold any of the secrets.
fn hits(folder: &Path, secrets: &[Vec<u8>], found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            hits(&path, secrets, found);
            continue;
        }
        let bytes = fs::read(&path).unwrap_or_default();
        let holds = |secret: &Vec<u8>| bytes.windows(secret.len()).any(|window| window == secret);
        if secrets.iter().any(holds) {
            found.push(path.display().to_string());
        }
    }
}

fn command_lines() -> String {
    let mut lines = String::new();
    for entry in fs::read_dir("/proc").expect("processes").flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        lines.push_str(&String::from_utf8_lossy(&line));
    }
    lines
}

#[tokio::test]
async fn x_6_secrets_are_found_nowhere() {
    let mut cluster = Cluster::prepare(1);
    let guarded = |mut program: Command| {
        program.env("IKADA_AUTH", "true").env("IKADA_LOG", "debug");
        program
    };
    cluster.launch_by(1, guarded(ikada()));
    let file = cluster.node(1).data.join("admin-token");
    let admin = until("the first token", || async { fs::read_to_string(&file).ok() }).await;
    let root = client(&cluster, &admin);
    until("the token is known", || async { root.whoami().await.ok() }).await;

    let mut secrets = vec![admin.trim().rsplit_once('_').expect("a secret").1.to_owned()];
    let mut told = String::new();
    for (number, role) in
        ["viewer", "worker", "submitter", "operator"].iter().cycle().take(20).enumerate()
    {
        let wanted = NewToken {
            name: format!("canary-{number}"),
            role: (*role).to_owned(),
            ..NewToken::default()
        };
        let made = root.create_token(&wanted).await.expect("a token");
        let secret = made.token.rsplit_once('_').expect("a secret").1.to_owned();
        // Used well, used beyond its role, used under another id, used in the wrong places.
        let canary = client(&cluster, &made.token);
        told += &format!("{:?}", canary.whoami().await);
        told += &format!("{:?}", canary.enqueue(vec![NewTask::default()]).await);
        told += &format!("{:?}", canary.purge_queue("default", false).await.map(|_| ()));
        let claim = ClaimRequest {
            holds: Vec::new(),
            labels: Default::default(),
            worker: "w".into(),
            session: Number(1),
            queues: vec!["default".into()],
            count_max: 1,
            wait_ms: 0,
        };
        told += &format!("{:?}", canary.claim(&claim).await.map(|_| ()));
        let forged = client(&cluster, &format!("ikada_{number}_{secret}"));
        told += &format!("{:?}", forged.whoami().await);
        if number % 2 == 0 {
            root.revoke_token(&made.id).await.expect("revoked");
        }
        secrets.push(secret);
    }
    told += &format!("{:?}", root.tokens().await.expect("a list"));
    let metrics = ikada()
        .args(["auth", "token", "list", "--output", "json"])
        .env("IKADA_URL", cluster.urls().join(","))
        .env("IKADA_TOKEN_FILE", &file)
        .output()
        .expect("a list");
    told += &String::from_utf8_lossy(&metrics.stdout);
    told += &String::from_utf8_lossy(&metrics.stderr);
    told += &command_lines();
    for secret in &secrets {
        assert!(!told.contains(secret.as_str()), "a secret was told");
    }

    cluster.signal(1, "TERM");
    assert!(cluster.ended(1).await.success());
    fs::remove_file(&file).expect("the one place where it belongs");
    let mut found = Vec::new();
    let folder = cluster.node(1).data.parent().expect("a folder").to_owned();
    let shapes: Vec<Vec<u8>> = secrets.iter().flat_map(|secret| shapes(secret)).collect();
    hits(&folder, &shapes, &mut found);
    assert_eq!(found, Vec::<String>::new(), "secrets on disk");

    // X15: the log is whole, and a changed byte is found.
    let data = cluster.node(1).data.clone();
    let verify = || ikada().args(["audit", "verify", "--data"]).arg(&data).output().expect("runs");
    assert!(verify().status.success());
    let log = data.join("audit/00000001.log");
    let mut bytes = fs::read(&log).expect("a log");
    let place = bytes.len() / 2;
    bytes[place] ^= 1;
    fs::write(&log, bytes).expect("written");
    assert!(!verify().status.success());
}
