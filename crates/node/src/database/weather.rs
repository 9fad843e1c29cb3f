//! How the database does, as all lanes together meet it: for the driver, for the numbers, and for the operator's log.
//!
//! Promise: however often a database fails and comes back, and however many lanes meet that, each kind of trouble has one
//! line in a while, which says how many there were.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use ikada_replica::{DatabaseHealth, DatabaseTold};
use ikada_store::postgres::PostgresError;
use tracing::{info, warn};

use super::thread::Shared;

/// A kind of trouble is told again after so long.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// So long after it was last met, a reading that goes well ends a trouble with writes: nobody may be writing any more.
const STALE_AFTER: Duration = Duration::from_secs(5);

/// Shared by the lanes of one node.
#[derive(Clone)]
pub(super) struct Weather {
    shared: Shared,
    health: Rc<Cell<DatabaseHealth>>,
    met: Rc<Cell<Option<Instant>>>,
    told: Rc<RefCell<Told>>,
}

impl Weather {
    pub(super) fn new(shared: &Shared) -> Weather {
        Weather {
            shared: shared.clone(),
            health: Rc::default(),
            met: Rc::default(),
            told: Rc::default(),
        }
    }

    /// A question was answered. A reading says nothing about writes.
    pub(super) fn good(&self, is_write: bool) {
        let before = self.health.get();
        let is_stale = self.met.get().is_none_or(|met| met.elapsed() >= STALE_AFTER);
        let is_news = is_write || is_stale || before == DatabaseHealth::Away;
        if before == DatabaseHealth::Well || !is_news {
            return;
        }
        self.set(DatabaseHealth::Well);
        if self.told.borrow_mut().is_over() {
            info!("the database answers again");
        }
    }

    /// A question failed. The driver hears it each time: its word counts for a while only.
    pub(super) fn bad(&self, error: &PostgresError) {
        let health = health_of(error);
        self.met.set(Some(Instant::now()));
        self.set(health);
        self.shared.counters.database_failed();
        if let Some(failures) = self.told.borrow_mut().is_due(health, Instant::now()) {
            warn!(%error, failures, "the database did not do what was asked; it is asked again");
        }
    }

    fn set(&self, health: DatabaseHealth) {
        self.health.set(health);
        self.shared.counters.set_database(health);
        self.shared.tell(DatabaseTold::Health(health));
    }
}

fn health_of(error: &PostgresError) -> DatabaseHealth {
    match error {
        PostgresError::Full { .. } => DatabaseHealth::Full,
        PostgresError::ReadOnly { .. } => DatabaseHealth::ReadOnly,
        _ => DatabaseHealth::Away,
    }
}

/// What the operator has been told of.
#[derive(Default)]
struct Told {
    /// By kind: when, and how often it was met since.
    kinds: [(Option<Instant>, u64); 3],
    /// Whether the end of it is to be told too.
    is_open: bool,
}

impl Told {
    /// How often this kind was met since it was last told, if it is to be told now.
    fn is_due(&mut self, health: DatabaseHealth, now: Instant) -> Option<u64> {
        let place = match health {
            DatabaseHealth::Full => 0,
            DatabaseHealth::ReadOnly => 1,
            DatabaseHealth::Away | DatabaseHealth::Well => 2,
        };
        let (told, count) = &mut self.kinds[place];
        *count += 1;
        if told.is_some_and(|told| now.saturating_duration_since(told) < TELL_EVERY) {
            return None;
        }
        *told = Some(now);
        self.is_open = true;
        Some(std::mem::take(count))
    }

    /// Whether a trouble that was told is over.
    fn is_over(&mut self) -> bool {
        std::mem::take(&mut self.is_open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ls_14_a_database_that_comes_and_goes_fills_no_log() {
        let began = Instant::now();
        let mut told = Told::default();
        let mut lines = 0;
        for second in 0..60 {
            let now = began + Duration::from_secs(second);
            for health in [DatabaseHealth::Away, DatabaseHealth::Full] {
                lines += u32::from(told.is_due(health, now).is_some());
                lines += u32::from(told.is_over());
            }
        }
        assert_eq!(lines, 8, "each kind twice in a minute, and its end");
        let now = began + Duration::from_secs(60);
        assert_eq!(told.is_due(DatabaseHealth::Full, now), Some(30), "how often is not lost");
        assert_eq!(told.is_due(DatabaseHealth::ReadOnly, now), Some(1), "another kind at once");
    }
}
