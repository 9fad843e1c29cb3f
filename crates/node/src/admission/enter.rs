//! The whole decision about a call at the door: its rules, the crowd in its lane, the line, and its place.

use std::time::Duration;

use tokio::sync::SemaphorePermit;

use super::{Admission, Lane, Reason, Rooms};

impl Admission {
    /// Lets a call in that can wait so long, or tells why not. The place is held while the call is under way. Whoever is
    /// not let in is counted once, as shed.
    pub fn enter<'a>(
        &self,
        rooms: &'a Rooms,
        lane: Lane,
        left: Option<Duration>,
    ) -> Result<SemaphorePermit<'a>, Reason> {
        self.judge(lane, left)?;
        let under_way = rooms.under_way(lane);
        let place = if self.is_crowded(lane, under_way) {
            Err(Reason::Full)
        } else if self.is_in_line(lane, under_way) {
            Err(Reason::Wait)
        } else {
            rooms.enter(lane).map_err(|_| Reason::Full)
        };
        place.inspect_err(|reason| self.turn_away(lane, *reason))
    }
}
