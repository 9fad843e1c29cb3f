//! `GET /v1/tokens`.

use ikada_api::state::Token;
use ikada_api::v1::{TokenInfo, TokenPage};
use ikada_replica::call::{Query, View};

use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let seen = read(app, context, Query::Tokens).await?;
    match &seen.view {
        View::Tokens(all) => {
            let tokens = all.iter().map(|token| describe(token)).collect();
            show_view(context, &seen, &TokenPage { tokens })
        }
        _ => Err(mismatch("list tokens")),
    }
}

fn describe(token: &Token) -> TokenInfo {
    TokenInfo {
        id: token.id.to_string(),
        name: token.name.to_string(),
        role: token.role.as_str().to_owned(),
        namespaces: token.namespaces.iter().map(ToString::to_string).collect(),
        created_ms: token.created_ms,
        expires_ms: (token.expires_ms != 0).then_some(token.expires_ms),
    }
}
