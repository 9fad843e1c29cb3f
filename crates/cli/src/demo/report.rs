//! The demo's last word.

use std::time::Duration;

use super::SHAPE;
use super::strike::Strike;

/// Everything that was seen.
pub(super) struct Report {
    pub(super) tasks: u64,
    pub(super) words: u64,
    pub(super) started: Duration,
    pub(super) worked: Duration,
    pub(super) strike: Strike,
    /// The killed worker's process.
    pub(super) worker: u32,
    /// Tasks that it held.
    pub(super) held: usize,
    /// Attempts beyond the first.
    pub(super) repeated: u64,
    /// Tasks that are not done.
    pub(super) lost: u64,
    /// Whether the result equals the plain count, byte for byte.
    pub(super) right: bool,
    pub(super) copies: bool,
}

impl Report {
    /// As text: one fact per line, the verdict last.
    pub(super) fn text(&self) -> String {
        let strike = &self.strike;
        let worked = self.worked.as_secs_f64();
        let copies = if self.copies { "equal on all three nodes" } else { "NOT EQUAL" };
        let right =
            if self.right { "equal to a plain count" } else { "NOT EQUAL to a plain count" };
        let facts = [
            (
                "cold start",
                format!("three nodes agreed on leaders after {} ms", self.started.as_millis()),
            ),
            ("job", format!("{} tasks, {} words, {worked:.1} s", self.tasks, self.words)),
            (
                "worker killed",
                format!("process {} by kill -9, while it held {} tasks", self.worker, self.held),
            ),
            (
                "leader killed",
                format!(
                    "node {} by kill -9, while it led {} of {} shards; restarted since",
                    strike.node, strike.led, SHAPE.shards
                ),
            ),
            ("new leaders", format!("after {} ms", strike.replaced.as_millis())),
            ("longest pause", format!("{} ms without a finished task", strike.gap.as_millis())),
            ("attempts repeated", self.repeated.to_string()),
            ("tasks lost", self.lost.to_string()),
            ("result", right.to_owned()),
            ("copies", copies.to_owned()),
        ];
        let mut text: String =
            facts.iter().map(|(name, fact)| format!("{name:<18}{fact}\n")).collect();
        text.push_str(match self.verdict() {
            Ok(()) => "SUCCESS: nothing lost, nothing counted twice\n",
            Err(_) => "FAILURE\n",
        });
        text
    }

    /// Whether every promise was kept.
    pub(super) fn verdict(&self) -> Result<(), Vec<String>> {
        let checks = [
            (self.lost == 0, format!("{} tasks are not done", self.lost)),
            (self.right, "the result differs from a plain count".to_owned()),
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

    fn report(lost: u64, right: bool, copies: bool) -> Report {
        let strike = Strike { node: 1, led: 2, replaced: Duration::ZERO, gap: Duration::ZERO };
        Report {
            tasks: 10,
            words: 100,
            started: Duration::ZERO,
            worked: Duration::ZERO,
            strike,
            worker: 7,
            held: 2,
            repeated: 1,
            lost,
            right,
            copies,
        }
    }

    #[test]
    fn only_a_right_count_is_a_success() {
        assert!(report(0, true, true).verdict().is_ok());
        assert!(report(0, true, true).text().contains("SUCCESS"));
        for bad in [report(1, true, true), report(0, false, true), report(0, true, false)] {
            assert!(bad.verdict().is_err());
            assert!(bad.text().contains("FAILURE"));
        }
    }
}
