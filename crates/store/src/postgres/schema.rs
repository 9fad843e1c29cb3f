//! The tables: made on the first start, brought up to date by the first node of a newer version, checked on every start.
//!
//! Promises: a step runs whole or not at all, once, under a lock that only one node has. Steps are only ever added: what an
//! earlier version made is what the next step begins with. Nodes of an older version that run meanwhile go on; they are refused
//! when they start again.

use tokio_postgres::types::Type;

use super::connect::{Connection, PostgresError};

/// Version of the tables: how many steps have made them.
pub const SCHEMA_VERSION: i32 = STEPS.len() as i32;

/// What makes each version from the one before.
const STEPS: [&str; 3] = [TABLES, ROOM_FOR_RENEWALS, CHAINS];

/// Version 3: what a log is known by, and a mark where something is missing. Entries of nodes of an older version have no chain.
const CHAINS: &str = "
ALTER TABLE ikada_log ADD COLUMN IF NOT EXISTS chain bigint;
ALTER TABLE ikada_shard ADD COLUMN IF NOT EXISTS missing_index bigint, ADD COLUMN IF NOT EXISTS missing_by bigint;
";

/// Version 2: the row of a lease is written anew with every renewal; with room beside it that stays on its page.
const ROOM_FOR_RENEWALS: &str = "
ALTER TABLE ikada_lease SET (fillfactor = 20);
";

/// Version 1.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS ikada_cluster (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    plan bytea
);
CREATE TABLE IF NOT EXISTS ikada_node (
    node bigint PRIMARY KEY,
    incarnation bigint NOT NULL,
    peer_addr text NOT NULL,
    client_addr text NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE IF NOT EXISTS ikada_lease (
    shard integer PRIMARY KEY,
    holder bigint NOT NULL,
    life bigint NOT NULL,
    epoch bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    favoured bigint
);
CREATE TABLE IF NOT EXISTS ikada_shard (
    shard integer PRIMARY KEY,
    purged_index bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS ikada_log (
    shard integer NOT NULL,
    index bigint NOT NULL,
    epoch bigint NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (shard, index)
);
CREATE TABLE IF NOT EXISTS ikada_snapshot (
    shard integer NOT NULL,
    index bigint NOT NULL,
    part integer NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (shard, index, part)
);
";

/// One node makes the tables at a time; the number is arbitrary and only ours.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4921706823)";

impl Connection {
    /// Makes the tables if they are not there, brings older ones up to date, and checks their version.
    pub async fn prepare_schema(&self) -> Result<(), PostgresError> {
        if self.version().await?.unwrap_or(0) < SCHEMA_VERSION {
            let migrated = self.migrate().await;
            if migrated.is_err() {
                let _ = self.client.batch_execute("ROLLBACK").await;
            }
            migrated?;
        }
        self.check_schema().await
    }

    /// Checks the version of the tables, and changes nothing.
    pub async fn check_schema(&self) -> Result<(), PostgresError> {
        match self.version().await? {
            Some(SCHEMA_VERSION) => Ok(()),
            found => Err(PostgresError::Version {
                target: self.target.clone(),
                found: found.unwrap_or(0),
                wanted: SCHEMA_VERSION,
            }),
        }
    }

    /// Runs the steps that are missing, all in one transaction.
    async fn migrate(&self) -> Result<(), PostgresError> {
        let run = async |sql: &str| {
            self.client.batch_execute(sql).await.map_err(|error| self.explain(&error))
        };
        run(&format!("BEGIN; {LOCK}")).await?;
        // Another node may have been faster.
        let found = self.version().await?.unwrap_or(0);
        let missing = STEPS.iter().enumerate().skip(usize::try_from(found).unwrap_or(usize::MAX));
        for (before, step) in missing {
            run(step).await?;
            let version = before + 1;
            run(&format!(
                "INSERT INTO ikada_cluster (version) VALUES ({version})
                 ON CONFLICT (one) DO UPDATE SET version = {version}"
            ))
            .await?;
        }
        run("COMMIT").await
    }

    /// The version of the tables; nothing if there are none.
    async fn version(&self) -> Result<Option<i32>, PostgresError> {
        let there = "SELECT to_regclass('ikada_cluster') IS NOT NULL";
        let there =
            self.client.query_typed(there, &[]).await.map_err(|error| self.explain(&error))?;
        if !there.first().is_some_and(|row| row.get::<_, bool>(0)) {
            return Ok(None);
        }
        let rows = self.client.query_typed("SELECT version FROM ikada_cluster", &[]).await;
        let rows = rows.map_err(|error| self.explain(&error))?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// Makes the row of each shard: its log begins after this index.
    pub async fn prepare_shards(
        &self,
        shards: u16,
        purged_index: u64,
    ) -> Result<(), PostgresError> {
        let sql = "INSERT INTO ikada_shard (shard, purged_index)
            SELECT shard, $2 FROM generate_series(0, $1 - 1) AS shard ON CONFLICT DO NOTHING";
        let (shards, purged_index) = (i32::from(shards), purged_index as i64);
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&shards, Type::INT4), (&purged_index, Type::INT8)];
        let done = self.client.query_typed(sql, &parameters).await;
        done.map(drop).map_err(|error| self.explain(&error))
    }
}
