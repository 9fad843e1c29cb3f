//! The decision: a pure function of rule, load, call and one random number.

use super::rules::LaneRule;

/// All of something, in hundredths of a percent.
pub const WHOLE: u16 = 10_000;

/// How busy the node is, in hundredths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// CPU in use.
    pub cpu: u16,
    /// Memory in use.
    pub memory: u16,
}

impl Load {
    /// What is assumed when nothing can be measured (CH-24).
    pub const WORST: Load = Load { cpu: WHOLE, memory: WHOLE };
}

/// What is known of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// How long its caller waits; none if it does not say.
    pub left_us: Option<u64>,
    /// How long a call of its lane takes.
    pub expected_us: u64,
}

/// Why a call was shed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Memory is short (CH-17).
    Memory,
    /// The CPU is so busy that the whole lane is shed (CH-18).
    Priority,
    /// The CPU is busy, and this call was drawn (CH-19, CH-20).
    Cpu,
    /// The caller would have gone before its answer (CH-21).
    Deadline,
    /// As many calls are under way, or wait, as may (CH-16).
    Full,
    /// The CPU is busy, and the bytes asked for are not in memory (CH-22).
    Miss,
    /// Calls of this kind stand in line (F-32).
    Wait,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 7] = [
        Reason::Memory,
        Reason::Priority,
        Reason::Cpu,
        Reason::Deadline,
        Reason::Full,
        Reason::Miss,
        Reason::Wait,
    ];

    /// The reason's public name.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Memory => "memory",
            Reason::Priority => "priority",
            Reason::Cpu => "cpu",
            Reason::Deadline => "deadline",
            Reason::Full => "full",
            Reason::Miss => "miss",
            Reason::Wait => "wait",
        }
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }
}

/// Admits a call, or sheds it. `draw` gives a number below `WHOLE`; it is asked only where chance decides.
pub fn decide(
    rule: &LaneRule,
    load: Load,
    ask: Ask,
    draw: impl FnOnce() -> u16,
) -> Result<(), Reason> {
    if rule.memory.is_some_and(|bound| load.memory > bound) {
        return Err(Reason::Memory);
    }
    // Tasks are many and small: a busy CPU alone says that the node works. It is too busy when calls pile up as well.
    if ask.expected_us >= rule.patience_us {
        match rule.share(load.cpu) {
            0 => {}
            WHOLE.. => return Err(Reason::Priority),
            share if draw() < share => return Err(Reason::Cpu),
            _ => {}
        }
    }
    if rule.deadline && ask.left_us.is_some_and(|left| left < ask.expected_us) {
        return Err(Reason::Deadline);
    }
    Ok(())
}
