//! Founding a cluster over the network: asks around until every expected node has promised one plan.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikada_replica::founding::{
    Candidate, Founding, FoundingError, FoundingMessage, FoundingOutput, Plan,
};
use ikada_store::RealDisk;
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::backoff::Backoff;
use super::papers::{Papers, PapersError};
use crate::config::{Config, FOUNDING_ASK_MS};
use crate::peers::{FoundingAsker, FoundingDoor};
use crate::tls::Tls;

/// Why no cluster was founded.
#[derive(Debug, thiserror::Error)]
pub enum FoundError {
    /// This node can never be part of it.
    #[error(transparent)]
    Founding(#[from] FoundingError),
    /// The promise could not be stored.
    #[error(transparent)]
    Papers(#[from] PapersError),
}

/// Runs the founding protocol until this node may start; a new cluster gets the number `fresh`. `door` answers other
/// nodes' questions meanwhile.
pub async fn found(
    config: &Config,
    disk: &RealDisk,
    papers: &mut Papers,
    me: Candidate,
    door: &FoundingDoor,
    (tls, fresh): (Option<Tls>, u64),
) -> Result<Plan, FoundError> {
    let founding = Founding::new(
        me,
        config.expect,
        config.shards,
        config.peers.clone(),
        papers.promise.clone(),
        fresh,
    );
    let founding = Arc::new(Mutex::new(founding));
    let (questions, mut inbox) = mpsc::channel(64);
    door.open(questions);
    let (answers, mut answered) = mpsc::channel::<FoundingMessage>(256);
    let asker = FoundingAsker::new(answers, tls);
    let (mut backoff, mut random) = (Backoff::new(FOUNDING_ASK_MS), fastrand::Rng::new());
    let mut pulse = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
    let mut told = 0;
    let mut refused = BTreeMap::new();
    loop {
        let outputs = tokio::select! {
            () = &mut pulse => {
                let wait = Duration::from_millis(backoff.draw(&mut random));
                pulse.as_mut().reset(tokio::time::Instant::now() + wait);
                lock(&founding).tick()
            }
            Some(message) = answered.recv() => lock(&founding).answered(message)?,
            Some((message, reply)) = inbox.recv() => {
                let (outputs, answer) = lock(&founding).asked(message)?;
                // A promise is durable before it is spoken.
                store_promises(&outputs, disk, papers)?;
                let _ = reply.send(answer);
                outputs
            }
        };
        store_promises(&outputs, disk, papers)?;
        for output in outputs {
            match output {
                FoundingOutput::Promise(_) => {}
                FoundingOutput::Ask(addr, message) => asker.ask(addr, message),
                FoundingOutput::Start(plan) => {
                    papers.promise = Some(plan.clone());
                    papers.store(disk)?;
                    return Ok(plan);
                }
            }
        }
        for (node, why) in lock(&founding).refusals() {
            if refused.insert(*node, why.clone()).as_ref() != Some(why) {
                warn!(node, %why, "another node refuses to found this cluster");
            }
        }
        let known = lock(&founding).known().count();
        if known != told {
            told = known;
            backoff.reset();
            info!(known, expected = config.expect, "looking for the other nodes");
        }
    }
}

fn lock(founding: &Mutex<Founding>) -> std::sync::MutexGuard<'_, Founding> {
    founding.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn store_promises(
    outputs: &[FoundingOutput],
    disk: &RealDisk,
    papers: &mut Papers,
) -> Result<(), PapersError> {
    for output in outputs {
        if let FoundingOutput::Promise(plan) = output
            && papers.promise.as_ref() != Some(plan)
        {
            papers.promise = Some(plan.clone());
            papers.store(disk)?;
        }
    }
    Ok(())
}
