//! The log's rows: appended under the lease, read from an index on, purged below a snapshot.

use bytes::Bytes;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use super::chain::chains;
use super::connect::{Connection, PostgresError};
use super::lease::{Holder, LeaseRow, Parameter, SHOWN, SHOWN_COLUMNS, read_lease};

/// Most rows of one answer.
const ROWS_MAX: i64 = 1_024;

/// Most entries that one statement of a purge deletes: of 1 MiB each, still seconds of work.
const PURGE_ROWS_MAX: i64 = 500;
/// Most chunks of older snapshots that one statement deletes.
const PURGE_CHUNKS_MAX: i64 = 100;

/// Where a reading shows the lease.
const LEASE_COLUMN: usize = 6;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// Its place.
    pub index: u64,
    /// Epoch of the holder that wrote it.
    pub epoch: u64,
    /// The chain up to it; 0 if a version wrote it that made none.
    pub chain: u64,
    /// Its content.
    pub payload: Bytes,
}

/// The mark of a node that knows more than the log has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// How far it knows the log.
    pub index: u64,
    /// The node.
    pub node: u64,
}

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// All of it is in the log, which has this chain now.
    Appended(u64),
    /// The lease is not ours any more: nothing was written.
    Deposed,
    /// The log does not end with what comes before the entries, or bears a mark: nothing was written.
    Conflict,
}

/// A part of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The lease at the same moment.
    pub lease: LeaseRow,
    /// Everything up to here is gone.
    pub purged_index: u64,
    /// The end of the log.
    pub last_index: u64,
    /// Epoch and chain of the entry before the first one wanted, if it is there.
    pub before: Option<(u64, u64)>,
    /// The mark, if somebody left one.
    pub missing: Option<Missing>,
    /// The entries, without gaps.
    pub entries: Vec<LogRow>,
}

impl Tail {
    /// Whether this log, read from behind a known entry on (its index and chain; 0 is a chain that is not known), is the one
    /// that had it: the same question as a purge asks.
    pub fn has(&self, (index, chain): (u64, u64)) -> bool {
        let is_same = self.before.is_some_and(|(_, before)| before == chain);
        self.last_index >= index && (chain == 0 || index < self.purged_index || is_same)
    }
}

impl Connection {
    /// Appends entries from an index on, if the lease is still ours.
    ///
    /// The row of the lease is locked for sharing: a takeover waits until this statement is over, and one that came first
    /// is seen here. The end of the log is looked at too, by its chain: a log that was set back gets no more of what belongs to another.
    /// Nobody is told here: commits that notify wait for each other in the whole database, so appends could not share a sync.
    pub async fn append_entries(
        &self,
        shard: u16,
        holder: Holder,
        epoch: u64,
        (first_index, after): (u64, u64),
        payloads: &[Bytes],
    ) -> Result<AppendOutcome, PostgresError> {
        const SQL: &str = "
            WITH held AS (
                SELECT 1 AS one FROM ikada_lease
                WHERE shard = $1 AND holder = $2 AND life = $3 AND epoch = $4 FOR SHARE
            ), fits AS (
                SELECT 1 AS one FROM ikada_shard AS s WHERE s.shard = $1 AND s.missing_index IS NULL
                    AND $5 - 1 = coalesce((SELECT max(index) FROM ikada_log WHERE shard = $1), s.purged_index)
                    AND $7 = coalesce((SELECT chain FROM ikada_log WHERE shard = $1 AND index = $5 - 1), 0)
            ), put AS (
                INSERT INTO ikada_log (shard, index, epoch, payload, chain)
                SELECT $1, $5 + entry.place - 1, $4, entry.payload, entry.chain
                FROM held, fits, unnest($6::bytea[], $8::bigint[]) WITH ORDINALITY AS entry (payload, chain, place)
                RETURNING 1
            )
            SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM put)";
        let payloads: Vec<&[u8]> = payloads.iter().map(Bytes::as_ref).collect();
        let chains = chains(after, holder, epoch, first_index, &payloads);
        let (after, last) = (after as i64, chains.last().map_or(after, |last| *last as u64));
        let (shard, node, life) = (i32::from(shard), holder.node as i64, holder.life as i64);
        let (epoch, first_index) = (epoch as i64, first_index as i64);
        let parameters: [Parameter<'_>; 8] = [
            (&shard, Type::INT4),
            (&node, Type::INT8),
            (&life, Type::INT8),
            (&epoch, Type::INT8),
            (&first_index, Type::INT8),
            (&payloads, Type::BYTEA_ARRAY),
            (&after, Type::INT8),
            (&chains, Type::INT8_ARRAY),
        ];
        match self.client.query_typed(SQL, &parameters).await {
            Ok(rows) => {
                let count = |column: usize| rows.first().map_or(0, |row| row.get::<_, i64>(column));
                Ok(match (count(0), count(1) as usize == payloads.len()) {
                    (0, _) => AppendOutcome::Deposed,
                    (_, true) => AppendOutcome::Appended(last),
                    (_, false) => AppendOutcome::Conflict,
                })
            }
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                Ok(AppendOutcome::Conflict)
            }
            Err(error) => Err(self.explain(&error)),
        }
    }

    /// Reads entries from an index on, with the lease and the log's bounds of the same moment.
    pub async fn read_entries(
        &self,
        shard: u16,
        holder: Holder,
        from_index: u64,
        bytes_max: u64,
    ) -> Result<Tail, PostgresError> {
        let sql = format!(
            "WITH entries AS (
                SELECT index, epoch, payload, chain, sum(octet_length(payload)) OVER (ORDER BY index) - octet_length(payload) AS before
                FROM (SELECT * FROM ikada_log WHERE shard = $1 AND index >= $4 ORDER BY index LIMIT {ROWS_MAX}) AS part
            )
            SELECT s.purged_index,
                coalesce((SELECT max(index) FROM ikada_log WHERE shard = $1), s.purged_index) AS last_index,
                b.epoch AS before_epoch, b.chain AS before_chain, s.missing_index, s.missing_by,
                {SHOWN}, e.index, e.epoch, e.payload, e.chain
            FROM ikada_shard AS s
            LEFT JOIN ikada_lease AS l ON l.shard = s.shard
            LEFT JOIN ikada_log AS b ON b.shard = s.shard AND b.index = $4 - 1
            LEFT JOIN entries AS e ON e.before < $5
            WHERE s.shard = $1 ORDER BY e.index"
        );
        let (number, node, life) = (i32::from(shard), holder.node as i64, holder.life as i64);
        let (from_index, bytes_max) = (from_index as i64, bytes_max as i64);
        let parameters: [Parameter<'_>; 5] = [
            (&number, Type::INT4),
            (&node, Type::INT8),
            (&life, Type::INT8),
            (&from_index, Type::INT8),
            (&bytes_max, Type::INT8),
        ];
        let rows = self.client.query_typed(&sql, &parameters).await;
        let rows = rows.map_err(|error| self.explain(&error))?;
        let Some(first) = rows.first() else {
            let why = format!("{}: the row of shard {shard} is gone from ikada_shard", self.target);
            return Err(PostgresError::Statement(why));
        };
        let number = |row: &Row, column| row.get::<_, Option<i64>>(column).map(|it| it as u64);
        let entries = rows.iter().filter_map(|row| {
            let place = LEASE_COLUMN + SHOWN_COLUMNS;
            number(row, place).map(|index| LogRow {
                index,
                epoch: row.get::<_, i64>(place + 1) as u64,
                chain: number(row, place + 3).unwrap_or(0),
                payload: Bytes::copy_from_slice(row.get::<_, &[u8]>(place + 2)),
            })
        });
        let missing = |index| Missing { index, node: number(first, 5).unwrap_or(0) };
        Ok(Tail {
            lease: read_lease(first, LEASE_COLUMN),
            purged_index: first.get::<_, i64>(0) as u64,
            last_index: first.get::<_, i64>(1) as u64,
            before: number(first, 2).map(|epoch| (epoch, number(first, 3).unwrap_or(0))),
            missing: number(first, 4).map(missing),
            entries: entries.collect(),
        })
    }

    /// Leaves a mark for all nodes: this one knows entries up to an index, and some of them are missing here, or are others. Whoever
    /// knows most stays named.
    pub async fn mark_missing(
        &self,
        shard: u16,
        node: u64,
        index: u64,
    ) -> Result<(), PostgresError> {
        let sql = "UPDATE ikada_shard SET missing_index = $2, missing_by = $3
            WHERE shard = $1 AND (missing_index IS NULL OR missing_index < $2)";
        let (shard, node, index) = (i32::from(shard), node as i64, index as i64);
        let parameters: [Parameter<'_>; 3] =
            [(&shard, Type::INT4), (&index, Type::INT8), (&node, Type::INT8)];
        let done = self.client.query_typed(sql, &parameters).await;
        done.map(drop).map_err(|error| self.explain(&error))
    }

    /// Drops the entries below an index, if the lease is still ours and the log has the entry that is known to be in it (its index and
    /// chain; 0 is a chain that is not known). A stored snapshot must cover them, and the one at the index, which stays for its chain.
    ///
    /// First the log's beginning moves; what lies below it then goes in parts, each within the time of one statement. Parts that
    /// an earlier try left behind go too.
    pub async fn purge_entries(
        &self,
        shard: u16,
        holder: Holder,
        epoch: u64,
        to_index: u64,
        (known_index, known_chain): (u64, u64),
    ) -> Result<(), PostgresError> {
        const MOVE: &str = "
            WITH held AS (
                SELECT 1 AS one FROM ikada_lease
                WHERE shard = $1 AND holder = $2 AND life = $3 AND epoch = $4 FOR SHARE
            )
            UPDATE ikada_shard AS s SET purged_index = greatest(s.purged_index, $5) FROM held
            WHERE s.shard = $1
                AND $6 <= coalesce((SELECT max(index) FROM ikada_log WHERE shard = $1), s.purged_index)
                AND ($7 = 0 OR $6 < s.purged_index
                    OR EXISTS (SELECT 1 FROM ikada_log AS k WHERE k.shard = $1 AND k.index = $6 AND k.chain = $7))
            RETURNING 1";
        let (number, node, life) = (i32::from(shard), holder.node as i64, holder.life as i64);
        let (epoch, to_index) = (epoch as i64, to_index as i64);
        let (known_index, known_chain) = (known_index as i64, known_chain as i64);
        let parameters: [Parameter<'_>; 7] = [
            (&number, Type::INT4),
            (&node, Type::INT8),
            (&life, Type::INT8),
            (&epoch, Type::INT8),
            (&to_index, Type::INT8),
            (&known_index, Type::INT8),
            (&known_chain, Type::INT8),
        ];
        let moved = self.client.query_typed(MOVE, &parameters).await;
        if moved.map_err(|error| self.explain(&error))?.is_empty() {
            return Ok(());
        }
        while self.drop_part(shard).await? {}
        Ok(())
    }

    /// Deletes one part of what lies below the log's beginning; false once nothing is left.
    async fn drop_part(&self, shard: u16) -> Result<bool, PostgresError> {
        // The rows are named by their place, so that no part touches more of them than it may.
        let sql = format!(
            "WITH gone AS (
                DELETE FROM ikada_log WHERE shard = $1 AND index IN (
                    SELECT index FROM ikada_log WHERE shard = $1
                        AND index < (SELECT purged_index FROM ikada_shard WHERE shard = $1)
                    ORDER BY index LIMIT {PURGE_ROWS_MAX}) RETURNING 1
            ), older AS (
                DELETE FROM ikada_snapshot WHERE shard = $1 AND (index, part) IN (
                    SELECT index, part FROM ikada_snapshot WHERE shard = $1
                        AND index < (SELECT purged_index FROM ikada_shard WHERE shard = $1)
                    ORDER BY index, part LIMIT {PURGE_CHUNKS_MAX}) RETURNING 1
            )
            SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM older)"
        );
        let shard = i32::from(shard);
        let rows = self.client.query_typed(&sql, &[(&shard, Type::INT4)]).await;
        let rows = rows.map_err(|error| self.explain(&error))?;
        Ok(rows.first().is_some_and(|row| row.get::<_, i64>(0) > 0))
    }
}
