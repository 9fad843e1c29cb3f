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
    let order = Order {
        namespace: Namespace::default(),
        request: None,
        command: Command::RevokeToken(RevokeToken { id }),
    };
    let item = Item { id: name.clone(), order: Ok(order) };
    let written = write(app, context, vec![item], None).await?;
    let (_, positions) = written.only()?;
    app.refresh_tokens().await;
    let mut response = show_document(context, StatusCode::OK, &TokenRevoked { id: name })?;
    add_positions(&mut response, &positions);
    Ok(response)
}
