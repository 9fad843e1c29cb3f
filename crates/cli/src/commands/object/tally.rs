//! Where the bytes of a transfer are counted: in a bar of its own, or in the one bar of many transfers.

use indicatif::ProgressBar;

use super::bytes_bar;
use crate::render::spinner;

/// Who else is counted in the same bar.
#[derive(Debug, Clone)]
pub(crate) enum Counted {
    /// Nobody: each step has a bar of its own.
    Alone,
    /// All of these transfers.
    Together(ProgressBar),
}

impl Counted {
    /// The bytes that travel.
    pub(super) fn tally(&self, length: u64, what: &str) -> Tally {
        match self {
            Counted::Alone => Tally { bar: bytes_bar(length, what), is_shared: false, at: 0 },
            Counted::Together(bar) => Tally { bar: bar.clone(), is_shared: true, at: 0 },
        }
    }

    /// Bytes that are only read; they do not count where many transfers are counted together.
    pub(super) fn side_bar(&self, length: u64, what: &str) -> ProgressBar {
        match self {
            Counted::Alone => bytes_bar(length, what),
            Counted::Together(_) => ProgressBar::hidden(),
        }
    }

    /// Work that cannot be counted.
    pub(super) fn spinner(&self, what: String) -> ProgressBar {
        match self {
            Counted::Alone => spinner(what),
            Counted::Together(_) => ProgressBar::hidden(),
        }
    }
}

/// The bytes of one transfer.
#[derive(Debug)]
pub(super) struct Tally {
    bar: ProgressBar,
    is_shared: bool,
    at: u64,
}

impl Tally {
    /// So many have travelled, or were there before. What travels twice counts once.
    pub(super) fn set(&mut self, at: u64) {
        match self.is_shared {
            true => self.bar.inc(at.saturating_sub(self.at)),
            false => self.bar.set_position(at),
        }
        self.at = self.at.max(at);
    }

    /// So many were there before: time left is reckoned by what travels.
    pub(super) fn begin(&mut self, at: u64) {
        self.set(at);
        if !self.is_shared {
            self.bar.reset_eta();
        }
    }

    /// The transfer is over, well or not.
    pub(super) fn end(self) {
        if !self.is_shared {
            self.bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_transfers_are_counted_in_one_bar() {
        let bar = ProgressBar::hidden();
        bar.set_length(30);
        let counted = Counted::Together(bar.clone());
        let (mut one, mut two) = (counted.tally(10, "one"), counted.tally(20, "two"));
        one.begin(4);
        two.set(20);
        one.set(9);
        one.set(6);
        one.set(10);
        one.end();
        two.end();
        assert_eq!(bar.position(), 30);
    }
}
