//! Who led when: a line per shard, a letter per node, oldest on the left.
//!
//! Made of every node's own events, so clocks that differ shift the picture a little; nothing is decided by it.

use std::collections::BTreeMap;

use ikada_api::v1::EventView;

use super::document::votes_text;
use super::time::moment;

/// A beginning or an end of a leadership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    at_ms: u64,
    node: u64,
    term: u64,
    leads: bool,
}

/// Draws `width` columns from `from_ms` to `to_ms` for every shard; a dot is a time without a leader.
pub(crate) fn draw(
    events: &BTreeMap<u64, Vec<EventView>>,
    from_ms: u64,
    to_ms: u64,
    width: usize,
) -> Vec<String> {
    let letters: BTreeMap<u64, char> = events.keys().copied().zip('A'..='Z').collect();
    let mut shards: BTreeMap<u16, Vec<Turn>> = BTreeMap::new();
    for (node, list) in events {
        for event in list {
            let leads = event.role == "leader";
            let turn = Turn { at_ms: event.wall_ms, node: *node, term: event.term, leads };
            shards.entry(event.shard).or_default().push(turn);
        }
    }
    let names: Vec<String> =
        letters.iter().map(|(node, it)| format!("{it} = node {node}")).collect();
    let seconds = to_ms.saturating_sub(from_ms) / 1_000;
    let mut lines = vec![format!("the last {seconds} s, now on the right; {}", names.join(", "))];
    for (shard, mut turns) in shards {
        turns.sort_by_key(|turn| (turn.at_ms, turn.term));
        let span = to_ms.saturating_sub(from_ms).max(1);
        let column = |place: usize| from_ms + span * (place as u64 + 1) / width.max(1) as u64;
        let picture: String = (0..width)
            .map(|place| leader_at(&turns, column(place)).map_or('.', |node| letters[&node]))
            .collect();
        let last = turns.iter().rev().find(|turn| turn.leads);
        let term = last.map_or(0, |turn| turn.term);
        lines.push(format!("shard {shard:<3} {picture} term {term}"));
        lines.extend(last_election(events, shard).map(|text| format!("{:9} {text}", "")));
    }
    lines
}

/// How the newest leader of a shard came to lead, and by whose votes.
fn last_election(events: &BTreeMap<u64, Vec<EventView>>, shard: u16) -> Option<String> {
    let all = events.iter().flat_map(|(node, list)| list.iter().map(move |it| (node, it)));
    let won = all.filter(|(_, it)| it.shard == shard && it.role == "leader");
    let (node, event) = won.max_by_key(|(_, it)| (it.term, it.sequence))?;
    let votes = match votes_text(event) {
        text if text.is_empty() => text,
        text => format!("; {text}"),
    };
    Some(format!("node {node} at {}: {}{votes}", moment(event.wall_ms), event.reason))
}

/// Who led at a time: the newest term that began by then, unless its leader said that it ended.
fn leader_at(turns: &[Turn], at_ms: u64) -> Option<u64> {
    let past = turns.iter().filter(|turn| turn.at_ms <= at_ms);
    let newest =
        past.clone().filter(|turn| turn.leads).max_by_key(|turn| (turn.term, turn.at_ms))?;
    let ended = past
        .filter(|turn| turn.node == newest.node && !turn.leads)
        .any(|turn| turn.at_ms >= newest.at_ms && turn.term >= newest.term);
    (!ended).then_some(newest.node)
}

#[cfg(test)]
mod tests {
    use ikada_api::v1::{BallotView, Number};

    use super::*;

    fn event(wall_ms: u64, term: u64, role: &str) -> EventView {
        EventView {
            sequence: 1,
            wall_ms,
            shard: 0,
            term,
            role: role.to_owned(),
            leader: None,
            vote: None,
            reason: String::new(),
            pre_votes: None,
            votes: Some(BallotView { granted: vec![Number(9)], refused: vec![Number(7)] }),
        }
    }

    // MQ-27
    #[test]
    fn mq_27_a_change_of_leaders_is_seen_as_a_gap() {
        let events = BTreeMap::from([
            (7, vec![event(1_000, 2, "leader"), event(6_000, 2, "follower")]),
            (9, vec![event(1_000, 2, "follower"), event(8_000, 3, "leader")]),
        ]);
        let lines = draw(&events, 0, 10_000, 10);
        assert!(lines[0].contains("A = node 7, B = node 9"), "{}", lines[0]);
        assert_eq!(lines[1], "shard 0   AAAAA..BBB term 3");
        assert!(lines[2].contains("node 9 at "), "{}", lines[2]);
        assert!(lines[2].ends_with("; vote 9 (not 7)"), "{}", lines[2]);
    }
}
