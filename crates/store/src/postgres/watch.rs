//! Hearing of changes: LISTEN on a connection of its own. Whoever watches polls too, since a pooler, or a broken
//! connection, may swallow what is said.

use tokio::sync::mpsc;
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

use super::connect::{Connection, PostgresError, Target};

/// Notices of changed shards.
pub struct Watch {
    notices: mpsc::Receiver<u16>,
    driver: tokio::task::JoinHandle<()>,
    _client: tokio_postgres::Client,
}

/// Notices that may wait; more are dropped, the next poll makes up for them.
const NOTICES_MAX: usize = 1_024;

impl Connection {
    /// Tells whoever watches that these shards changed. Writes nothing, so it waits for no disk.
    pub async fn tell(&self, shards: &[u16]) -> Result<(), PostgresError> {
        let sql = "SELECT pg_notify('ikada', shard::text) FROM unnest($1::integer[]) AS shard";
        let shards: Vec<i32> = shards.iter().copied().map(i32::from).collect();
        let done = self.client.query_typed(sql, &[(&shards, Type::INT4_ARRAY)]).await;
        done.map(drop).map_err(|error| self.explain(&error))
    }
}

/// Opens a connection that only listens.
pub async fn watch(target: &Target) -> Result<Watch, PostgresError> {
    let (client, mut connection) = target.open().await?;
    let (sender, notices) = mpsc::channel(NOTICES_MAX);
    let driver = tokio::spawn(async move {
        while let Some(Ok(message)) =
            std::future::poll_fn(|context| connection.poll_message(context)).await
        {
            if let AsyncMessage::Notification(notice) = message
                && let Ok(shard) = notice.payload().parse()
            {
                let _ = sender.try_send(shard);
            }
        }
    });
    client.batch_execute("LISTEN ikada").await.map_err(|error| target.refused(&error))?;
    Ok(Watch { notices, driver, _client: client })
}

impl Watch {
    /// The next shard that changed; nothing once the connection is gone.
    pub async fn next(&mut self) -> Option<u16> {
        self.notices.recv().await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
