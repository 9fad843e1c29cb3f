//! Removes uploads that nobody ended, in the background of every node.
//!
//! Promise: an upload whose time is over goes within about two hours, whether or not another one begins. Nodes look by
//! themselves, at copies of their own; before anything is removed a leader is asked. What two nodes do at once is harmless.
//! Time is that of the log, which no node's own clock makes leap (F-18).

use std::sync::Arc;
use std::time::Duration;

use ikada_api::state::Object;
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};

use super::keep::{place, stored, try_forget};
use crate::http::app::App;
use crate::http::connection::told_to_stop;
use crate::http::door::Door;
use crate::http::request::Context;
use crate::http::requests::read;

/// How long an upload may take.
const LIFE_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// About how often a node looks.
const EVERY_MS: u64 = 60 * 60 * 1000;
/// How long a look at the namespaces may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// No character is above it; the name of a stray object may have it, too.
const HIGHEST: char = '\u{10ffff}';

/// Sweeps now and then until the door closes.
pub(in crate::http) async fn watch_uploads<D: Door>(app: Arc<App<D>>) {
    let mut stopping = app.stopping.clone();
    let sweeping = async {
        loop {
            // Nodes should not all look at once.
            let pause_ms = EVERY_MS / 2 + app.draw() % EVERY_MS;
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            sweep(&app).await;
        }
    };
    tokio::select! {
        () = sweeping => {}
        () = told_to_stop(&mut stopping) => {}
    }
}

/// Looks through all namespaces once.
pub(in crate::http) async fn sweep<D: Door>(app: &App<D>) {
    let read = Request::Read(Query::Namespaces { only_bounded: false }, Consistency::Stale);
    let answer = app.door.call(read, PATIENCE, Routing::Forward).await;
    let Answer::View { view: View::Namespaces(all), .. } = answer else { return };
    let over = app.log_now_ms().await.saturating_sub(LIFE_MS);
    for view in all.into_iter().filter(|view| view.object_bytes > 0) {
        let limit = app.limits.timeout_default;
        let context = Context::of_pipe(app.anyone.clone(), view.namespace, limit, None);
        sweep_namespace(app, &context, over).await;
    }
}

async fn sweep_namespace<D: Door>(app: &App<D>, context: &Context, over: u64) {
    let mut own = context.clone();
    own.consistency = Consistency::Stale;
    let mut after = None;
    // Each step is a look at this node's own copy, and goes on behind the one before.
    while let Some(first) = next(app, &own, "", after.take()).await {
        let Some((upload, _)) = first.name.as_str().split_once('/') else {
            after = Some(first.name.to_string());
            continue;
        };
        if is_over(&first, over) {
            end(app, context, upload, over).await;
        }
        after = Some(format!("{upload}/{HIGHEST}").max(first.name.to_string()));
    }
}

/// Removes an upload if a leader, too, says that its time is over.
async fn end<D: Door>(app: &App<D>, context: &Context, upload: &str, over: u64) {
    let prefix = format!("{upload}/");
    if !next(app, context, &prefix, None).await.is_some_and(|first| is_over(&first, over)) {
        return;
    }
    let Ok(mut parts) = stored(app, context, &prefix).await else { return };
    parts.retain(|part| !part.name.as_str().ends_with("/00000"));
    try_forget(app, context, &parts, upload).await;
}

/// The first object among the parts of all uploads whose name begins so, after a name.
async fn next<D: Door>(
    app: &App<D>,
    context: &Context,
    prefix: &str,
    after: Option<String>,
) -> Option<Arc<Object>> {
    let (namespace, bucket, _) = place(context, "x").ok()?;
    let query = Query::Objects { namespace, bucket, prefix: prefix.to_owned(), after, limit: 1 };
    match read(app, context, query).await.ok()?.view {
        View::Objects(page) => page.objects.into_iter().next(),
        _ => None,
    }
}

/// Whether an upload began before that log time; without a beginning, a part that came after its end.
fn is_over(first: &Object, over: u64) -> bool {
    first.newest().is_some_and(|version| version.created_ms < over)
}
