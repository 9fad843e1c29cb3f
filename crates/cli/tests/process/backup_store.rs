//! Backups in an object store: the S3 door of another cluster, reached by ways that break.

use std::path::Path;
use std::process::{Command, Output};

use crate::backup::{Lone, bytes_of, get, put, run, run_refused};
use crate::cluster::Cluster;
use crate::fresh::{ikada, ports};
use crate::relay::{Cut, Relay};
use crate::wait::until;
use crate::work::{check_all_there, write_all};

/// A cluster of one node with an S3 door, and a key for it.
pub struct Storehouse {
    pub cluster: Cluster,
    pub door: String,
    key: String,
    secret: String,
}

impl Storehouse {
    pub async fn start(tls: bool) -> Storehouse {
        let mut cluster = Cluster::prepare(1);
        let door = ports(1).remove(0);
        let mut program = ikada();
        program.env("IKADA_AUTH", "true").env("IKADA_S3_LISTEN", &door);
        if tls {
            program.env("IKADA_TLS", "true");
            cluster.nodes[0].url = cluster.nodes[0].url.replace("http://", "https://");
        }
        cluster.launch_by(1, program);
        let made = until("a key is made", || async {
            let words = ["s3-key", "create", "--name", "ci", "--role", "submitter", "-o", "quiet"];
            let made = as_admin(&cluster, "auth", &words);
            made.status.success().then(|| String::from_utf8(made.stdout).expect("text"))
        })
        .await;
        let (key, secret) = made.trim().split_once('\n').expect("two lines");
        Storehouse { cluster, door, key: key.to_owned(), secret: secret.to_owned() }
    }

    /// A command that knows the way and the key.
    pub fn knows(&self, mut command: Command, endpoint: &str) -> Command {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AWS_") {
                command.env_remove(&name);
            }
        }
        command.env("AWS_ACCESS_KEY_ID", &self.key).env("AWS_SECRET_ACCESS_KEY", &self.secret);
        command.env("AWS_ENDPOINT_URL", endpoint);
        command
    }

    /// What a bucket holds, by name.
    pub fn holds(&self, bucket: &str) -> Vec<String> {
        let listed = as_admin(&self.cluster, "object", &["list", bucket, "-o", "quiet"]);
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect()
    }
}

/// Runs a command as the first administrator.
pub fn as_admin(cluster: &Cluster, noun: &str, words: &[&str]) -> Output {
    let mut command = ikada();
    with_admin(&mut command, cluster).arg(noun).args(words).output().expect("it runs")
}

fn with_admin<'a>(command: &'a mut Command, cluster: &Cluster) -> &'a mut Command {
    let data = &cluster.node(1).data;
    command.env("IKADA_URL", &cluster.node(1).url);
    command.env("IKADA_TOKEN_FILE", data.join("admin-token"));
    if data.join("tls/ca.pem").exists() {
        command.env("IKADA_CA_FILE", data.join("tls/ca.pem"));
    }
    command
}

fn backup_to(cluster: &Cluster, words: &[&str]) -> Command {
    let mut command = ikada();
    command.args(["cluster", "--url", &cluster.node(2).url, "backup"]).args(words);
    command
}

fn restore_from(place: &str, folder: &Path, addresses: &[String]) -> Command {
    let mut command = ikada();
    command.args(["cluster", "restore", place, "--data"]).arg(folder);
    command.args(["--advertise", &addresses[0], "--peer-advertise", &addresses[1]]);
    command
}

// F-31: in parts, one of which fails once; read back by a connection that breaks in the middle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_31_a_backup_goes_to_an_object_store_and_comes_back_over_broken_ways() {
    let (cluster, house) = (Cluster::start().await, Storehouse::start(false).await);
    cluster.level_is_raised().await;
    let acked = write_all(&cluster.client(), "kept", 20).await;
    let large = bytes_of(1, 12_000_000);
    put(&cluster.client(), "large", &large).await;

    let place = "s3://backups/week 46/monday.ikada";
    let relay = Relay::start(&house.door, Cut::Asked("partNumber=2&"), 1).await;
    let backup = |words: &[&str]| house.knows(backup_to(&cluster, words), &relay.url);
    let noted = run(backup(&[place, "--part-mib", "5"])).await;
    assert_eq!(relay.left(), 0, "the way broke");
    assert_eq!(noted.len(), 3, "a line per shard and one for objects: {noted:?}");
    assert_eq!(house.holds("s3-uploads"), Vec::<String>::new(), "no part is left");
    let said = run_refused(backup(&[place])).await;
    assert!(said.contains("exists already"), "{said}");
    // Smaller than a part: one request.
    assert_eq!(run(backup(&["s3://backups/small.ikada"])).await, noted);
    assert_eq!(house.holds("backups"), ["backups/small.ikada", "backups/week 46/monday.ikada"]);

    let relay = Relay::start(&house.door, Cut::Answered(6_000_000), 1).await;
    let folder = tempfile::tempdir().expect("a folder");
    let (made, addresses) = (folder.path().join("made"), ports(2));
    let restore = |place| house.knows(restore_from(place, &made, &addresses), &relay.url);
    let said = run_refused(restore("s3://backups/nothing.ikada")).await;
    assert!(said.contains("no such object") && !made.exists(), "{said}");
    assert_eq!(run(restore(place)).await, noted, "same positions, same state hashes");
    assert_eq!(relay.left(), 0, "the way broke");
    let lone = Lone::start(&made, &addresses).await;
    check_all_there(&lone.client(), &acked).await;
    assert_eq!(get(&lone.client(), "large").await, large);
}

// F-31: what cannot be written leaves nothing behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_31_a_backup_that_fails_leaves_nothing_in_the_store() {
    let (cluster, house) = (Cluster::start().await, Storehouse::start(false).await);
    put(&cluster.client(), "large", &bytes_of(1, 12_000_000)).await;
    let endpoint = format!("http://{}", house.door);
    let words = ["s3://backups/monday.ikada", "--part-mib", "5"];

    let relay = Relay::start(&house.door, Cut::Asked("partNumber=2&"), usize::MAX).await;
    let said = run_refused(house.knows(backup_to(&cluster, &words), &relay.url)).await;
    assert!(said.contains("does not answer") && !said.contains("may be left"), "{said}");

    let mut wrong = house.knows(backup_to(&cluster, &words), &endpoint);
    wrong.env("AWS_SECRET_ACCESS_KEY", "another");
    let said = run_refused(wrong).await;
    assert!(said.contains("SignatureDoesNotMatch") && !said.contains("another"), "{said}");
    let mut keyless = house.knows(backup_to(&cluster, &words), &endpoint);
    keyless.env_remove("AWS_ACCESS_KEY_ID");
    let said = run_refused(keyless).await;
    assert!(said.contains("AWS_ACCESS_KEY_ID is not set"), "{said}");
    let nobody = format!("http://{}", ports(1)[0]);
    let said = run_refused(house.knows(backup_to(&cluster, &words), &nobody)).await;
    assert!(said.contains(&nobody), "{said}");
    let said = run_refused(backup_to(&cluster, &["https://a/b"])).await;
    assert!(said.contains("s3://bucket/key"), "{said}");
    assert_eq!(house.holds("backups"), Vec::<String>::new());
    assert_eq!(house.holds("s3-uploads"), Vec::<String>::new(), "the upload was given up");
}

// F-31, X2: the authority of the store's certificate is checked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_31_a_store_by_https_needs_an_authority_that_is_trusted() {
    let house = Storehouse::start(true).await;
    let endpoint = format!("https://{}", house.door);
    let backup = || {
        let mut command = house.knows(ikada(), &endpoint);
        with_admin(&mut command, &house.cluster).args(["cluster", "backup", "s3://b/monday.ikada"]);
        command
    };
    let said = run_refused(backup()).await;
    assert!(said.contains("certificate"), "{said}");
    let mut trusting = backup();
    trusting.env("AWS_CA_BUNDLE", house.cluster.node(1).data.join("tls/ca.pem"));
    run(trusting).await;
    assert_eq!(house.holds("b"), ["b/monday.ikada"]);
}
