//! Secrets of every kind, sent through the flows that take them, are told nowhere (X6): not in logs of nodes and workers, not
//! in answers, pages, metrics, listings, events and the audit log, not on command lines, and on disks only where they belong.
//!
//! `canaries.rs` does the same with twenty tokens; here are the other kinds, and the other ways.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::fresh::{ikada, ports, refusal};
use crate::server::Server;
use crate::told::Secrets;
use crate::wait::until;

/// The part of a token that is secret.
pub fn secret_of(token: &str) -> &str {
    token.trim().rsplit_once('_').expect("a secret").1
}

/// A line of a key's file that is secret.
fn line_of(key: &Path) -> String {
    let text = fs::read_to_string(key).expect("a key");
    let line = text.lines().find(|line| !line.starts_with("--") && line.len() > 40);
    line.expect("a line of the key").to_owned()
}

/// The command line as the holder of a token in a file.
pub fn with_file(cluster: &Cluster, file: &Path, words: &[&str]) -> Command {
    let mut command = ikada();
    command.args(words).env("IKADA_URL", &cluster.node(1).url).env("IKADA_TOKEN_FILE", file);
    command
}

/// The command line as the holder of a token in the environment.
fn with_token(cluster: &Cluster, token: &str, words: &[&str]) -> Command {
    let mut command = ikada();
    command.args(words).env("IKADA_URL", &cluster.node(1).url).env("IKADA_TOKEN", token);
    command
}

/// The first admin token, once it is known.
pub async fn first_token(cluster: &Cluster) -> String {
    let file = cluster.node(1).data.join("admin-token");
    until("the first token works", || async {
        let works = with_file(cluster, &file, &["auth", "whoami"]).output().expect("it runs");
        works.status.success().then(|| fs::read_to_string(&file).expect("a token"))
    })
    .await
}

/// A token of this role, made by the command line.
pub fn make(secrets: &mut Secrets, cluster: &Cluster, role: &str) -> String {
    let admin = cluster.node(1).data.join("admin-token");
    let words = ["auth", "token", "create", "--name", role, "--role", role, "-o", "quiet"];
    let token = secrets.run(&mut with_file(cluster, &admin, &words), true);
    secrets.add(&format!("a token of role {role}"), secret_of(&token));
    token
}

/// Tokens in files, in the environment, in contexts, used well and badly.
fn use_tokens(secrets: &mut Secrets, cluster: &Cluster, folder: &TempDir, node: &str) {
    let submitter = make(secrets, cluster, "submitter");
    let enqueue = ["task", "enqueue", "--queue", "q", "--payload", "{\"n\": 1}"];
    secrets.run(&mut with_token(cluster, &submitter, &enqueue), false);
    let operator = make(secrets, cluster, "operator");
    let file = folder.path().join("operator");
    fs::write(&file, &operator).expect("a file");
    fs::create_dir_all(folder.path().join("ikada")).expect("a folder");
    let context = format!(
        "current = \"prod\"\n[contexts.prod]\nurl = [\"{}\"]\ntoken-file = \"{}\"\n",
        cluster.node(1).url,
        file.display()
    );
    fs::write(folder.path().join("ikada/contexts.toml"), context).expect("contexts");
    for words in
        [["context", "list"], ["queue", "list"], ["auth", "whoami"], ["doctor", "--output=json"]]
    {
        secrets.run(ikada().args(words).env("XDG_CONFIG_HOME", folder.path()), false);
    }
    let viewer = make(secrets, cluster, "viewer");
    secrets.run(&mut with_token(cluster, &viewer, &enqueue), false);
    // Right id and wrong secret; no token at all; in the wrong places.
    let forged = "0123456789abcdef".repeat(4);
    let id = viewer.rsplit_once('_').expect("an id").0;
    secrets.add("a forged token", &forged);
    secrets.run(&mut with_token(cluster, &format!("{id}_{forged}"), &enqueue), false);
    secrets.add("what is no token", "correct-horse-battery-staple");
    secrets.run(&mut with_token(cluster, "correct-horse-battery-staple", &enqueue), false);
    secrets.add("a password for Basic", "YW5uOmNvcnJlY3QtaG9yc2U");
    secrets.ask(node, "/v1/tasks", "authorization: Basic YW5uOmNvcnJlY3QtaG9yc2U=\r\n");
    secrets.add("a token in a query", "querytokenquerytokenquery");
    secrets.ask(node, "/v1/tasks?access_token=querytokenquerytokenquery", "");
    secrets.add("a token in a cookie", "cookietokencookietoken");
    secrets.ask(node, "/v1/tasks", "cookie: token=cookietokencookietoken\r\n");
    let words = ["auth", "token", "revoke", id.trim_start_matches("ikada_")];
    let admin = cluster.node(1).data.join("admin-token");
    secrets.run(&mut with_file(cluster, &admin, &words), false);
    secrets.run(&mut with_token(cluster, &viewer, &["auth", "whoami"]), false);
}

/// Keys of object stores: made here, used for a backup, and used wrongly.
fn use_store(secrets: &mut Secrets, cluster: &Cluster, door: &str) {
    let admin = cluster.node(1).data.join("admin-token");
    let words = ["auth", "s3-key", "create", "--name", "ci", "--role", "submitter", "-o", "quiet"];
    let made = secrets.run(&mut with_file(cluster, &admin, &words), true);
    let (key, secret) = made.split_once('\n').expect("two lines");
    secrets.add_hex("a secret key of S3", secret);
    let wrong = "wrong/secret/of/an/object/store/0123456789";
    secrets.add("a wrong secret key", wrong);
    secrets.add("a session token", "session-token-of-an-object-store");
    for (number, secret) in [secret, wrong].iter().enumerate() {
        let place = format!("s3://vault/{number}.ikada");
        let mut backup = with_file(cluster, &admin, &["cluster", "backup", &place]);
        backup.env("AWS_ACCESS_KEY_ID", key).env("AWS_SECRET_ACCESS_KEY", secret);
        backup.env("AWS_ENDPOINT_URL", format!("http://{door}")).env("AWS_REGION", "here");
        if number == 1 {
            backup.env("AWS_SESSION_TOKEN", "session-token-of-an-object-store");
        }
        secrets.run(&mut backup, false);
    }
    let (key, token) =
        ("YXp1cmUta2V5LW9mLWEtdGVzdC0wMTIzNDU2Nzg5", "sasSignatureOfATest0123456789");
    secrets.add("a key of Azure's store", key);
    secrets.add("a signature of Azure's store", token);
    let sas = format!("sv=2021-08-06&sig={token}");
    let nobody = format!("http://{}", ports(1)[0]);
    for (name, value, endpoint) in [
        ("AZURE_STORAGE_KEY", key, format!("http://{door}/acc")),
        ("AZURE_STORAGE_SAS_TOKEN", sas.as_str(), nobody),
    ] {
        let mut backup = with_file(cluster, &admin, &["cluster", "backup", "az://vault/b.ikada"]);
        backup.env("AZURE_STORAGE_ACCOUNT", "acc").env("AZURE_STORAGE_ENDPOINT", endpoint);
        secrets.run(backup.env(name, value), false);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_6_secrets_of_callers_are_told_nowhere() {
    let (mut secrets, mut cluster) = (Secrets::default(), Cluster::prepare(1));
    let (folder, door) = (tempfile::tempdir().expect("a folder"), ports(1).remove(0));
    let mut program = ikada();
    program.env("IKADA_AUTH", "true").env("IKADA_LOG", "debug").env("IKADA_S3_LISTEN", &door);
    cluster.launch_by(1, program);
    let file = cluster.node(1).data.join("admin-token");
    let admin = first_token(&cluster).await;
    secrets.add("the first admin token", secret_of(&admin));
    let node = cluster.node(1).url.trim_start_matches("http://").to_owned();
    let worker = make(&mut secrets, &cluster, "worker");
    let (worker_file, work) =
        (folder.path().join("worker"), tempfile::tempdir().expect("a folder"));
    fs::write(&worker_file, &worker).expect("a file");
    let log = fs::File::create(work.path().join("worker.log")).expect("a log");
    let mut command =
        with_file(&cluster, &worker_file, &["worker", "--queue", "q", "--until-stdin-closes"]);
    command.arg("--work-dir").arg(work.path()).env("IKADA_LOG", "debug");
    let mut worker =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn().expect("starts");
    use_tokens(&mut secrets, &cluster, &folder, &node);
    use_store(&mut secrets, &cluster, &door);
    let listings = [
        ["auth", "token", "list"],
        ["auth", "s3-key", "list"],
        ["cluster", "events", "-o=json"],
        ["task", "list", "-o=json"],
        ["worker-pool", "list", "-o=json"],
        ["cluster", "status", "-o=json"],
    ];
    for words in listings {
        secrets.run(&mut with_file(&cluster, &file, &words), false);
    }
    secrets.look_at_routes(&node, Some(admin.trim()));
    secrets.look_at_routes(&node, None);
    secrets.look_at_processes();
    worker.kill().expect("killed");
    worker.wait().expect("ended");
    cluster.signal(1, "TERM");
    assert!(cluster.ended(1).await.success());
    secrets.look_at_files(cluster.node(1).data.parent().expect("a folder"));
    secrets.look_at_files(work.path());
    secrets.assert_untold(15);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_6_secrets_of_nodes_are_told_nowhere() {
    let (mut secrets, mut cluster) = (Secrets::default(), Cluster::prepare(2));
    for node in &mut cluster.nodes {
        node.url = node.url.replace("http://", "https://");
    }
    let secure = |token: Option<&Path>| {
        let mut program = ikada();
        program.env("IKADA_TLS", "true").env("IKADA_LOG", "debug");
        token.map(|file| program.env("IKADA_JOIN_TOKEN_FILE", file));
        program
    };
    cluster.launch_by(1, secure(None));
    let (data, folder) = (cluster.node(1).data.clone(), tempfile::tempdir().expect("a folder"));
    let token = data.join("join-token");
    let first = until("the join token", || async { fs::read_to_string(&token).ok() }).await;
    secrets.add("the first join token", secret_of(&first));
    // The node's own certificate comes after the token; with it the authority can be asked.
    let node = data.join("tls/node.pem");
    until("the node's certificate", || async { node.exists().then_some(()) }).await;
    let at = data.to_str().expect("a path");
    let more =
        secrets.run(ikada().args(["join-token", "create", "--data", at, "-o", "quiet"]), true);
    secrets.add("another join token", secret_of(&more));
    let forged = folder.path().join("forged");
    let secret = "fedcba9876543210".repeat(4);
    secrets.add("a forged join token", &secret);
    fs::write(&forged, format!("{}_{secret}", first.trim().rsplit_once('_').expect("a token").0))
        .expect("written");
    cluster.launch_by(2, secure(Some(&forged)));
    assert!(!cluster.ended(2).await.success());
    cluster.launch_by(2, secure(Some(&token)));
    let admin = data.join("admin-token");
    let (authority, out) = (data.join("tls/ca.pem"), folder.path().join("out"));
    let as_admin = |words: &[&str]| {
        let mut command = with_file(&cluster, &admin, words);
        command.env("IKADA_CA_FILE", &authority);
        command
    };
    until("the cluster answers", || async {
        let asked = as_admin(&["auth", "whoami"]).output().expect("it runs");
        asked.status.success().then_some(())
    })
    .await;
    secrets.add("the first admin token", secret_of(&fs::read_to_string(&admin).expect("a token")));
    let make =
        ["auth", "cert", "create", "--data", at, "--name", "ann", "--role", "viewer", "--out"];
    secrets.run(as_admin(&make).arg(&out), false);
    for (kind, key) in [
        ("authority", data.join("tls/ca.key")),
        ("first node", data.join("tls/node.key")),
        ("second node", cluster.node(2).data.join("tls/node.key")),
        ("client", out.join("ann.key")),
    ] {
        secrets.add(&format!("the key of the {kind}"), &line_of(&key));
    }
    let mut ann = ikada();
    ann.args(["queue", "list"])
        .env("IKADA_URL", &cluster.node(1).url)
        .env("IKADA_CA_FILE", &authority);
    ann.env("IKADA_CERT_FILE", out.join("ann.pem")).env("IKADA_KEY_FILE", out.join("ann.key"));
    secrets.run(&mut ann, false);
    for words in
        [["join-token", "list"], ["auth", "cert"], ["auth", "token"], ["cluster", "events"]]
    {
        let more: &[&str] = match words {
            ["join-token", _] => &["--data", at],
            ["auth", _] => &["list"],
            _ => &["-o=json"],
        };
        secrets.run(as_admin(&words).args(more), false);
    }
    secrets.look_at_processes();
    for id in [2, 1] {
        cluster.signal(id, "TERM");
        cluster.ended(id).await;
    }
    secrets.look_at_files(data.parent().expect("a folder"));
    secrets.assert_untold(8);
}

#[test]
fn x_6_passwords_of_a_database_are_told_nowhere() {
    let mut secrets = Secrets::default();
    let folder = tempfile::tempdir().expect("a folder");
    let listen = ports(2);
    let server = || {
        let mut command = ikada();
        command.args(["server", "--listen", &listen[0], "--peer-listen", &listen[1], "--data"]);
        command
            .arg(folder.path().join("data"))
            .current_dir(folder.path())
            .env("IKADA_LOG", "debug");
        command
    };
    let password = |number: usize| format!("canary-password-{number}");
    let nobody = "127.0.0.1:1/ikada";
    let urls = [
        format!("postgres://ikada:{}@{nobody}?nonsense=1", password(1)),
        format!("postgres://ikada:{}@one@{nobody}", password(2)),
        format!("mysql://ikada:{}@{nobody}", password(3)),
        format!("postgres://ikada:{}@127.0.0.1:port/ikada", password(4)),
        format!("postgres://ikada:{}@db.example/ikada?sslmode=prefer", password(5)),
    ];
    for (number, url) in (1..).zip(&urls) {
        secrets.add("a password in a bad URL", &password(number));
        let said = refusal(server().env("IKADA_LOG_URL", url));
        secrets.tell("ikada server", said.as_bytes());
    }
    let lines = [
        format!("log = \"postgres://ikada:{}@{nobody}\" and more", password(6)),
        format!("log = \"postgres://ikada:{}@{nobody}", password(7)),
        format!("shards = \"postgres://ikada:{}@{nobody}\"", password(8)),
        format!("logg = \"postgres://ikada:{}@{nobody}\"", password(9)),
    ];
    for (number, line) in (6..).zip(&lines) {
        secrets.add("a password in bad settings", &password(number));
        fs::write(folder.path().join("ikada.toml"), line).expect("settings");
        let said = refusal(&mut server());
        assert!(said.contains("ikada.toml") && said.contains("line 1"), "{said}");
        secrets.tell("ikada server", said.as_bytes());
    }
    fs::remove_file(folder.path().join("ikada.toml")).expect("removed");
    secrets.assert_untold(9);
}

// X6, X20: what is typed shows among the processes.
#[test]
fn x_6_a_password_in_a_flag_is_refused() {
    let mut secrets = Secrets::default();
    let folder = tempfile::tempdir().expect("a folder");
    let log = ["--log", "postgres://ikada:canary-typed-number-1@127.0.0.1:1/ikada"];
    let from = ["--from-log", "postgres://ikada@127.0.0.1:1/ikada?password=canary-typed-number-2"];
    secrets.add("a typed password", "canary-typed-number-1");
    secrets.add("a typed password", "canary-typed-number-2");
    let commands: [(&[&str], &[&str; 2]); 5] = [
        (&["server", "--data", "new"], &log),
        (&["cluster", "restore", "backup", "--data", "new"], &log),
        (&["cluster", "recover", "--data", "old", "--to", "new"], &from),
        (&["bench", "queue"], &log),
        (&["bench", "failover"], &log),
    ];
    for (words, flag) in commands {
        let said = refusal(ikada().args(words).args(flag).current_dir(folder.path()));
        assert!(said.contains("PGPASSWORD") && said.contains(flag[0]), "{words:?}: {said}");
        secrets.tell("the command line", said.as_bytes());
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing was made");
    secrets.assert_untold(2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_6_a_good_password_of_a_database_is_told_nowhere() {
    let Some(database) = Server::start() else { return };
    let (mut secrets, mut cluster) = (Secrets::default(), Cluster::prepare(2));
    let url = database.url();
    for (id, in_url) in [(1, true), (2, false)] {
        let password = format!("canary-password-of-node-{id}");
        secrets.add("a password of a database", &password);
        let mut program = ikada();
        program.env("IKADA_LOG", "debug");
        match in_url {
            true => {
                program.env("IKADA_LOG_URL", url.replace("ikada@", &format!("ikada:{password}@")))
            }
            false => program.env("IKADA_LOG_URL", &url).env("PGPASSWORD", &password),
        };
        cluster.launch_by(id, program);
    }
    cluster.settle().await;
    let node = cluster.node(1).url.trim_start_matches("http://").to_owned();
    secrets.look_at_routes(&node, None);
    secrets.look_at_processes();
    for id in [2, 1] {
        cluster.signal(id, "TERM");
        cluster.ended(id).await;
    }
    secrets.look_at_files(cluster.node(1).data.parent().expect("a folder"));
    secrets.assert_untold(2);
}
