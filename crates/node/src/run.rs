//! A server from start to stop.
//!
//! Order: check the settings, bind both ports, lock the data folder; only then is anything written. A start that is
//! refused leaves the disk as it was.

use std::fs::File;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ikada_replica::consensus::OpenError;
use ikada_replica::consensus::lease::LeaseConfig;
use ikada_replica::founding::{Candidate, Plan};
use ikada_replica::{Halt, Replica, ReplicaConfig};
use ikada_store::{Identity, RealDisk};
use tokio::net::TcpListener;
use tracing::{info, warn};

use crate::admission::{self, Admission, Machine};
use crate::audit::{self, AuditLog};
use crate::auth;
use crate::autoscale;
use crate::boot::{self, Boot, BootError, FoundError, Papers, PapersError};
use crate::certify::{certify, hosts, keep_certificate};
use crate::config::Config;
use crate::counters::SharedCounters;
use crate::database::{self, Database, DatabaseError};
use crate::driver::{self, Driver, Ended};
use crate::gossip::spread;
use crate::handle::Handle;
use crate::http::{self, Audit, Door, HttpLimits, Listeners, NodeInfo, Security};
use crate::objects::{Shelf, ShelfOptions, tend};
use crate::peers::{self, BlobDialling, Dialling, Directory, FoundingDoor, Links, Outgoing};
use crate::tls::{self, Tls, TlsError};
use crate::traces::{self, EndedSender};

/// Why a server did not start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A port could not be bound.
    #[error(
        "cannot listen on {addr}: {source}; is another server running there? choose another port with {flag}"
    )]
    Bind {
        /// The address.
        addr: String,
        /// Which flag sets it.
        flag: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The data folder cannot be used.
    #[error("data folder {path}: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Another process uses it.
    #[error("data folder {path} is in use by another ikada process")]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// The node's papers.
    #[error(transparent)]
    Papers(#[from] PapersError),
    /// Two files of the folder disagree.
    #[error(
        "data folder belongs to cluster {identity:016x}, but node {node} promised itself to cluster {promised:016x}"
    )]
    OtherCluster {
        /// This node.
        node: u64,
        /// In the identity file.
        identity: u64,
        /// In the promise.
        promised: u64,
    },
    /// The database that holds the logs.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// No cluster could be founded.
    #[error(transparent)]
    Found(#[from] FoundError),
    /// The disk cannot be trusted.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// The blobs cannot be read.
    #[error(transparent)]
    Blobs(#[from] ikada_store::BlobError),
    /// The replica refused what the disk holds.
    #[error("starting: {0}")]
    Start(#[from] driver::StartError<OpenError>),
    /// The node had to stop.
    #[error("{0}")]
    Halted(Halt),
    /// A thread ended without a word: it panicked, and what it held cannot be trusted.
    #[error(
        "an internal thread has panicked; stopping, a restart will read the disk and catch up from peers"
    )]
    DriverDied,
    /// The autoscaler cannot begin.
    #[error("autoscale: {0}")]
    Autoscale(String),
    /// The collector of traces.
    #[error(transparent)]
    Traces(#[from] traces::BadCollector),
    /// Certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The join token's file.
    #[error("join token file {path}: {why}")]
    JoinToken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A newcomer without a certificate.
    #[error(
        "joining a cluster with TLS needs a certificate: make a join token where the authority's key is, with \
         `ikada join-token create`, and name its file with --join-token-file"
    )]
    NoJoinToken,
    /// The certificate's time is over, and nobody here can sign another.
    #[error(
        "the certificate in the folder `tls` has ended, so no node lets this one in: make a join token where the \
         authority's key is, with `ikada join-token create`, and name its file with --join-token-file"
    )]
    CertificateOver,
    /// A certificate of another cluster or node.
    #[error(
        "the certificate in the folder `tls` is for {found}, but this data folder is of {wanted}; put the right one back"
    )]
    OtherCertificate {
        /// In the certificate.
        found: tls::Name,
        /// In the data folder.
        wanted: tls::Name,
    },
    /// The log is gone although the node has worked before.
    #[error(
        "the write-ahead log of node {node} is gone (folder `wal` in the data folder): with it went its votes, so it may \
         not come back: restore the whole data folder from a copy taken while it was stopped"
    )]
    LogGone {
        /// This node.
        node: u64,
    },
}

/// How long the last lines of the audit log may take.
const AUDIT_PATIENCE: Duration = Duration::from_secs(2);
/// How often a start looks whether a full disk has room.
const ROOM_LOOK: Duration = Duration::from_secs(1);

type Threads = Vec<std::thread::JoinHandle<()>>;

/// What a running server tells its starter.
#[derive(Clone)]
pub struct Started {
    /// The way in.
    pub handle: Handle,
}

/// Runs a server until `stop` is done (then gracefully) or it must end. `started` is called once it serves clients.
pub async fn run(
    config: Config,
    stop: impl Future<Output = ()>,
    started: impl FnOnce(Started),
) -> Result<(), RunError> {
    config.warnings.iter().for_each(|warning| warn!("{warning}"));
    let listeners = bind_clients(&config).await?;
    let peer_listener = bind(&config.peer_listen.to_string(), "--peer-listen").await?;
    let client_addr = advertised(config.advertise.as_ref(), &listeners.client);
    let peer_addr = advertised(config.peer_advertise.as_ref(), &peer_listener);
    let (disk, _lock) = open_folder(&config)?;
    let mut papers = Papers::load_or_make(&disk, config.node_id, &mut fastrand::Rng::new())?;
    papers.check_log(config.log.is_some())?;
    let counters = SharedCounters::default();
    let admission = watch_load(&config)?;
    let door = FoundingDoor::default();
    let links = Arc::new(OnceLock::new());
    tokio::pin!(stop);
    let hosts = hosts(&config, &[&client_addr, &peer_addr]);
    let tls = tokio::select! {
        tls = certify(&config, &disk, papers.node, &hosts) => tls?,
        () = &mut stop => return Ok(()),
    };
    let (tls_in, counted) = (tls.clone(), counters.clone());
    let port = peers::listen(peer_listener, links.clone(), door.clone(), tls_in, counted);
    let port = tokio::spawn(port);
    let me =
        Candidate { node: papers.node, incarnation: papers.incarnation, peer_addr, client_addr };
    let (identity, plan) = tokio::select! {
        found = belong(&config, &disk, &mut papers, me.clone(), &door, tls.clone()) => found?,
        () = &mut stop => return Ok(()),
        () = http::answer_waiting(&listeners.client), if tls.is_none() => return Ok(()),
    };
    let directory = Directory::new(boot::members(&plan));
    keep_certificate(tls.as_ref(), plan.cluster, papers.node, directory.clone(), hosts.clone())?;
    door.founded(&plan, directory.clone());
    let Some(boot) = recover(&disk, &mut papers, identity, &plan, &mut stop).await? else {
        return Ok(());
    };
    let shelf = open_shelf(&disk, &boot.identity, tls.clone(), directory.clone())?;
    let (traces, exporting) = traces::begin(&config, &boot.identity, &counters)?;
    let start = Start {
        config: &config,
        me: &me,
        links: &links,
        directory,
        tls: tls.clone(),
        counters,
        shelf: shelf.clone(),
        traces,
    };
    let (handle, mut ended, threads) = start.go(boot, papers, disk)?;
    let (rest, mut resting) = tokio::sync::watch::channel(false);
    begin_chores(&config, shelf, admission.clone(), &handle, resting.clone())?;
    started(Started { handle: handle.clone() });
    let (security, auditing) = secure(&config, &handle, &plan, tls, hosts)?;
    let limits = HttpLimits::for_this_process();
    let closed = async move { drop(resting.wait_for(|resting| *resting).await) };
    let server = http::serve(handle.clone(), listeners, limits, security, admission, closed);
    let server = tokio::spawn(server);
    let result = tokio::select! {
        () = &mut stop => stop_gracefully(&handle, &mut ended).await,
        error = halted(ended.clone()) => forgive(error),
    };
    let _ = rest.send(true);
    let _ = server.await;
    port.abort();
    end_threads(&handle, (threads, auditing), exporting).await;
    result
}

/// Ends what runs beside the async tasks.
async fn end_threads(
    handle: &Handle,
    (threads, auditing): (Threads, Threads),
    exporting: tokio::task::JoinHandle<()>,
) {
    handle.end();
    join(threads).await;
    traces::end(exporting).await;
    // A call that was cut off may still hold the audit log; its end is not waited for.
    let _ = tokio::time::timeout(AUDIT_PATIENCE, join(auditing)).await;
}

/// Reads what a founded node has on its disk; a log that is gone is not begun anew. A disk without room is waited for: a
/// process that ends would only be started again. Nothing if it is told to stop meanwhile.
async fn recover(
    disk: &RealDisk,
    papers: &mut Papers,
    identity: Identity,
    plan: &Plan,
    stop: &mut (impl Future<Output = ()> + Unpin),
) -> Result<Option<Boot>, RunError> {
    if papers.worked && !boot::log_exists(disk)? {
        return Err(RunError::LogGone { node: papers.node });
    }
    let boot = loop {
        match boot::recover(disk, identity.clone(), plan) {
            Err(error) if error.is_disk_full() => {
                warn!(%error, "the disk is full: give it room, the node starts by itself then");
                if tokio::time::timeout(ROOM_LOOK, &mut *stop).await.is_ok() {
                    return Ok(None);
                }
            }
            found => break found?,
        }
    };
    if !papers.worked {
        papers.worked = true;
        papers.store(disk)?;
    }
    Ok(Some(boot))
}

/// The blobs of this node, and the way to those of others.
fn open_shelf(
    disk: &RealDisk,
    identity: &Identity,
    tls: Option<Tls>,
    directory: Directory,
) -> Result<Shelf, RunError> {
    let hello = peers::link_hello(identity.cluster, identity.node, identity.incarnation);
    let reach = BlobDialling::new(hello, tls, directory);
    Ok(Shelf::open(disk.clone(), &ShelfOptions::default(), reach)?)
}

/// What goes on beside the calls: care for blobs, and for the number of workers.
fn begin_chores(
    config: &Config,
    shelf: Shelf,
    admission: Arc<Admission>,
    handle: &Handle,
    resting: tokio::sync::watch::Receiver<bool>,
) -> Result<(), RunError> {
    tokio::spawn(tend(shelf, handle.clone(), resting.clone()));
    tokio::spawn(spread(handle.clone(), admission, resting.clone()));
    autoscale::begin(config, handle, resting).map_err(RunError::Autoscale)
}

/// An end that an operator wanted is no failure.
fn forgive(error: RunError) -> Result<(), RunError> {
    match error {
        RunError::Halted(halt @ Halt::Removed { .. }) => {
            warn!("{halt}");
            Ok(())
        }
        error => Err(error),
    }
}

async fn join(threads: Threads) {
    let join = move || threads.into_iter().for_each(|thread| drop(thread.join()));
    let _ = tokio::task::spawn_blocking(join).await;
}

/// What stands before the client port. The member with the lowest id makes the first token.
fn secure(
    config: &Config,
    handle: &Handle,
    plan: &Plan,
    tls: Option<Tls>,
    hosts: Vec<String>,
) -> Result<(Security, Threads), RunError> {
    if config.auth && plan.members.iter().all(|member| member.node >= handle.info().node) {
        tokio::spawn(auth::make_first_token(handle.clone(), config.data.clone()));
    }
    let gatekeeper = config.auth.then(Arc::default);
    let mut security = Security { gatekeeper, audit: None, tls, hosts, insecure: config.insecure };
    let mut threads = Threads::new();
    if config.auth {
        let path = config.data.join(audit::AUDIT_FOLDER);
        let (log, thread) =
            AuditLog::open(&path).map_err(|source| RunError::Folder { path, source })?;
        let log = Arc::new(log);
        if let Some(desk) = security.tls.as_ref().and_then(Tls::desk) {
            desk.note_in(&log);
        }
        security.audit = Some(Arc::new(Audit { log, all: config.audit_all }));
        threads.push(thread);
    }
    Ok((security, threads))
}

/// The ports for clients.
async fn bind_clients(config: &Config) -> Result<Listeners, RunError> {
    let client = bind(&config.listen.to_string(), "--listen").await?;
    let s3 = match config.s3_listen {
        Some(addr) => Some(bind(&addr.to_string(), "--s3-listen").await?),
        None => None,
    };
    Ok(Listeners { client, s3 })
}

/// Decides who is let in, from figures that a thread of its own takes from now on.
fn watch_load(config: &Config) -> Result<Arc<Admission>, RunError> {
    let admission = Arc::new(Admission::new(config.shedding.clone(), fastrand::u64(..)));
    admission::watch(&admission, Machine::default()).map_err(driver::StartError::Thread)?;
    Ok(admission)
}

async fn bind(addr: &str, flag: &'static str) -> Result<TcpListener, RunError> {
    TcpListener::bind(addr).await.map_err(|source| RunError::Bind {
        addr: addr.to_owned(),
        flag,
        source,
    })
}

fn advertised(asked: Option<&String>, listener: &TcpListener) -> String {
    let bound = || listener.local_addr().map(|addr| addr.to_string()).unwrap_or_default();
    asked.cloned().unwrap_or_else(bound)
}

/// Opens and locks the data folder.
fn open_folder(config: &Config) -> Result<(RealDisk, File), RunError> {
    let path = config.data.clone();
    let folder = |source| RunError::Folder { path: path.clone(), source };
    std::fs::create_dir_all(&path).map_err(folder)?;
    let lock = File::create(path.join("lock")).map_err(folder)?;
    if lock.try_lock().is_err() {
        return Err(RunError::Locked { path });
    }
    let disk = RealDisk::open(&path).map_err(folder)?;
    Ok((disk, lock))
}

/// The cluster this node belongs to: the one its disk names, or a newly founded one.
async fn belong(
    config: &Config,
    disk: &RealDisk,
    papers: &mut Papers,
    me: Candidate,
    door: &FoundingDoor,
    tls: Option<Tls>,
) -> Result<(Identity, Plan), RunError> {
    let known = Identity::load(disk).map_err(BootError::from)?;
    // Certificates name the cluster before it is founded.
    let drawn = || fastrand::Rng::new().u64(1..);
    let fresh = tls.as_ref().map_or_else(drawn, |tls| tls.name().cluster);
    let founded = match &config.log {
        Some(target) => Some(database::found(config, target, disk, papers, &me, fresh).await?),
        None => None,
    };
    if let Some(identity) = known {
        let plan = papers.plan_today().ok_or(PapersError::Damaged)?;
        if plan.cluster != identity.cluster {
            let (identity, promised) = (identity.cluster, plan.cluster);
            return Err(RunError::OtherCluster { node: papers.node, identity, promised });
        }
        return Ok((identity, plan));
    }
    if !config.join.is_empty() {
        let plan = boot::join(config, disk, papers, me, door, tls.as_ref()).await?;
        info!(cluster = format!("{:016x}", plan.cluster), "joining");
        let (node, incarnation) = (papers.node, papers.incarnation);
        let identity = boot::write_identity(disk, &plan, node, incarnation, &config.name)?;
        return Ok((identity, plan));
    }
    let plan = match founded {
        Some(plan) => plan,
        None => boot::found(config, disk, papers, me, door, (tls, fresh)).await?,
    };
    info!(
        cluster = format!("{:016x}", plan.cluster),
        members = plan.members.len(),
        "cluster founded"
    );
    let identity = boot::write_genesis(disk, &plan, papers.node, papers.incarnation, &config.name)?;
    Ok((identity, plan))
}

/// What a start needs beside the disk.
struct Start<'a> {
    config: &'a Config,
    me: &'a Candidate,
    links: &'a Arc<OnceLock<Links>>,
    directory: Directory,
    tls: Option<Tls>,
    counters: SharedCounters,
    shelf: Shelf,
    traces: Option<EndedSender>,
}

impl Start<'_> {
    /// Starts the driver and the links.
    fn go(
        self,
        boot: Boot,
        papers: Papers,
        disk: RealDisk,
    ) -> Result<(Handle, tokio::sync::watch::Receiver<Ended>, Threads), RunError> {
        let Start { config, me, links, directory, tls, counters, shelf, traces } = self;
        let Boot { identity, shards, log, snapshots, notes } = boot;
        for note in notes {
            warn!("{note}");
        }
        let Identity { cluster, node, incarnation, .. } = identity;
        let mut settings = ReplicaConfig::new(node, incarnation, cluster, fastrand::u64(..));
        settings.tells_ended = traces.is_some();
        settings.consensus.priority = config.priority;
        settings.consensus.lease = config.log.as_ref().map(|_| LeaseConfig::default());
        let database = Database::prepare(config.log.as_ref(), &disk, &identity)?;
        let outgoing = Outgoing::new(counters.clone());
        let (rolls, changes) = tokio::sync::mpsc::unbounded_channel();
        let outlets = driver::Outlets {
            outgoing: outgoing.clone(),
            rolls,
            database: database.as_ref().map(Database::sender),
            traces,
        };
        let Driver { sender, ended, mut threads } = driver::start(
            move |now| Replica::new(settings, shards, now),
            log,
            snapshots,
            outlets,
            &counters,
            std::sync::mpsc::channel(),
        )?;
        if let Some(database) = database {
            threads.push(
                database
                    .start(sender.clone(), counters.clone())
                    .map_err(driver::StartError::Thread)?,
            );
        }
        let driver = sender.clone();
        let (known, blobs) = (directory.clone(), shelf.clone());
        let _ = links.set(Links { cluster, node, directory: known, driver, shelf: blobs });
        let hello = peers::link_hello(cluster, node, incarnation);
        let (driver, counted) = (sender.clone(), counters.clone());
        let dialling = Dialling { hello, tls: tls.clone(), driver, counters: counted };
        for peer in directory.candidates().into_iter().filter(|peer| peer.node != node) {
            dialling.dial(peer.node, peer.peer_addr, outgoing.open(peer.node));
        }
        let follow = peers::follow(changes, directory.clone(), dialling, outgoing, papers, disk);
        tokio::spawn(follow);
        let info = node_info(&identity, me, config.otlp.is_some());
        Ok((Handle::new(info, directory, tls, sender, counters, shelf), ended, threads))
    }
}

fn node_info(identity: &Identity, me: &Candidate, traced: bool) -> NodeInfo {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    NodeInfo {
        node: identity.node,
        name: identity.name.clone(),
        cluster: identity.cluster,
        client_addr: me.client_addr.clone(),
        peer_addr: me.peer_addr.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_wall_ms: started.as_millis() as u64,
        traced,
    }
}

async fn halted(mut ended: tokio::sync::watch::Receiver<Ended>) -> RunError {
    loop {
        if let Ended::Halted(halt) = ended.borrow_and_update().clone() {
            return RunError::Halted(halt);
        }
        if ended.changed().await.is_err() {
            return RunError::DriverDied;
        }
    }
}

/// Hands leadership over, then lets go.
async fn stop_gracefully(
    handle: &Handle,
    ended: &mut tokio::sync::watch::Receiver<Ended>,
) -> Result<(), RunError> {
    info!(node = handle.info().node, "stopping: handing leadership over");
    handle.stop();
    loop {
        match ended.borrow_and_update().clone() {
            Ended::Running => {}
            Ended::Stopped => return Ok(()),
            Ended::Halted(halt) => return Err(RunError::Halted(halt)),
        }
        if ended.changed().await.is_err() {
            return Ok(());
        }
    }
}
