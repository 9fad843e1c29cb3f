//! `GET /v1/whoami`.

use hyper::StatusCode;
use ikada_api::v1::Whoami;

use crate::http::answer::{Reply, Stop, show_document};
use crate::http::request::Context;

pub(in crate::http) fn whoami(context: &Context) -> Result<Reply, Stop> {
    let principal = &context.principal;
    let whoami = Whoami {
        name: principal.name.clone(),
        role: principal.role.as_str().to_owned(),
        namespaces: principal.namespaces.iter().map(ToString::to_string).collect(),
        token: principal.token.as_ref().map(ToString::to_string),
        expires_ms: (principal.expires_ms != 0).then_some(principal.expires_ms),
    };
    show_document(context, StatusCode::OK, &whoami)
}
