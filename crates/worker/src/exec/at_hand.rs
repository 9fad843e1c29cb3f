//! What this worker has at hand, as its claims say: programs on its disk, and inputs that it read lately, which its nodes still
//! have in memory.
//!
//! Promise: a bounded number of digests, those used last first. A guess: what was removed since is named a while longer,
//! which costs a download and nothing else.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use ikada_api::v1::WorkInput;

/// Most programs that are named, and most inputs: both together are what a claim may name.
const EACH_MAX: usize = 16;

#[derive(Debug, Default)]
pub(super) struct AtHand {
    programs: Mutex<VecDeque<String>>,
    inputs: Mutex<VecDeque<String>>,
}

impl AtHand {
    /// What a folder of programs has from earlier runs. Files of programs lie there beside their manifests; naming both does
    /// no harm.
    pub(super) fn of(store: &Path) -> AtHand {
        let entries = fs::read_dir(store).into_iter().flatten().flatten();
        let mut found: Vec<(SystemTime, String)> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok().filter(|name| is_digest(name))?;
                Some((entry.metadata().ok()?.modified().ok()?, name))
            })
            .collect();
        found.sort_by(|left, right| right.cmp(left));
        let programs = found.into_iter().take(EACH_MAX).map(|(_, name)| name).collect();
        AtHand { programs: Mutex::new(programs), inputs: Mutex::default() }
    }

    /// A program was used.
    pub(super) fn used(&self, digest: &str) {
        note(&self.programs, digest);
    }

    /// Inputs were read; the first stand for all of many.
    pub(super) fn read(&self, inputs: &[WorkInput]) {
        let digests = inputs.iter().filter_map(|input| input.digest.as_deref());
        for digest in digests.take(EACH_MAX) {
            note(&self.inputs, digest);
        }
    }

    pub(super) fn digests(&self) -> Vec<String> {
        let mut all = Vec::with_capacity(2 * EACH_MAX);
        for list in [&self.programs, &self.inputs] {
            all.extend(list.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        }
        all
    }
}

fn is_digest(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn note(list: &Mutex<VecDeque<String>>, digest: &str) {
    if !is_digest(digest) {
        return;
    }
    let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
    list.retain(|known| known != digest);
    list.push_front(digest.to_owned());
    list.truncate(EACH_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::Duration;

    fn digest(number: usize) -> String {
        format!("{number:064x}")
    }

    #[test]
    fn b4_36_what_was_used_last_is_named_and_no_more_than_a_claim_takes() {
        let store = tempfile::tempdir().unwrap();
        for number in 0..EACH_MAX + 4 {
            let file = File::create(store.path().join(digest(number))).unwrap();
            let age = Duration::from_secs(1_000 - number as u64);
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        File::create(store.path().join("fresh-1")).unwrap();
        let hand = AtHand::of(store.path());
        let newest: Vec<String> = (4..EACH_MAX + 4).rev().map(digest).collect();
        assert_eq!(hand.digests(), newest);
        hand.used(&digest(5));
        hand.used(&digest(99));
        hand.used("no digest");
        assert_eq!(hand.digests()[..3], [digest(99), digest(5), digest(EACH_MAX + 3)]);
        let input = |number| WorkInput {
            name: "a".to_owned(),
            digest: Some(digest(number)),
            ..WorkInput::default()
        };
        let inputs: Vec<WorkInput> = (200..300).map(input).collect();
        hand.read(&inputs);
        hand.read(&inputs[..1]);
        let all = hand.digests();
        assert_eq!(all.len(), 2 * EACH_MAX);
        assert_eq!(all[EACH_MAX], digest(200), "read last");
        assert!(all.len() <= ikada_api::state::limits::HOLDS_MAX);
        assert!(AtHand::of(&store.path().join("none")).digests().is_empty());
    }
}
