//! The log in Postgres, against a real one: one holder at a time, an epoch that fences, nothing half written (LS).

mod chain;
mod missing;
#[path = "../../../cli/tests/process/pooler.rs"]
mod pooler;
mod protect;
mod reach;
#[allow(dead_code, reason = "the tests of whole processes use the rest")]
mod server;

use std::rc::Rc;

use bytes::Bytes;
use ikada_store::postgres::{
    AppendOutcome, Connection, Holder, KnownLog, NodeRow, PostgresError, QUIET, SCHEMA_VERSION,
    ShardSeed, Target, watch,
};
use server::Server;

const ANN: Holder = Holder { node: 1, life: 11 };
const BOB: Holder = Holder { node: 2, life: 22 };
const TTL_MS: u64 = 60_000;
/// What a node knows that has read nothing yet.
const NEW: KnownLog = KnownLog { epoch: 1, index: 1, chain: 0 };

/// Runs a test against a fresh database, or not at all where there is no Postgres.
fn with_database<F: Future<Output = ()>>(test: impl FnOnce(Rc<Server>, Connection) -> F) {
    let Some(server) = Server::start().map(Rc::new) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connection = Target::parse(&server.url()).unwrap().connect().await.unwrap();
        connection.prepare_schema().await.unwrap();
        connection.prepare_shards(2, 1).await.unwrap();
        test(server.clone(), connection).await;
    });
}

/// Where the next entry of a log goes: its index, and the chain before it.
async fn end(db: &Connection, shard: u16) -> (u64, u64) {
    let next = db.read_entries(shard, ANN, 1, 0).await.unwrap().last_index + 1;
    let tail = db.read_entries(shard, ANN, next, 0).await.unwrap();
    (next, tail.before.map_or(0, |(_, chain)| chain))
}

fn is_appended(outcome: AppendOutcome) -> bool {
    matches!(outcome, AppendOutcome::Appended(_))
}

fn payloads(texts: &[&str]) -> Vec<Bytes> {
    texts.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect()
}

#[test]
fn ls_2_ls_3_ls_11_ls_12_a_lease_is_made_extended_or_taken_in_one_step() {
    with_database(|server, db| async move {
        let none = db.look_at_lease(0, ANN).await.unwrap();
        assert_eq!((none.holder, none.epoch, none.is_ours), (0, 1, false));
        let taken = db.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        assert_eq!((taken.holder, taken.epoch, taken.is_ours), (1, 2, true));
        assert!(taken.remaining_ms > TTL_MS / 2);
        let held = db.take_lease(0, BOB, TTL_MS, NEW).await.unwrap();
        assert_eq!(
            (held.holder, held.epoch, held.is_ours),
            (1, 2, false),
            "LS-11: an answer that names the holder"
        );
        let renewed = db.renew_lease(0, ANN, 2, 2 * TTL_MS).await.unwrap();
        assert!(renewed.is_ours && renewed.remaining_ms > TTL_MS);
        server.sql("UPDATE ikada_lease SET expires_at = clock_timestamp() - interval '1 second'");
        let taken = db.take_lease(0, BOB, TTL_MS, NEW).await.unwrap();
        assert_eq!(
            (taken.holder, taken.epoch, taken.is_ours),
            (2, 3, true),
            "LS-9: the epoch grows"
        );
        let lost = db.renew_lease(0, ANN, 2, TTL_MS).await.unwrap();
        assert_eq!((lost.holder, lost.is_ours), (2, false));
        assert_eq!(
            db.look_at_lease(1, ANN).await.unwrap().holder,
            0,
            "LS-2: each shard has its own"
        );
    });
}

#[test]
fn a_node_takes_its_own_lease_again_in_its_next_life() {
    with_database(|_, db| async move {
        db.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        let again = Holder { life: 12, ..ANN };
        let seen = db.look_at_lease(0, again).await.unwrap();
        assert_eq!((seen.holder, seen.is_ours), (1, false));
        let taken = db.take_lease(0, again, TTL_MS, NEW).await.unwrap();
        assert_eq!((taken.epoch, taken.is_ours), (3, true));
    });
}

#[test]
fn ls_10_a_release_frees_the_lease_and_names_who_is_next() {
    with_database(|_, db| async move {
        db.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        let stale = db.release_lease(0, BOB, 2, None).await.unwrap();
        assert_eq!((stale.holder, stale.remaining_ms > 0), (1, true), "not his to release");
        let freed = db.release_lease(0, ANN, 2, Some(2)).await.unwrap();
        assert_eq!((freed.remaining_ms, freed.favoured), (0, Some(2)));
        let taken = db.take_lease(0, BOB, TTL_MS, NEW).await.unwrap();
        assert_eq!((taken.epoch, taken.favoured), (3, None));
    });
}

#[test]
fn ls_9_an_append_under_an_old_epoch_writes_nothing() {
    with_database(|server, db| async move {
        db.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        let first = db.append_entries(0, ANN, 2, (2, 0), &payloads(&["a", "b"])).await.unwrap();
        let AppendOutcome::Appended(chain) = first else { panic!("{first:?}") };
        let again = db.append_entries(0, ANN, 2, (2, 0), &payloads(&["a", "b"])).await.unwrap();
        assert_eq!(again, AppendOutcome::Conflict, "an index is written once");
        let gap = db.append_entries(0, ANN, 2, (5, chain), &payloads(&["e"])).await.unwrap();
        assert_eq!(gap, AppendOutcome::Conflict, "a log has no gaps");
        server.sql("UPDATE ikada_lease SET expires_at = clock_timestamp()");
        db.take_lease(0, BOB, TTL_MS, NEW).await.unwrap();
        let late = payloads(&["stale"]);
        let stale = db.append_entries(0, ANN, 2, (4, chain), &late).await.unwrap();
        assert_eq!(stale, AppendOutcome::Deposed);
        let other_life = Holder { life: 99, ..BOB };
        let stale = db.append_entries(0, other_life, 3, (4, chain), &late).await.unwrap();
        assert_eq!(stale, AppendOutcome::Deposed, "an epoch belongs to one life");
        let next = db.append_entries(0, BOB, 3, (4, chain), &payloads(&["c"])).await.unwrap();
        assert!(is_appended(next));
        let tail = db.read_entries(0, BOB, 2, 1 << 20).await.unwrap();
        let seen: Vec<_> =
            tail.entries.iter().map(|e| (e.index, e.epoch, e.payload.as_ref())).collect();
        assert_eq!(seen, [(2, 2, &b"a"[..]), (3, 2, b"b"), (4, 3, b"c")]);
        assert_eq!((tail.purged_index, tail.last_index, tail.lease.epoch), (1, 4, 3));
    });
}

/// The takeover waits for an append that is under way, and an append waits for a takeover: they cannot cross.
#[test]
fn a_takeover_and_an_append_cannot_cross() {
    with_database(|server, db| async move {
        db.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        server.sql("UPDATE ikada_lease SET expires_at = clock_timestamp()");
        let target = Target::parse(&server.url()).unwrap();
        let (ann, bob) = (target.connect().await.unwrap(), target.connect().await.unwrap());
        for round in 0..50 {
            server.sql("UPDATE ikada_lease SET holder = 1, life = 11, epoch = 2, expires_at = clock_timestamp()");
            let (next, chain) = end(&db, 0).await;
            let last = next - 1;
            let entry = payloads(&["x"]);
            let append = ann.append_entries(0, ANN, 2, (next, chain), &entry);
            let take = async {
                let taken = bob.take_lease(0, BOB, TTL_MS, NEW).await.unwrap();
                (taken, bob.read_entries(0, BOB, last + 1, 1 << 20).await.unwrap())
            };
            let (appended, (taken, tail)) = tokio::join!(append, take);
            assert!(taken.is_ours);
            let came_first = is_appended(appended.unwrap());
            assert_eq!(tail.entries.len(), usize::from(came_first), "round {round}");
            let after = db.read_entries(0, BOB, last + 1, 1 << 20).await.unwrap();
            assert_eq!(
                after.entries.len(),
                tail.entries.len(),
                "nothing after the takeover's reading"
            );
        }
    });
}

#[test]
fn a_long_log_is_read_in_parts_and_purged_below_a_snapshot() {
    with_database(|_, db| async move {
        db.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        let many: Vec<Bytes> = (0..100).map(|n| Bytes::from(vec![n; 1_000])).collect();
        db.append_entries(0, ANN, 2, (2, 0), &many).await.unwrap();
        let part = db.read_entries(0, ANN, 2, 10_000).await.unwrap();
        assert_eq!((part.entries.len(), part.last_index), (10, 101));
        let rest = db.read_entries(0, ANN, 95, 1 << 20).await.unwrap();
        assert_eq!(rest.entries.len(), 7);
        assert!(db.newest_snapshot(0).await.unwrap().is_none());
        db.put_snapshot_chunk(0, 50, 0, b"state").await.unwrap();
        assert!(db.newest_snapshot(0).await.unwrap().is_none(), "not before its manifest");
        db.put_snapshot_manifest(0, 50, b"manifest").await.unwrap();
        let stored = db.newest_snapshot(0).await.unwrap().unwrap();
        assert_eq!((stored.index, stored.manifest.as_ref()), (50, &b"manifest"[..]));
        assert_eq!(db.snapshot_chunk(0, 50, 0).await.unwrap().unwrap(), "state");
        db.purge_entries(0, BOB, 2, 50, (50, 0)).await.unwrap();
        assert_eq!(
            db.read_entries(0, ANN, 2, 1).await.unwrap().purged_index,
            1,
            "only the holder purges"
        );
        db.purge_entries(0, ANN, 2, 50, (50, 0)).await.unwrap();
        let tail = db.read_entries(0, ANN, 51, 1 << 20).await.unwrap();
        assert_eq!((tail.purged_index, tail.entries.len()), (50, 51));
        db.purge_entries(0, ANN, 2, 101, (101, 0)).await.unwrap();
        let tail = db.read_entries(0, ANN, 102, 1 << 20).await.unwrap();
        assert_eq!(
            (tail.purged_index, tail.last_index),
            (101, 101),
            "an empty log still knows its end"
        );
        let place = end(&db, 0).await;
        assert!(place.1 != 0, "P2: and what it was");
        let next = db.append_entries(0, ANN, 2, place, &payloads(&["z"])).await.unwrap();
        assert!(is_appended(next));
    });
}

#[test]
fn a_purge_goes_in_parts_and_takes_up_what_was_left() {
    with_database(|server, db| async move {
        db.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        let many: Vec<Bytes> = (0..1_200).map(|_| Bytes::from_static(b"x")).collect();
        db.append_entries(0, ANN, 2, (2, 0), &many).await.unwrap();
        for index in [100, 600] {
            for chunk in 0..120 {
                db.put_snapshot_chunk(0, index, chunk, b"state").await.unwrap();
            }
            db.put_snapshot_manifest(0, index, b"manifest").await.unwrap();
        }
        // As a purge leaves it that broke off after its first step.
        server.sql("UPDATE ikada_shard SET purged_index = 1100 WHERE shard = 0");
        // One statement never deletes more than its share.
        for (table, most) in [("ikada_log", 500), ("ikada_snapshot", 100)] {
            server.sql(&format!(
                "CREATE FUNCTION few_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    IF (SELECT count(*) FROM gone) > {most} THEN RAISE EXCEPTION 'too many at once'; END IF; RETURN NULL; END $$;
                 CREATE TRIGGER few AFTER DELETE ON {table} REFERENCING OLD TABLE AS gone
                    FOR EACH STATEMENT EXECUTE FUNCTION few_{table}()",
            ));
        }
        db.purge_entries(0, ANN, 2, 700, (700, 0)).await.unwrap();
        let tail = db.read_entries(0, ANN, 1_101, 1 << 20).await.unwrap();
        assert_eq!((tail.purged_index, tail.entries.len()), (1_100, 101), "never back");
        let left = "SELECT (SELECT count(*) FROM ikada_log), (SELECT count(*) FROM ikada_snapshot)";
        assert_eq!(server.sql(left), "102|0", "the entry at the beginning stays");
    });
}

#[test]
fn ls_10_whoever_watches_hears_of_changes_and_releases() {
    with_database(|server, db| async move {
        let mut watch = watch(&Target::parse(&server.url()).unwrap(), QUIET).await.unwrap();
        db.take_lease(1, ANN, TTL_MS, NEW).await.unwrap();
        db.append_entries(1, ANN, 2, (2, 0), &payloads(&["a"])).await.unwrap();
        db.tell(&[0, 1]).await.unwrap();
        assert_eq!((watch.next().await, watch.next().await), (Some(0), Some(1)));
        db.release_lease(1, ANN, 2, None).await.unwrap();
        assert_eq!(watch.next().await, Some(1));
        server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN ikada'",
        );
        assert_eq!(watch.next().await, None, "the end of the connection is told");
    });
}

#[test]
fn nodes_agree_on_one_plan() {
    with_database(|server, db| async move {
        let row = |node, incarnation| NodeRow {
            node,
            incarnation,
            peer_addr: format!("127.0.0.1:{node}"),
            client_addr: String::new(),
        };
        assert!(db.enter_node(&row(1, 10)).await.unwrap());
        assert!(db.enter_node(&row(2, 20)).await.unwrap());
        assert!(!db.enter_node(&row(1, 11)).await.unwrap(), "another folder's id");
        assert_eq!(db.nodes(false).await.unwrap(), [row(1, 10), row(2, 20)]);
        // Nobody keeps the entry of the first up: it does not count, and its id is free.
        server.sql("UPDATE ikada_node SET seen_at = seen_at - interval '1 minute' WHERE node = 1");
        assert_eq!(db.nodes(true).await.unwrap(), [row(2, 20)]);
        assert!(db.enter_node(&row(1, 11)).await.unwrap(), "given up before there was a cluster");
        db.leave_node(&row(1, 10)).await.unwrap();
        assert_eq!(db.nodes(true).await.unwrap(), [row(1, 11), row(2, 20)], "not his to take back");
        assert_eq!(db.agree_on_plan(None).await.unwrap(), None);
        assert_eq!(db.agree_on_plan(Some(b"one")).await.unwrap().unwrap(), b"one");
        assert_eq!(db.agree_on_plan(Some(b"two")).await.unwrap().unwrap(), b"one");
        server.sql("UPDATE ikada_node SET seen_at = seen_at - interval '1 minute'");
        assert!(!db.enter_node(&row(1, 12)).await.unwrap(), "a member may be away for long");
        db.leave_node(&row(1, 11)).await.unwrap();
        assert_eq!(db.nodes(false).await.unwrap(), [row(2, 20)]);
    });
}

/// The tables as version 1 made them, word for word.
const VERSION_1: &str = "
CREATE TABLE ikada_cluster (one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL, plan bytea);
CREATE TABLE ikada_node (node bigint PRIMARY KEY, incarnation bigint NOT NULL, peer_addr text NOT NULL, client_addr text NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE ikada_lease (shard integer PRIMARY KEY, holder bigint NOT NULL, life bigint NOT NULL, epoch bigint NOT NULL,
    expires_at timestamptz NOT NULL, favoured bigint);
CREATE TABLE ikada_shard (shard integer PRIMARY KEY, purged_index bigint NOT NULL);
CREATE TABLE ikada_log (shard integer NOT NULL, index bigint NOT NULL, epoch bigint NOT NULL, payload bytea NOT NULL,
    PRIMARY KEY (shard, index));
CREATE TABLE ikada_snapshot (shard integer NOT NULL, index bigint NOT NULL, part integer NOT NULL, bytes bytea NOT NULL,
    PRIMARY KEY (shard, index, part));
INSERT INTO ikada_cluster (version, plan) VALUES (1, 'a plan');
INSERT INTO ikada_shard VALUES (0, 1), (1, 1);
INSERT INTO ikada_lease VALUES (0, 1, 11, 2, clock_timestamp() + interval '1 hour');
INSERT INTO ikada_log VALUES (0, 2, 2, 'an entry');";

#[test]
fn tables_of_an_older_version_are_brought_up_to_date_once_and_keep_what_they_hold() {
    with_database(|server, db| async move {
        server.sql("DROP TABLE ikada_cluster, ikada_node, ikada_lease, ikada_shard, ikada_log, ikada_snapshot");
        server.sql(VERSION_1);
        let target = Target::parse(&server.url()).unwrap();
        let all = all_prepare(&target, 4).await;
        for prepared in all {
            prepared.unwrap();
        }
        let version = server.sql("SELECT version FROM ikada_cluster");
        assert_eq!(version, SCHEMA_VERSION.to_string());
        let lease = "SELECT reloptions FROM pg_class WHERE relname = 'ikada_lease'";
        assert!(server.sql(lease).contains("fillfactor"), "the step was taken");
        assert_eq!(db.agree_on_plan(None).await.unwrap().unwrap(), b"a plan");
        let tail = db.read_entries(0, ANN, 2, 1 << 20).await.unwrap();
        assert_eq!((tail.entries.len(), tail.lease.is_ours), (1, true));
        assert_eq!(tail.entries[0].chain, 0, "an older version made none");
        // A node of the older version that still runs, and then one of this version.
        server.sql("INSERT INTO ikada_log (shard, index, epoch, payload) VALUES (0, 3, 2, 'more')");
        let place = end(&db, 0).await;
        assert_eq!(place, (4, 0));
        let next = db.append_entries(0, ANN, 2, place, &payloads(&["and more"])).await.unwrap();
        assert!(is_appended(next));
        // A step that fails leaves everything as it was.
        server.sql("UPDATE ikada_cluster SET version = 1; DROP TABLE ikada_lease");
        db.prepare_schema().await.unwrap_err();
        assert_eq!(server.sql("SELECT version FROM ikada_cluster"), "1");
    });
}

/// So many nodes prepare the tables at the same time.
async fn all_prepare(target: &Target, count: usize) -> Vec<Result<(), PostgresError>> {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..count {
        let target = target.clone();
        tasks.spawn(async move { target.connect().await?.prepare_schema().await });
    }
    tasks.join_all().await
}

#[test]
fn a_cluster_is_seeded_whole_and_once() {
    with_database(|server, db| async move {
        assert!(db.clear_for_seeds().await.unwrap());
        server.sql("DELETE FROM ikada_shard");
        db.put_snapshot_manifest(0, 9, b"of a try that broke off").await.unwrap();
        assert!(db.clear_for_seeds().await.unwrap());
        assert!(db.newest_snapshot(0).await.unwrap().is_none());
        let seed = |index, first: &'static str| ShardSeed { index, epoch: 7, first: first.into() };
        assert!(db.seed_cluster(b"plan", &[seed(40, "a"), seed(50, "b")]).await.unwrap());
        assert!(!db.seed_cluster(b"other", &[seed(1, "c")]).await.unwrap());
        assert!(!db.clear_for_seeds().await.unwrap(), "a cluster is not touched");
        let tail = db.read_entries(1, ANN, 51, 1 << 20).await.unwrap();
        assert_eq!((tail.purged_index, tail.last_index, tail.lease.epoch), (50, 51, 7));
        assert_eq!(tail.entries[0].payload, "b");
        let taken = db.take_lease(1, ANN, TTL_MS, NEW).await.unwrap();
        assert_eq!((taken.is_ours, taken.epoch), (true, 8), "free, and above all that was");
    });
}

#[test]
fn what_is_wrong_with_the_database_is_told() {
    let words = |url: &str| Target::parse(url).unwrap_err().to_string();
    assert!(words("mysql://x").contains("postgres://"));
    assert!(words("postgres://h/db?sslmode=prefer").contains("sslmode"));
    for kind in ["any", "read-only", "standby"] {
        let said = words(&format!("postgres://h,i/db?target_session_attrs={kind}"));
        assert!(said.contains("standby") && said.contains("primary"), "{said}");
    }
    Target::parse("postgres://h,i/db?target_session_attrs=read-write").unwrap();
    let shown = Target::parse("postgres://ann:secret@db.example:5433/jobs").unwrap().to_string();
    assert_eq!(shown, "postgres://db.example:5433/jobs", "no password in words");
    with_database(|server, db| async move {
        server.sql("UPDATE ikada_cluster SET version = 7");
        let error = db.prepare_schema().await.unwrap_err();
        assert!(matches!(error, PostgresError::Version { found: 7, .. }), "{error}");
        server.sql(&format!("UPDATE ikada_cluster SET version = {SCHEMA_VERSION}"));
        server.sql("CREATE ROLE weak LOGIN");
        let url = server.url().replace("ikada@", "weak@");
        let weak = Target::parse(&url).unwrap().connect().await.unwrap();
        let error = weak.prepare_schema().await.unwrap_err();
        assert!(matches!(error, PostgresError::Rights { .. }), "{error}");
        server.sql("ALTER ROLE ikada SET default_transaction_read_only = on");
        let error = db.take_lease(0, ANN, TTL_MS, NEW).await.err();
        assert!(error.is_none(), "what is open goes on until the server says no: {error:?}");
        let Err(error) = Target::parse(&server.url()).unwrap().connect().await else {
            panic!("connected to a database that takes no writes");
        };
        assert!(matches!(error, PostgresError::ReadOnly { .. }), "{error}");
        assert!(error.to_string().contains("primary"), "{error}");
        let url = server.url().replace("/postgres", "/nowhere");
        let Err(error) = Target::parse(&url).unwrap().connect().await else {
            panic!("connected to a database that does not exist");
        };
        assert!(error.to_string().contains("nowhere"), "{error}");
    });
}
