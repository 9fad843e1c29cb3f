//! A table in Postgres as a work queue: `SELECT ... FOR UPDATE SKIP LOCKED`, one task per transaction, as most such queues do.
//!
//! Prepared statements, a partial index over what waits, and more connections than the server has processors. A claim and a
//! completion are a transaction each, so that a worker that dies holds no connection and no lock.

use std::io;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_postgres::{Client, Statement};

use super::callers::{Caller, call_all};
use crate::bench::database::{Schema, open, run};
use crate::bench::queue::tasks::Tally;
use crate::failure::Failure;

/// Connections that insert.
const SENDERS: usize = 32;
/// Connections that take and complete.
const TAKERS: usize = 32;
/// Pause of a taker that found nothing.
const IDLE_MS: u64 = 2;

const MAKE: &str = "
CREATE TABLE task (
    id bigserial PRIMARY KEY,
    state smallint NOT NULL DEFAULT 0,
    attempt integer NOT NULL DEFAULT 0,
    claimed_until timestamptz,
    payload bytea NOT NULL
);
CREATE INDEX task_ready ON task (id) WHERE state = 0;";
const PUT: &str = "INSERT INTO task (payload) VALUES ($1)";
const TAKE: &str = "UPDATE task SET state = 1, attempt = attempt + 1, claimed_until = now() + interval '30 seconds'
    WHERE id = (SELECT id FROM task WHERE state = 0 ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id, attempt, payload";
const DONE: &str = "UPDATE task SET state = 2 WHERE id = $1 AND state = 1 AND attempt = $2";

/// The table, in a schema of its own.
pub(super) struct Table {
    schema: Schema,
    version: String,
}

impl Table {
    pub(super) async fn make(url: Option<&str>) -> Result<Table, Failure> {
        let Some(url) = url else {
            return Err(Failure::usage("--beside postgres measures the server of --log: name it"));
        };
        let schema = Schema::create(url).await?;
        let client = open(&schema.url()).await?;
        run(&client, MAKE).await?;
        let failed = |error: tokio_postgres::Error| Failure::failed(error.to_string());
        let row = client.query_one("SHOW server_version", &[]).await.map_err(failed)?;
        let number: String = row.get(0);
        let number = number.split_whitespace().next().unwrap_or_default();
        Ok(Table { schema, version: format!("postgres {number}, skip locked") })
    }

    pub(super) fn version(&self) -> String {
        self.version.clone()
    }

    pub(super) async fn clear(&self) -> io::Result<()> {
        let client = self.open().await?;
        client.batch_execute("TRUNCATE task RESTART IDENTITY").await.map_err(io::Error::other)
    }

    pub(super) async fn remove(self) -> Result<(), Failure> {
        self.schema.remove().await
    }

    async fn open(&self) -> io::Result<Client> {
        let opened = open(&self.schema.url()).await;
        opened.map_err(|failure| io::Error::other(failure.to_string()))
    }

    /// Inserts tasks, one per transaction.
    pub(super) async fn send(&self, callers: usize, total: u64, payload: &[u8]) -> io::Result<()> {
        let mut senders = Vec::new();
        for _ in 0..SENDERS.min(callers) {
            let client = self.open().await?;
            let put = client.prepare(PUT).await.map_err(io::Error::other)?;
            senders.push(Arc::new(Sender { client, put, payload: payload.to_vec() }));
        }
        call_all(senders, callers, total).await
    }

    /// Takes and completes tasks until all are settled.
    pub(super) async fn consume(&self, tally: &Arc<Tally>) -> io::Result<()> {
        let mut taking = JoinSet::new();
        for _ in 0..TAKERS {
            taking.spawn(take(self.open().await?, tally.clone()));
        }
        while let Some(ended) = taking.join_next().await {
            ended.map_err(io::Error::other)??;
        }
        Ok(())
    }
}

struct Sender {
    client: Client,
    put: Statement,
    payload: Vec<u8>,
}

impl Caller for Sender {
    async fn call(&self) -> io::Result<()> {
        let done = self.client.execute(&self.put, &[&self.payload]).await;
        done.map(drop).map_err(io::Error::other)
    }
}

async fn take(client: Client, tally: Arc<Tally>) -> io::Result<()> {
    let take = client.prepare(TAKE).await.map_err(io::Error::other)?;
    let done = client.prepare(DONE).await.map_err(io::Error::other)?;
    while !tally.is_done() {
        let Some(row) = client.query_opt(&take, &[]).await.map_err(io::Error::other)? else {
            tokio::time::sleep(std::time::Duration::from_millis(IDLE_MS)).await;
            continue;
        };
        let (id, attempt): (i64, i32) = (row.get(0), row.get(1));
        let settled = client.execute(&done, &[&id, &attempt]).await.map_err(io::Error::other)?;
        tally.add(settled);
    }
    Ok(())
}
