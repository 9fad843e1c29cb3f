//! A cluster that begins in the database with states of another: its snapshots are stored first, then one statement makes
//! everything else, the plan included. Until then the tables hold no cluster, and a second try begins anew.

use bytes::Bytes;
use tokio_postgres::types::Type;

use super::connect::{Connection, PostgresError};
use super::lease::Parameter;

/// Where one shard begins, after the snapshot stored for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSeed {
    /// Index of the snapshot.
    pub index: u64,
    /// Epoch there; the first holder has a higher one.
    pub epoch: u64,
    /// The entry after it.
    pub first: Bytes,
}

impl Connection {
    /// Makes room for seeds: true if the tables hold no cluster; snapshots of an earlier try are gone then.
    pub async fn clear_for_seeds(&self) -> Result<bool, PostgresError> {
        let sql = "WITH vacant AS (
                SELECT 1 AS one FROM ikada_cluster WHERE plan IS NULL
                    AND NOT EXISTS (SELECT 1 FROM ikada_log) AND NOT EXISTS (SELECT 1 FROM ikada_lease)
            ), older AS (DELETE FROM ikada_snapshot USING vacant)
            SELECT count(*) FROM vacant";
        let rows = self.client.query_typed(sql, &[]).await.map_err(|error| self.explain(&error))?;
        Ok(rows.first().is_some_and(|row| row.get::<_, i64>(0) > 0))
    }

    /// Makes the cluster: plan, shards, their first entries, and leases that nobody holds. False if there is one already.
    pub async fn seed_cluster(
        &self,
        plan: &[u8],
        seeds: &[ShardSeed],
    ) -> Result<bool, PostgresError> {
        const SQL: &str = "
            WITH stood AS (
                UPDATE ikada_cluster SET plan = $1 WHERE plan IS NULL RETURNING 1 AS one
            ), seed AS (
                SELECT made.* FROM stood, unnest($2::integer[], $3::bigint[], $4::bigint[], $5::bytea[])
                    AS made (shard, index, epoch, payload)
            ), shards AS (
                INSERT INTO ikada_shard (shard, purged_index) SELECT shard, index FROM seed
            ), entries AS (
                INSERT INTO ikada_log (shard, index, epoch, payload) SELECT shard, index + 1, epoch, payload FROM seed
            ), leases AS (
                INSERT INTO ikada_lease (shard, holder, life, epoch, expires_at)
                SELECT shard, 0, 0, epoch, clock_timestamp() FROM seed
            )
            SELECT count(*) FROM stood";
        let shards: Vec<i32> = (0..seeds.len() as i32).collect();
        let indexes: Vec<i64> = seeds.iter().map(|seed| seed.index as i64).collect();
        let epochs: Vec<i64> = seeds.iter().map(|seed| seed.epoch as i64).collect();
        let entries: Vec<&[u8]> = seeds.iter().map(|seed| seed.first.as_ref()).collect();
        let parameters: [Parameter<'_>; 5] = [
            (&plan, Type::BYTEA),
            (&shards, Type::INT4_ARRAY),
            (&indexes, Type::INT8_ARRAY),
            (&epochs, Type::INT8_ARRAY),
            (&entries, Type::BYTEA_ARRAY),
        ];
        let rows = self.client.query_typed(SQL, &parameters).await;
        let rows = rows.map_err(|error| self.explain(&error))?;
        Ok(rows.first().is_some_and(|row| row.get::<_, i64>(0) > 0))
    }
}
