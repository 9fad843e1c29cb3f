//! Named scenarios: scripted faults of links, processes and disks, each with a bound on changes of leaders.
//!
//! Promise: a scenario is a function of its seed. Every check of the simulator is on while it runs, and it ends with all
//! faults healed and the cluster well (V1 to V7). The same scenarios run with real processes under the same names
//! (`cargo xtask scenarios`).

mod links;
mod nodes;
mod stage;

use crate::check::Verdict;
pub use stage::{Stage, Told};

/// One scenario.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// What it is known by.
    pub name: &'static str,
    /// What happens.
    pub what: &'static str,
    /// Voters.
    pub nodes: u64,
    play: fn(&mut Stage) -> Verdict,
}

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "MQ-17",
        what: "non-sticky leader: a follower is cut off for minutes and comes back",
        nodes: 4,
        play: links::follower_comes_back,
    },
    Scenario {
        name: "F-6a",
        what: "ping-pong: the link between the leader and one follower is cut",
        nodes: 4,
        play: links::one_link_cut,
    },
    Scenario {
        name: "F-5",
        what: "the leader is cut off from everybody, again and again",
        nodes: 3,
        play: links::leader_cut_off,
    },
    Scenario {
        name: "F-6b",
        what: "all see only one node, which does not lead",
        nodes: 5,
        play: links::only_one_is_seen,
    },
    Scenario {
        name: "F-6c",
        what: "two nodes have one link each, to different followers",
        nodes: 5,
        play: links::two_hang_on_followers,
    },
    Scenario {
        name: "F-6d",
        what: "only a node with an old log reaches a majority",
        nodes: 5,
        play: links::stale_node_in_the_middle,
    },
    Scenario {
        name: "F-6e",
        what: "the leader is heard, but hears nothing",
        nodes: 3,
        play: links::deaf_leader,
    },
    Scenario {
        name: "F-6f",
        what: "a link of the leader flaps every second for five minutes",
        nodes: 3,
        play: links::flapping_link,
    },
    Scenario {
        name: "F-9",
        what: "the leader's process stands still for 5, 30 and 120 s",
        nodes: 3,
        play: nodes::paused_leader,
    },
    Scenario {
        name: "F-10 slow",
        what: "every sync of the leader's disk takes 200 ms more",
        nodes: 3,
        play: nodes::slow_leader,
    },
    Scenario {
        name: "F-10 hang",
        what: "the leader's disk hangs for 20 s",
        nodes: 3,
        play: nodes::hanging_leader,
    },
    Scenario {
        name: "F-11",
        what: "every sync of a follower's disk takes 200 ms more",
        nodes: 3,
        play: nodes::slow_follower,
    },
    Scenario {
        name: "F-28",
        what: "all nodes are restarted one after the other, gently, four times",
        nodes: 3,
        play: nodes::rolling_restart,
    },
];

impl Scenario {
    /// Plays it, heals everything, and looks at the cluster again.
    pub fn run(&self, seed: u64) -> Told {
        let mut stage = Stage::new(seed, self.nodes);
        let verdict = stage.open().and_then(|()| (self.play)(&mut stage));
        let verdict = verdict.and_then(|()| stage.close());
        stage.told(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test per scenario: they run side by side.
    macro_rules! ends_well {
        ($($test:ident => $name:literal,)*) => {
            $(#[test]
            fn $test() {
                let named = SCENARIOS.iter().find(|scenario| scenario.name == $name);
                let told = named.expect("a scenario").run(1);
                assert_eq!(told.violation, None, "{told:?}");
            })*

            #[test]
            fn every_scenario_has_a_test() {
                let tested = [$($name),*];
                assert_eq!(SCENARIOS.iter().map(|it| it.name).collect::<Vec<_>>(), tested);
            }
        };
    }

    ends_well! {
        mq_17_a_follower_comes_back => "MQ-17",
        f_6a_one_link_is_cut => "F-6a",
        f_5_leaders_are_cut_off => "F-5",
        f_6b_only_one_is_seen => "F-6b",
        f_6c_two_hang_on_followers => "F-6c",
        f_6d_a_stale_node_in_the_middle => "F-6d",
        f_6e_a_deaf_leader => "F-6e",
        f_6f_a_flapping_link => "F-6f",
        f_9_a_paused_leader => "F-9",
        f_10_a_slow_leader => "F-10 slow",
        f_10_a_hanging_leader => "F-10 hang",
        f_11_a_slow_follower => "F-11",
        f_28_a_rolling_restart => "F-28",
    }

    #[test]
    fn a_scenario_is_a_function_of_its_seed() {
        let told = |seed| format!("{:?}", SCENARIOS[1].run(seed));
        assert_eq!(told(7), told(7));
    }
}
