//! `DELETE /v1/objects/{bucket}/{key}`: removes an object with all its versions, or one version of it.

use hyper::StatusCode;
use hyper::http::request::Parts;
use ikada_api::state::{
    Command, DeleteObject, Order, Reply as StateReply, RequestKey, is_published,
};
use ikada_api::v1::ObjectRemoved;

use super::name::{check_bucket, object_key, version};
use super::precondition::condition;
use super::put::write_one;
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::request::Context;

pub(in crate::http) async fn delete<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
) -> Result<Reply, Stop> {
    let (namespace, bucket, name) = object_key(context)?;
    // Outputs may be removed before their task goes; what else the cluster keeps goes by its own verbs, or not at all.
    if !is_published(&bucket) {
        check_bucket(&bucket)?;
    }
    let (version, condition) = (version(context)?, condition(&parts.headers)?);
    let request = context.key.clone().unwrap_or_else(|| app.door.fresh_request_id());
    let delete = DeleteObject { bucket: bucket.clone(), name: name.clone(), version, condition };
    let order = Order {
        namespace,
        request: Some(RequestKey { id: request.clone(), item: 0 }),
        command: Command::DeleteObject(delete),
    };
    let (reply, position) = write_one(app, context, order, &request).await?;
    let StateReply::ObjectDeleted { versions } = reply else {
        return Err(mismatch("delete object"));
    };
    let removed = ObjectRemoved { bucket: bucket.to_string(), key: name.to_string(), versions };
    let mut response = show_document(context, StatusCode::OK, &removed)?;
    add_positions(&mut response, &[position]);
    Ok(response)
}
