//! Founding through the database: nodes enter themselves, and the first to see enough of them writes the plan.

use std::time::{Duration, Instant};

use ikada_replica::consensus::BOOTSTRAP;
use ikada_replica::founding::{Candidate, Plan};
use ikada_store::RealDisk;
use ikada_store::postgres::{Connection, NodeRow, PostgresError, Target};
use tracing::{info, warn};

use crate::boot::{Papers, PapersError};
use crate::config::Config;

/// Pause between two looks at who is there.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Pause before a database that cannot be reached is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// How often a node that waits for others says that it is still there.
const ENTER_EVERY: Duration = Duration::from_secs(2);
/// How often the operator is told what is waited for.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// Why a node cannot work with the database.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The database itself.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// The node's own papers.
    #[error(transparent)]
    Papers(#[from] PapersError),
    /// The id is taken.
    #[error(
        "node {node} is entered in {target} by another data folder: start with that folder, or under another --node-id; if it is lost, take its place with --new-folder"
    )]
    OtherFolder {
        /// This node.
        node: u64,
        /// The database.
        target: String,
    },
    /// The cluster has its nodes.
    #[error(
        "{target} holds a cluster of {count} nodes, and node {node} is none of them: use another schema or database"
    )]
    NotAMember {
        /// This node.
        node: u64,
        /// How many there are.
        count: usize,
        /// The database.
        target: String,
    },
    /// The flag is for lost folders only.
    #[error(
        "--new-folder is for a member whose folder is lost, but {target} holds no cluster yet: start without it"
    )]
    NotLost {
        /// The database.
        target: String,
    },
    /// Folder and database do not belong together.
    #[error(
        "the data folder belongs to cluster {folder:016x}, but {target} holds {database}: it was emptied, restored, or is another one; \
         name the database of this folder with --log, or another data folder with --data"
    )]
    OtherCluster {
        /// In the folder.
        folder: u64,
        /// In the database.
        database: String,
        /// The database.
        target: String,
    },
    /// The plan cannot be read.
    #[error("{target}: the plan in ikada_cluster cannot be read")]
    BadPlan {
        /// The database.
        target: String,
    },
}

/// Where the nodes are reached by peers that take part, or are about to: one of them gives a newcomer its certificate.
pub async fn entered(target: &Target) -> Result<Vec<String>, DatabaseError> {
    let connection = connect(target).await?;
    connection.prepare_schema().await?;
    let plan = standing(&connection, target).await?;
    let nodes = connection.nodes(plan.is_none()).await?;
    let takes_part = |node: &NodeRow| plan.as_ref().is_none_or(|plan| is_member(plan, node.node));
    Ok(nodes.into_iter().filter(takes_part).map(|node| node.peer_addr).collect())
}

/// Brings this node and the database together: gives the plan that its cluster was founded with; a new cluster gets the
/// number `fresh`. A database that does not answer is waited for. Whoever is refused leaves no trace there.
pub async fn found(
    config: &Config,
    target: &Target,
    disk: &RealDisk,
    papers: &mut Papers,
    me: &Candidate,
    fresh: u64,
) -> Result<Plan, DatabaseError> {
    let connection = connect(target).await?;
    connection.prepare_schema().await?;
    let mut row = NodeRow {
        node: me.node,
        incarnation: me.incarnation,
        peer_addr: me.peer_addr.clone(),
        client_addr: me.client_addr.clone(),
    };
    let standing = standing(&connection, target).await?;
    let plan = match (&papers.promise, standing) {
        (Some(promised), standing) => Some(stands(target, promised, standing)?),
        (None, Some(plan)) => {
            row.incarnation = admit(config, target, &plan, &row)?;
            Some(plan)
        }
        (None, None) if config.new_folder => {
            return Err(DatabaseError::NotLost { target: target.to_string() });
        }
        (None, None) => None,
    };
    if !connection.enter_node(&row).await? {
        return Err(DatabaseError::OtherFolder { node: me.node, target: target.to_string() });
    }
    let plan = match plan {
        Some(plan) => plan,
        None => agree(config, &connection, target, &row, fresh).await?,
    };
    connection.prepare_shards(plan.shards, BOOTSTRAP.index).await?;
    if papers.promise.as_ref() != Some(&plan) {
        papers.promise = Some(plan.clone());
        papers.incarnation = row.incarnation;
        papers.in_database = true;
        papers.store(disk)?;
    }
    Ok(plan)
}

/// Waits for a database that is down, for as long as it takes; whatever else is wrong is an error.
async fn connect(target: &Target) -> Result<Connection, DatabaseError> {
    let began = Instant::now();
    let mut told: Option<Instant> = None;
    loop {
        match target.connect().await {
            Ok(connection) => return Ok(connection),
            Err(error) if error.is_passing() => {
                if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
                    told = Some(Instant::now());
                    let waited_s = began.elapsed().as_secs();
                    warn!(%error, waited_s, "waiting for the database; are host and port in --log right?");
                }
                tokio::time::sleep(RETRY_EVERY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The plan in the database, if there is one.
async fn standing(connection: &Connection, target: &Target) -> Result<Option<Plan>, DatabaseError> {
    let bytes = connection.agree_on_plan(None).await?;
    bytes.map(|bytes| read(&bytes, target)).transpose()
}

fn is_member(plan: &Plan, node: u64) -> bool {
    plan.members.iter().any(|member| member.node == node)
}

/// A folder that knows no cluster, and a database that holds one: the incarnation under which the node takes part.
///
/// Logs, votes and epochs are in the database: a folder that is lost took nothing along that a member must remember, so a new
/// one may have its place. What it held of objects is fetched again from the others.
fn admit(
    config: &Config,
    target: &Target,
    plan: &Plan,
    row: &NodeRow,
) -> Result<u64, DatabaseError> {
    let (node, count, target) = (row.node, plan.members.len(), target.to_string());
    match plan.members.iter().find(|member| member.node == node) {
        None => Err(DatabaseError::NotAMember { node, count, target }),
        Some(member) if member.incarnation == row.incarnation => Ok(row.incarnation),
        Some(member) if config.new_folder => {
            warn!(node, "this folder takes the place of one that is lost");
            Ok(member.incarnation)
        }
        Some(_) => Err(DatabaseError::OtherFolder { node, target }),
    }
}

/// A node that was here before: the database must still hold its cluster.
fn stands(target: &Target, promised: &Plan, standing: Option<Plan>) -> Result<Plan, DatabaseError> {
    let other = |database: String| DatabaseError::OtherCluster {
        folder: promised.cluster,
        database,
        target: target.to_string(),
    };
    match standing {
        None => Err(other("none".to_owned())),
        Some(plan) if plan != *promised => Err(other(format!("cluster {:016x}", plan.cluster))),
        Some(plan) => Ok(plan),
    }
}

/// A new node: waits until as many as expected are there, then one plan stands. Says meanwhile that it is there itself.
async fn agree(
    config: &Config,
    connection: &Connection,
    target: &Target,
    row: &NodeRow,
    fresh: u64,
) -> Result<Plan, DatabaseError> {
    let mut told = 0;
    let mut heard = Instant::now();
    loop {
        let nodes = connection.nodes(true).await?;
        let enough = nodes.len() >= usize::from(config.expect);
        let proposed = enough.then(|| propose(config, fresh, nodes.iter()));
        if let Some(bytes) = connection.agree_on_plan(proposed.as_deref()).await? {
            let plan = read(&bytes, target)?;
            let (node, count) = (row.node, plan.members.len());
            if !is_member(&plan, node) {
                connection.leave_node(row).await?;
                return Err(DatabaseError::NotAMember { node, count, target: target.to_string() });
            }
            return Ok(plan);
        }
        if std::mem::replace(&mut told, nodes.len()) != nodes.len() {
            info!(known = nodes.len(), expected = config.expect, "waiting for the other nodes");
        }
        tokio::time::sleep(LOOK_EVERY).await;
        if heard.elapsed() >= ENTER_EVERY {
            heard = Instant::now();
            if !connection.enter_node(row).await? {
                let (node, target) = (row.node, target.to_string());
                return Err(DatabaseError::OtherFolder { node, target });
            }
        }
    }
}

fn propose<'a>(config: &Config, cluster: u64, nodes: impl Iterator<Item = &'a NodeRow>) -> Vec<u8> {
    let candidate = |row: &NodeRow| Candidate {
        node: row.node,
        incarnation: row.incarnation,
        peer_addr: row.peer_addr.clone(),
        client_addr: row.client_addr.clone(),
    };
    let members = nodes.take(usize::from(config.expect)).map(candidate).collect();
    let plan = Plan { cluster, members, shards: config.shards };
    // Writing into a vector cannot fail.
    minicbor::to_vec(&plan).unwrap_or_default()
}

fn read(bytes: &[u8], target: &Target) -> Result<Plan, DatabaseError> {
    minicbor::decode(bytes).map_err(|_| DatabaseError::BadPlan { target: target.to_string() })
}
