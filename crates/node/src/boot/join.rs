//! Joining a cluster that stands: ask until an operator has added this node, then take its identity.
//!
//! Promise: nothing of the cluster's is written before the cluster has recorded this node with this very disk. The
//! first state comes from a leader, as a snapshot.

use std::collections::BTreeSet;
use std::time::Duration;

use ikada_api::state::LEVEL;
use ikada_replica::founding::{Candidate, FoundingError, FoundingMessage, Plan};
use ikada_store::RealDisk;
use tokio::sync::mpsc;
use tracing::info;

use super::backoff::Backoff;
use super::found::FoundError;
use super::papers::Papers;
use crate::config::{Config, JOIN_ASK_MS};
use crate::peers::{FoundingAsker, FoundingDoor, PROTOCOL};
use crate::tls::Tls;

/// Waits until the cluster has this node as a member; gives the cluster's plan as it is then.
pub async fn join(
    config: &Config,
    disk: &RealDisk,
    papers: &mut Papers,
    me: Candidate,
    door: &FoundingDoor,
    tls: Option<&Tls>,
) -> Result<Plan, FoundError> {
    let (questions, mut inbox) = mpsc::channel(64);
    door.open(questions);
    let (answers, mut answered) = mpsc::channel(64);
    let asker = FoundingAsker::new(answers, tls.cloned());
    let mut addresses: BTreeSet<String> = config.join.iter().cloned().collect();
    let (mut backoff, mut random) = (Backoff::new(JOIN_ASK_MS), fastrand::Rng::new());
    let mut pulse = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
    let mut told = false;
    loop {
        tokio::select! {
            () = &mut pulse => {
                let wait = Duration::from_millis(backoff.draw(&mut random));
                pulse.as_mut().reset(tokio::time::Instant::now() + wait);
                for addr in addresses.iter().filter(|addr| **addr != me.peer_addr) {
                    asker.ask(addr.clone(), FoundingMessage::Join(me.clone()));
                }
            }
            Some((_, reply)) = inbox.recv() => {
                let waiting =
                    FoundingMessage::Waiting { me: me.clone(), protocol: PROTOCOL, level: LEVEL };
                let _ = reply.send(waiting);
            }
            Some(answer) = answered.recv() => match answer {
                FoundingMessage::Founded(plan) => {
                    if admits(&plan, &me, papers)? {
                        papers.promise = Some(plan.clone());
                        papers.members = Some(plan.members.clone());
                        papers.store(disk)?;
                        return Ok(plan);
                    }
                    addresses.extend(plan.members.into_iter().map(|member| member.peer_addr));
                    if !told {
                        told = true;
                        info!(
                            cluster = format!("{:016x}", plan.cluster),
                            node = me.node,
                            "waiting to be added: run `ikada cluster add {}`", me.peer_addr
                        );
                    }
                }
                FoundingMessage::Removed { node } => {
                    return Err(FoundingError::WasRemoved { node }.into());
                }
                _ => {}
            }
        }
    }
}

/// Whether the cluster has recorded this node with this disk.
fn admits(plan: &Plan, me: &Candidate, papers: &Papers) -> Result<bool, FoundingError> {
    let (node, cluster) = (me.node, plan.cluster);
    if let Some(promised) = papers.promise.as_ref().map(|promise| promise.cluster)
        && promised != cluster
    {
        return Err(FoundingError::Promised { node, promised, cluster });
    }
    match plan.members.iter().find(|member| member.node == node) {
        Some(member) if member.incarnation == me.incarnation => Ok(true),
        Some(_) => Err(FoundingError::Wiped { node, cluster }),
        None => Ok(false),
    }
}
