//! Scenarios of broken links. Cuts are silent: only timeouts and majorities can tell.

use ikada_consensus::Role;

use super::stage::Stage;
use crate::check::Verdict;

/// MQ-17.
pub(super) fn follower_comes_back(stage: &mut Stage) -> Verdict {
    let before = stage.leader();
    let lead = stage.the_leader();
    let away = stage.others(lead)[0];
    stage.close_doors(&[away]);
    let others = stage.others(away);
    stage.world.network.split(&[away], &others);
    stage.world.cut_noticed();
    stage.pass_working(180_000, 90)?;
    stage.mend();
    stage.pass(20_000)?;
    stage.demand(stage.leader() == before, "same leader, same term")
}

/// F-6a, MQ-18.
pub(super) fn one_link_cut(stage: &mut Stage) -> Verdict {
    let before = stage.leader();
    let lead = stage.the_leader();
    let other = stage.others(lead)[0];
    stage.close_doors(&[other]);
    stage.world.network.cut_both(lead, other);
    stage.world.cut_noticed();
    stage.pass_working(120_000, 90)?;
    stage.mend();
    stage.pass(20_000)?;
    stage.demand(stage.leader() == before, "same leader, same term")
}

/// F-5: twenty rounds of 30 s.
pub(super) fn leader_cut_off(stage: &mut Stage) -> Verdict {
    const ROUNDS: u64 = 20;
    stage.allow_changes(ROUNDS);
    for _ in 0..ROUNDS {
        let Some((old, term)) = stage.leader() else {
            return stage.demand(false, "a healed cluster has a leader");
        };
        let others = stage.others(old);
        stage.world.network.split(&[old], &others);
        stage.world.cut_noticed();
        let new = stage.await_leader(term, 4_000)?;
        stage.demand(new != old, "another node leads")?;
        stage.pass(30_000)?;
        let stale = stage.world.view(old, 0).is_some_and(|view| view.role == Role::Leader);
        stage.demand(!stale, "the old leader has stepped down")?;
        stage.mend();
        stage.pass(30_000)?;
    }
    Ok(())
}

/// F-6b: the only node that all see must lead, and then stays.
pub(super) fn only_one_is_seen(stage: &mut Stage) -> Verdict {
    stage.allow_changes(2);
    let lead = stage.the_leader();
    let term = stage.leader().map_or(0, |(_, term)| term);
    let seen = stage.others(lead)[0];
    let links: Vec<_> = stage.others(seen).into_iter().map(|other| (seen, other)).collect();
    stage.only_links(&links);
    let new = stage.await_leader(term, 6_000)?;
    stage.demand(new == seen, "the node that all see leads")?;
    let settled = stage.leader();
    stage.pass(120_000)?;
    stage.demand(stage.leader() == settled, "and stays")
}

/// F-6c: 4 sees 2 only, 5 sees 3 only, while 1, 2 and 3 see each other and 1 leads.
pub(super) fn two_hang_on_followers(stage: &mut Stage) -> Verdict {
    stage.allow_changes(2);
    let lead = stage.the_leader();
    let [a, b, c, d] = stage.others(lead)[..] else {
        return stage.demand(false, "five nodes");
    };
    stage.close_doors(&[c, d]);
    stage.only_links(&[(lead, a), (lead, b), (a, b), (c, a), (d, b)]);
    stage.pass_working(120_000, 90)
}

/// F-6d: safe, hence unavailable, until the links are mended.
pub(super) fn stale_node_in_the_middle(stage: &mut Stage) -> Verdict {
    stage.allow_changes(3);
    let lead = stage.the_leader();
    let stale = stage.others(lead)[0];
    let others = stage.others(stale);
    stage.world.network.split(&[stale], &others);
    stage.world.cut_noticed();
    stage.pass(20_000)?;
    // The leader falls silent; the others reach only the one that missed what was written.
    stage.mend();
    let links: Vec<_> = others.iter().filter(|it| **it != lead).map(|it| (stale, *it)).collect();
    stage.only_links(&links);
    // Until the old leader has noticed.
    stage.pass(5_000)?;
    let before = stage.world.tally.acked;
    stage.pass(30_000)?;
    stage.demand(stage.world.tally.acked == before, "nothing is acknowledged")?;
    stage.mend();
    stage.await_leader(0, 5_000)?;
    stage.pass(10_000)
}

/// F-6e.
pub(super) fn deaf_leader(stage: &mut Stage) -> Verdict {
    stage.allow_changes(1);
    let Some((deaf, term)) = stage.leader() else {
        return stage.demand(false, "a leader at the beginning");
    };
    for other in stage.others(deaf) {
        stage.world.network.cut(other, deaf);
    }
    stage.world.cut_noticed();
    stage.close_doors(&[deaf]);
    let new = stage.await_leader(term, 6_000)?;
    stage.demand(new != deaf, "another node leads")?;
    stage.pass(60_000)
}

/// F-6f: five minutes.
pub(super) fn flapping_link(stage: &mut Stage) -> Verdict {
    stage.allow_changes(5);
    let lead = stage.the_leader();
    let other = stage.others(lead)[0];
    stage.close_doors(&[other]);
    for _ in 0..150 {
        stage.world.network.cut_both(lead, other);
        stage.world.cut_noticed();
        stage.pass(1_000)?;
        stage.mend();
        stage.pass(1_000)?;
    }
    Ok(())
}
