//! Decisions outlive the node that made them: the newest are an object of a bucket that only the cluster writes, so that every node
//! can tell of them and the next leader goes on where the last stopped.
//!
//! Left out: locks. Only the leader of shard 0 writes; if two believe to lead, one decision may be missing in the list.

use std::time::Duration;

use ikada_api::v1::{ScalingPage, ScalingView};
use ikada_replica::call::{Answer, Consistency, Outcome, Query, Request, Routing, View};
use ikada_replica::state::{
    BUCKET_AUTOSCALE, BucketName, Command, Namespace, ObjectKey, ObjectName, Order, PutCondition,
    PutObject, Reply, RequestKey,
};

use super::Scaled;
use crate::http::Door;
use crate::objects::{Content, Upload};

/// How long one question to the cluster may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Name of the object.
const NAME: &str = "decisions";
/// More bytes than so many decisions with their reasons take.
const BYTES_MAX: u64 = 1 << 20;

fn place() -> Option<ObjectKey> {
    let bucket = BucketName::parse(BUCKET_AUTOSCALE).ok()?;
    Some((Namespace::default(), bucket, ObjectName::parse(NAME).ok()?))
}

/// Decisions for readers.
pub fn show(decisions: Vec<Scaled>) -> ScalingPage {
    let show = |scaled: Scaled| ScalingView {
        at_ms: scaled.at_ms,
        from: scaled.from,
        to: scaled.to,
        reason: scaled.reason,
        error: scaled.error,
        pending: scaled.pending,
        node: scaled.node,
    };
    ScalingPage { decisions: decisions.into_iter().map(show).collect() }
}

/// What any node's autoscaler did lately; none if nobody can tell now.
pub async fn recall<D: Door>(door: &D) -> Option<Vec<Scaled>> {
    let read = Request::Read(Query::Object(place()?), Consistency::Linearizable);
    let Answer::View { view: View::Object(found), .. } =
        door.call(read, PATIENCE, Routing::Forward).await
    else {
        return None;
    };
    let Some(newest) = found.as_ref().and_then(|object| object.newest()) else {
        return Some(Vec::new());
    };
    if newest.size > BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::with_capacity(newest.size as usize);
    for piece in newest.chunks.iter() {
        bytes.extend_from_slice(&door.shelf().fetch(*piece, false).await.ok()?);
    }
    let page: ScalingPage = serde_json::from_slice(&bytes).ok()?;
    let read = |view: ScalingView| Scaled {
        at_ms: view.at_ms,
        from: view.from,
        to: view.to,
        reason: view.reason,
        error: view.error,
        pending: view.pending,
        node: view.node,
    };
    Some(page.decisions.into_iter().map(read).collect())
}

/// Keeps the newest decisions.
pub(super) async fn keep<D: Door>(door: &D, decisions: Vec<Scaled>) -> Result<(), String> {
    let text = serde_json::to_vec(&show(decisions)).map_err(|error| error.to_string())?;
    let mut upload = Upload::begin(door.shelf());
    upload.push(text.into()).await.map_err(|error| error.to_string())?;
    let content = upload.finish().await.map_err(|error| error.to_string())?;
    let Content { size, digest, chunks } = content;
    let (namespace, bucket, name) = place().ok_or("the bucket of decisions has no name")?;
    let (content_type, condition) = ("application/json".to_owned(), PutCondition::Any);
    let put =
        PutObject { bucket, name, size, content_type, digest, chunks, condition, upload: None };
    let request = Some(RequestKey { id: door.fresh_request_id(), item: 0 });
    let order = Order { namespace, request, command: Command::PutObject(put) };
    match door.call(Request::Write(vec![order]), PATIENCE, Routing::Forward).await {
        Answer::Written(outcomes) => match outcomes.first() {
            Some(Outcome::Reply { reply: Reply::ObjectPut { .. }, .. }) => Ok(()),
            other => Err(format!("{other:?}")),
        },
        _ => Err("no leader took them".to_owned()),
    }
}
