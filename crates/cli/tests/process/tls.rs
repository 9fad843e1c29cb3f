//! The three commands of docs/guides/tls.md: a cluster that speaks TLS and asks for tokens (X2, X3, X19).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use ikada_api::Client;
use ikada_api::client::{AccessToken, ClientOptions, TrustedAuthority};
use ikada_api::v1::{NewTask, NewToken, OutcomeKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cluster::Cluster;
use crate::fresh::ikada;
use crate::wait::until;

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

fn secure(mut program: Command, join_token: Option<&Path>) -> Command {
    program.env("IKADA_TLS", "true");
    if let Some(file) = join_token {
        program.env("IKADA_JOIN_TOKEN_FILE", file);
    }
    program
}

/// Starts three nodes as the guide does.
async fn start(mut cluster: Cluster) -> Cluster {
    for node in &mut cluster.nodes {
        node.url = node.url.replace("http://", "https://");
    }
    cluster.launch_by(1, secure(ikada(), None));
    let token = cluster.node(1).data.join("join-token");
    until("the join token is written", || async { token.exists().then_some(()) }).await;
    for id in [2, 3] {
        cluster.launch_by(id, secure(ikada(), Some(&token)));
    }
    cluster
}

fn client(cluster: &Cluster, token: Option<&str>) -> Client {
    let pem = std::fs::read(cluster.node(3).data.join("tls/ca.pem")).expect("an authority");
    let options = ClientOptions {
        token: token.map(|token| AccessToken::parse(token).expect("a token")),
        authority: Some(TrustedAuthority::from_pem(&pem).expect("an authority")),
        ..ClientOptions::default()
    };
    Client::with(cluster.urls(), options).expect("urls")
}

fn run(cluster: &Cluster, token_file: &Path, words: &[&str]) -> Output {
    let mut command = ikada();
    command
        .args(words)
        .env("IKADA_URL", cluster.urls().join(","))
        .env("IKADA_CA_FILE", cluster.node(2).data.join("tls/ca.pem"))
        .env("IKADA_TOKEN_FILE", token_file);
    command.output().expect("the command runs")
}

#[tokio::test]
async fn x_2_three_commands_make_a_cluster_with_tls() {
    let mut cluster = start(Cluster::prepare(3)).await;
    let admin_file = cluster.node(1).data.join("admin-token");
    let admin = until("the first admin token is written", || async { read(&admin_file) }).await;
    let root = client(&cluster, Some(&admin));
    let whoami = until("the token is known", || async { root.whoami().await.ok() }).await;
    assert_eq!((whoami.name.as_str(), whoami.role.as_str()), ("first-admin", "admin"));

    // X19, X6: secrets are for their owner's eyes, and are made once.
    for file in ["admin-token", "join-token", "tls/ca.key", "tls/node.key"] {
        assert_eq!(mode(&cluster.node(1).data.join(file)), 0o600, "{file}");
    }
    for id in [2, 3] {
        let data = &cluster.node(id).data;
        assert!(!data.join("admin-token").exists() && !data.join("tls/ca.key").exists());
    }

    // The command line works with files alone.
    let queued = run(&cluster, &admin_file, &["task", "enqueue", "--queue", "q", "--payload", "1"]);
    assert!(queued.status.success(), "{}", String::from_utf8_lossy(&queued.stderr));

    // Clients without TLS, without the authority, and without a token get nowhere.
    let address = cluster.node(1).url.replace("https://", "");
    let mut plain = TcpStream::connect(&address).await.expect("a connection");
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("sent");
    let mut heard = Vec::new();
    let _ = plain.read_to_end(&mut heard).await;
    assert!(!heard.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&heard));
    let stranger = client(&cluster, None).whoami().await.expect_err("no token");
    assert_eq!(stranger.code(), Some("unauthenticated"));

    // X17: a token that any node makes counts everywhere, and counts nowhere once it is revoked.
    let wanted = NewToken { name: "ann".into(), role: "submitter".into(), ..NewToken::default() };
    let made = root.create_token(&wanted).await.expect("a token");
    for url in cluster.urls() {
        let pem = std::fs::read(cluster.node(1).data.join("tls/ca.pem")).expect("an authority");
        let options = ClientOptions {
            token: AccessToken::parse(&made.token).ok(),
            authority: TrustedAuthority::from_pem(&pem).ok(),
            ..ClientOptions::default()
        };
        let ann = Client::with([&url], options).expect("url");
        until("the token is known here", || async { ann.whoami().await.ok() }).await;
        let task = NewTask { queue: Some("q".into()), ..NewTask::default() };
        let made = ann.enqueue(vec![task]).await.expect("enqueued");
        assert_eq!(made.tasks[0].outcome, OutcomeKind::Created);
    }
    root.revoke_token(&made.id).await.expect("revoked");
    let ann = client(&cluster, Some(&made.token));
    until("the revocation counts", || async { ann.whoami().await.is_err().then_some(()) }).await;

    // A node comes back with the certificate it has; the join token is used up and needed no more.
    cluster.kill(2);
    cluster.launch_by(2, secure(ikada(), None));
    until("the node is back", || async {
        let view = root.cluster().await.ok()?;
        (view.status == "healthy").then_some(())
    })
    .await;
    cluster.nodes.iter().for_each(|node| {
        let log = cluster.log(node.id);
        let secrets = [admin.trim(), made.token.as_str()];
        assert!(secrets.iter().all(|secret| !log.contains(secret)), "X6: a secret is in a log");
    });
}

// X2, where nobody names a peer: who signs certificates is found in the database, and the cluster is the one that they name.
#[tokio::test]
async fn x_2_nodes_that_meet_in_a_database_get_their_certificates_too() {
    let Some(cluster) = Cluster::prepare_in_postgres(2) else { return };
    let cluster = start(cluster).await;
    let admin_file = cluster.node(1).data.join("admin-token");
    let admin = until("the first admin token is written", || async { read(&admin_file) }).await;
    until("all nodes have a certificate", || async {
        (2..=3).all(|id| cluster.node(id).data.join("tls/node.pem").exists()).then_some(())
    })
    .await;
    let root = client(&cluster, Some(&admin));
    until("the nodes are connected", || async {
        let view = root.cluster().await.ok()?;
        (view.status == "healthy").then_some(())
    })
    .await;
    let queued = run(&cluster, &admin_file, &["task", "enqueue", "--queue", "q", "--payload", "1"]);
    assert!(queued.status.success(), "{}", String::from_utf8_lossy(&queued.stderr));
}

// X3
#[tokio::test]
async fn x_3_a_wrong_join_token_ends_the_newcomer() {
    let mut cluster = Cluster::prepare(2);
    cluster.launch_by(1, secure(ikada(), None));
    let file = cluster.node(1).data.join("join-token");
    let token = until("the join token is written", || async { read(&file) }).await;
    let forged = file.with_extension("forged");
    let (front, _) = token.trim().rsplit_once('_').expect("a secret");
    std::fs::write(&forged, format!("{front}_{}", "0".repeat(64))).expect("written");
    cluster.launch_by(2, secure(ikada(), Some(&forged)));
    assert!(!cluster.ended(2).await.success());
    assert!(cluster.log(2).contains("refuses the join token"), "{}", cluster.log(2));
    // Another authority than the token names is not believed, whatever it offers.
    let digest = token.split('_').nth(1).expect("a digest");
    let other = token.replace(digest, &"0".repeat(64));
    std::fs::write(&forged, other).expect("written");
    cluster.launch_by(2, secure(ikada(), Some(&forged)));
    until("the newcomer waits", || async {
        cluster.log(2).contains("waiting for the node that gives certificates").then_some(())
    })
    .await;
    assert!(!cluster.node(2).data.join("tls/node.pem").exists());
}
