//! The demo's last word.

use std::time::Duration;

use ikada_worker::Tally;

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
    /// Prints it: data, so it goes to standard output.
    pub(super) fn print(&self, urls: &[String]) {
        let Report { strike, counted, .. } = self;
        let good = self.verdict().is_ok();
        let rate = f64::from(self.tasks) / self.worked.as_secs_f64().max(0.001);
        println!("cold start        3 nodes ready after {} ms", self.started.as_millis());
        println!(
            "work              {} tasks in {:.1} s ({rate:.0}/s)",
            self.tasks,
            self.worked.as_secs_f64()
        );
        println!(
            "killed            node {} (kill -9), leader of {} shard(s), then restarted",
            strike.node, strike.led
        );
        println!("new leaders       after {} ms", strike.replaced.as_millis());
        println!("longest silence   {} ms without a finished task", strike.gap.as_millis());
        println!(
            "attempts          {} begun, {} retried, {} lost their claim",
            self.tally.begun, counted.retries, self.tally.lost
        );
        println!(
            "results           {} right, {} wrong, {} unfinished",
            counted.right, counted.wrong, counted.unfinished
        );
        println!("lost              {}", counted.lost);
        println!("done twice        {}", counted.twice);
        println!(
            "copies            {}",
            if self.copies { "equal on all three nodes" } else { "NOT EQUAL" }
        );
        println!("API               {}/v1/cluster", urls[0]);
        println!("{}", if good { "SUCCESS: nothing lost, nothing done twice" } else { "FAILURE" });
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
