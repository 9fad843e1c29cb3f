//! What is shed when: the defaults of CH-17 to CH-21, and how operators say otherwise.
//!
//! Steps are written `>70:5,75:10,80:25`: above 70 % of CPU in use 5 % of the calls are shed, from 75 % on 10 %, and so on.

use super::decide::WHOLE;
use super::lane::Lane;

/// Calls of tasks count as piled up when they take this long; a healthy write takes a hundredth of it.
pub(super) const PILED_UP_US: u64 = 1_000_000;
/// A busy node lets so many calls in that each waits about this long for those before it, ms.
const WAIT_MS: u64 = 100;
const WAIT_MS_MAX: u64 = 10_000;
/// With that wait, fewer calls of a lane than these are never too many: so many keep a node busy.
const CROWD_MIN: u64 = 16;
/// The same with any wait.
const CROWD_FEWEST: u64 = 4;
/// Most steps of one lane.
const STEPS_MAX: usize = 16;

/// A share of the calls is shed from some use of CPU on. All in hundredths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// From here on, until the next step.
    pub from: u16,
    /// So many are shed.
    pub share: u16,
}

/// The rule of one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneRule {
    /// Steps of CPU in use, ascending.
    pub steps: Vec<Step>,
    /// Memory in use above which all calls are shed.
    pub memory: Option<u16>,
    /// The steps count only while calls of the lane take this long.
    pub patience_us: u64,
    /// Whether calls are shed that cannot be answered in time.
    pub deadline: bool,
    /// Whether a busy node takes no more calls at a time than it answers within the wait.
    pub bounded: bool,
}

impl LaneRule {
    const FREE: LaneRule = LaneRule {
        steps: Vec::new(),
        memory: None,
        patience_us: 0,
        deadline: false,
        bounded: false,
    };

    /// The share of calls that is shed at some use of CPU.
    pub fn share(&self, cpu: u16) -> u16 {
        share_of(&self.steps, cpu)
    }

    /// Whether nothing is ever shed by it.
    pub fn is_free(&self) -> bool {
        self.steps.is_empty() && self.memory.is_none() && !self.deadline
    }
}

fn share_of(steps: &[Step], cpu: u16) -> u16 {
    steps.iter().rev().find(|step| cpu >= step.from).map_or(0, |step| step.share)
}

/// A rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    /// No such lane.
    #[error(
        "shed {0:?} names no lane; write off, memory=PERCENT, wait=MS or wait=auto, or LANE=STEPS with read, download, miss, submit, upload or list"
    )]
    Lane(String),
    /// Steps that cannot be read.
    #[error("shed {0:?}: steps are written >70:5,75:10,80:25 (CPU:SHARE in percent, CPU rising)")]
    Steps(String),
    /// No percentage.
    #[error("shed {0:?}: give the percentage of memory in use, 1 to 100")]
    Memory(String),
    /// No time.
    #[error("shed {0:?}: give the wait in milliseconds, 1 to 10000, or auto")]
    Wait(String),
}

/// The rules of all lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    lanes: [LaneRule; Lane::ALL.len()],
    /// Steps for downloads of what is not in memory, beside those of their lane (CH-22).
    misses: Vec<Step>,
    /// How long whoever is let in by a busy node may wait for those before it, ms.
    wait_ms: u64,
    /// Whether a line of calls is kept short by what calls take, besides.
    adapts: bool,
}

impl Default for Rules {
    fn default() -> Self {
        // Never all of them: what nobody could read would never come into memory.
        let misses = vec![Step { from: 9_000, share: 2_500 }, Step { from: 9_500, share: 5_000 }];
        Rules { lanes: Lane::ALL.map(default_rule), misses, wait_ms: WAIT_MS, adapts: true }
    }
}

/// CH-17 to CH-21 for each lane. Uploads and downloads by CPU alone, as written there; calls about tasks only while they
/// pile up as well.
fn default_rule(lane: Lane) -> LaneRule {
    let step = |from, share| Step { from, share };
    let downloads = vec![step(8_500, 500), step(9_000, 1_000), step(9_500, 2_500)];
    let uploads = vec![step(7_001, 500), step(7_500, 1_000), step(8_000, 2_500)];
    let all = step(9_001, WHOLE);
    let rule = |steps, patience_us| LaneRule {
        steps,
        memory: Some(9_000),
        patience_us,
        deadline: true,
        // Transfers have queues of their own.
        bounded: patience_us > 0,
    };
    match lane {
        // Results free memory, and a lost renewal costs a whole attempt.
        Lane::Settle | Lane::Renew | Lane::Claim | Lane::Operate => LaneRule::FREE,
        Lane::Read => rule(downloads, PILED_UP_US),
        Lane::Download => rule(downloads, 0),
        Lane::Submit => rule(uploads, PILED_UP_US),
        Lane::Upload => rule([uploads, vec![all]].concat(), 0),
        Lane::List => rule([uploads, vec![all]].concat(), PILED_UP_US),
    }
}

impl Rules {
    /// Nothing is shed by load.
    pub fn off() -> Rules {
        let lanes = Lane::ALL.map(|_| LaneRule::FREE);
        Rules { lanes, misses: Vec::new(), wait_ms: WAIT_MS, adapts: false }
    }

    /// As many calls of a bounded lane as a busy node has under way at most, with so many answered in a look of this length.
    pub fn under_way_max(&self, answered: u64, look_ms: u64) -> u64 {
        let few = CROWD_MIN * self.wait_ms / WAIT_MS;
        (answered * self.wait_ms / look_ms.max(1)).max(few.max(CROWD_FEWEST))
    }

    /// Whether the line of a lane is kept short by what its calls take. Reads may wait for news, and transfers have queues.
    pub fn keeps_short(&self, lane: Lane) -> bool {
        self.adapts && matches!(lane, Lane::Submit | Lane::List)
    }

    /// The share of downloads from disks or peers that is shed at some use of CPU.
    pub fn miss_share(&self, cpu: u16) -> u16 {
        share_of(&self.misses, cpu)
    }

    /// The rule of a lane.
    pub fn of(&self, lane: Lane) -> &LaneRule {
        &self.lanes[lane.index()]
    }

    /// The defaults, changed as an operator says.
    pub fn parse(words: &[String]) -> Result<Rules, BadRule> {
        let mut rules = Rules::default();
        for word in words {
            rules.change(word)?;
        }
        Ok(rules)
    }

    fn change(&mut self, word: &str) -> Result<(), BadRule> {
        if word == "off" {
            *self = Rules::off();
            return Ok(());
        }
        let (name, value) = word.split_once('=').ok_or_else(|| BadRule::Lane(word.to_owned()))?;
        if name == "memory" {
            let bound = percent(value).filter(|bound| *bound > 0);
            let bound = bound.ok_or_else(|| BadRule::Memory(word.to_owned()))?;
            let lanes = self.lanes.iter_mut().filter(|rule| rule.memory.is_some());
            lanes.for_each(|rule| rule.memory = Some(bound));
            return Ok(());
        }
        if name == "wait" && value == "auto" {
            (self.wait_ms, self.adapts) = (WAIT_MS, true);
            return Ok(());
        }
        if name == "wait" {
            self.adapts = false;
            let wait_ms = value.parse().ok().filter(|ms| (1..=WAIT_MS_MAX).contains(ms));
            self.wait_ms = wait_ms.ok_or_else(|| BadRule::Wait(word.to_owned()))?;
            return Ok(());
        }
        if name == "miss" {
            self.misses = read_steps(value).ok_or_else(|| BadRule::Steps(word.to_owned()))?;
            return Ok(());
        }
        let sheddable = |lane: &Lane| *lane >= Lane::Read;
        let lane = Lane::parse(name).filter(sheddable);
        let lane = lane.ok_or_else(|| BadRule::Lane(word.to_owned()))?;
        let steps = read_steps(value).ok_or_else(|| BadRule::Steps(word.to_owned()))?;
        let rule = &mut self.lanes[lane.index()];
        // Whoever names steps means them as they stand.
        (rule.steps, rule.patience_us) = (steps, 0);
        Ok(())
    }
}

fn read_steps(text: &str) -> Option<Vec<Step>> {
    if text == "off" {
        return Some(Vec::new());
    }
    let mut steps: Vec<Step> = Vec::new();
    for word in text.split(',') {
        let (from, share) = word.trim().split_once(':')?;
        let from = match from.strip_prefix('>') {
            Some(from) => percent(from)? + 1,
            None => percent(from)?,
        };
        let rises = steps.last().is_none_or(|last| last.from < from);
        if !rises || steps.len() == STEPS_MAX {
            return None;
        }
        steps.push(Step { from, share: percent(share)? });
    }
    Some(steps)
}

/// A percentage without fractions, in hundredths.
fn percent(text: &str) -> Option<u16> {
    text.parse::<u16>().ok().filter(|percent| *percent <= 100).map(|percent| percent * 100)
}
