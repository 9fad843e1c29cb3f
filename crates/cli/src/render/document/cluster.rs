//! The cluster, its role changes, and moved leadership.

use ikada_api::v1::{
    ChangeView, ClusterView, ElectionsView, EventView, GrowAnswer, LoadView, MemberView, Number,
    ShardView, TransferResult,
};

use super::{Document, Grid, or_dash, pretty};
use crate::render::time::{moment, span};

/// Leaders tell other nodes every second or two how far their followers are; what is older than this says so.
const OLD_MS: u64 = 5_000;

impl Document for ClusterView {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let members = self.members.iter().map(|member| {
            vec![
                member.node.to_string(),
                member.client_addr.clone(),
                if member.connected { "up".to_owned() } else { "down".to_owned() },
                part_word(member),
                or_dash(member.level),
                member.leads.to_string(),
                load(member, |load| format!("{:.0}%", load.cpu_percent)),
                load(member, |load| format!("{:.0}%", load.memory_percent)),
                load(member, |load| load.admitted_last_minute.to_string()),
                load(member, |load| load.shed_last_minute.to_string()),
            ]
        });
        let shards = self.shards.iter().map(|shard| {
            vec![
                shard.shard.to_string(),
                or_dash(shard.leader),
                shard.term.to_string(),
                shard.commit.to_string(),
                lag(shard),
                shard.ready.to_string(),
                shard.claimed.to_string(),
            ]
        });
        // Sixteen hex digits, as in the nodes' logs.
        let cluster = format!("{:016x}", self.cluster.0);
        let (level, seen_by) = (self.level.to_string(), self.answered_by.to_string());
        let status = vec![vec![cluster, self.status.clone(), level, seen_by]];
        let change = self
            .change
            .as_ref()
            .map(|change| Grid { headings: CHANGE_HEADINGS, rows: vec![change_row(change)] });
        let growth = self.growth.iter().map(|growth| {
            vec![
                format!("{} to {} shards", growth.from, growth.to),
                format!("{} of {}", growth.moved, growth.slots),
                moment(growth.started_ms),
            ]
        });
        let growth: Vec<_> = growth.collect();
        let mut grids = vec![
            Grid { headings: &["cluster", "status", "level", "seen by node"], rows: status },
            Grid { headings: MEMBER_HEADINGS, rows: members.collect() },
            Grid {
                headings: &["shard", "leader", "term", "commit", "lag", "ready", "claimed"],
                rows: shards.collect(),
            },
        ];
        grids.extend(self.workers.as_ref().map(super::worker::summary));
        grids.extend(change);
        if !growth.is_empty() {
            grids.push(Grid { headings: &["growing", "slots moved", "since"], rows: growth });
        }
        grids
    }

    fn names(&self) -> Vec<String> {
        vec![self.status.clone()]
    }
}

impl Document for GrowAnswer {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let row = vec![self.shards.to_string(), self.slots.to_string(), self.request.clone()];
        vec![Grid { headings: &["shards", "slots moved", "request"], rows: vec![row] }]
    }

    fn names(&self) -> Vec<String> {
        vec![self.shards.to_string()]
    }
}

const MEMBER_HEADINGS: &[&str] = &[
    "node",
    "address",
    "link",
    "part",
    "level",
    "leads",
    "cpu",
    "memory",
    "calls/min",
    "shed/min",
];

/// The follower that is furthest behind, by how many entries, and how old that word is if it is not of now; a dash where
/// the leader has not said so lately.
fn lag(shard: &ShardView) -> String {
    let furthest = shard.followers.iter().max_by_key(|follower| follower.behind);
    let age_ms = shard.followers_heard_ms_ago.unwrap_or(0);
    or_dash(furthest.map(|follower| {
        let who = match follower.behind {
            0 => "0".to_owned(),
            behind => format!("{behind} (node {})", follower.node),
        };
        match age_ms < OLD_MS {
            true => who,
            false => format!("{who}, {} ago", span(age_ms / 1_000 * 1_000)),
        }
    }))
}

/// A figure of a member's load; a dash where it is not known.
fn load(member: &MemberView, show: impl Fn(&LoadView) -> String) -> String {
    or_dash(member.load.as_ref().map(show))
}

const CHANGE_HEADINGS: &[&str] = &["change", "add", "remove", "shards done", "stage"];

fn change_row(change: &ChangeView) -> Vec<String> {
    vec![
        change.number.to_string(),
        or_dash(change.add),
        or_dash(change.remove),
        format!("{} of {}", change.shards_done, change.shards),
        change.stage.clone(),
    ]
}

/// What a member is, and how it is steered.
fn part_word(member: &MemberView) -> String {
    let cordoned = if member.cordoned { ", cordoned" } else { "" };
    match member.priority {
        0 => format!("{}{cordoned}", member.part),
        priority => format!("{}{cordoned}, priority {priority}", member.part),
    }
}

impl Document for Option<ElectionsView> {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.iter().map(|view| {
            let origin = if view.changed { "the cluster" } else { "the node's start" };
            vec![
                format!("{} to {} ms", view.timeout_ms, view.timeout_ms_max),
                format!("{} ms", view.heartbeat_ms),
                origin.to_owned(),
            ]
        });
        let headings = &["election after silence of", "heartbeat every", "set by"];
        vec![Grid { headings, rows: rows.collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.iter().map(|view| view.timeout_ms.to_string()).collect()
    }
}

impl Document for ChangeView {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        vec![Grid { headings: CHANGE_HEADINGS, rows: vec![change_row(self)] }]
    }

    fn names(&self) -> Vec<String> {
        self.add.into_iter().chain(self.remove).map(|node| node.to_string()).collect()
    }
}

/// The votes that decided a change: `pre-vote 1 2, vote 1 2 (not 3)`; nothing if none did.
pub(crate) fn votes_text(event: &EventView) -> String {
    let rounds = [("pre-vote", &event.pre_votes), ("vote", &event.votes)];
    let texts = rounds.iter().filter_map(|(name, ballot)| {
        let ballot = ballot.as_ref()?;
        let refused = match ballot.refused.is_empty() {
            true => String::new(),
            false => format!(" (not {})", nodes_text(&ballot.refused)),
        };
        Some(format!("{name} {}{refused}", nodes_text(&ballot.granted)))
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn nodes_text(nodes: &[Number]) -> String {
    nodes.iter().map(Number::to_string).collect::<Vec<_>>().join(" ")
}

impl Document for Vec<EventView> {
    fn json(&self) -> Result<String, serde_json::Error> {
        // One line per event, so that a followed stream can be read line by line.
        let lines: Result<Vec<String>, _> = self.iter().map(serde_json::to_string).collect();
        Ok(lines?.join("\n"))
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.iter().map(|event| {
            vec![
                // Padded, so that the lines of a followed stream stay in line.
                format!("{:<8}", event.sequence),
                moment(event.wall_ms),
                format!("{:<5}", event.shard),
                format!("{:<5}", event.term),
                format!("{:<13}", event.role),
                format!("{:<13}", or_dash(event.leader)),
                format!("{:<13}", or_dash(event.vote)),
                format!("{:<32}", event.reason),
                votes_text(event),
            ]
        });
        let headings = &[
            "sequence",
            "time (UTC)",
            "shard",
            "term",
            "role",
            "leader",
            "voted for",
            "reason",
            "votes",
        ];
        vec![Grid { headings, rows: rows.collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.iter().map(|event| event.sequence.to_string()).collect()
    }
}

impl Document for TransferResult {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.shards.iter().map(|shard| {
            let word = if shard.accepted { "begun" } else { "refused" };
            let problem = shard.problem.as_ref().map(|problem| problem.to_string());
            vec![shard.shard.to_string(), word.to_owned(), or_dash(problem)]
        });
        vec![Grid { headings: &["shard", "transfer", "problem"], rows: rows.collect() }]
    }

    fn names(&self) -> Vec<String> {
        let accepted = self.shards.iter().filter(|shard| shard.accepted);
        accepted.map(|shard| shard.shard.to_string()).collect()
    }
}
