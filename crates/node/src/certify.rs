//! A node's certificate at its start: the one it has, one by a join token, or the first of a new authority.

use std::collections::BTreeSet;
use std::time::SystemTime;

use ikada_store::{Identity, RealDisk};
use tracing::info;

use crate::boot::BootError;
use crate::config::Config;
use crate::database;
use crate::peers::Directory;
use crate::run::RunError;
use crate::tls::{self, JoinToken, Name, Newcomer, Papers, Tls};

/// Names under which every node is reached from its own machine.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// TLS of this node; none where it is not asked for.
pub(crate) async fn certify(
    config: &Config,
    disk: &RealDisk,
    node: u64,
    hosts: &[String],
) -> Result<Option<Tls>, RunError> {
    if !config.tls {
        return Ok(None);
    }
    let identity = Identity::load(disk).map_err(BootError::from)?;
    let folder = Papers::folder(&config.data);
    let found = usable(Papers::load(&folder)?, config, hosts)?;
    let papers = match (found, &config.join_token_file) {
        (Some(papers), _) => papers,
        (None, Some(path)) => {
            let broken = |why: String| RunError::JoinToken { path: path.clone(), why };
            let text = std::fs::read_to_string(path).map_err(|error| broken(error.to_string()))?;
            let token = JoinToken::parse(&text)
                .ok_or_else(|| broken("it holds no join token; copy the file again".to_owned()))?;
            let newcomer = Newcomer::new(folder, &token, node, hosts.to_vec())?;
            loop {
                if let Some(papers) = newcomer.ask(&known_peers(config).await?).await? {
                    break papers;
                }
            }
        }
        (None, None) if !config.join.is_empty() => return Err(RunError::NoJoinToken),
        (None, None) => {
            let drawn = || fastrand::Rng::new().u64(1..);
            let cluster = identity.as_ref().map_or_else(drawn, |identity| identity.cluster);
            let others = u32::from(config.expect.saturating_sub(1));
            let papers = Papers::found(&config.data, Name { cluster, node }, hosts, others)?;
            info!(
                cluster = format!("{cluster:016x}"),
                "a new authority signs this cluster's certificates; its key is in the folder tls, keep a copy of it"
            );
            if others > 0 {
                let path = config.data.join(tls::JOIN_TOKEN_FILE);
                info!(path = %path.display(), "the other nodes join with the token in this file");
            }
            papers
        }
    };
    let cluster = identity.map_or(papers.name.cluster, |identity| identity.cluster);
    check(papers.name, Name { cluster, node })?;
    Ok(Some(Tls::new(&papers)?))
}

/// The papers that a node has, unless their time is over: then fresh ones if the authority is here, and none, to be asked
/// for anew, where there is a join token.
fn usable(
    found: Option<Papers>,
    config: &Config,
    hosts: &[String],
) -> Result<Option<Papers>, RunError> {
    let Some(papers) = found else { return Ok(None) };
    if !papers.life.is_over(SystemTime::now()) {
        return Ok(Some(papers));
    }
    match papers.authority()? {
        Some(authority) => Ok(Some(papers.renew_by(&authority, hosts)?)),
        None if config.join_token_file.is_some() => Ok(None),
        None => Err(RunError::CertificateOver),
    }
}

/// Where others may be reached: those that the settings name, and, where logs live in a database, those entered there.
async fn known_peers(config: &Config) -> Result<Vec<String>, RunError> {
    let mut peers = [config.peers.as_slice(), &config.join].concat();
    if let Some(target) = &config.log {
        peers.extend(database::entered(target).await?);
    }
    Ok(peers)
}

fn check(found: Name, wanted: Name) -> Result<(), RunError> {
    match found == wanted {
        true => Ok(()),
        false => Err(RunError::OtherCertificate { found, wanted }),
    }
}

/// Keeps the certificate fresh while the node runs; the founded cluster must be the one it names.
pub(crate) fn keep_certificate(
    tls: Option<&Tls>,
    cluster: u64,
    node: u64,
    directory: Directory,
    hosts: Vec<String>,
) -> Result<(), RunError> {
    let Some(tls) = tls else { return Ok(()) };
    check(tls.name(), Name { cluster, node })?;
    tokio::spawn(tls.clone().watch(move || others(&directory, node), hosts));
    Ok(())
}

/// Where the members are now, without this node. The one with the authority's key may have come since the start.
fn others(directory: &Directory, node: u64) -> Vec<String> {
    let others = directory.candidates().into_iter().filter(|member| member.node != node);
    others.map(|member| member.peer_addr).collect()
}

/// Hosts under which this node is reached.
pub(crate) fn hosts(config: &Config, advertised: &[&str]) -> Vec<String> {
    let mut hosts: BTreeSet<String> = LOCAL_HOSTS.iter().map(|host| (*host).to_owned()).collect();
    for address in [config.listen, config.peer_listen] {
        if !address.ip().is_unspecified() {
            hosts.insert(address.ip().to_string());
        }
    }
    hosts.extend(config.hosts.iter().cloned());
    for address in advertised {
        let host = address.rsplit_once(':').map_or(*address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if !host.is_empty() && !matches!(host, "0.0.0.0" | "::") {
            hosts.insert(host.to_owned());
        }
    }
    hosts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use ikada_replica::Roll;
    use ikada_replica::state::Member;

    use super::*;

    // X2: a node that came while this one ran may be the one that signs.
    #[test]
    fn x_2_a_renewal_asks_those_who_are_members_now() {
        let member = |node: u64| Member {
            node,
            incarnation: node,
            peer_addr: format!("p{node}"),
            client_addr: String::new(),
        };
        let directory = Directory::new(vec![member(1), member(2)]);
        assert_eq!(others(&directory, 2), ["p1"]);
        directory.learn(&Roll { members: vec![member(2), member(3)], removed: vec![1] });
        assert_eq!(others(&directory, 2), ["p3"]);
    }
}
