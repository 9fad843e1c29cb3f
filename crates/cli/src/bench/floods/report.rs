//! What the floods did, as a table and as JSON.

use serde::Serialize;

use crate::failure::Failure;
use crate::render::{Document, Grid};

/// Others should not get slower than so many times.
const SLOWER_MAX: f64 = 2.0;
/// A flood should not cost the node more memory.
const MEMORY_BYTES_MAX: u64 = 128 << 20;

/// One flood.
#[derive(Debug, Serialize)]
pub(super) struct Flood {
    pub(super) what: String,
    /// How fast at most.
    pub(super) rate: String,
    /// Connections or calls of the flood.
    pub(super) sent: u64,
    /// Closed by the node or answered with a refusal, as the flood saw it.
    pub(super) turned_away: u64,
    /// By the node's own count.
    pub(super) strangers_closed: u64,
    /// By the node's own count.
    pub(super) connections_refused: u64,
    /// p99 of calls on a kept connection, before and during, in microseconds.
    pub(super) kept: [Option<u64>; 2],
    /// The same on fresh connections.
    pub(super) fresh: [Option<u64>; 2],
    /// Calls of the well-behaved caller during the flood that went well, and others.
    pub(super) calls: usize,
    pub(super) calls_failed: u64,
    /// At most during the flood, beyond what the node held before.
    pub(super) memory_grown: u64,
    pub(super) crashes: u32,
}

impl Flood {
    /// How many times slower the slower of both kinds of calls got.
    fn slower(&self) -> Option<f64> {
        let times =
            |[before, during]: [Option<u64>; 2]| Some(during? as f64 / (before? as f64).max(1.0));
        match (times(self.kept), times(self.fresh)) {
            (Some(kept), Some(fresh)) => Some(kept.max(fresh)),
            _ => None,
        }
    }

    /// Whether each aim was reached: others not much slower, little memory, and no harm to anybody.
    fn aims(&self) -> Aims {
        Aims {
            p99: self.slower().is_some_and(|slower| slower < SLOWER_MAX),
            memory: self.memory_grown < MEMORY_BYTES_MAX,
            no_harm: self.crashes == 0 && self.calls_failed == 0,
        }
    }

    pub(super) fn headline(&self) -> String {
        self.cells().join("  ")
    }

    fn cells(&self) -> Vec<String> {
        let aims = self.aims();
        let judged = |reached: bool| if reached { "reached" } else { "missed" };
        let ms =
            |us: Option<u64>| us.map_or("-".to_owned(), |us| format!("{:.1}", us as f64 / 1e3));
        let pair =
            |[before, during]: [Option<u64>; 2]| format!("{} > {} ms", ms(before), ms(during));
        vec![
            self.what.clone(),
            self.rate.clone(),
            self.sent.to_string(),
            self.turned_away.to_string(),
            self.strangers_closed.to_string(),
            self.connections_refused.to_string(),
            pair(self.kept),
            pair(self.fresh),
            format!(
                "{}: {}",
                self.slower().map_or("-".to_owned(), |slower| format!("{slower:.1}x")),
                judged(aims.p99)
            ),
            format!("{}/{}", self.calls_failed, self.calls as u64 + self.calls_failed),
            format!(
                "{:.1} MiB: {}",
                self.memory_grown as f64 / f64::from(1 << 20),
                judged(aims.memory)
            ),
            format!("{}: {}", self.crashes, judged(aims.no_harm)),
        ]
    }
}

/// Which aims were reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Aims {
    p99: bool,
    memory: bool,
    no_harm: bool,
}

/// All floods.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct FloodsReport {
    pub(super) nodes: u16,
    pub(super) seconds: u16,
    pub(super) rounds: u16,
    /// Whether the cluster spoke TLS and asked for tokens.
    pub(super) secure: bool,
    #[serde(serialize_with = "with_aims")]
    pub(super) floods: Vec<Flood>,
}

fn with_aims<S: serde::Serializer>(floods: &[Flood], out: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Judged<'a> {
        #[serde(flatten)]
        flood: &'a Flood,
        aims: Aims,
    }
    out.collect_seq(floods.iter().map(|flood| Judged { flood, aims: flood.aims() }))
}

impl FloodsReport {
    /// Whether all nodes lived and nobody else was harmed. Times and memory are judged in the table: they are the machine's
    /// as well.
    pub(in crate::bench) fn verdict(&self) -> Result<(), Failure> {
        if let Some(flood) = self.floods.iter().find(|flood| flood.crashes > 0) {
            return Err(Failure::failed(format!("a node ended during: {}", flood.what)));
        }
        match self.floods.iter().find(|flood| flood.calls_failed > 0) {
            Some(flood) => Err(Failure::failed(format!(
                "{} calls of the well-behaved caller failed during: {}",
                flood.calls_failed, flood.what
            ))),
            None => Ok(()),
        }
    }
}

impl Document for FloodsReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let headings = &[
            "flood",
            "at most",
            "sent",
            "turned away",
            "strangers closed",
            "refused",
            "p99 kept",
            "p99 fresh",
            "slower (aim < 2x)",
            "calls failed",
            "memory (aim < 128 MiB)",
            "crashes (aim: nobody harmed)",
        ];
        vec![Grid { headings, rows: self.floods.iter().map(Flood::cells).collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.floods.iter().map(|flood| flood.what.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flood(kept: [Option<u64>; 2], fresh: [Option<u64>; 2]) -> Flood {
        Flood {
            what: "x".into(),
            rate: String::new(),
            sent: 1,
            turned_away: 1,
            strangers_closed: 0,
            connections_refused: 0,
            kept,
            fresh,
            calls: 10,
            calls_failed: 0,
            memory_grown: MEMORY_BYTES_MAX - 1,
            crashes: 0,
        }
    }

    #[test]
    fn x_7_each_aim_of_a_flood_is_judged_by_the_worst_that_others_met() {
        let good = || flood([Some(10), Some(11)], [Some(10), Some(19)]);
        let all = Aims { p99: true, memory: true, no_harm: true };
        assert_eq!((good().aims(), good().slower()), (all, Some(1.9)));
        assert!(!flood([Some(10), Some(11)], [Some(10), Some(20)]).aims().p99);
        assert!(!flood([Some(10), None], [Some(10), Some(10)]).aims().p99, "nobody got through");
        assert!(!Flood { memory_grown: MEMORY_BYTES_MAX, ..good() }.aims().memory);
        assert!(!Flood { calls_failed: 1, ..good() }.aims().no_harm);
        assert!(!Flood { crashes: 1, ..good() }.aims().no_harm);
    }

    #[test]
    fn x_7_a_flood_that_harms_others_fails_the_run() {
        let good = || flood([Some(10), Some(11)], [Some(10), Some(19)]);
        let report =
            |floods| FloodsReport { nodes: 3, seconds: 8, rounds: 1, secure: true, floods };
        assert!(report(vec![good(), good()]).verdict().is_ok());
        let slow = flood([Some(10), Some(90)], [Some(10), Some(90)]);
        assert!(report(vec![slow]).verdict().is_ok(), "told in the table alone");
        assert!(report(vec![good(), Flood { calls_failed: 1, ..good() }]).verdict().is_err());
        assert!(report(vec![Flood { crashes: 1, ..good() }]).verdict().is_err());
        let json = report(vec![good()]).json().unwrap();
        assert!(json.contains("\"no_harm\": true"), "{json}");
    }
}
