//! Every planted defect is found by the checks of the small world: with it on, some storm fails.

#![cfg(feature = "planted")]

mod net;

use std::panic;

use ikada_consensus::planted::{self, ALL, Bug};
use net::storm;

/// Runs storms with a defect until one fails; gives the seed and the failed check.
fn find(bug: Bug, seeds: u64) -> Option<(u64, String)> {
    for seed in 0..seeds {
        planted::set(Some(bug));
        let outcome = panic::catch_unwind(|| storm(seed));
        planted::set(None);
        if let Err(failure) = outcome {
            let text = failure.downcast_ref::<String>().cloned();
            return Some((seed, text.unwrap_or_default()));
        }
    }
    None
}

#[test]
fn every_planted_defect_is_found() {
    panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for bug in ALL {
        match find(bug, 1_000) {
            Some((seed, failure)) => println!("{bug:?}: seed {seed}: {failure}"),
            None => missed.push(bug),
        }
    }
    let _ = panic::take_hook();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
