//! Hearing of changes: LISTEN on a connection of its own. Whoever watches polls too, since a pooler, or a broken
//! connection, may swallow what is said. A connection that is quiet is asked whether it lives: what stands between may have forgotten
//! it without a word.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

use super::connect::{Connection, PostgresError, Target};

/// Notices of changed shards.
pub struct Watch {
    notices: mpsc::Receiver<u16>,
    driver: tokio::task::JoinHandle<()>,
    client: tokio_postgres::Client,
    quiet: Duration,
}

/// How long a watch is quiet before it asks whether its connection lives.
pub const QUIET: Duration = Duration::from_secs(15);
/// How long the answer to that may take.
const LIFE_PATIENCE: Duration = Duration::from_secs(5);

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

/// Opens a connection that only listens; after so much quiet it asks whether anybody is there (`QUIET`).
pub async fn watch(target: &Target, quiet: Duration) -> Result<Watch, PostgresError> {
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
    let watch = Watch { notices, driver, client, quiet };
    let listening = watch.client.batch_execute("LISTEN ikada");
    match tokio::time::timeout(LIFE_PATIENCE, listening).await {
        Ok(Ok(())) => Ok(watch),
        Ok(Err(error)) => Err(PostgresError::refused(target.to_string(), &error)),
        Err(_) => {
            Err(PostgresError::unreachable(&target.to_string(), "it does not answer".to_owned()))
        }
    }
}

impl Watch {
    /// The next shard that changed; nothing once the connection is gone.
    pub async fn next(&mut self) -> Option<u16> {
        loop {
            match tokio::time::timeout(self.quiet, self.notices.recv()).await {
                Ok(notice) => return notice,
                Err(_) if self.lives().await => {}
                Err(_) => return None,
            }
        }
    }

    /// Whether the other side answers.
    async fn lives(&self) -> bool {
        let asking = self.client.simple_query("SELECT 1");
        matches!(tokio::time::timeout(LIFE_PATIENCE, asking).await, Ok(Ok(_)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
