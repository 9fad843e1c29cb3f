//! `GET /v1/cluster/events`: the ring of role changes (MQ-27), as a page or as a live stream.
//!
//! A stream begins by saying whose changes follow; whatever is missing before a change is counted and told, never left out
//! in silence. How streams begin and end is in `http/stream.rs`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::StatusCode;
use ikada_api::v1::{BallotView, EventPage, EventPlace, EventSource, EventView, Number};
use ikada_replica::consensus::Ballot;
use ikada_replica::status::RoleEvent;

use super::role_word;
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::{Door, NodeInfo};
use crate::http::request::Context;
use crate::http::stream::{self, News};

/// A reader who comes from another process hears changes again from this long before its last one: clocks differ, and
/// nodes notice the same election at different times.
const OVERLAP_MS: u64 = 10_000;

pub(in crate::http) async fn events<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let after: u64 = context.query_as("after", "must be a number from 0")?.unwrap_or(0);
    if context.wants_stream {
        let last = context.last_event_as("must be the id of an event of this stream")?;
        let told = Told::new(app.door.info(), after, last);
        return stream::begin(app, context, Roles { door: app.door.clone(), told });
    }
    let events = app.door.events(after).await;
    let next = events.last().map_or(after, |event| event.sequence);
    let page = EventPage {
        node: Number(app.door.info().node),
        events: events.iter().map(show_event).collect(),
        next,
    };
    show_document(context, StatusCode::OK, &page)
}

fn show_event(event: &RoleEvent) -> EventView {
    EventView {
        sequence: event.sequence,
        wall_ms: event.wall_ms,
        shard: event.shard,
        term: event.term,
        role: role_word(event.role).to_owned(),
        leader: event.leader.map(Number),
        vote: event.vote.map(Number),
        reason: event.reason.to_owned(),
        pre_votes: event.pre_votes.as_ref().map(show_ballot),
        votes: event.votes.as_ref().map(show_ballot),
    }
}

fn show_ballot(ballot: &Ballot) -> BallotView {
    let list = |nodes: &[u64]| nodes.iter().copied().map(Number).collect();
    BallotView { granted: list(&ballot.granted), refused: list(&ballot.refused) }
}

/// How far one reader has been told, and what it must be told first.
pub(in crate::http) struct Told {
    node: u64,
    started_ms: u64,
    /// Sequence of the last change told or left out.
    after: u64,
    /// Whether the reader's last event was told by this process.
    continues: bool,
    /// Changes before this time are left out, for a reader who comes from another process.
    since_ms: u64,
    /// Changes left out since the reader was last told so.
    left_out: u64,
    /// Whether the reader must be told whose changes follow.
    is_new: bool,
}

impl Told {
    pub(in crate::http) fn new(info: &NodeInfo, after: u64, last: Option<EventPlace>) -> Told {
        let (node, started_ms) = (info.node, info.started_wall_ms);
        let own = last.filter(|place| (place.node, place.started_ms) == (node, started_ms));
        let since_ms = match (last, own) {
            (Some(place), None) => place.wall_ms.saturating_sub(OVERLAP_MS),
            _ => 0,
        };
        let after = match last {
            Some(_) => own.map_or(0, |place| place.sequence),
            None => after,
        };
        let continues = own.is_some();
        Told { node, started_ms, after, continues, since_ms, left_out: 0, is_new: true }
    }

    /// Sequence of the last change told.
    pub(in crate::http) fn after(&self) -> u64 {
        self.after
    }

    /// The text of the next changes.
    pub(in crate::http) fn tell(&mut self, events: &[RoleEvent]) -> String {
        let mut text = String::new();
        for event in events {
            self.left_out += event.sequence.saturating_sub(self.after + 1);
            self.after = event.sequence;
            if event.wall_ms < self.since_ms {
                self.left_out += 1;
                continue;
            }
            self.since_ms = 0;
            self.tell_source(event.wall_ms, &mut text);
            let (place, data) = (self.place(event.wall_ms), show_event(event));
            let data = serde_json::to_string(&data).unwrap_or_default();
            text.push_str(&format!("id: {place}\nevent: role\ndata: {data}\n\n"));
        }
        text
    }

    /// Says whose changes follow, if the reader does not know it, or what is missing before them.
    fn tell_source(&mut self, wall_ms: u64, text: &mut String) {
        if !self.is_new && self.left_out == 0 {
            return;
        }
        let source = EventSource {
            node: Number(self.node),
            started_ms: self.started_ms,
            continues: self.continues,
            left_out: std::mem::take(&mut self.left_out),
        };
        (self.is_new, self.continues) = (false, true);
        let (place, data) =
            (self.place(wall_ms), serde_json::to_string(&source).unwrap_or_default());
        text.push_str(&format!("id: {place}\nevent: source\ndata: {data}\n\n"));
    }

    fn place(&self, wall_ms: u64) -> EventPlace {
        let Told { node, started_ms, after, .. } = *self;
        EventPlace { node, started_ms, sequence: after, wall_ms }
    }
}

/// The role changes of this node, for one reader.
struct Roles<D> {
    door: D,
    told: Told,
}

impl<D: Door> News for Roles<D> {
    const NAME: &'static str = "role changes";
    // Role changes are rare, and a person watches.
    const LOOK_EVERY: Duration = Duration::from_millis(200);
    const PIECES_MAX: usize = 16;

    async fn look(&mut self, piece: &mut String) -> bool {
        let events = self.door.events(self.told.after).await;
        piece.push_str(&self.told.tell(&events));
        // A reader of a quiet node shall know whom it hears, and that nothing is missing.
        if self.told.is_new {
            self.told.tell_source(wall_ms(), piece);
        }
        true
    }
}

fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use ikada_replica::consensus::Role;

    use super::*;

    fn info(node: u64) -> NodeInfo {
        NodeInfo {
            node,
            name: String::new(),
            cluster: 1,
            client_addr: String::new(),
            peer_addr: String::new(),
            version: String::new(),
            started_wall_ms: 500,
            traced: false,
        }
    }

    fn event(sequence: u64, wall_ms: u64) -> RoleEvent {
        RoleEvent {
            sequence,
            wall_ms,
            shard: 0,
            term: 1,
            role: Role::Follower,
            leader: None,
            vote: None,
            reason: "leader heard",
            pre_votes: None,
            votes: None,
        }
    }

    fn source(text: &str) -> EventSource {
        let line = text.split("event: source\ndata: ").nth(1).unwrap().lines().next().unwrap();
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn a_reader_goes_on_where_it_was_and_is_told_what_is_missing() {
        let place = EventPlace { node: 1, started_ms: 500, sequence: 4, wall_ms: 9 };
        let mut told = Told::new(&info(1), 0, Some(place));
        assert_eq!(told.after, 4);
        let first = told.tell(&[event(5, 10)]);
        assert!(source(&first).continues && source(&first).left_out == 0, "{first}");
        assert!(first.contains("id: 1-500-5-10\nevent: role"), "{first}");
        assert!(!told.tell(&[event(6, 11)]).contains("source"));
        // The ring dropped three before they could be told.
        let late = told.tell(&[event(10, 12)]);
        assert_eq!((source(&late).continues, source(&late).left_out), (true, 3));
    }

    #[test]
    fn a_reader_from_another_node_or_an_earlier_process_hears_what_overlaps() {
        for (node, started_ms) in [(2, 500), (1, 499)] {
            let place = EventPlace { node, started_ms, sequence: 70, wall_ms: 50_000 };
            let mut told = Told::new(&info(1), 0, Some(place));
            let text = told.tell(&[event(1, 1_000), event(2, 39_999), event(3, 40_000)]);
            assert_eq!((source(&text).continues, source(&text).left_out), (false, 2));
            assert_eq!(text.matches("event: role").count(), 1);
            assert!(told.tell(&[event(4, 60_000)]).contains("event: role"));
        }
    }
}
