//! Role changes as they happen, over whichever node answers.
//!
//! What may be missing when the stream of one node ends and that of another begins is told by [`Heard::Source`], never
//! left out in silence.

use super::feed::Feed;
use super::url::with_query;
use super::{Client, Error};
use crate::v1::{EventSource, EventView};

/// What a stream of role changes tells.
#[derive(Debug, Clone)]
pub enum Heard {
    /// Whose changes follow, and what is missing before them.
    Source(EventSource),
    /// One change.
    Change(Box<EventView>),
}

/// Role changes as they happen.
#[derive(Debug)]
pub struct EventStream(Feed);

impl Client {
    /// Follows role changes with a sequence above `after`, beginning at the node that answers first.
    pub fn follow_events(&self, after: u64) -> EventStream {
        let path = with_query("/v1/cluster/events", &[("after", after.to_string())]);
        EventStream(Feed::new(self.clone(), path))
    }
}

impl EventStream {
    /// The next word. When no node answers for the client's timeout this is [`Error::Unavailable`]; asking again goes on.
    pub async fn next(&mut self) -> Result<Heard, Error> {
        loop {
            let event = self.0.next().await?;
            match event.kind.as_str() {
                "role" => return Ok(Heard::Change(event.read()?)),
                "source" => return Ok(Heard::Source(event.read()?)),
                // Words of a newer node.
                _ => {}
            }
        }
    }
}
