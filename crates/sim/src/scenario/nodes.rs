//! Scenarios of processes that stand still or restart, and of slow disks.

use super::stage::Stage;
use crate::check::Verdict;

/// What a slow disk adds to every sync.
const SLOW_US: u64 = 200_000;

/// F-9: a leader that wakes up finds another in its place and changes nothing.
pub(super) fn paused_leader(stage: &mut Stage) -> Verdict {
    stage.allow_changes(3);
    for pause_ms in [5_000, 30_000, 120_000] {
        let Some((old, term)) = stage.leader() else {
            return stage.demand(false, "a leader before the pause");
        };
        stage.world.pause(old, pause_ms * 1_000);
        let new = stage.await_leader(term, 4_000)?;
        stage.demand(new != old, "another node leads")?;
        let settled = stage.leader();
        stage.pass(pause_ms + 10_000)?;
        stage.demand(stage.leader() == settled, "who woke up disturbs nobody")?;
    }
    Ok(())
}

/// F-10: slow is no reason to move.
pub(super) fn slow_leader(stage: &mut Stage) -> Verdict {
    let before = stage.leader();
    let lead = stage.the_leader();
    stage.world.slow_disk(lead, SLOW_US);
    stage.pass(60_000)?;
    stage.demand(stage.leader() == before, "same leader, same term")?;
    stage.world.slow_disk(lead, 0);
    Ok(())
}

/// F-10: a disk that hangs is.
pub(super) fn hanging_leader(stage: &mut Stage) -> Verdict {
    stage.allow_changes(1);
    let Some((lead, term)) = stage.leader() else {
        return stage.demand(false, "a leader at the beginning");
    };
    stage.world.slow_disk(lead, 20_000_000);
    let new = stage.await_leader(term, 6_000)?;
    stage.demand(new != lead, "another node leads")?;
    stage.world.slow_disk(lead, 0);
    stage.pass(40_000)
}

/// F-11: not felt.
pub(super) fn slow_follower(stage: &mut Stage) -> Verdict {
    let before = stage.leader();
    let lead = stage.the_leader();
    let slow = stage.others(lead)[0];
    stage.world.slow_disk(slow, SLOW_US);
    stage.pass_working(60_000, 90)?;
    stage.demand(stage.leader() == before, "same leader, same term")?;
    stage.world.slow_disk(slow, 0);
    Ok(())
}

/// F-28: a leader that stops hands over; nobody else's restart is felt.
pub(super) fn rolling_restart(stage: &mut Stage) -> Verdict {
    const ROUNDS: u64 = 4;
    let nodes: Vec<_> = stage.world.machines.keys().copied().collect();
    // Whoever takes over may be the next to restart.
    stage.allow_changes(ROUNDS * nodes.len() as u64);
    for node in (0..ROUNDS).flat_map(|_| nodes.clone()) {
        stage.world.stop_gently(node);
        stage.pass(5_000)?;
        stage.world.start_again(node);
        stage.pass(10_000)?;
        stage.await_leader(0, 1_000)?;
    }
    Ok(())
}
