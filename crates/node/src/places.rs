//! Places for connections: so many in all, and so many of them for one address (X7). A place is taken before a byte is
//! read and given back when the connection ends, pipes included.
//!
//! Promise: strangers cannot fill the door. Half of the places are theirs, in all and of each address. Whoever comes when
//! these are taken is given the place of the stranger that came first, of its own address if that is what is full; a caller
//! that shows who it is within moments is known by then. Only where all are known is a newcomer turned away.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};

/// Bits of an IPv6 address that one subscriber chooses freely.
const HOST_BITS: u32 = 64;

/// The connections of one address.
#[derive(Debug, Default)]
struct Count {
    held: usize,
    /// Its strangers, oldest first.
    strangers: BTreeSet<u64>,
}

/// Who has a place.
#[derive(Debug, Default)]
struct Ledger {
    next: u64,
    /// All, by number.
    held: HashMap<u64, IpAddr>,
    counts: HashMap<IpAddr, Count>,
    /// Those for whom nobody has vouched, oldest first. A word ends their connection.
    strangers: BTreeMap<u64, oneshot::Sender<()>>,
}

impl Ledger {
    fn give_back(&mut self, number: u64) {
        self.vouch(number);
        // Not there if the place went to somebody else.
        let Some(address) = self.held.remove(&number) else { return };
        if let Some(count) = self.counts.get_mut(&address) {
            count.held -= 1;
            if count.held == 0 {
                self.counts.remove(&address);
            }
        }
    }

    /// A stranger no longer; gives the word that would have ended it.
    fn vouch(&mut self, number: u64) -> Option<oneshot::Sender<()>> {
        let address = self.held.get(&number)?;
        if let Some(count) = self.counts.get_mut(address) {
            count.strangers.remove(&number);
        }
        self.strangers.remove(&number)
    }

    /// Ends the connection of the oldest stranger, of an address if one is named; false if there is none.
    fn push_out(&mut self, address: Option<IpAddr>) -> bool {
        let oldest = match address {
            Some(address) => self.counts.get(&address).and_then(|count| count.strangers.first()),
            None => self.strangers.keys().next(),
        };
        let Some(number) = oldest.copied() else { return false };
        if let Some(word) = self.vouch(number) {
            // A connection that ended just now is gone as well.
            let _ = word.send(());
        }
        self.give_back(number);
        true
    }
}

/// All places.
pub struct Places {
    total: usize,
    per_address_max: usize,
    ledger: Arc<Mutex<Ledger>>,
    /// How many are taken.
    taken: watch::Sender<usize>,
}

/// One place, until it is dropped.
#[derive(Debug)]
pub struct Place {
    number: u64,
    ledger: Arc<Mutex<Ledger>>,
    taken: watch::Sender<usize>,
}

/// Tells a connection that its place went to somebody else.
#[derive(Debug)]
pub struct PushedOut(oneshot::Receiver<()>);

impl PushedOut {
    /// Done when the place is lost; never once somebody has vouched for the connection.
    pub async fn wait(self) {
        if self.0.await.is_err() {
            std::future::pending().await
        }
    }
}

/// A newcomer's place.
#[derive(Debug)]
pub struct Taken {
    pub place: Place,
    pub pushed_out: PushedOut,
    /// Whether a stranger had to go for it.
    pub pushed: bool,
}

impl Places {
    /// So many places, and so many of them for one address.
    pub fn new(total: usize, per_address_max: usize) -> Places {
        Places { total, per_address_max, ledger: Arc::default(), taken: watch::Sender::new(0) }
    }

    /// A place for a connection from an address; none if there is none for it.
    pub fn take(&self, address: IpAddr) -> Option<Taken> {
        let address = neighbourhood(address);
        let mut ledger = lock(&self.ledger);
        let of_address = ledger.counts.get(&address);
        let (held, strangers) =
            of_address.map_or((0, 0), |count| (count.held, count.strangers.len()));
        let address_is_full = held >= self.per_address_max;
        let door_is_full = ledger.held.len() >= self.total;
        let mut pushed = false;
        if address_is_full || strangers >= share(self.per_address_max) {
            pushed = ledger.push_out(Some(address));
        } else if door_is_full || ledger.strangers.len() >= share(self.total) {
            pushed = ledger.push_out(None);
        }
        if !pushed && (address_is_full || door_is_full) {
            return None;
        }
        ledger.next += 1;
        let number = ledger.next;
        let (word, pushed_out) = oneshot::channel();
        ledger.held.insert(number, address);
        ledger.strangers.insert(number, word);
        let count = ledger.counts.entry(address).or_default();
        count.held += 1;
        count.strangers.insert(number);
        self.taken.send_replace(ledger.held.len());
        let (ledger, taken) = (self.ledger.clone(), self.taken.clone());
        let place = Place { number, ledger, taken };
        Some(Taken { place, pushed_out: PushedOut(pushed_out), pushed })
    }

    /// Done when all places are free.
    pub async fn all_free(&self) {
        let _ = self.taken.subscribe().wait_for(|taken| *taken == 0).await;
    }
}

impl Place {
    /// Somebody has vouched for the connection: it stays until it ends.
    pub fn vouch(&self) {
        lock(&self.ledger).vouch(self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut ledger = lock(&self.ledger);
        ledger.give_back(self.number);
        self.taken.send_replace(ledger.held.len());
    }
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What strangers may have of so many places: half, and at least one.
fn share(places: usize) -> usize {
    places.div_ceil(2)
}

/// What counts as one address: an IPv4 address, or the network of an IPv6 one.
pub(crate) fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(wide) => {
            let network = u128::from(wide) >> HOST_BITS << HOST_BITS;
            IpAddr::V6(Ipv6Addr::from(network))
        }
        narrow => narrow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const TWO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn known(places: &Places, address: IpAddr) -> Option<Place> {
        let place = places.take(address)?.place;
        place.vouch();
        Some(place)
    }

    fn is_out(taken: &mut Taken) -> bool {
        taken.pushed_out.0.try_recv().is_ok()
    }

    #[test]
    fn x_7_one_address_cannot_take_all_places() {
        let places = Places::new(10, 3);
        let taken: Vec<Place> = (0..20).filter_map(|_| known(&places, ONE)).collect();
        assert_eq!(taken.len(), 3);
        assert!(places.take(TWO).is_some(), "others have room");
        drop(taken);
        assert!(places.take(ONE).is_some() && lock(&places.ledger).counts.is_empty());
        assert!(lock(&places.ledger).strangers.is_empty());
    }

    #[test]
    fn x_7_neighbours_in_one_network_count_as_one() {
        let places = Places::new(10, 1);
        let one = known(&places, "2001:db8::1".parse().unwrap());
        assert!(one.is_some() && places.take("2001:db8::ffff:2".parse().unwrap()).is_none());
        assert!(places.take("2001:db8:0:1::1".parse().unwrap()).is_some());
        let mapped = known(&places, "::ffff:10.0.0.1".parse().unwrap());
        assert!(mapped.is_some() && places.take("10.0.0.1".parse().unwrap()).is_none());
    }

    #[test]
    fn x_7_the_oldest_stranger_makes_room_for_a_newcomer() {
        let places = Places::new(4, 3);
        let friend = known(&places, ONE).expect("room");
        let mut strangers: Vec<Taken> = (0..2).filter_map(|_| places.take(ONE)).collect();
        let newcomer = places.take(ONE).expect("the address is full of strangers");
        assert!(newcomer.pushed && is_out(&mut strangers[0]) && !is_out(&mut strangers[1]));
        let fourth = known(&places, TWO).expect("strangers have their half");
        assert!(is_out(&mut strangers[1]));
        let mut last = places.take(TWO).expect("room");
        assert!(!last.pushed && !is_out(&mut last));
        // A place that was lost is given back once, by whoever has it now.
        drop(strangers);
        assert_eq!(lock(&places.ledger).held.len(), 4);
        newcomer.place.vouch();
        last.place.vouch();
        assert!(places.take(TWO).is_none(), "all are known");
        drop((friend, newcomer, fourth, last));
        assert!(lock(&places.ledger).held.is_empty() && lock(&places.ledger).counts.is_empty());
    }

    #[test]
    fn x_7_strangers_have_half_of_the_places() {
        let places = Places::new(10, 6);
        let mut strangers: Vec<Taken> = (0..9).filter_map(|_| places.take(ONE)).collect();
        let out = strangers.iter_mut().map(is_out).collect::<Vec<_>>();
        assert_eq!(out, [true, true, true, true, true, true, false, false, false]);
        // Those of other addresses fill what is left of the half, and push out whoever came first of all.
        let others: Vec<Taken> = (0..3).filter_map(|_| places.take(TWO)).collect();
        assert!(is_out(&mut strangers[6]) && !is_out(&mut strangers[7]));
        assert_eq!(lock(&places.ledger).strangers.len(), 5);
        // The other half is free for those who are known by the time the next one comes.
        drop((strangers, others));
        let friends: Vec<Place> = (0..20)
            .filter_map(|number| known(&places, if number % 2 == 0 { ONE } else { TWO }))
            .collect();
        assert_eq!(friends.len(), 10);
    }
}
