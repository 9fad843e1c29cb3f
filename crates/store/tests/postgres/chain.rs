//! The identity of a log: what a database is known by after somebody restored it (P2).

use ikada_store::postgres::{AppendOutcome, Connection, Holder, KnownLog, Missing};

use super::server::Server;
use super::{ANN, BOB, NEW, TTL_MS, end, is_appended, payloads, with_database};

/// The last entry is gone again, as after a failover to a standby that had not got it.
fn lose_the_last(server: &Server) {
    server.sql("DELETE FROM ikada_log WHERE shard = 0 AND index = (SELECT max(index) FROM ikada_log WHERE shard = 0)");
}

async fn append(db: &Connection, holder: Holder, epoch: u64, place: (u64, u64)) -> AppendOutcome {
    db.append_entries(0, holder, epoch, place, &payloads(&["x"])).await.unwrap()
}

/// What a node knows that has read everything.
async fn known(db: &Connection) -> KnownLog {
    let (next, chain) = end(db, 0).await;
    let epoch = db.look_at_lease(0, ANN).await.unwrap().epoch;
    KnownLog { epoch, index: next - 1, chain }
}

#[test]
fn p_2_nobody_takes_or_appends_to_a_log_that_is_another_one() {
    with_database(|server, db| async move {
        db.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        assert!(is_appended(append(&db, ANN, 2, (2, 0)).await));
        let fork = end(&db, 0).await;
        assert!(is_appended(append(&db, ANN, 2, fork).await));
        let (first, place) = (known(&db).await, end(&db, 0).await);
        lose_the_last(&server);
        server.sql("UPDATE ikada_lease SET expires_at = clock_timestamp()");
        let shorter = db.take_lease(0, BOB, TTL_MS, first).await.unwrap();
        assert_eq!((shorter.holder, shorter.epoch), (1, 2), "the log ends before what is known");
        // Somebody who did not know goes on with the very same bytes at the very same place.
        let other = db.take_lease(0, BOB, TTL_MS, NEW).await.unwrap();
        assert!(other.is_ours);
        assert!(is_appended(append(&db, BOB, other.epoch, fork).await));
        assert_eq!(known(&db).await.index, first.index);
        server.sql("UPDATE ikada_lease SET expires_at = clock_timestamp()");
        let again = db.take_lease(0, ANN, TTL_MS, first).await.unwrap();
        assert_eq!((again.holder, again.is_ours), (2, false), "long enough, and another log");
        let tail = db.read_entries(0, ANN, first.index + 1, 0).await.unwrap();
        assert!(tail.before.is_some_and(|(_, chain)| chain != first.chain), "which is seen");
        server.sql("UPDATE ikada_lease SET holder = 1, life = 11");
        assert_eq!(append(&db, ANN, other.epoch, place).await, AppendOutcome::Conflict);
        let higher = KnownLog { epoch: other.epoch + 1, ..known(&db).await };
        let lower = db.take_lease(0, ANN, TTL_MS, higher).await.unwrap();
        assert_eq!(lower.epoch, other.epoch, "an epoch below the known one is not built on");
        let fits = db.take_lease(0, ANN, TTL_MS, known(&db).await).await.unwrap();
        assert_eq!((fits.is_ours, fits.epoch), (true, other.epoch + 1));
    });
}

#[test]
fn p_2_a_lease_row_that_is_gone_is_not_made_anew_by_whoever_knows_one() {
    with_database(|server, db| async move {
        db.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        let known = known(&db).await;
        server.sql("DELETE FROM ikada_lease");
        let none = db.take_lease(0, ANN, TTL_MS, known).await.unwrap();
        assert_eq!((none.holder, none.epoch, none.is_ours), (0, 1, false));
    });
}

#[test]
fn p_2_a_mark_stops_every_writer_and_is_read_by_all() {
    with_database(|server, db| async move {
        db.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        assert!(is_appended(append(&db, ANN, 2, (2, 0)).await));
        db.mark_missing(0, 2, 9).await.unwrap();
        db.mark_missing(0, 3, 7).await.unwrap();
        let tail = db.read_entries(0, ANN, 3, 1 << 20).await.unwrap();
        assert_eq!(tail.missing, Some(Missing { index: 9, node: 2 }), "whoever knows most");
        assert_eq!(db.read_entries(1, ANN, 2, 0).await.unwrap().missing, None);
        let place = end(&db, 0).await;
        assert_eq!(append(&db, ANN, 2, place).await, AppendOutcome::Conflict);
        server.sql("UPDATE ikada_lease SET expires_at = clock_timestamp()");
        let refused = db.take_lease(0, BOB, TTL_MS, known(&db).await).await.unwrap();
        assert_eq!((refused.holder, refused.epoch), (1, 2));
    });
}

#[test]
fn p_2_a_repeated_append_makes_the_same_chain_and_a_purge_keeps_it() {
    with_database(|_, db| async move {
        db.take_lease(0, ANN, TTL_MS, NEW).await.unwrap();
        let outcome = db.append_entries(0, ANN, 2, (2, 0), &payloads(&["a", "b", "c"])).await;
        let AppendOutcome::Appended(chain) = outcome.unwrap() else { panic!("refused") };
        assert_eq!(end(&db, 0).await, (5, chain));
        // The last of the three entries is number 4.
        for missing in [(9, 0), (9, chain), (5, chain), (4, chain ^ 2)] {
            let there = db.read_entries(0, ANN, missing.0 + 1, 0).await.unwrap();
            assert!(!there.has(missing), "no snapshot of another log is stored: {missing:?}");
            // A database that was set back since: its log must not begin behind its own end.
            db.purge_entries(0, ANN, 2, 5, missing).await.unwrap();
            assert_eq!(db.read_entries(0, ANN, 5, 1).await.unwrap().purged_index, 1);
        }
        let there = db.read_entries(0, ANN, 5, 0).await.unwrap();
        assert!(there.has((4, chain)) && there.has((4, 0)), "an unknown chain is not compared");
        db.purge_entries(0, ANN, 2, 4, (4, chain)).await.unwrap();
        let there = db.read_entries(0, ANN, 3, 0).await.unwrap();
        assert!(there.has((2, chain)), "what lies below the beginning cannot be compared");
        let tail = db.read_entries(0, ANN, 5, 1 << 20).await.unwrap();
        assert_eq!((tail.purged_index, tail.before), (4, Some((2, chain))));
        assert!(is_appended(append(&db, ANN, 2, (5, chain)).await));
        db.purge_entries(0, ANN, 2, 5, (5, 0)).await.unwrap();
        let tail = db.read_entries(0, ANN, 5, 1 << 20).await.unwrap();
        assert_eq!(tail.before, None, "only the one at the beginning stays");
    });
}
