//! The nodes that take part, and the plan that they agreed on.

use tokio_postgres::types::Type;

use super::connect::{Connection, PostgresError};
use super::lease::Parameter;

/// A node that takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Its id.
    pub node: u64,
    /// Drawn once per data folder.
    pub incarnation: u64,
    /// Where peers reach it.
    pub peer_addr: String,
    /// Where clients reach it.
    pub client_addr: String,
}

/// A node that has not been heard of for so long, before there is a cluster, has given up or died. By the database's clock.
const HEARD_S: u32 = 10;

impl Connection {
    /// Enters this node, or says once more that it is there. False if the id belongs to another data folder; as long as there
    /// is no cluster, an entry that nobody keeps up stands in nobody's way.
    pub async fn enter_node(&self, row: &NodeRow) -> Result<bool, PostgresError> {
        let sql = format!(
            "INSERT INTO ikada_node AS n (node, incarnation, peer_addr, client_addr) VALUES ($1, $2, $3, $4)
            ON CONFLICT (node) DO UPDATE SET incarnation = excluded.incarnation, peer_addr = excluded.peer_addr,
                client_addr = excluded.client_addr, seen_at = clock_timestamp()
            WHERE n.incarnation = excluded.incarnation OR (n.seen_at < clock_timestamp() - interval '{HEARD_S} seconds'
                AND (SELECT plan IS NULL FROM ikada_cluster))
            RETURNING 1"
        );
        let (node, incarnation) = (row.node as i64, row.incarnation as i64);
        let parameters: [Parameter<'_>; 4] = [
            (&node, Type::INT8),
            (&incarnation, Type::INT8),
            (&row.peer_addr, Type::TEXT),
            (&row.client_addr, Type::TEXT),
        ];
        let rows = self.client.query_typed(&sql, &parameters).await;
        rows.map(|rows| !rows.is_empty()).map_err(|error| self.explain(&error))
    }

    /// Takes this node's entry back: it is none of the cluster's.
    pub async fn leave_node(&self, row: &NodeRow) -> Result<(), PostgresError> {
        let sql = "DELETE FROM ikada_node WHERE node = $1 AND incarnation = $2";
        let (node, incarnation) = (row.node as i64, row.incarnation as i64);
        let parameters: [Parameter<'_>; 2] = [(&node, Type::INT8), (&incarnation, Type::INT8)];
        let done = self.client.query_typed(sql, &parameters).await;
        done.map(drop).map_err(|error| self.explain(&error))
    }

    /// The nodes that are entered, by id: all of them, or those heard of lately.
    pub async fn nodes(&self, lately: bool) -> Result<Vec<NodeRow>, PostgresError> {
        let heard = match lately {
            true => format!("WHERE seen_at >= clock_timestamp() - interval '{HEARD_S} seconds'"),
            false => String::new(),
        };
        let sql = format!(
            "SELECT node, incarnation, peer_addr, client_addr FROM ikada_node {heard} ORDER BY node"
        );
        let rows =
            self.client.query_typed(&sql, &[]).await.map_err(|error| self.explain(&error))?;
        let node = |row: &tokio_postgres::Row| NodeRow {
            node: row.get::<_, i64>(0) as u64,
            incarnation: row.get::<_, i64>(1) as u64,
            peer_addr: row.get(2),
            client_addr: row.get(3),
        };
        Ok(rows.iter().map(node).collect())
    }

    /// The plan that stands; `proposed` becomes it if there is none.
    pub async fn agree_on_plan(
        &self,
        proposed: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, PostgresError> {
        if let Some(plan) = proposed {
            let sql = "UPDATE ikada_cluster SET plan = $1 WHERE plan IS NULL";
            let done = self.client.query_typed(sql, &[(&plan, Type::BYTEA)]).await;
            done.map_err(|error| self.explain(&error))?;
        }
        let rows = self.client.query_typed("SELECT plan FROM ikada_cluster", &[]).await;
        let rows = rows.map_err(|error| self.explain(&error))?;
        Ok(rows.first().and_then(|row| row.get(0)))
    }
}
