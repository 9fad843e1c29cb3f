//! Opening a connection, and what can be wrong with it.

use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Error, Socket};

use super::protect::{Guard, Protected, Protection, Wish, host_name};
use super::reach::Hosts;

/// What the driver says of a server that is asked for writes and takes none.
const NO_WRITES: &str = "database does not allow writes";
/// What a server says that will serve soon, or again.
const PASSING: [SqlState; 6] = [
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::TOO_MANY_CONNECTIONS,
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::OUT_OF_MEMORY,
    SqlState::DISK_FULL,
];

/// Where the database is. Shows itself without the password. Copies share what was learnt about its hosts.
#[derive(Clone)]
pub struct Target {
    hosts: Hosts,
    shown: String,
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
        out.write_str(&self.shown)
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
    /// The database has no room.
    #[error("{target} has no room ({why}): give it more, all goes on by itself then")]
    Full {
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

    /// No host was good, and waiting may mend that.
    pub(super) fn unreachable(target: &str, why: String) -> PostgresError {
        PostgresError::Connect { target: target.to_owned(), why, is_passing: true }
    }

    /// What a connection that was not opened comes to.
    pub(super) fn refused(target: String, error: &Error) -> PostgresError {
        let why = words(error);
        if why == NO_WRITES {
            return PostgresError::ReadOnly {
                target,
                why: "its sessions are read-only".to_owned(),
            };
        }
        let is_passing = match error.code() {
            Some(code) => PASSING.contains(code),
            None => may_pass(error),
        };
        let why = match hint(error, &why) {
            Some(hint) => format!("{why}: {hint}"),
            None => why,
        };
        PostgresError::Connect { target, why, is_passing }
    }

    /// The words without the name of the database.
    pub(super) fn cause(&self) -> String {
        match self {
            PostgresError::Connect { why, .. } | PostgresError::Rights { why, .. } => why.clone(),
            PostgresError::Full { why, .. } => format!("has no room ({why})"),
            PostgresError::ReadOnly { why, .. } => format!("takes no writes ({why})"),
            other => other.to_string(),
        }
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
        config.application_name("ikada");
        let hosts = Hosts::of(&config)?;
        let shown =
            format!("postgres://{}/{}", hosts.names(), config.get_dbname().unwrap_or_default());
        Ok(Target { hosts, shown, protection })
    }

    /// Whether connections go by TLS.
    pub fn is_protected(&self) -> bool {
        !matches!(self.protection, Protection::Plain)
    }

    /// Opens a connection as the driver sees it.
    pub(super) async fn open(&self) -> Result<(Client, Traffic), PostgresError> {
        let guard: Guard = self.protection.guard()?;
        self.hosts.open(&guard, &self.shown).await
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<Connection, PostgresError> {
        let (client, connection) = self.open().await?;
        let driver = tokio::spawn(async move {
            // Whoever waits for an answer is told by the client's own error.
            let _ = connection.await;
        });
        Ok(Connection { client, driver, target: self.shown.clone() })
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
            Some(code) if *code == SqlState::DISK_FULL => PostgresError::Full { target, why },
            Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
                PostgresError::ReadOnly { target, why }
            }
            _ => PostgresError::Statement(format!("{target}: {why}")),
        }
    }
}

/// Whether it may work later although nothing is changed: nobody listens there, or whoever did is gone again. Not where a
/// certificate does not hold, TLS is refused, or the server asks for what was not given.
fn may_pass(error: &Error) -> bool {
    // The driver's kinds can be told by their words only.
    if error.to_string() == "authentication error" {
        return false;
    }
    let Some(cause) = std::error::Error::source(error) else { return true };
    let Some(broken) = cause.downcast_ref::<std::io::Error>() else { return false };
    let Some(below) = broken.get_ref() else { return true };
    !below.is::<rustls::Error>() && !below.is::<rustls::pki_types::InvalidDnsNameError>()
}

/// What to do about it, where the words alone do not tell.
fn hint(error: &Error, why: &str) -> Option<&'static str> {
    if why == "password missing" {
        return Some(
            "the database asks for a password; set PGPASSWORD, or write it into the URL in IKADA_LOG_URL",
        );
    }
    let broken = std::error::Error::source(error)?.downcast_ref::<std::io::Error>()?;
    match broken.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_) => Some(
            "connections go by TLS 1.3, without a certificate of the node's own; see docs/guides/postgres.md",
        ),
        _ => None,
    }
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
