//! Opening a connection, and what can be wrong with it.

use std::time::Duration;

use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Socket};

use super::protect::{Guard, Protected, Protection, Wish};

/// How long a connection may take to open.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Longest time of one statement; whoever asked has given up by then.
const STATEMENT_MS: u64 = 10_000;
/// What the driver says of a server that is asked for writes and takes none.
const NO_WRITES: &str = "database does not allow writes";

/// Where the database is. Shows itself without the password.
#[derive(Clone)]
pub struct Target {
    config: Config,
    protection: Protection,
}

/// What the driver does with a connection.
pub(super) type Traffic = tokio_postgres::Connection<Socket, Protected<Socket>>;

impl std::fmt::Debug for Target {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, out)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hosts: Vec<String> = self.config.get_hosts().iter().map(host_name).collect();
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let name = self.config.get_dbname().unwrap_or("");
        write!(out, "postgres://{}:{port}/{name}", hosts.join(","))
    }
}

fn host_name(host: &tokio_postgres::config::Host) -> String {
    match host {
        tokio_postgres::config::Host::Tcp(name) => name.clone(),
        tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
    }
}

/// What went wrong with the database.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The URL cannot be read.
    #[error("--log: not a Postgres URL: {0}; write postgres://user@host:5432/database")]
    BadUrl(String),
    /// The protection that the URL asks for cannot be given.
    #[error("--log: {0}")]
    Tls(String),
    /// No connection.
    #[error("cannot connect to {target}: {why}")]
    Connect {
        /// Where.
        target: String,
        /// What was said.
        why: String,
        /// Whether it may work later as it is: nobody listens there yet, or it has no room now.
        is_passing: bool,
    },
    /// The tables belong to another version of Ikada.
    #[error(
        "the tables in {target} have schema version {found}, this build reads {wanted}: run the version that made them, or use another schema"
    )]
    Version {
        /// Where.
        target: String,
        /// What is there.
        found: i32,
        /// What is wanted.
        wanted: i32,
    },
    /// A right is missing.
    #[error("{target}: {why}; grant the rights listed in docs/guides/postgres.md")]
    Rights {
        /// Where.
        target: String,
        /// What was said.
        why: String,
    },
    /// The database takes no writes.
    #[error(
        "{target} takes no writes ({why}): name the primary, not a standby, or end its read-only mode (default_transaction_read_only)"
    )]
    ReadOnly {
        /// Where.
        target: String,
        /// What was said.
        why: String,
    },
    /// A statement failed; nobody knows whether it happened.
    #[error("{0}")]
    Statement(String),
}

impl PostgresError {
    /// Whether the same may work later.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            PostgresError::Connect { is_passing: true, .. } | PostgresError::Statement(_)
        )
    }
}

impl Target {
    /// Reads a URL such as `postgres://user@host:5432/database`. A password may come from the variable `PGPASSWORD`;
    /// `sslmode` and `sslrootcert` say how connections are protected.
    pub fn parse(url: &str) -> Result<Target, PostgresError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(PostgresError::BadUrl("it must begin with postgres://".to_owned()));
        }
        let wish = Wish::read(url);
        let mut config: Config =
            wish.url.parse().map_err(|error| PostgresError::BadUrl(words(&error)))?;
        // Whatever follows a second @ would be shown as a host's name, and it may be a part of the password.
        if config.get_hosts().iter().any(|host| host_name(host).contains('@')) {
            let detail = "letters such as @ in a password are written as %40";
            return Err(PostgresError::BadUrl(detail.to_owned()));
        }
        wish.check_session()?;
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        let protection = wish.judge(&config)?;
        config.ssl_mode(match protection {
            Protection::Plain => SslMode::Disable,
            Protection::Named(_) | Protection::System => SslMode::Require,
        });
        if config.get_password().is_none()
            && let Ok(password) = std::env::var("PGPASSWORD")
        {
            config.password(password);
        }
        config.connect_timeout(CONNECT_PATIENCE);
        config.application_name("ikada");
        Ok(Target { config, protection })
    }

    /// Whether connections go by TLS.
    pub fn is_protected(&self) -> bool {
        !matches!(self.protection, Protection::Plain)
    }

    /// Opens a connection as the driver sees it.
    pub(super) async fn open(&self) -> Result<(Client, Traffic), PostgresError> {
        let guard: Guard = self.protection.guard()?;
        let opening = tokio::time::timeout(CONNECT_PATIENCE, self.config.connect(guard));
        let opened = opening.await.map_err(|_| PostgresError::Connect {
            target: self.to_string(),
            why: "it does not answer".to_owned(),
            is_passing: true,
        })?;
        opened.map_err(|error| self.refused(&error))
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<Connection, PostgresError> {
        let (client, connection) = self.open().await?;
        let driver = tokio::spawn(async move {
            // Whoever waits for an answer is told by the client's own error.
            let _ = connection.await;
        });
        let connection = Connection { client, driver, target: self.to_string() };
        let limits =
            format!("SET statement_timeout = {STATEMENT_MS}; SET lock_timeout = {STATEMENT_MS}");
        let limited = connection.client.batch_execute(&limits).await;
        limited.map_err(|error| self.refused(&error))?;
        Ok(connection)
    }

    pub(super) fn refused(&self, error: &tokio_postgres::Error) -> PostgresError {
        if words(error) == NO_WRITES {
            let (target, why) = (self.to_string(), "its sessions are read-only".to_owned());
            return PostgresError::ReadOnly { target, why };
        }
        let is_passing = error.code().map_or(!is_distrusted(error), |code| {
            [SqlState::CANNOT_CONNECT_NOW, SqlState::TOO_MANY_CONNECTIONS].contains(code)
        });
        PostgresError::Connect { target: self.to_string(), why: words(error), is_passing }
    }
}

/// An open connection.
pub struct Connection {
    pub(super) client: Client,
    driver: tokio::task::JoinHandle<()>,
    pub(super) target: String,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Whether the connection is gone.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// An error with what the operator can do about it.
    pub(super) fn explain(&self, error: &tokio_postgres::Error) -> PostgresError {
        let (target, why) = (self.target.clone(), words(error));
        match error.code() {
            Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                PostgresError::Rights { target, why }
            }
            Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
                PostgresError::ReadOnly { target, why }
            }
            _ => PostgresError::Statement(format!("{target}: {why}")),
        }
    }
}

/// Whether the other side could not prove who it is, or speaks no TLS at all: waiting does not mend that.
fn is_distrusted(error: &tokio_postgres::Error) -> bool {
    let Some(cause) = std::error::Error::source(error) else { return false };
    let broken = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    let broken = broken.and_then(|below| below.downcast_ref::<rustls::Error>());
    matches!(broken, Some(rustls::Error::InvalidCertificate(_)))
        || cause.to_string() == "server does not support TLS"
}

/// The database's own words, or the first cause below.
pub(super) fn words(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    cause.to_string()
}
