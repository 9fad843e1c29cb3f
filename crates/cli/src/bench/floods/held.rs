//! Floods that hold connections: slow heads and idle ones. What the node closes is opened again.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::attack::Target;

/// Connections opened per second.
pub(super) const OPENED_PER_S: usize = 2_000;
/// Steps per second in which they are.
const STEPS_PER_S: usize = 100;
/// Each connection gets a byte this often.
const BYTE_EVERY: Duration = Duration::from_secs(1);
const FRONT: &[u8] = b"GET /v1/tasks HTTP/1.1\r\nhost: localhost\r\nx-slow: ";

/// A connection, and when it is looked at next.
type Held = (Instant, TcpStream);

/// Holds as many connections as it may, until it is dropped.
pub(super) async fn hold(target: &Target, slow: bool) {
    let mut pulse = interval(Duration::from_secs(1) / STEPS_PER_S as u32);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut held: VecDeque<Held> = VecDeque::new();
    let mut opening: JoinSet<Option<TcpStream>> = JoinSet::new();
    loop {
        pulse.tick().await;
        while let Some(opened) = opening.try_join_next() {
            if let Ok(Some(stream)) = opened {
                if slow {
                    // A node that has closed already is met at the next byte.
                    let _ = stream.try_write(FRONT);
                }
                held.push_back((Instant::now() + BYTE_EVERY, stream));
            }
        }
        tend(&mut held, target, slow);
        for _ in 0..OPENED_PER_S / STEPS_PER_S {
            if held.len() + opening.len() < target.connections {
                let target = target.clone();
                opening.spawn(async move { target.connect().await });
            }
        }
    }
}

/// Sends what is due, and counts those that the node has closed.
fn tend(held: &mut VecDeque<Held>, target: &Target, slow: bool) {
    let now = Instant::now();
    while held.front().is_some_and(|(due, _)| *due <= now) {
        let Some((_, stream)) = held.pop_front() else { return };
        let sent = !slow || !stream.try_write(b"a").is_err_and(|error| !is_full(&error));
        let open = stream.try_read(&mut [0; 64]).is_err_and(|error| is_full(&error));
        match sent && open {
            true => held.push_back((now + BYTE_EVERY, stream)),
            false => target.tally.count_turned_away(),
        }
    }
}

fn is_full(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::WouldBlock
}
