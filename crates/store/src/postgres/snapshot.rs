//! Snapshots in the database, so that the log can be purged and a node that is behind can catch up.

use bytes::Bytes;
use tokio_postgres::types::Type;

use super::connect::{Connection, PostgresError};
use super::lease::Parameter;

/// Number of the part that holds the manifest; chunks count from 0.
const MANIFEST_PART: i32 = -1;

/// The newest whole snapshot of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSnapshot {
    /// Its index.
    pub index: u64,
    /// Its manifest, as the snapshot store writes it.
    pub manifest: Bytes,
}

impl Connection {
    /// Stores one chunk; one that is there already stays.
    pub async fn put_snapshot_chunk(
        &self,
        shard: u16,
        index: u64,
        chunk: u32,
        bytes: &[u8],
    ) -> Result<(), PostgresError> {
        self.put_part(shard, index, chunk as i32, bytes).await
    }

    /// Stores the manifest, after all chunks: from then on the snapshot is there.
    pub async fn put_snapshot_manifest(
        &self,
        shard: u16,
        index: u64,
        bytes: &[u8],
    ) -> Result<(), PostgresError> {
        self.put_part(shard, index, MANIFEST_PART, bytes).await
    }

    async fn put_part(
        &self,
        shard: u16,
        index: u64,
        part: i32,
        bytes: &[u8],
    ) -> Result<(), PostgresError> {
        let sql = "INSERT INTO ikada_snapshot (shard, index, part, bytes) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        let (shard, index) = (i32::from(shard), index as i64);
        let parameters: [Parameter<'_>; 4] = [
            (&shard, Type::INT4),
            (&index, Type::INT8),
            (&part, Type::INT4),
            (&bytes, Type::BYTEA),
        ];
        let done = self.client.query_typed(sql, &parameters).await;
        done.map(drop).map_err(|error| self.explain(&error))
    }

    /// The newest snapshot whose manifest is there.
    pub async fn newest_snapshot(
        &self,
        shard: u16,
    ) -> Result<Option<StoredSnapshot>, PostgresError> {
        let sql = "SELECT index, bytes FROM ikada_snapshot WHERE shard = $1 AND part = $2 ORDER BY index DESC LIMIT 1";
        let shard = i32::from(shard);
        let parameters: [Parameter<'_>; 2] = [(&shard, Type::INT4), (&MANIFEST_PART, Type::INT4)];
        let rows = self
            .client
            .query_typed(sql, &parameters)
            .await
            .map_err(|error| self.explain(&error))?;
        Ok(rows.first().map(|row| StoredSnapshot {
            index: row.get::<_, i64>(0) as u64,
            manifest: Bytes::copy_from_slice(row.get::<_, &[u8]>(1)),
        }))
    }

    /// One chunk; nothing if a newer snapshot took this one's place meanwhile.
    pub async fn snapshot_chunk(
        &self,
        shard: u16,
        index: u64,
        chunk: u32,
    ) -> Result<Option<Bytes>, PostgresError> {
        let sql = "SELECT bytes FROM ikada_snapshot WHERE shard = $1 AND index = $2 AND part = $3";
        let (shard, index, part) = (i32::from(shard), index as i64, chunk as i32);
        let parameters: [Parameter<'_>; 3] =
            [(&shard, Type::INT4), (&index, Type::INT8), (&part, Type::INT4)];
        let rows = self
            .client
            .query_typed(sql, &parameters)
            .await
            .map_err(|error| self.explain(&error))?;
        Ok(rows.first().map(|row| Bytes::copy_from_slice(row.get::<_, &[u8]>(0))))
    }
}
