//! Counts failed tries per address, or per network of IPv6, of which one caller has as many addresses as it likes, so that guessing is slow and the log stays readable.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::places::neighbourhood;

/// Failed tries of one address in a window before it is told to wait.
const FAILURES_MAX: u32 = 20;
/// The window.
const WINDOW_MS: u64 = 10_000;
/// Addresses remembered; the oldest window makes room.
const ADDRESSES_MAX: usize = 1_024;

#[derive(Debug, Clone, Copy)]
struct Window {
    since_ms: u64,
    count: u32,
}

/// Failed tries of late.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// By neighbourhood.
    windows: HashMap<IpAddr, Window>,
}

impl Failures {
    /// Counts a failure; false if the address has failed too often and should wait.
    pub(super) fn count(&mut self, address: IpAddr, now_ms: u64) -> bool {
        let address = neighbourhood(address);
        if self.windows.len() >= ADDRESSES_MAX && !self.windows.contains_key(&address) {
            self.make_room(now_ms);
        }
        let window = self.windows.entry(address).or_insert(Window { since_ms: now_ms, count: 0 });
        if now_ms.saturating_sub(window.since_ms) >= WINDOW_MS {
            *window = Window { since_ms: now_ms, count: 0 };
        }
        window.count = window.count.saturating_add(1);
        window.count <= FAILURES_MAX
    }

    /// Whether an address has failed so often that it is not even listened to.
    pub(super) fn must_wait(&self, address: IpAddr, now_ms: u64) -> bool {
        self.windows.get(&neighbourhood(address)).is_some_and(|window| {
            window.count > FAILURES_MAX && now_ms.saturating_sub(window.since_ms) < WINDOW_MS
        })
    }

    fn make_room(&mut self, now_ms: u64) {
        self.windows.retain(|_, window| now_ms.saturating_sub(window.since_ms) < WINDOW_MS);
        if self.windows.len() >= ADDRESSES_MAX {
            let oldest = self.windows.iter().min_by_key(|(_, window)| window.since_ms);
            if let Some(address) = oldest.map(|(address, _)| *address) {
                self.windows.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_17_an_address_that_fails_too_often_must_wait() {
        let mut failures = Failures::default();
        let address = IpAddr::from([10, 0, 0, 1]);
        let passed = (0..100).filter(|_| failures.count(address, 5)).count();
        assert_eq!(passed, FAILURES_MAX as usize);
        assert!(failures.must_wait(address, 6) && !failures.must_wait(address, 5 + WINDOW_MS));
        assert!(failures.count(IpAddr::from([10, 0, 0, 2]), 5), "others are not slowed");
        assert!(failures.count(address, 5 + WINDOW_MS));
    }

    #[test]
    fn x_17_one_network_of_ipv6_is_one_caller() {
        let mut failures = Failures::default();
        let own = |number: u16| IpAddr::from([0x2001, 0xdb8, 1, 2, number, 9, number, 1]);
        let passed = (0..100).filter(|number| failures.count(own(*number), 5)).count();
        assert_eq!(passed, FAILURES_MAX as usize);
        assert!(failures.must_wait(own(5_000), 6));
        let other = IpAddr::from([0x2001, 0xdb8, 1, 3, 0, 0, 0, 1]);
        assert!(!failures.must_wait(other, 6) && failures.count(other, 6));
        // The same address in either form.
        let (short, long) = (IpAddr::from([10, 0, 0, 1]), "::ffff:10.0.0.1".parse().unwrap());
        for _ in 0..=FAILURES_MAX {
            failures.count(short, 5);
        }
        assert!(failures.must_wait(long, 6));
    }

    #[test]
    fn x_17_a_flood_of_addresses_is_bounded() {
        let mut failures = Failures::default();
        for number in 0..5_000u32 {
            failures.count(IpAddr::from(number.to_be_bytes()), u64::from(number / 100));
        }
        assert!(failures.windows.len() <= ADDRESSES_MAX);
    }
}
