//! A schema of the bench's own in a Postgres that is there already: made before, dropped after.

use std::error::Error as _;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr as _;

use tokio_postgres::{Client, Config, NoTls};

use crate::failure::Failure;

/// A schema.
pub(super) struct Schema {
    target: String,
    name: String,
}

impl Schema {
    /// Makes one, if a database is named.
    pub(super) async fn create_if(url: Option<&str>) -> Result<Option<Schema>, Failure> {
        match url {
            Some(url) => Ok(Some(Schema::create(url).await?)),
            None => Ok(None),
        }
    }

    pub(super) async fn create(url: &str) -> Result<Schema, Failure> {
        let name = format!("ikada_bench_{:08x}", RandomState::new().hash_one(url) as u32);
        let client = open(url).await?;
        run(&client, &format!("CREATE SCHEMA {name}")).await?;
        Ok(Schema { target: url.to_owned(), name })
    }

    /// An address whose connections use the schema.
    pub(super) fn url(&self) -> String {
        let sign = if self.target.contains('?') { '&' } else { '?' };
        format!("{}{sign}options=-c%20search_path%3D{}", self.target, self.name)
    }

    pub(super) async fn remove_if(schema: Option<Schema>) -> Result<(), Failure> {
        match schema {
            Some(schema) => schema.remove().await,
            None => Ok(()),
        }
    }

    /// Drops it with everything in it.
    pub(super) async fn remove(self) -> Result<(), Failure> {
        let client = open(&self.target).await?;
        run(&client, &format!("DROP SCHEMA {} CASCADE", self.name)).await
    }
}

/// Opens a connection in the open. As for the nodes, a password may come from `PGPASSWORD`.
pub(super) async fn open(url: &str) -> Result<Client, Failure> {
    let failed = |error: tokio_postgres::Error| {
        let why = error.source().map(|why| format!(": {why}")).unwrap_or_default();
        Failure::usage(format!("--log: {error}{why}"))
    };
    let mut config = Config::from_str(url).map_err(failed)?;
    if config.get_password().is_none()
        && let Ok(password) = std::env::var("PGPASSWORD")
    {
        config.password(password);
    }
    let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
    // Whoever waits for an answer is told by the client's own error.
    tokio::spawn(connection);
    Ok(client)
}

pub(super) async fn run(client: &Client, statement: &str) -> Result<(), Failure> {
    let done = client.batch_execute(statement).await;
    done.map_err(|error| Failure::failed(format!("{statement}: {error}")))
}
