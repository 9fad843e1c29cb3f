//! The other nodes, by their peer addresses: whether a node here could dial them. Needs no cluster.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::Finding;

/// Nodes of a cluster should be nearer than this.
const DIAL_PATIENCE: Duration = Duration::from_secs(3);
/// Every write waits for a round trip to a majority.
const DIAL_DOUBTFUL: Duration = Duration::from_millis(50);

/// Dials an address. Whoever answers is not asked who it is: peer ports say nothing to strangers.
pub(super) async fn reach(address: &str) -> Finding {
    let check = "peer";
    let found = match timeout(DIAL_PATIENCE, lookup_host(address)).await {
        Ok(Ok(found)) => found.collect::<Vec<_>>(),
        Ok(Err(error)) => {
            let advice = "mend the name, or your DNS or /etc/hosts; it must be HOST:PORT";
            return Finding::bad(check, format!("{address}: {error}"), advice);
        }
        Err(_) => {
            let advice = "DNS does not answer: mend it, or name addresses";
            return Finding::bad(check, format!("{address}: no answer from DNS"), advice);
        }
    };
    let Some(place) = found.first() else {
        let advice = "mend the name, or your DNS or /etc/hosts";
        return Finding::bad(check, format!("{address}: the name has no address"), advice);
    };
    let begun = Instant::now();
    match timeout(DIAL_PATIENCE, TcpStream::connect(place)).await {
        Ok(Ok(_)) => answered(address, begun.elapsed()),
        // The machine answers; only the node is not there yet.
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => {
            let seen = format!("{address}: the machine answers, nothing listens there");
            Finding::doubtful(check, seen, "fine before that node's first start; else start it")
        }
        Ok(Err(error)) => {
            let advice = "see routes and firewalls between the two machines";
            Finding::bad(check, format!("{address}: {error}"), advice)
        }
        Err(_) => {
            let seen = format!("{address}: no answer in {} s", DIAL_PATIENCE.as_secs());
            Finding::bad(check, seen, "a firewall drops packets, or the machine is down")
        }
    }
}

fn answered(address: &str, took: Duration) -> Finding {
    let seen = format!("{address} answers in {took:.1?}");
    match took >= DIAL_DOUBTFUL {
        true => {
            let advice =
                "every write waits for a majority: keep the nodes of a cluster near each other";
            Finding::doubtful("peer", seen, advice)
        }
        false => Finding::good("peer", seen),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::super::Verdict;
    use super::*;

    #[tokio::test]
    async fn named_peers_are_dialled_before_there_is_a_cluster() {
        let here = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = here.local_addr().unwrap().to_string();
        let found = reach(&address).await;
        // How long it took is this machine's business.
        assert!(found.verdict != Verdict::Bad && found.seen.contains("answers in"), "{found:?}");
        drop(here);
        let found = reach(&address).await;
        assert_eq!(found.verdict, Verdict::Doubtful, "{found:?}");
        assert!(found.advice.contains("first start"), "{found:?}");
        for bad in ["no.such.host.invalid:7401", "127.0.0.1", "127.0.0.1:99999"] {
            assert_eq!(reach(bad).await.verdict, Verdict::Bad, "{bad}");
        }
    }

    #[test]
    fn a_far_peer_is_doubtful() {
        assert_eq!(answered("a:1", DIAL_DOUBTFUL).verdict, Verdict::Doubtful);
        assert_eq!(answered("a:1", Duration::from_millis(1)).verdict, Verdict::Good);
    }
}
