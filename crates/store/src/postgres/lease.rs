//! The lease's row: taken, renewed, released, looked at. Each in one statement.

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::connect::{Connection, PostgresError};

/// A process: a node, and which of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The node.
    pub node: u64,
    /// Drawn at each start.
    pub life: u64,
}

/// The lease of one shard as the database has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseRow {
    /// Who took it last; 0 if nobody ever did.
    pub holder: u64,
    /// Which of the node's lives that was.
    pub life: u64,
    /// Whether that is the very process that asked.
    pub is_ours: bool,
    /// Rises with every taking.
    pub epoch: u64,
    /// How long it still holds; 0 if it has expired.
    pub remaining_ms: u64,
    /// Who should be let first.
    pub favoured: Option<u64>,
}

/// What is shown of the row `l`, given the asking process as `$2` and `$3`.
pub(super) const SHOWN: &str = "l.holder, (l.holder = $2 AND l.life = $3) AS is_ours, l.epoch,
    greatest(0, floor(extract(epoch FROM l.expires_at - clock_timestamp()) * 1000))::bigint AS remaining_ms, l.favoured, l.life";

/// How many columns that is.
pub(super) const SHOWN_COLUMNS: usize = 6;

/// What a node knows of a shard's log; 0 is a chain that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownLog {
    /// Highest epoch of the lease.
    pub epoch: u64,
    /// Index of the last entry.
    pub index: u64,
    /// The chain there.
    pub chain: u64,
}

pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Reads what `SHOWN` shows, from a column on.
pub(super) fn read_lease(row: &Row, first: usize) -> LeaseRow {
    let holder: Option<i64> = row.get(first);
    let Some(holder) = holder else {
        return LeaseRow { epoch: 1, ..LeaseRow::default() };
    };
    LeaseRow {
        holder: holder as u64,
        is_ours: row.get::<_, Option<bool>>(first + 1).unwrap_or(false),
        epoch: row.get::<_, Option<i64>>(first + 2).unwrap_or(1) as u64,
        remaining_ms: row.get::<_, Option<i64>>(first + 3).unwrap_or(0) as u64,
        favoured: row.get::<_, Option<i64>>(first + 4).map(|node| node as u64),
        life: row.get::<_, Option<i64>>(first + 5).unwrap_or(0) as u64,
    }
}

impl Connection {
    /// Takes the lease if nobody has it, if it is the node's own, if it has expired, or if it would last longer than any
    /// could: then the database's clock was moved back since. Never of a database that lacks what the node knows, or that bears
    /// a mark: it was restored to an older state.
    pub async fn take_lease(
        &self,
        shard: u16,
        holder: Holder,
        ttl_ms: u64,
        known: KnownLog,
    ) -> Result<LeaseRow, PostgresError> {
        // Every column of the row there is named after its table: unqualified ones would mean either row (LS-12).
        let sql = format!(
            "INSERT INTO ikada_lease AS l (shard, holder, life, epoch, expires_at)
             SELECT $1, $2, $3, 2, clock_timestamp() + $4 * interval '1 millisecond' FROM ikada_shard AS s
             WHERE s.shard = $1 AND s.missing_index IS NULL
                 AND $6 <= coalesce((SELECT max(index) FROM ikada_log WHERE shard = $1), s.purged_index)
                 AND ($7 = 0 OR $6 < s.purged_index
                     OR EXISTS (SELECT 1 FROM ikada_log AS k WHERE k.shard = $1 AND k.index = $6 AND k.chain = $7))
                 AND ($5 <= 1 OR EXISTS (SELECT 1 FROM ikada_lease AS h WHERE h.shard = $1))
             ON CONFLICT (shard) DO UPDATE SET holder = excluded.holder, life = excluded.life, epoch = l.epoch + 1,
                 expires_at = clock_timestamp() + $4 * interval '1 millisecond', favoured = NULL
             WHERE l.epoch >= $5 AND (l.holder = excluded.holder OR l.expires_at <= clock_timestamp()
                 OR l.expires_at > clock_timestamp() + $4 * interval '1 millisecond')
             RETURNING {SHOWN}"
        );
        let (ttl, epoch) = (ttl_ms as f64, known.epoch as i64);
        let (index, chain) = (known.index as i64, known.chain as i64);
        let more: [Parameter<'_>; 4] = [
            (&ttl, Type::FLOAT8),
            (&epoch, Type::INT8),
            (&index, Type::INT8),
            (&chain, Type::INT8),
        ];
        match self.lease_statement(&sql, shard, holder, &more).await? {
            Some(taken) => Ok(taken),
            None => self.look_at_lease(shard, holder).await,
        }
    }

    /// Extends the lease if it is still ours.
    pub async fn renew_lease(
        &self,
        shard: u16,
        holder: Holder,
        epoch: u64,
        ttl_ms: u64,
    ) -> Result<LeaseRow, PostgresError> {
        let sql = format!(
            "UPDATE ikada_lease AS l SET expires_at = clock_timestamp() + $5 * interval '1 millisecond'
             WHERE shard = $1 AND holder = $2 AND life = $3 AND epoch = $4 RETURNING {SHOWN}"
        );
        let (epoch, ttl) = (epoch as i64, ttl_ms as f64);
        let more: [Parameter<'_>; 2] = [(&epoch, Type::INT8), (&ttl, Type::FLOAT8)];
        match self.lease_statement(&sql, shard, holder, &more).await? {
            Some(renewed) => Ok(renewed),
            None => self.look_at_lease(shard, holder).await,
        }
    }

    /// Ends the lease if it is still ours.
    pub async fn release_lease(
        &self,
        shard: u16,
        holder: Holder,
        epoch: u64,
        to: Option<u64>,
    ) -> Result<LeaseRow, PostgresError> {
        let sql = format!(
            "WITH told AS (SELECT pg_notify('ikada', $1::integer::text))
             UPDATE ikada_lease AS l SET expires_at = clock_timestamp(), favoured = $5 FROM told
             WHERE shard = $1 AND holder = $2 AND life = $3 AND epoch = $4 RETURNING {SHOWN}"
        );
        let (epoch, to) = (epoch as i64, to.map(|node| node as i64));
        let more: [Parameter<'_>; 2] = [(&epoch, Type::INT8), (&to, Type::INT8)];
        match self.lease_statement(&sql, shard, holder, &more).await? {
            Some(released) => Ok(released),
            None => self.look_at_lease(shard, holder).await,
        }
    }

    /// The lease as it is.
    pub async fn look_at_lease(
        &self,
        shard: u16,
        holder: Holder,
    ) -> Result<LeaseRow, PostgresError> {
        let sql = format!("SELECT {SHOWN} FROM ikada_lease AS l WHERE shard = $1");
        let found = self.lease_statement(&sql, shard, holder, &[]).await?;
        Ok(found.unwrap_or(LeaseRow { epoch: 1, ..LeaseRow::default() }))
    }

    async fn lease_statement(
        &self,
        sql: &str,
        shard: u16,
        holder: Holder,
        more: &[Parameter<'_>],
    ) -> Result<Option<LeaseRow>, PostgresError> {
        let (shard, node, life) = (i32::from(shard), holder.node as i64, holder.life as i64);
        let mut parameters: Vec<Parameter<'_>> =
            vec![(&shard, Type::INT4), (&node, Type::INT8), (&life, Type::INT8)];
        parameters.extend(more.iter().map(|(value, kind)| (*value, kind.clone())));
        let rows = self.client.query_typed(sql, &parameters).await;
        let rows = rows.map_err(|error| self.explain(&error))?;
        Ok(rows.first().map(|row| read_lease(row, 0)))
    }
}
