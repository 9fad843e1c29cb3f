//! Who may listen between a node and its database, and what they and the logs would learn (X20).

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use ikada_store::postgres::{NodeRow, PostgresError, QUIET, Target, watch};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::server::Server;
use crate::{ANN, NEW, TTL_MS, end, is_appended, payloads, with_database};

const CANARY: &str = "canary-5f1c";

/// An authority: its certificate, and what it signs with.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    Authority { pem, issuer: Issuer::new(params, key) }
}

/// Turns TLS on, with a certificate for this name. Gives the file of the authority.
fn protect(server: &mut Server, authority: &Authority, name: &str) -> PathBuf {
    let data = PathBuf::from(server.sql("SHOW data_directory"));
    let owner = std::fs::metadata(&data).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority.issuer).unwrap();
    let texts = [
        ("server.crt", certificate.pem()),
        ("server.key", key.serialize_pem()),
        // The node does not get in without TLS; whoever looks after the database does.
        (
            "pg_hba.conf",
            "host all ikada 127.0.0.1/32 trust\nhostssl all node 127.0.0.1/32 trust\n".to_owned(),
        ),
    ];
    for (file, text) in texts {
        let path = data.join(file);
        std::fs::write(&path, text).unwrap();
        chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    server.sql("ALTER SYSTEM SET ssl = on");
    server.stop();
    server.resume();
    store(&data, "authority.pem", &authority.pem)
}

/// A file beside the database's own.
fn store(data: &Path, name: &str, text: &str) -> PathBuf {
    let path = data.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test);
}

async fn refused(url: &str) -> String {
    match Target::parse(url).unwrap().connect().await {
        Ok(_) => panic!("{url} was let through"),
        Err(error) => {
            assert!(!error.is_passing(), "{error} is tried again and again");
            error.to_string()
        }
    }
}

#[test]
fn x_20_the_database_proves_who_it_is() {
    let Some(mut server) = Server::start() else { return };
    server.sql("CREATE ROLE node LOGIN SUPERUSER");
    let plain = server.url().replace("ikada@", "node@");
    let asked = plain.replace("127.0.0.1", "localhost") + "?sslmode=verify-full&sslrootcert=";
    let (ours, other) = (authority(), authority());
    let data = PathBuf::from(server.sql("SHOW data_directory"));
    let theirs = store(&data, "other.pem", &other.pem);
    run(async {
        let told = refused(&format!("{asked}{}", theirs.display())).await;
        assert!(told.contains("does not support TLS"), "{told}");
    });
    let file = protect(&mut server, &ours, "localhost").display().to_string();
    run(async {
        let target = Target::parse(&format!("{asked}{file}")).unwrap();
        assert!(target.is_protected());
        let connection = target.connect().await.unwrap();
        connection.prepare_schema().await.unwrap();
        let listening = watch(&target, QUIET).await.unwrap();
        let protected = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
            WHERE application_name = 'ikada' AND ssl AND version = 'TLSv1.3'";
        assert_eq!(server.sql(protected), "2", "both kinds of connections");
        drop((connection, listening));
        // The same words mean the same, however weak they are elsewhere.
        for mode in ["require", "verify-ca"] {
            let url = format!("{asked}{}", theirs.display()).replace("verify-full", mode);
            assert!(refused(&url).await.contains("certificate"), "{mode}");
        }
        let by_address = format!("{plain}?sslmode=verify-full&sslrootcert={file}");
        let told = refused(&by_address).await;
        assert!(told.contains("certificate"), "a name that it does not bear: {told}");
        let told = refused(&format!("{plain}?sslmode=disable")).await;
        assert!(told.contains("no encryption") || told.contains("pg_hba"), "{told}");
    });
}

// X20: a server that cannot do what is asked of it is named at the start, not waited for.
#[test]
fn x_20_a_server_that_refuses_the_protection_ends_the_start() {
    let Some(mut server) = Server::start() else { return };
    server.sql("CREATE ROLE node LOGIN");
    let ours = authority();
    server.sql("ALTER SYSTEM SET ssl_max_protocol_version = 'TLSv1.2'");
    let file = protect(&mut server, &ours, "localhost").display().to_string();
    let url = server.url().replace("ikada@127.0.0.1", "node@localhost");
    run(async {
        let told = refused(&format!("{url}?sslmode=verify-full&sslrootcert={file}")).await;
        assert!(told.contains("TLS 1.3"), "{told}");
    });
}

#[test]
fn x_20_beyond_this_machine_nothing_is_said_in_the_open_unasked() {
    let is_protected = |url: &str| Target::parse(url).unwrap().is_protected();
    for here in ["127.0.0.1", "127.9.9.9", "localhost", "[::1]", "%2Frun%2Fpostgresql"] {
        assert!(!is_protected(&format!("postgres://ann@{here}/db")), "{here}");
    }
    for there in ["db.example", "10.0.0.7", "localhost.example", "0.0.0.0", "db.example,127.0.0.1"]
    {
        assert!(is_protected(&format!("postgres://ann@{there}/db")), "{there}");
        assert!(!is_protected(&format!("postgres://ann@{there}/db?sslmode=disable")), "{there}");
    }
    assert!(is_protected("postgres://ann@localhost/db?hostaddr=10.0.0.7"));
    assert!(is_protected("postgres://ann@127.0.0.1/db?connect_timeout=3&sslmode=verify-full"));
    for weak in ["prefer", "allow", "", "REQUIRE"] {
        let error = Target::parse(&format!("postgres://ann@h/db?sslmode={weak}")).unwrap_err();
        assert!(error.to_string().contains("verify-full"), "{error}");
    }
    let missing = Target::parse("postgres://h/db?sslrootcert=%2Fnowhere%2Fca.pem").unwrap_err();
    assert!(missing.to_string().contains("/nowhere/ca.pem"), "{missing}");
}

#[test]
fn x_20_no_word_about_the_database_holds_its_password() {
    let (mut taken, mut refused) = (0, 0);
    for url in [
        "postgres://ann:CANARY@db.example/jobs",
        "postgres://ann:CANARY@db.example:99999/jobs",
        "postgres://ann:CANARY@db.example:port/jobs",
        "postgres://ann:CANARY/db.example/jobs",
        "postgres://ann:half@CANARY@db.example/jobs",
        "postgres://ann:CANARY%40CANARY@db.example/jobs",
        "postgres://ann:CANARY@db.example/jobs?sslmode=prefer",
        "postgres://ann:CANARY@db.example/jobs?sslrootcert=/nowhere",
        "postgres://ann:CANARY@db.example/jobs?unknown=1",
        "postgres://ann:CANARY%@db.example/jobs",
        "postgres://db.example/jobs?user=ann&password=CANARY",
        "postgres://db.example/jobs?password=CANARY&port=x",
        "mysql://ann:CANARY@db.example/jobs",
        "ann:CANARY@db.example/jobs",
    ] {
        let told = match Target::parse(&url.replace("CANARY", CANARY)) {
            Ok(target) => {
                taken += 1;
                format!("{target} {target:?}")
            }
            Err(error) => {
                refused += 1;
                format!("{error} {error:?}")
            }
        };
        assert!(!told.contains(CANARY), "{url}: {told}");
    }
    assert!(taken >= 3 && refused >= 5, "{taken} taken, {refused} refused");
}

#[test]
fn x_20_a_wrong_password_is_in_no_error_and_in_no_log() {
    with_database(|server, _| async move {
        server.sql(&format!("CREATE ROLE guest LOGIN PASSWORD '{CANARY}'"));
        let rules = PathBuf::from(server.sql("SHOW hba_file"));
        let before = std::fs::read_to_string(&rules).unwrap();
        let asks = "host all guest 127.0.0.1/32 scram-sha-256\n";
        std::fs::write(&rules, format!("{asks}{before}")).unwrap();
        server.sql("SELECT pg_reload_conf()");
        let known = server.url().replace("ikada@", &format!("guest:{CANARY}@"));
        let wrong = known.replace(CANARY, &format!("{CANARY}-wrong"));
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        // The new rules are read in the background.
        let error = loop {
            match Target::parse(&wrong).unwrap().connect().await {
                Err(error) => break error,
                Ok(_) => assert!(std::time::Instant::now() < deadline, "anybody is let in"),
            }
        };
        assert!(error.to_string().contains("password authentication failed"), "{error}");
        assert!(!format!("{error} {error:?}").contains(CANARY), "{error}");
        assert!(Target::parse(&known).unwrap().connect().await.is_ok());
        assert!(!server.log().contains(CANARY), "{}", server.log());
        // None at all: that ends the start too, and says where it is written.
        let none = server.url().replace("ikada@", "guest@");
        let told = refused(&none).await;
        assert!(told.contains("password missing") && told.contains("PGPASSWORD"), "{told}");
    });
}

#[test]
fn x_20_values_travel_as_parameters() {
    with_database(|server, db| async move {
        let hostile = format!("{CANARY}'); DROP TABLE ikada_log; --");
        let row = NodeRow {
            node: 1,
            incarnation: 1,
            peer_addr: hostile.clone(),
            client_addr: "$1 \\ \" %s".to_owned(),
        };
        assert!(db.enter_node(&row).await.unwrap());
        assert_eq!(db.nodes(false).await.unwrap(), [row]);
        db.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        let appended = db.append_entries(0, ANN, 2, (2, 0), &payloads(&[&hostile])).await.unwrap();
        assert!(is_appended(appended));
        // What the database remembers of a connection is its last statement.
        let seen = "SELECT query FROM pg_stat_activity WHERE application_name = 'ikada'";
        let seen = server.sql(seen);
        assert!(seen.contains("unnest($6::bytea[], $8::bigint[])"), "{seen}");
        let hex: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert!(!seen.contains(CANARY) && !seen.contains(&hex), "{seen}");
        assert_eq!(db.read_entries(0, ANN, 2, 1 << 20).await.unwrap().entries.len(), 1);
    });
}

#[test]
fn x_20_the_rights_of_the_guide_are_enough_and_no_more_than_that() {
    let guide = include_str!("../../../../docs/guides/postgres.md");
    let rights = guide.split("```sql").nth(1).and_then(|rest| rest.split("```").next());
    let rights = rights.expect("the guide lists the rights").replace("ROLE ikada", "ROLE least");
    let rights = rights.replace("TO ikada", "TO least");
    with_database(|server, _| async move {
        rights.split(';').filter(|one| !one.trim().is_empty()).for_each(|one| {
            server.sql(one);
        });
        let url = server.url().replace("ikada@", "least@");
        let least = Target::parse(&url).unwrap().connect().await.unwrap();
        least.prepare_schema().await.unwrap();
        least.prepare_shards(2, 1).await.unwrap();
        least.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        let appended = least.append_entries(0, ANN, 2, (2, 0), &payloads(&["a"])).await.unwrap();
        assert!(is_appended(appended));
        least.mark_missing(1, 1, 9).await.unwrap();
        least.put_snapshot_chunk(0, 2, 0, b"state").await.unwrap();
        least.release_lease(0, ANN, 2, None).await.unwrap();
        let attributes =
            "SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls
            FROM pg_roles WHERE rolname = 'least'";
        assert_eq!(server.sql(attributes), "f");
        server.sql("REVOKE INSERT ON ikada_log FROM least");
        least.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        let place = end(&least, 0).await;
        let denied = least.append_entries(0, ANN, 3, place, &payloads(&["b"])).await.unwrap_err();
        assert!(matches!(denied, PostgresError::Rights { .. }), "{denied}");
    });
}
