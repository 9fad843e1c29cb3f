//! Which of the hosts in the address: the one that takes writes, found without waiting long for one that says nothing.
//!
//! Promises: the host that was good last is asked first; whoever refuses makes room for the next at once, whoever is silent
//! is left to go on beside it, so a slow host is never given up for being slow; what an attempt cut short has learnt is not
//! lost to the next. Of several hosts that take no writes now one may soon: that is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Error};

use super::connect::{PostgresError, Traffic};
use super::protect::{Guard, host_name};

/// How long a connection may take to open, with all hosts together.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// How long one address of a host may take to answer at all: a name may have several.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(2);
/// A host that is silent for so long gets the next one beside it: a third of what a question about a lease may take.
const NEXT_AFTER: Duration = Duration::from_millis(500);
/// Longest time of one statement; whoever asked has given up by then.
const STATEMENT_MS: u64 = 10_000;
/// What a pooler says that does not know a setting of a session: its own kind of refusal, or that of a service.
const UNKNOWN_SETTING: [SqlState; 2] =
    [SqlState::PROTOCOL_VIOLATION, SqlState::FEATURE_NOT_SUPPORTED];
/// How long an unused connection may be silent before the system asks whether the other side lives.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);
/// Pause between two such questions; a few without an answer end the connection.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
/// The driver's own time before the first question: an address that asks for another keeps it.
const KEEPALIVE_USUAL: Duration = Duration::from_secs(2 * 60 * 60);

type Opened = (Client, Traffic);

/// The hosts of an address, each with all that it says.
#[derive(Clone)]
pub(super) struct Hosts {
    each: Arc<[Config]>,
    /// Who is asked first.
    first: Arc<AtomicUsize>,
    /// Somebody on the way takes no limits: a pooler.
    refuses_limits: Arc<AtomicBool>,
}

impl Hosts {
    /// Takes an address apart.
    pub(super) fn of(config: &Config) -> Result<Hosts, PostgresError> {
        let bad = |why: String| Err(PostgresError::BadUrl(why));
        let (names, addresses) = (config.get_hosts().len(), config.get_hostaddrs().len());
        let (count, ports) = (names.max(addresses), config.get_ports().len());
        if count == 0 {
            return bad("it names no host".to_owned());
        }
        if names > 0 && addresses > 0 && names != addresses {
            return bad(format!("{names} hosts, but {addresses} hostaddrs"));
        }
        if ports > 1 && ports != count {
            return bad(format!("{count} hosts, but {ports} ports"));
        }
        let each = (0..count).map(|place| alone(config, place)).collect();
        Ok(Hosts { each, first: Arc::default(), refuses_limits: Arc::default() })
    }

    /// All of them, in the address's order.
    pub(super) fn names(&self) -> String {
        let names: Vec<String> = self.each.iter().map(name).collect();
        names.join(",")
    }

    /// Opens a connection to whichever host takes writes.
    pub(super) async fn open(&self, guard: &Guard, target: &str) -> Result<Opened, PostgresError> {
        let deadline = Instant::now() + CONNECT_PATIENCE;
        let count = self.each.len();
        let first = self.first.load(Ordering::Relaxed);
        let mut tries = JoinSet::new();
        let mut refusals = Vec::new();
        for turn in 0..count {
            let place = (first + turn) % count;
            tries.spawn(self.attempt(place, guard.clone()));
            let is_last = turn + 1 == count;
            let pause = if is_last { deadline } else { deadline.min(Instant::now() + NEXT_AFTER) };
            loop {
                match timeout_at(pause, tries.join_next()).await {
                    Ok(Some(Ok((place, Ok(opened))))) => {
                        self.first.store(place, Ordering::Relaxed);
                        return Ok(opened);
                    }
                    Ok(Some(Ok((place, Err(error))))) => {
                        refusals.push((name(&self.each[place]), error));
                        if !is_last {
                            break;
                        }
                    }
                    // A task that broke says as little as a host that is silent.
                    Ok(Some(Err(_))) => {}
                    Ok(None) => break,
                    Err(_) => {
                        // Whoever asks may give up before another answers: the next attempt begins there.
                        self.first.store((place + 1) % count, Ordering::Relaxed);
                        break;
                    }
                }
            }
        }
        Err(sum_up(target, count, refusals))
    }

    /// Asks one host.
    fn attempt(
        &self,
        place: usize,
        guard: Guard,
    ) -> impl Future<Output = (usize, Result<Opened, Error>)> + use<> {
        let (config, refuses_limits) = (self.each[place].clone(), self.refuses_limits.clone());
        async move { (place, open_one(&config, guard, &refuses_limits).await) }
    }
}

/// Opens a connection to one host. Limits of statements travel with the opening, so that they are this connection's alone: set
/// later, they would stay with whatever connection of a pooler the setting met. A pooler that knows no such thing goes without.
async fn open_one(
    config: &Config,
    guard: Guard,
    refuses_limits: &AtomicBool,
) -> Result<Opened, Error> {
    if refuses_limits.load(Ordering::Relaxed) {
        return config.connect(guard).await;
    }
    let given = config.get_options().unwrap_or_default();
    let limits =
        format!("{given} -c statement_timeout={STATEMENT_MS} -c lock_timeout={STATEMENT_MS}");
    let mut limited = config.clone();
    limited.options(limits.trim_start());
    match limited.connect(guard.clone()).await {
        Err(error) if error.code().is_some_and(|code| UNKNOWN_SETTING.contains(code)) => {
            let opened = config.connect(guard).await?;
            refuses_limits.store(true, Ordering::Relaxed);
            Ok(opened)
        }
        other => other,
    }
}

/// The same address with one host only.
fn alone(all: &Config, place: usize) -> Config {
    let mut one = Config::new();
    match all.get_hosts().get(place) {
        Some(Host::Tcp(host)) => one.host(host),
        Some(Host::Unix(path)) => one.host_path(path),
        None => &mut one,
    };
    if let Some(address) = all.get_hostaddrs().get(place) {
        one.hostaddr(*address);
    }
    if let Some(port) = all.get_ports().get(place).or_else(|| all.get_ports().first()) {
        one.port(*port);
    }
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(dbname) = all.get_dbname() {
        one.dbname(dbname);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    if let Some(name) = all.get_application_name() {
        one.application_name(name);
    }
    if let Some(timeout) = all.get_tcp_user_timeout() {
        one.tcp_user_timeout(*timeout);
    }
    let idle = Some(all.get_keepalives_idle()).filter(|idle| *idle != KEEPALIVE_USUAL);
    one.keepalives(all.get_keepalives()).keepalives_idle(idle.unwrap_or(KEEPALIVE_AFTER));
    one.keepalives_interval(all.get_keepalives_interval().unwrap_or(KEEPALIVE_EVERY));
    if let Some(retries) = all.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.ssl_mode(all.get_ssl_mode()).ssl_negotiation(all.get_ssl_negotiation());
    one.target_session_attrs(all.get_target_session_attrs());
    one.channel_binding(all.get_channel_binding());
    one.connect_timeout(ADDRESS_PATIENCE);
    one
}

/// One host and its port, as an operator writes them.
fn name(one: &Config) -> String {
    let address = || one.get_hostaddrs().first().map(ToString::to_string).unwrap_or_default();
    let host = one.get_hosts().first().map_or_else(address, host_name);
    let port = one.get_ports().first().copied().unwrap_or(5432);
    format!("{host}:{port}")
}

/// What it comes to that no host was good; those that said nothing are missing among the refusals.
fn sum_up(target: &str, count: usize, refusals: Vec<(String, Error)>) -> PostgresError {
    let is_whole = refusals.len() == count;
    let mut all: Vec<(String, PostgresError)> = refusals
        .into_iter()
        .map(|(host, error)| (host, PostgresError::refused(target.to_owned(), &error)))
        .collect();
    let silence = "it does not answer";
    if count == 1 {
        return all.pop().map_or_else(
            || PostgresError::unreachable(target, silence.to_owned()),
            |(_, refusal)| refusal,
        );
    }
    // Waiting mends neither a wrong password nor a wrong certificate, whatever the other hosts may come to.
    let lasting = |(_, error): &(String, PostgresError)| {
        !error.is_passing() && !matches!(error, PostgresError::ReadOnly { .. })
    };
    if let Some(place) = all.iter().position(lasting) {
        return all.swap_remove(place).1;
    }
    let mut words: Vec<String> =
        all.iter().map(|(host, error)| format!("{host}: {}", error.cause())).collect();
    if !is_whole {
        words.push(format!("{} of {count} hosts: {silence}", count - all.len()));
    }
    PostgresError::unreachable(target, words.join("; "))
}
