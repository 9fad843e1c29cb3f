//! The demo's last word.

use std::time::Duration;

use ikada_worker::Tally;

use super::SHAPE;
use super::check::Counted;
use super::strike::Strike;

/// Everything that was seen.
pub(super) struct Report {
    pub(super) tasks: u32,
    pub(super) started: Duration,
    pub(super) worked: Duration,
    pub(super) strike: Strike,
    pub(super) tally: Tally,
    pub(super) counted: Counted,
    pub(super) copies: bool,
}

impl Report {
    /// As text: one fact per line, the verdict last.
    pub(super) fn text(&self) -> String {
        let Report { strike, counted, .. } = self;
        let rate = f64::from(self.tasks) / self.worked.as_secs_f64().max(0.001);
        let worked = self.worked.as_secs_f64();
        let copies = if self.copies { "equal on all three nodes" } else { "NOT EQUAL" };
        let facts = [
            (
                "cold start",
                format!("three nodes agreed on leaders after {} ms", self.started.as_millis()),
            ),
            ("work", format!("{} tasks in {worked:.1} s ({rate:.0} per second)", self.tasks)),
            (
                "leader killed",
                format!(
                    "node {} by kill -9, while it led {} of {} shards; restarted since",
                    strike.node, strike.led, SHAPE.shards
                ),
            ),
            ("new leaders", format!("after {} ms", strike.replaced.as_millis())),
            ("longest pause", format!("{} ms without a finished task", strike.gap.as_millis())),
            ("attempts", format!("{} begun, {} repeated", self.tally.begun, counted.retries)),
            (
                "results",
                format!(
                    "{} right, {} wrong, {} unfinished",
                    counted.right, counted.wrong, counted.unfinished
                ),
            ),
            ("tasks lost", counted.lost.to_string()),
            ("tasks done twice", counted.twice.to_string()),
            ("copies", copies.to_owned()),
        ];
        let mut text: String =
            facts.iter().map(|(name, fact)| format!("{name:<18}{fact}\n")).collect();
        text.push_str(match self.verdict() {
            Ok(()) => "SUCCESS: nothing lost, nothing done twice\n",
            Err(_) => "FAILURE\n",
        });
        text
    }

    /// Whether every promise was kept.
    pub(super) fn verdict(&self) -> Result<(), Vec<String>> {
        let counted = &self.counted;
        let expected = u64::from(self.tasks);
        let checks = [
            (counted.lost == 0, format!("{} tasks are lost", counted.lost)),
            (counted.unfinished == 0, format!("{} tasks are not done", counted.unfinished)),
            (counted.wrong == 0, format!("{} results are wrong", counted.wrong)),
            (counted.twice == 0, format!("{} tasks were done twice", counted.twice)),
            (counted.right == self.tasks, format!("{} results are right", counted.right)),
            (
                counted.done_total == expected,
                format!("the queue counts {} done", counted.done_total),
            ),
            (
                counted.submitted_total == expected,
                format!("the queue counts {} submitted", counted.submitted_total),
            ),
            (self.copies, "the nodes' copies differ".to_owned()),
        ];
        let broken: Vec<String> =
            checks.into_iter().filter(|(kept, _)| !kept).map(|(_, words)| words).collect();
        if broken.is_empty() { Ok(()) } else { Err(broken) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(counted: Counted, copies: bool) -> Report {
        let strike = Strike { node: 1, led: 2, replaced: Duration::ZERO, gap: Duration::ZERO };
        Report {
            tasks: 10,
            started: Duration::ZERO,
            worked: Duration::ZERO,
            strike,
            tally: Tally::default(),
            counted,
            copies,
        }
    }

    fn good() -> Counted {
        Counted { right: 10, done_total: 10, submitted_total: 10, ..Counted::default() }
    }

    #[test]
    fn only_a_clean_count_is_a_success() {
        assert!(report(good(), true).verdict().is_ok());
        assert!(report(good(), false).verdict().is_err());
        for bad in [
            Counted { lost: 1, right: 9, ..good() },
            Counted { twice: 1, ..good() },
            Counted { wrong: 1, right: 9, ..good() },
            Counted { unfinished: 1, right: 9, ..good() },
            Counted { done_total: 11, ..good() },
            Counted { submitted_total: 11, ..good() },
        ] {
            assert!(report(bad, true).verdict().is_err());
        }
    }
}
