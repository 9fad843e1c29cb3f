//! Blocks of the guides on TLS and access that need a cluster with an authority: run as they
//! stand, but for addresses, folders and ids that are drawn.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cluster::Cluster;
use crate::follow::blocks;
use crate::fresh::{ikada, without_settings};
use crate::wait::until;

/// The page's block that begins so.
fn block(page: &str, begins: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides").join(page);
    let page = std::fs::read_to_string(page).expect("the page");
    let block = blocks(&page).into_iter().find(|block| block.text.starts_with(begins));
    block.expect("the page has other commands").text.to_owned()
}

/// A lone node with TLS, tokens and an authority, and the place beside its folder, where its owner stands.
struct Home {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

impl Home {
    async fn start() -> Home {
        let mut cluster = Cluster::prepare(1);
        cluster.nodes[0].url = cluster.nodes[0].url.replace("http://", "https://");
        let mut program = ikada();
        program.env("IKADA_TLS", "true");
        cluster.launch_by(1, program);
        let folder = tempfile::tempdir().expect("a folder");
        let data = cluster.node(1).data.clone();
        std::os::unix::fs::symlink(&data, folder.path().join("data")).expect("a link");
        let home = Home { cluster, folder };
        until("the first admin token", || async {
            data.join("admin-token").exists().then_some(())
        })
        .await;
        until("the node answers its owner", || async {
            let ended = home.shell("ikada auth whoami").output().expect("a shell");
            ended.status.success().then_some(())
        })
        .await;
        home
    }

    fn shell(&self, script: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_ikada")).parent().expect("a folder");
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
        let node = self.cluster.node(1);
        let mut shell = without_settings(Command::new("sh"));
        shell.args(["-euc", script]).current_dir(self.folder.path()).env("PATH", path);
        shell.env("HOME", self.folder.path()).env_remove("XDG_CONFIG_HOME");
        shell.env("IKADA_URL", &node.url).env("IKADA_CA_FILE", node.data.join("tls/ca.pem"));
        shell.env("IKADA_TOKEN_FILE", node.data.join("admin-token"));
        shell
    }

    /// Runs what must end well; gives what it printed.
    fn run(&self, script: &str) -> String {
        let ended = self.shell(script).output().expect("a shell");
        let complaint = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{script}{complaint}");
        String::from_utf8_lossy(&ended.stdout).into_owned()
    }
}

// X2: tokens for newcomers are made, listed and revoked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_2_join_tokens_are_made_and_revoked_as_the_guide_says() {
    let home = Home::start().await;
    let block = block("tls.md", "ikada join-token create ");
    let (before, revoke) = block.split_once("ikada join-token revoke ").expect("three commands");
    home.run(before);
    let made = std::fs::read_to_string(home.folder.path().join("join-token")).expect("a token");
    let listed = home.run("ikada join-token list --data data --output json");
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("a document");
    let ids: Vec<String> = ids_in(&listed);
    let id = ids.iter().find(|id| made.contains(id.as_str())).expect("the token is listed");
    let revoke = revoke.trim().replace("1f09c2a11b7e", id);
    assert!(revoke.ends_with(id.as_str()), "the page revokes another one: {revoke}");
    home.run(&format!("ikada join-token revoke {revoke}"));
    let left = home.run("ikada join-token list --data data --output json");
    assert!(!ids_in(&serde_json::from_str(&left).expect("a document")).contains(id), "{left}");
}

/// All ids in a document.
fn ids_in(document: &serde_json::Value) -> Vec<String> {
    match document {
        serde_json::Value::Array(items) => items.iter().flat_map(ids_in).collect(),
        serde_json::Value::Object(fields) => {
            let own = fields.get("id").and_then(|id| id.as_str()).map(str::to_owned);
            own.into_iter().chain(fields.values().flat_map(ids_in)).collect()
        }
        _ => Vec::new(),
    }
}

// X17: a caller's certificate is made, used, listed and revoked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_17_certificates_of_callers_come_and_go_as_the_guide_says() {
    let home = Home::start().await;
    let block = block("access.md", "ikada auth cert create ");
    let script = block.replace("https://10.0.0.1:7400", &home.cluster.node(1).url);
    assert_ne!(script, block, "the page names another address");
    let (before, revoke) = script.split_once("ikada auth cert revoke ").expect("four commands");
    let said = home.run(before);
    assert!(said.contains("ann"), "{said}");
    let papers = home.folder.path().join("ann");
    let all: Vec<PathBuf> =
        ["ca.pem", "ann.pem", "ann.key"].iter().map(|file| papers.join(file)).collect();
    assert!(all.iter().all(|file| file.exists()), "{all:?}");
    // As ann alone: the owner's token would be judged first.
    let as_ann = "unset IKADA_TOKEN_FILE IKADA_CA_FILE; export HOME=$PWD/ann; \
                  ikada --ca-file ann/ca.pem --cert-file ann/ann.pem --key-file ann/ann.key auth whoami";
    assert!(home.run(as_ann).contains("cert-ann"));
    home.run(&format!("ikada auth cert revoke {revoke}"));
    until("a revoked certificate lets nobody in", || async {
        let ended = home.shell(as_ann).output().expect("a shell");
        (!ended.status.success()).then_some(())
    })
    .await;
}

// X19: no password opens a cluster; whoever may start its nodes makes a token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_19_an_admin_token_is_made_anew_by_whoever_starts_a_node() {
    let mut home = Home::start().await;
    let again = async |home: &mut Home, auth: &str| {
        home.cluster.signal(1, "TERM");
        assert!(home.cluster.ended(1).await.success());
        let mut program = ikada();
        program.env("IKADA_TLS", "true").env("IKADA_AUTH", auth);
        home.cluster.launch_by(1, program);
    };
    std::fs::remove_file(home.folder.path().join("data/admin-token")).expect("it was there");
    again(&mut home, "false").await;
    // As on the page, but for the address.
    let runbooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runbooks.md");
    let runbooks = std::fs::read_to_string(runbooks).expect("the page");
    let line = |begins: &str| {
        let found = runbooks.lines().find(|line| line.starts_with(begins));
        found.expect("the page has other commands").to_owned()
    };
    let create = line("ikada auth token create --name rescue ");
    until("a token is made without one", || async {
        let mut shell = home.shell(&create);
        shell.env_remove("IKADA_TOKEN_FILE");
        shell.output().expect("a shell").status.success().then_some(())
    })
    .await;
    let file = home.folder.path().join("rescue.token");
    assert_eq!(file.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
    again(&mut home, "true").await;
    let list = line("IKADA_TOKEN_FILE=rescue.token ");
    let listed = until("the new token is good", || async {
        let ended = home.shell(&list).output().expect("a shell");
        ended.status.success().then(|| String::from_utf8_lossy(&ended.stdout).into_owned())
    })
    .await;
    assert!(listed.contains("first-admin"), "{listed}");
    // Until then tokens are revoked as older nodes do it.
    let status = "IKADA_TOKEN_FILE=rescue.token ikada cluster status --output json";
    until("the level is raised", || async {
        let ended = home.shell(status).output().expect("a shell");
        let view: serde_json::Value = serde_json::from_slice(&ended.stdout).ok()?;
        (view["level"].as_u64() > Some(0)).then_some(())
    })
    .await;
    // X17: it is the only one whose secret is known and that lasts; the state knows of the first, until that is revoked.
    let revoke = "export IKADA_TOKEN_FILE=rescue.token; \
        first=$(ikada auth token list | grep first-admin | cut -d' ' -f1); ikada auth token revoke $first; \
        ikada auth token create --name brief --role admin --out brief.token; \
        ! ikada auth token revoke $(cut -d_ -f2 rescue.token) 2> said; cat said";
    let said = home.run(revoke);
    assert!(said.contains("lasts as long"), "{said}");
}

// X12: a worker's token stands for all of its tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_12_a_worker_keeps_its_token_from_the_commands_that_it_runs() {
    let home = Home::start().await;
    if !home.folder.path().metadata().is_ok_and(|about| about.uid() == 0) {
        eprintln!("SKIPPED: commands have users of their own where the worker is root");
        return;
    }
    home.run("ikada auth token create --name pool --role worker --out worker.token");
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("rights");
    };
    set(home.folder.path(), 0o755);
    let work = "unset IKADA_TOKEN_FILE; exec ikada worker --token-file worker.token --work-dir ./work \
        --isolation best --until-stdin-closes";
    let ended = |more: &str| {
        let ended = home.shell(&format!("{work} {more}")).output().expect("a shell");
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    let token = home.folder.path().join("worker.token");
    set(&token, 0o644);
    let (code, said) = ended("--allow-command true");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("worker.token") && said.contains("chmod 600"), "{said}");
    // Without commands there is nobody to read it, and with the rights of the file nobody can.
    assert_eq!(ended("").0, Some(0));
    set(&token, 0o600);
    assert_eq!(ended("--allow-command true").0, Some(0));
}
