//! `GET /v1/live`: events `role`, `cluster` and `queues`.
//!
//! A document is told when the stream begins and whenever it has changed; it is looked at once a second, role changes five times.
//! A caller that is bound to namespaces hears of queues alone. Streams share the bound and the conduct of those of role changes.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::channel::{Channel, Sender};
use hyper::StatusCode;
use ikada_api::state::Namespace;
use ikada_api::v1::ClusterView;
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};
use tokio::sync::watch;

use crate::admission::Admission;
use crate::http::answer::{Reply, Stop, with_body};
use crate::http::app::App;
use crate::http::cluster::{Told, view};
use crate::http::connection::told_to_stop;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::queues::{Wish, page};
use crate::http::request::Context;
use crate::watch::Samples;

/// How often role changes are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Documents are looked at every so many looks: once a second.
const LOOKS_PER_DOCUMENT: u32 = 5;
/// A comment is sent after so many looks without news, so that a dead connection is noticed.
const LOOKS_PER_COMMENT: u32 = 75;
/// A reader that takes nothing for this long is cut off.
const READER_PATIENCE: Duration = Duration::from_secs(30);
/// How long a look at the queues may take.
const QUEUES_PATIENCE: Duration = Duration::from_secs(2);
/// Queues told one by one, those first that need a look; the others are in the sum.
const QUEUES_MAX: usize = 100;
/// Pieces that wait for the reader.
const PIECES_MAX: usize = 4;

pub(in crate::http) async fn follow<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    if !context.wants_stream {
        let rule = "this route is a stream: send Accept: text/event-stream";
        return Err(problems::bad_parameter("accept", rule).into());
    }
    let permit = app.streams.clone().try_acquire_owned();
    let permit = permit.map_err(|_| problems::door_full("event streams"))?;
    let (sender, body) = Channel::<Bytes, Infallible>::new(PIECES_MAX);
    let (security, principal) = (app.security.clone(), context.principal.clone());
    let watcher = Watcher {
        door: app.door.clone(),
        admission: app.admission.clone(),
        samples: app.samples(),
        namespace: context.namespace.clone(),
        roles: (!principal.is_bound()).then(|| Told::new(app.door.info(), 0, None)),
        cluster: String::new(),
        queues: String::new(),
    };
    let stopping = app.stopping.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = feed(watcher, sender, stopping) => {}
            () = security.revoked(&principal) => {}
        }
        drop(permit);
    });
    Ok(with_body(StatusCode::OK, "text/event-stream", body.boxed()))
}

/// Feeds one stream until its reader leaves or the door closes.
async fn feed<D: Door>(
    mut watcher: Watcher<D>,
    mut sender: Sender<Bytes, Infallible>,
    mut stopping: watch::Receiver<bool>,
) {
    // The first comment opens the stream on the reader's side.
    let mut piece = String::from(": live\n\n");
    let (mut looks, mut quiet) = (0_u32, 0_u32);
    loop {
        watcher.tell_roles(&mut piece).await;
        if looks.is_multiple_of(LOOKS_PER_DOCUMENT) {
            watcher.tell_cluster(&mut piece).await;
            watcher.tell_queues(&mut piece).await;
        }
        if piece.is_empty() && quiet >= LOOKS_PER_COMMENT {
            piece.push_str(": alive\n\n");
        }
        (looks, quiet) = (looks.wrapping_add(1), quiet + 1);
        if !piece.is_empty() {
            quiet = 0;
            let sent = sender.send_data(Bytes::from(std::mem::take(&mut piece)));
            match tokio::time::timeout(READER_PATIENCE, sent).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = told_to_stop(&mut stopping) => return,
        }
    }
}

/// What one reader watches, and what it was told last.
struct Watcher<D> {
    door: D,
    admission: Arc<Admission>,
    samples: Arc<Mutex<Samples>>,
    namespace: Namespace,
    /// Role changes; none for a caller that may not see the cluster.
    roles: Option<Told>,
    cluster: String,
    queues: String,
}

impl<D: Door> Watcher<D> {
    async fn tell_roles(&mut self, piece: &mut String) {
        let Some(told) = &mut self.roles else { return };
        let events = self.door.events(told.after()).await;
        piece.push_str(&told.tell(&events));
    }

    async fn tell_cluster(&mut self, piece: &mut String) {
        if self.roles.is_none() {
            return;
        }
        let shown = without_ages(view(&self.door, &self.admission).await);
        tell("cluster", &mut self.cluster, &shown, piece);
    }

    async fn tell_queues(&mut self, piece: &mut String) {
        let read = Request::Read(Query::Queues(self.namespace.clone()), Consistency::Stale);
        // A node that cannot tell now is asked again in a second.
        if let Answer::View { view: View::Queues(all), .. } =
            self.door.call(read, QUEUES_PATIENCE, Routing::Forward).await
        {
            let wish = Wish { by_need: true, limit: QUEUES_MAX, ..Wish::default() };
            tell("queues", &mut self.queues, &page(&self.samples, &all, &wish), piece);
        }
    }
}

/// When a member was last heard says nothing while it is connected, and would make every look a change.
fn without_ages(mut shown: ClusterView) -> ClusterView {
    for member in shown.members.iter_mut().filter(|member| member.connected) {
        member.heard_ms_ago = None;
    }
    shown
}

/// Tells a document if it is not the one told last.
fn tell(kind: &str, last: &mut String, document: &impl serde::Serialize, piece: &mut String) {
    let text = serde_json::to_string(document).unwrap_or_default();
    if text != *last {
        piece.push_str(&format!("event: {kind}\ndata: {text}\n\n"));
        *last = text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_told_when_it_has_changed() {
        let (mut last, mut piece) = (String::new(), String::new());
        for number in [1, 1, 2] {
            tell("queues", &mut last, &number, &mut piece);
        }
        assert_eq!(piece, "event: queues\ndata: 1\n\nevent: queues\ndata: 2\n\n");
    }
}
