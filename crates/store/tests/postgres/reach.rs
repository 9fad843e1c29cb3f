//! Several hosts in one address, and connections that somebody on the way has forgotten (LS-14).

use std::net::TcpListener;
use std::time::{Duration, Instant};

use ikada_store::postgres::{Connection, NodeRow, PostgresError, Target, watch};

use crate::pooler::Pooler;
use crate::server::Server;
use crate::with_database;

/// What the whole of an attempt may take, which a silent host must not use up.
const WHOLE: Duration = Duration::from_secs(5);

/// The address of a server with another host before it.
fn behind(port: u16, server: &Server) -> String {
    format!("postgres://ikada@127.0.0.1:{port},127.0.0.1:{}/postgres", server.port())
}

/// A port where nobody listens.
fn deserted() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn refused(target: &Target) -> PostgresError {
    match target.connect().await {
        Ok(_) => panic!("{target} was let through"),
        Err(error) => error,
    }
}

// LS-14: a host that takes connections and says nothing, as one whose machine stands still.
#[test]
fn ls_14_a_silent_host_does_not_cost_the_whole_wait_and_is_not_asked_first_again() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    with_database(|server, _| async move {
        let target = Target::parse(&behind(port, &server)).unwrap();
        let began = Instant::now();
        target.connect().await.unwrap().check_schema().await.unwrap();
        assert!(began.elapsed() < WHOLE, "{:?}", began.elapsed());
        silent.accept().unwrap();
        silent.set_nonblocking(true).unwrap();
        target.clone().connect().await.unwrap();
        assert!(silent.accept().is_err(), "the good one is remembered, by copies too");
        let shown = target.to_string();
        assert!(
            shown.contains(&format!("127.0.0.1:{port},127.0.0.1:{}/", server.port())),
            "{shown}"
        );
    });
}

// LS-14: an attempt that its asker cuts short goes on where it was.
#[test]
fn ls_14_an_attempt_that_was_cut_short_begins_with_the_next_host() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    with_database(|server, _| async move {
        let way = behind(port, &server);
        let way = way.replacen("@", &format!("@127.0.0.1:{port},"), 1);
        let target = Target::parse(&way).unwrap();
        // Each of these is given up after the first silent host at the latest.
        let mut opened = None;
        for _ in 0..10 {
            let attempt = tokio::time::timeout(Duration::from_millis(800), target.connect());
            if let Ok(found) = attempt.await {
                opened = Some(found.unwrap());
                break;
            }
        }
        assert!(opened.is_some(), "every attempt began anew");
    });
}

#[test]
fn ls_14_a_host_that_is_gone_beside_a_standby_is_waited_for() {
    with_database(|server, _| async move {
        let gone = deserted();
        let target = Target::parse(&behind(gone, &server)).unwrap();
        target.connect().await.unwrap();
        // As a standby is: it serves, but takes no writes.
        server.sql("ALTER ROLE ikada SET default_transaction_read_only = on");
        let error = refused(&target).await;
        assert!(error.is_passing(), "LS-14: a standby takes over at any moment: {error}");
        let told = error.to_string();
        assert!(told.contains("takes no writes") && told.contains(&gone.to_string()), "{told}");
        // What waiting cannot mend is no less wrong because another host is away.
        let nowhere = behind(gone, &server).replace("/postgres", "/nowhere");
        let error = refused(&Target::parse(&nowhere).unwrap()).await;
        assert!(!error.is_passing() && error.to_string().contains("nowhere"), "{error}");
        let both = format!("postgres://ikada@127.0.0.1:{gone},127.0.0.1:{}/postgres", deserted());
        assert!(refused(&Target::parse(&both).unwrap()).await.is_passing());
    });
}

#[test]
fn an_address_whose_hosts_and_ports_do_not_match_is_refused() {
    let words = |url: &str| Target::parse(url).unwrap_err().to_string();
    assert!(words("postgres:///jobs").contains("no host"));
    assert!(words("postgres://a,b,c/jobs?hostaddr=10.0.0.1").contains("hostaddrs"));
}

#[test]
fn limits_of_statements_come_with_the_connection_beside_what_the_address_asks_for() {
    with_database(|server, _| async move {
        server.sql("CREATE SCHEMA fresh");
        let url = format!("{}?options=-csearch_path%3Dfresh", server.url());
        let connection = Target::parse(&url).unwrap().connect().await.unwrap();
        connection.prepare_schema().await.unwrap();
        let made = "SELECT count(*) FROM pg_tables WHERE schemaname = 'fresh'";
        assert_ne!(server.sql(made), "0");
        server.sql(&format!(
            "ALTER TABLE fresh.ikada_node ADD COLUMN seen_limit text DEFAULT {LIMIT}"
        ));
        enter(&connection).await;
        assert_eq!(server.sql("SELECT seen_limit FROM fresh.ikada_node"), "10s");
    });
}

// F-39: what a session sets would stay with whatever connection of the pooler it met, and strangers would have it next.
#[test]
fn f_39_nothing_that_a_node_sets_stays_in_a_pooler() {
    with_database(|server, _| async move {
        let Some(pooler) = Pooler::start(&server) else { return };
        let target = Target::parse(&pooler.url()).unwrap();
        server.sql(&format!("ALTER TABLE ikada_node ADD COLUMN seen_limit text DEFAULT {LIMIT}"));
        for _ in 0..3 {
            let connection = target.connect().await.unwrap();
            connection.check_schema().await.unwrap();
            enter(&connection).await;
            assert_eq!(server.sql("SELECT seen_limit FROM ikada_node"), "0");
            server.sql("DELETE FROM ikada_node");
        }
    });
}

/// What a statement may take, as the database sees it.
const LIMIT: &str = "current_setting('statement_timeout')";

async fn enter(connection: &Connection) {
    let row =
        NodeRow { node: 1, incarnation: 1, peer_addr: String::new(), client_addr: String::new() };
    assert!(connection.enter_node(&row).await.unwrap());
}

// LS-10: what stands between may forget a connection without a word to either side.
#[test]
fn ls_10_a_watch_whose_other_side_says_nothing_comes_to_its_end() {
    with_database(|server, db| async move {
        let target = Target::parse(&server.url()).unwrap();
        let mut watch = watch(&target, Duration::from_millis(50)).await.unwrap();
        let hearing = tokio::time::timeout(Duration::from_secs(1), watch.next()).await;
        assert!(hearing.is_err(), "quiet, and alive");
        db.tell(&[1]).await.unwrap();
        assert_eq!(watch.next().await, Some(1));
        server.pause();
        let ended = watch.next().await;
        server.unpause();
        assert_eq!(ended, None, "it waits for what will never come");
    });
}
