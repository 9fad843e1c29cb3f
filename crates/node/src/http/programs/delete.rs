//! `DELETE /v1/programs/{name}`: the name goes. Tasks that were submitted for it keep their program, which is stored under
//! its digest.

use hyper::StatusCode;
use ikada_api::convert::parse_name;
use ikada_api::state::{
    Command, DeleteObject, Order, ProgramName, PutCondition, RefusalCode, Reply as StateReply,
    RequestKey,
};
use ikada_api::v1::ProgramRemoved;

use super::describe::named;
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::objects::write_one;
use crate::http::problems;
use crate::http::request::Context;

pub(in crate::http) async fn delete<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let text = context.names[0].as_str();
    let name = parse_name("name", text, ProgramName::parse)
        .map_err(|error| problems::bad_field(&error))?;
    let (namespace, bucket, object) = named(&context.namespace, &name)?;
    let request = app.request_id(context);
    let condition = PutCondition::Any;
    let delete = DeleteObject { bucket, name: object, version: None, condition };
    let order = Order {
        namespace,
        request: Some(RequestKey { id: request.clone(), item: 0 }),
        command: Command::DeleteObject(delete),
    };
    let missing = problems::refusal(RefusalCode::ObjectNotFound).code;
    let written = write_one(app, context, order, &request).await;
    let (reply, position) = match written {
        Err(Stop::Problem(problem)) if problem.code == missing => {
            return Err(problems::not_found("program_not_found", "program", text).into());
        }
        other => other?,
    };
    let StateReply::ObjectDeleted { .. } = reply else {
        return Err(mismatch("delete program"));
    };
    let removed = ProgramRemoved { name: name.to_string() };
    let mut response = show_document(context, StatusCode::OK, &removed)?;
    add_positions(&mut response, &[position]);
    Ok(response)
}
