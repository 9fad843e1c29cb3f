//! `DELETE /v1/tokens/{id}`.

use hyper::StatusCode;
use ikada_api::convert::parse_name;
use ikada_api::state::{Command, Namespace, Order, RevokeToken, TokenId};
use ikada_api::v1::TokenRevoked;

use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::tasks::{Item, write};

pub(in crate::http) async fn revoke<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let name = context.names[0].clone();
    let id =
        parse_name("id", &name, TokenId::parse).map_err(|error| problems::bad_field(&error))?;
    let write_by = async |lasting| {
        let command = Command::RevokeToken(RevokeToken { id: id.clone(), lasting });
        let order = Order { namespace: Namespace::default(), request: None, command };
        let item = Item { id: name.clone(), order: Ok(order) };
        write(app, context, vec![item], None).await?.only()
    };
    let written = match write_by(Some(true)).await {
        // A token that leaked is not kept until the last node is upgraded: the order goes out as older nodes know it.
        Err(Stop::Problem(problem)) if problem.code == "level_too_low" => write_by(None).await,
        written => written,
    };
    let (_, positions) = written?;
    app.refresh_tokens().await;
    let mut response = show_document(context, StatusCode::OK, &TokenRevoked { id: name })?;
    add_positions(&mut response, &positions);
    Ok(response)
}
