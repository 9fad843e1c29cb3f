//! Places for connections: so many in all, and so many of them for one address (X7). A place is taken before a byte is
//! read and given back when the connection ends, pipes included.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bits of an IPv6 address that one subscriber chooses freely.
const HOST_BITS: u32 = 64;

type Counts = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// All places.
pub(super) struct Places {
    all: Arc<Semaphore>,
    total: u32,
    per_address_max: usize,
    counts: Counts,
}

/// One place, until it is dropped.
pub(super) struct Place {
    address: IpAddr,
    counts: Counts,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(total: usize, per_address_max: usize) -> Places {
        let (all, counts) = (Arc::new(Semaphore::new(total)), Counts::default());
        Places { all, total: total as u32, per_address_max, counts }
    }

    /// A place for a connection from an address; none if there is none for it.
    pub(super) fn take(&self, address: IpAddr) -> Option<Place> {
        let permit = self.all.clone().try_acquire_owned().ok()?;
        let address = neighbourhood(address);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_insert(0);
        if *count >= self.per_address_max {
            return None;
        }
        *count += 1;
        Some(Place { address, counts: self.counts.clone(), _permit: permit })
    }

    /// Done when all places are free.
    pub(super) async fn all_free(&self) {
        let _ = self.all.acquire_many(self.total).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// What counts as one address: an IPv4 address, or the network of an IPv6 one.
fn neighbourhood(address: IpAddr) -> IpAddr {
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

    #[test]
    fn x_7_one_address_cannot_take_all_places() {
        let places = Places::new(10, 3);
        let (one, two) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let taken: Vec<Place> = (0..20).filter_map(|_| places.take(one)).collect();
        assert_eq!(taken.len(), 3);
        assert!(places.take(two).is_some(), "others have room");
        drop(taken);
        assert!(places.take(one).is_some() && places.counts.lock().unwrap().is_empty());
    }

    #[test]
    fn x_7_neighbours_in_one_network_count_as_one() {
        let places = Places::new(10, 1);
        let one = places.take("2001:db8::1".parse().unwrap());
        assert!(one.is_some() && places.take("2001:db8::ffff:2".parse().unwrap()).is_none());
        assert!(places.take("2001:db8:0:1::1".parse().unwrap()).is_some());
        let mapped = places.take("::ffff:10.0.0.1".parse().unwrap());
        assert!(mapped.is_some() && places.take("10.0.0.1".parse().unwrap()).is_none());
    }
}
