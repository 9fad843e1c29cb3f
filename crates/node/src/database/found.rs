//! Founding through the database: nodes enter themselves, and the first to see enough of them writes the plan.

use std::time::Duration;

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
        "node {node} is entered in {target} by another data folder: start with that folder, or under another --node-id"
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
    /// Folder and database do not belong together.
    #[error(
        "the data folder belongs to cluster {folder:016x}, but {target} holds {database}: it was emptied, restored, or is another one"
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

/// Where the nodes that have entered themselves so far are reached by peers: one of them gives a newcomer its certificate.
pub async fn entered(target: &Target) -> Result<Vec<String>, DatabaseError> {
    let connection = connect(target).await?;
    connection.prepare_schema().await?;
    let nodes = connection.nodes().await?;
    Ok(nodes.into_iter().map(|node| node.peer_addr).collect())
}

/// Brings this node and the database together: gives the plan that its cluster was founded with; a new cluster gets the
/// number `fresh`. A database that does not answer is waited for.
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
    let row = NodeRow {
        node: me.node,
        incarnation: me.incarnation,
        peer_addr: me.peer_addr.clone(),
        client_addr: me.client_addr.clone(),
    };
    if !connection.enter_node(&row).await? {
        return Err(DatabaseError::OtherFolder { node: me.node, target: target.to_string() });
    }
    let plan = match papers.promise.clone() {
        Some(promised) => stands(&connection, target, promised).await?,
        None => agree(config, &connection, target, me, fresh).await?,
    };
    connection.prepare_shards(plan.shards, BOOTSTRAP.index).await?;
    if papers.promise.as_ref() != Some(&plan) {
        papers.promise = Some(plan.clone());
        papers.in_database = true;
        papers.store(disk)?;
    }
    Ok(plan)
}

/// Waits for a database that is down; whatever else is wrong is an error.
async fn connect(target: &Target) -> Result<Connection, DatabaseError> {
    let mut is_told = false;
    loop {
        match target.connect().await {
            Ok(connection) => return Ok(connection),
            Err(error) if error.is_passing() => {
                if !std::mem::replace(&mut is_told, true) {
                    warn!(%error, "waiting for the database");
                }
                tokio::time::sleep(RETRY_EVERY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// A node that was here before: the database must still hold its cluster.
async fn stands(
    connection: &Connection,
    target: &Target,
    promised: Plan,
) -> Result<Plan, DatabaseError> {
    let found = connection.agree_on_plan(None).await?;
    let other = |database: String| DatabaseError::OtherCluster {
        folder: promised.cluster,
        database,
        target: target.to_string(),
    };
    let Some(bytes) = found else {
        return Err(other("none".to_owned()));
    };
    let plan = read(&bytes, target)?;
    if plan != promised {
        return Err(other(format!("cluster {:016x}", plan.cluster)));
    }
    Ok(plan)
}

/// A new node: waits until as many as expected have entered, then one plan stands.
async fn agree(
    config: &Config,
    connection: &Connection,
    target: &Target,
    me: &Candidate,
    fresh: u64,
) -> Result<Plan, DatabaseError> {
    let mut told = 0;
    loop {
        let nodes = connection.nodes().await?;
        let enough = nodes.len() >= usize::from(config.expect);
        let proposed = enough.then(|| propose(config, fresh, nodes.iter()));
        if let Some(bytes) = connection.agree_on_plan(proposed.as_deref()).await? {
            let plan = read(&bytes, target)?;
            let (node, count) = (me.node, plan.members.len());
            if !plan.members.iter().any(|member| member.node == node) {
                return Err(DatabaseError::NotAMember { node, count, target: target.to_string() });
            }
            return Ok(plan);
        }
        if std::mem::replace(&mut told, nodes.len()) != nodes.len() {
            info!(known = nodes.len(), expected = config.expect, "waiting for the other nodes");
        }
        tokio::time::sleep(LOOK_EVERY).await;
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
