//! Lease order: a lease has at most one holder in the order of the log; fences of a lease only rise and name one holder;
//! what is given back or expires goes to the first in line; an expiry ends exactly what it names.
//!
//! Followed from effects, which say what began and ended, and from orders, which say what was asked for. A slot that moves
//! takes its leases along: in an entry that moves slots only the rise of the fences is judged.

use std::collections::BTreeMap;

use ikada_state::{Command, Effect, Fence, HolderName, LeaseKey, LeaseMark, Message, Order, Reply};

use super::{Verdict, violation};

const NAME: &str = "lease_order";

#[derive(Debug, Default)]
struct Known {
    held: Option<Fence>,
    line: Vec<u64>,
    fence_max: Fence,
}

/// What one entry showed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// A lease went from one holder to the next in line.
    pub passed: bool,
    /// A holding or a wait expired.
    pub expired: bool,
}

/// All leases.
#[derive(Debug, Default)]
pub struct LeaseOrder {
    known: BTreeMap<LeaseKey, Known>,
    told: BTreeMap<(LeaseKey, Fence), HolderName>,
}

impl LeaseOrder {
    /// Follows one committed entry.
    pub fn entry(
        &mut self,
        orders: &[Option<Order>],
        replies: &[Reply],
        effects: &[Effect],
    ) -> Result<Shown, super::Violation> {
        let moves = orders.iter().flatten().any(|order| match &order.command {
            Command::Deliver(deliver) => {
                matches!(deliver.message, Message::Leave { .. } | Message::Arrive { .. })
            }
            _ => false,
        });
        let mut shown = Shown::default();
        for effect in effects {
            match effect {
                Effect::LeaseTimed { key, mark, .. } => self.began(key, *mark, moves)?,
                Effect::LeaseEnded { key, mark } => {
                    shown.passed |= self.ended(key, *mark, moves)?;
                }
                _ => {}
            }
        }
        for (key, known) in &self.known {
            if known.held.is_none() && !known.line.is_empty() {
                violation(NAME, format!("{key:?}: nobody holds it and {:?} wait", known.line))?;
            }
        }
        for (order, reply) in orders.iter().zip(replies) {
            let Some(Order { namespace, command: Command::ExpireLease(expire), .. }) = order else {
                continue;
            };
            if *reply != Reply::LeaseExpired {
                continue;
            }
            shown.expired = true;
            let key = (namespace.clone(), expire.name.clone());
            let ended = Effect::LeaseEnded { key, mark: expire.mark };
            if !effects.contains(&ended) {
                violation(NAME, format!("{expire:?} ended something else: {effects:?}"))?;
            }
        }
        Ok(shown)
    }

    fn began(&mut self, key: &LeaseKey, mark: LeaseMark, moves: bool) -> Verdict {
        let known = self.known.entry(key.clone()).or_default();
        match mark {
            LeaseMark::Waits(place) => {
                if known.line.last().is_some_and(|last| *last >= place) {
                    violation(NAME, format!("{key:?}: place {place} after {:?}", known.line))?;
                }
                known.line.push(place);
            }
            LeaseMark::Held(fence) if known.held == Some(fence) => {}
            LeaseMark::Held(fence) => {
                if let Some(held) = known.held {
                    violation(NAME, format!("{key:?}: {fence} was granted while {held} held it"))?;
                }
                let rises = fence > known.fence_max || moves && fence == known.fence_max;
                if !rises {
                    let highest = known.fence_max;
                    violation(NAME, format!("{key:?}: fence {fence} was granted after {highest}"))?;
                }
                known.held = Some(fence);
                known.fence_max = fence;
            }
        }
        Ok(())
    }

    /// True if the end of a wait was the turn of the next holder.
    fn ended(
        &mut self,
        key: &LeaseKey,
        mark: LeaseMark,
        moves: bool,
    ) -> Result<bool, super::Violation> {
        let known = self.known.entry(key.clone()).or_default();
        match mark {
            LeaseMark::Held(fence) => {
                if known.held.take() != Some(fence) {
                    violation(NAME, format!("{key:?}: {fence} ended and did not hold it"))?;
                }
                Ok(false)
            }
            LeaseMark::Waits(place) => {
                let turn = known.held.is_none();
                let at = known.line.iter().position(|waits| *waits == place);
                let Some(at) = at.filter(|at| !turn || *at == 0) else {
                    let line = &known.line;
                    violation(NAME, format!("{key:?}: {place} was served before {line:?}"))?;
                    return Ok(false);
                };
                known.line.remove(at);
                Ok(turn && !moves)
            }
        }
    }

    /// Somebody was told to hold a lease.
    pub fn told(&mut self, key: &LeaseKey, fence: Fence, holder: &HolderName) -> Verdict {
        let highest = self.known.get(key).map_or(Fence(0), |known| known.fence_max);
        if fence > highest {
            violation(
                NAME,
                format!("{key:?}: {holder} was told {fence}, which nobody was granted"),
            )?;
        }
        let first = self.told.entry((key.clone(), fence)).or_insert_with(|| holder.clone());
        match first == holder {
            true => Ok(()),
            false => violation(NAME, format!("{key:?}: {fence} is {first}'s and {holder}'s")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{LeaseName, Namespace};

    fn key() -> LeaseKey {
        (Namespace::default(), LeaseName::parse("l").unwrap())
    }

    fn timed(mark: LeaseMark) -> Effect {
        Effect::LeaseTimed { key: key(), mark, ttl_ms: 1 }
    }

    fn ended(mark: LeaseMark) -> Effect {
        Effect::LeaseEnded { key: key(), mark }
    }

    fn held(fence: u64) -> LeaseMark {
        LeaseMark::Held(Fence(fence))
    }

    #[test]
    fn two_holders_old_fences_and_queue_jumpers_are_noticed() {
        let begun = || {
            let mut order = LeaseOrder::default();
            let line = [timed(held(3)), timed(LeaseMark::Waits(1)), timed(LeaseMark::Waits(2))];
            order.entry(&[], &[], &line).unwrap();
            order
        };
        let good = [ended(held(3)), ended(LeaseMark::Waits(1)), timed(held(4))];
        assert!(begun().entry(&[], &[], &good).unwrap().passed);
        assert!(begun().entry(&[], &[], &[timed(held(4))]).is_err(), "two holders");
        let reused = [ended(held(3)), ended(LeaseMark::Waits(1)), timed(held(3))];
        assert!(begun().entry(&[], &[], &reused).is_err(), "an old fence");
        let jumped = [ended(held(3)), ended(LeaseMark::Waits(2)), timed(held(4))];
        assert!(begun().entry(&[], &[], &jumped).is_err(), "a queue jumper");
        assert!(begun().entry(&[], &[], &[ended(held(3))]).is_err(), "nobody served");
        assert!(begun().entry(&[], &[], &[ended(held(2))]).is_err(), "not the holder");
        let (one, other) = (HolderName::parse("a").unwrap(), HolderName::parse("b").unwrap());
        let mut order = begun();
        assert!(order.told(&key(), Fence(3), &one).is_ok());
        assert!(order.told(&key(), Fence(3), &other).is_err(), "one fence, two holders");
        assert!(order.told(&key(), Fence(9), &one).is_err(), "never granted");
    }
}
