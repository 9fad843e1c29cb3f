//! `GET /v1/namespaces/{name}` and `GET /v1/quota`. A namespace that nobody used yet is empty and has no bounds.

use ikada_api::convert::{parse_name, show_namespace};
use ikada_api::state::{Namespace, NamespaceView};
use ikada_replica::call::{Query, View};

use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let namespace = parse_name("name", &context.names[0], Namespace::parse);
    let namespace = namespace.map_err(|error| problems::bad_field(&error))?;
    tell(app, context, namespace).await
}

pub(in crate::http) async fn own<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    tell(app, context, context.namespace.clone()).await
}

async fn tell<D: Door>(
    app: &App<D>,
    context: &Context,
    namespace: Namespace,
) -> Result<Reply, Stop> {
    let seen = read(app, context, Query::Namespaces { only_bounded: false }).await?;
    let View::Namespaces(all) = &seen.view else {
        return Err(mismatch("show namespace"));
    };
    show_view(context, &seen, &show_namespace(&pick(all, namespace)))
}

/// One of all namespaces.
pub(super) fn pick(all: &[NamespaceView], namespace: Namespace) -> NamespaceView {
    let found = all.iter().find(|view| view.namespace == namespace);
    found.cloned().unwrap_or_else(|| NamespaceView::empty(namespace))
}
