//! The three commands of docs/guides/tls.md: a cluster that speaks TLS and asks for tokens (X2, X3, X19).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use ikada_api::Client;
use ikada_api::client::{AccessToken, ClientOptions, TrustedAuthority};
use ikada_api::v1::{NewTask, NewToken, OutcomeKind};
use ikada_node::tls::Papers;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cluster::Cluster;
use crate::follow::blocks;
use crate::fresh::{ikada, without_settings};
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

/// Starts three nodes as the guide does; those that meet in a database, by settings alone.
async fn start(mut cluster: Cluster) -> Cluster {
    for node in &mut cluster.nodes {
        node.url = node.url.replace("http://", "https://");
    }
    let by_page = !cluster.is_in_database();
    let token = cluster.node(1).data.join("join-token");
    let launch = |cluster: &mut Cluster, id: u64, token: Option<&Path>| match by_page {
        true => cluster.launch_command(id, page_command(cluster, id)),
        false => cluster.launch_by(id, secure(ikada(), token)),
    };
    launch(&mut cluster, 1, None);
    until("the join token is written", || async { token.exists().then_some(()) }).await;
    launch(&mut cluster, 2, Some(&token));
    launch(&mut cluster, 3, Some(&token));
    cluster
}

/// The page's command for a node, word for word but for addresses and files. The third is the second with the numbers of
/// both machines exchanged, as the page says.
fn page_command(cluster: &Cluster, id: u64) -> Command {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/tls.md");
    let page = read(&page).expect("the page");
    let lines: Vec<&str> =
        page.lines().filter(|line| line.starts_with("ikada server --tls ")).collect();
    let [first, second] = lines.as_slice() else {
        panic!("the page has other commands: {lines:?}")
    };
    let line = match id {
        1 => (*first).to_owned(),
        2 => (*second).to_owned(),
        _ => second
            .replace("10.0.0.2", "10.0.0.x")
            .replace("10.0.0.3", "10.0.0.2")
            .replace("10.0.0.x", "10.0.0.3")
            .replace("--node-id 2", "--node-id 3"),
    };
    let token = cluster.node(1).data.join("join-token");
    let mut command = ikada();
    for word in line.split_whitespace().skip(1) {
        let node = |port: &str| {
            let number = word.strip_prefix("10.0.0.")?.strip_suffix(port)?;
            number.parse().ok().map(|id| cluster.node(id))
        };
        match word {
            "data" => command.arg(&cluster.node(id).data),
            "join-token" => command.arg(&token),
            _ if node(":7400").is_some() => command.args(node(":7400").map(|node| &node.client)),
            _ if node(":7401").is_some() => command.args(node(":7401").map(|node| &node.peer)),
            _ => {
                assert!(!word.contains("10.0.0."), "{word}");
                command.arg(word)
            }
        };
    }
    command.arg("--until-stdin-closes");
    command
}

/// The page's block that begins so, word for word but for addresses.
fn page_script(cluster: &Cluster, begins: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/tls.md");
    let page = read(&page).expect("the page");
    let block = blocks(&page).into_iter().find(|block| block.text.starts_with(begins));
    let mut script = block.expect("the page has other commands").text.to_owned();
    for id in 1..=3 {
        script = script.replace(&format!("10.0.0.{id}:7400"), &cluster.node(id).client);
    }
    assert!(!script.contains("10.0.0."), "{script}");
    script
}

/// What a node counts.
fn figures(cluster: &Cluster, id: u64, token: &str) -> String {
    let node = cluster.node(id);
    let told = Command::new("curl")
        .args(["--silent", "--cacert"])
        .arg(node.data.join("tls/ca.pem"))
        .args(["--header", &format!("Authorization: Bearer {}", token.trim())])
        .arg(format!("{}/metrics", node.url))
        .output();
    String::from_utf8_lossy(&told.expect("curl").stdout).into_owned()
}

/// A client of one node.
fn client_of(cluster: &Cluster, id: u64, token: &str) -> Client {
    let pem = std::fs::read(cluster.node(id).data.join("tls/ca.pem")).expect("an authority");
    let options = ClientOptions {
        token: AccessToken::parse(token).ok(),
        authority: TrustedAuthority::from_pem(&pem).ok(),
        ..ClientOptions::default()
    };
    Client::with([&cluster.node(id).url], options).expect("url")
}

fn client(cluster: &Cluster, token: Option<&str>) -> Client {
    let pem = std::fs::read(cluster.node(1).data.join("tls/ca.pem")).expect("an authority");
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
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sent");
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

// X2: whoever has two files reaches the cluster from elsewhere by the guide's lines, without a setting of its own.
#[tokio::test]
async fn x_2_a_client_is_set_up_as_the_guide_says() {
    let cluster = start(Cluster::prepare(3)).await;
    let data = &cluster.node(1).data;
    let admin_file = data.join("admin-token");
    let admin = until("the first admin token is written", || async { read(&admin_file) }).await;
    for id in 1..=3 {
        let papers = cluster.node(id).data.join("tls/node.pem");
        until("the node has a certificate", || async { papers.exists().then_some(()) }).await;
        let root = client_of(&cluster, id, &admin);
        until("the token is known here", || async { root.whoami().await.ok() }).await;
    }
    let home = tempfile::tempdir().expect("a folder");
    for (from, to) in [("admin-token", "admin-token"), ("tls/ca.pem", "ca.pem")] {
        std::fs::copy(data.join(from), home.path().join(to)).expect("copied");
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_ikada")).parent().expect("a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = without_settings(Command::new("sh"));
    shell.args(["-euc", &page_script(&cluster, "ikada context set ")]);
    shell.current_dir(home.path()).env("HOME", home.path()).env("PATH", path);
    shell.env_remove("XDG_CONFIG_HOME");
    let ended = shell.output().expect("a shell");
    let (said, told) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{said}{told}");
    assert!(said.contains("first-admin"), "whoami tells who calls: {said}{told}");
    assert!(said.contains("\"answered_by\""), "curl is answered, too: {said}{told}");
    assert!(!said.contains(admin.trim()) && !told.contains(admin.trim()), "X6: a secret was told");
}

// X2: certificates are replaced while calls go on, and no call fails.
#[tokio::test]
async fn x_2_certificates_are_rotated_under_load_without_a_failed_call() {
    let cluster = start(Cluster::prepare(3)).await;
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

    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let loader = client(&cluster, Some(&admin));
    let load = tokio::spawn(async move {
        let mut done = 0;
        while !*stopped.borrow_and_update() {
            let task = NewTask { queue: Some("q".into()), ..NewTask::default() };
            loader.enqueue(vec![task]).await.expect("no call fails");
            done += 1;
        }
        done
    });
    let papers = |id| {
        let papers = Papers::load(&Papers::folder(&cluster.node(id).data)).expect("read");
        papers.expect("papers")
    };
    let authority = papers(1).authority().expect("read").expect("the first node keeps it");
    for id in 1..=3 {
        let host = cluster.node(id).client.rsplit_once(':').expect("a port").0.to_owned();
        papers(id).renew_by(&authority, &[host]).expect("renewed");
        until("the new certificate is in use", || async {
            cluster.log(id).contains("a new certificate is in use").then_some(())
        })
        .await;
    }
    // Whoever connects now is shown the new ones.
    let late = client(&cluster, Some(&admin));
    late.whoami().await.expect("known");
    stop.send(true).expect("the load goes on");
    assert!(load.await.expect("no call failed") > 0);
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

// X3: a node whose key is lost comes back under its id by a token for it, and by no other.
#[tokio::test]
async fn x_3_a_node_that_lost_its_certificate_joins_again() {
    let mut cluster = start(Cluster::prepare(3)).await;
    let admin_file = cluster.node(1).data.join("admin-token");
    let admin = until("the first admin token is written", || async { read(&admin_file) }).await;
    let root = client_of(&cluster, 1, &admin);
    let healthy = || async {
        let view = root.cluster().await.ok()?;
        (view.status == "healthy").then_some(())
    };
    until("the nodes are connected", healthy).await;
    cluster.kill(2);
    std::fs::remove_dir_all(cluster.node(2).data.join("tls")).expect("removed");
    let first = cluster.node(1).data.join("join-token");
    cluster.launch_by(2, secure(ikada(), Some(&first)));
    assert!(!cluster.ended(2).await.success(), "the id is another key's");
    assert!(cluster.log(2).contains("--node 2"), "{}", cluster.log(2));
    let create = |words: &[&str]| {
        let made = ikada()
            .args(["join-token", "create", "--output", "quiet", "--data"])
            .arg(&cluster.node(1).data)
            .args(words)
            .output()
            .expect("a token");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let file = first.with_extension(words.join(""));
        std::fs::write(&file, made.stdout).expect("written");
        file
    };
    let (any, own) = (create(&["--uses", "1"]), create(&["--node", "2"]));
    cluster.launch_by(2, secure(ikada(), Some(&any)));
    assert!(!cluster.ended(2).await.success(), "a newer token alone takes nobody's id");
    cluster.launch_by(2, secure(ikada(), Some(&own)));
    until("the node is back", healthy).await;
    // X15: who was refused and who was not, and what the operator did, is in the audit log.
    let log = cluster.node(1).data.join("audit/00000001.log");
    until("the lines are written", || async {
        let text = read(&log)?;
        let denied =
            text.contains("\"action\":\"GiveCertificate\",\"object\":\"2\",\"status\":403");
        (denied && text.contains("\"CreateJoinToken\"")).then_some(())
    })
    .await;
    let metrics = figures(&cluster, 1, &admin);
    assert!(metrics.contains("\nikada_joins_refused_total 2\n"), "{metrics}");
    assert!(metrics.contains("\nikada_tls_certificate_expiry_seconds 77"), "{metrics}");
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
