//! `GET /v1/live`: events `role`, `cluster` and `queues`.
//!
//! A document is told when the stream begins and whenever it has changed; it is looked at once a second, role changes five times.
//! A caller that is bound to namespaces hears of queues alone. How streams begin and end is in `http/stream.rs`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikada_api::state::Namespace;
use ikada_api::v1::ClusterView;
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};

use crate::admission::Admission;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::cluster::{Told, view};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::queues::{Wish, page};
use crate::http::request::Context;
use crate::http::stream::{self, News};
use crate::watch::Samples;

/// Documents are looked at every so many looks: once a second.
const LOOKS_PER_DOCUMENT: u32 = 5;
/// How long a look at the queues may take.
const QUEUES_PATIENCE: Duration = Duration::from_secs(2);
/// Queues told one by one, those first that need a look; the others are in the sum.
const QUEUES_MAX: usize = 100;
/// Words of leaders that are younger than this are told as if of now, older ones with their age in such steps: they are
/// renewed every second or two.
const AGE_STEP_MS: u64 = 5_000;

pub(in crate::http) async fn follow<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    if !context.wants_stream {
        let rule = "this route is a stream: send Accept: text/event-stream";
        return Err(problems::bad_parameter("accept", rule).into());
    }
    let watcher = Watcher {
        door: app.door.clone(),
        admission: app.admission.clone(),
        samples: app.samples(),
        namespace: context.namespace.clone(),
        roles: (!context.principal.is_bound()).then(|| Told::new(app.door.info(), 0, None)),
        cluster: String::new(),
        queues: String::new(),
        looks: 0,
    };
    stream::begin(app, context, watcher)
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
    looks: u32,
}

impl<D: Door> News for Watcher<D> {
    const NAME: &'static str = "live";
    const LOOK_EVERY: Duration = Duration::from_millis(200);
    // Documents may be long.
    const PIECES_MAX: usize = 4;

    async fn look(&mut self, piece: &mut String) -> bool {
        self.tell_roles(piece).await;
        if self.looks.is_multiple_of(LOOKS_PER_DOCUMENT) {
            self.tell_cluster(piece).await;
            self.tell_queues(piece).await;
        }
        self.looks = self.looks.wrapping_add(1);
        true
    }
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

/// When a member was last heard says nothing while it is connected, and would make every look a change; of what leaders
/// say of their followers only old words have an age, in steps.
fn without_ages(mut shown: ClusterView) -> ClusterView {
    for member in shown.members.iter_mut().filter(|member| member.connected) {
        member.heard_ms_ago = None;
    }
    for shard in &mut shown.shards {
        shard.followers_heard_ms_ago = shard.followers_heard_ms_ago.and_then(in_steps);
    }
    shown
}

fn in_steps(age_ms: u64) -> Option<u64> {
    let steps = age_ms / AGE_STEP_MS;
    (steps > 0).then_some(steps * AGE_STEP_MS)
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
    fn ages_change_a_document_in_steps_alone() {
        let told = [0, 4_999, 5_000, 9_999, 14_000].map(in_steps);
        assert_eq!(told, [None, None, Some(5_000), Some(5_000), Some(10_000)]);
    }

    #[test]
    fn a_document_is_told_when_it_has_changed() {
        let (mut last, mut piece) = (String::new(), String::new());
        for number in [1, 1, 2] {
            tell("queues", &mut last, &number, &mut piece);
        }
        assert_eq!(piece, "event: queues\ndata: 1\n\nevent: queues\ndata: 2\n\n");
    }
}
