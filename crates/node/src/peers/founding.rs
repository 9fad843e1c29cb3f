//! Founding questions over the peer port: asked by nodes without a cluster, answered by everyone.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ikada_replica::founding::{FoundingMessage, Plan};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::directory::{Directory, Standing};
use super::hello::{Opening, WELCOME_BYTES_MAX, Welcome, decode, encode};
use super::stream::dial;
use super::wire;
use crate::config::{HANDSHAKE_MS, SEED_ADDRESSES_MAX};
use crate::tls::Tls;

/// A question and where its answer goes.
pub type Question = (FoundingMessage, oneshot::Sender<FoundingMessage>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Shut,
    Open(mpsc::Sender<Question>),
    Founded {
        cluster: u64,
        shards: u16,
        directory: Directory,
    },
}

/// Who answers founding questions on this node right now.
#[derive(Debug, Clone, Default)]
pub struct FoundingDoor(Arc<Mutex<State>>);

impl FoundingDoor {
    /// Questions go to the founding protocol.
    pub fn open(&self, questions: mpsc::Sender<Question>) {
        self.set(State::Open(questions));
    }

    /// The cluster stands: every question is answered with its members of today.
    pub fn founded(&self, plan: &Plan, directory: Directory) {
        self.set(State::Founded { cluster: plan.cluster, shards: plan.shards, directory });
    }

    fn set(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Answers one question, if anyone can.
    pub async fn answer(&self, message: FoundingMessage) -> Option<FoundingMessage> {
        let questions = match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Shut => return None,
            State::Founded { cluster, shards, directory } => {
                return Some(stands(&message, *cluster, *shards, directory));
            }
            State::Open(questions) => questions.clone(),
        };
        let (reply, answer) = oneshot::channel();
        questions.send((message, reply)).await.ok()?;
        answer.await.ok()
    }
}

/// Asks others; answers arrive on a channel.
#[derive(Debug)]
pub struct FoundingAsker {
    answers: mpsc::Sender<FoundingMessage>,
    tls: Option<Tls>,
}

impl FoundingAsker {
    /// An asker whose answers go to this channel.
    pub fn new(answers: mpsc::Sender<FoundingMessage>, tls: Option<Tls>) -> Self {
        FoundingAsker { answers, tls }
    }

    /// Asks the nodes at an address in the background; no answer is no news. A DNS name may stand for many (CH-11).
    pub fn ask(&self, addr: String, message: FoundingMessage) {
        let (answers, tls) = (self.answers.clone(), self.tls.clone());
        tokio::spawn(async move {
            let limit = Duration::from_millis(HANDSHAKE_MS);
            let found = timeout(limit, tokio::net::lookup_host(addr)).await;
            let Ok(Ok(found)) = found else { return };
            let nodes: BTreeSet<SocketAddr> = found.take(SEED_ADDRESSES_MAX).collect();
            for node in nodes {
                let (answers, tls, message) = (answers.clone(), tls.clone(), message.clone());
                tokio::spawn(async move {
                    let addr = node.to_string();
                    let asked = ask(&addr, tls.as_ref(), message);
                    if let Ok(Some(answer)) = timeout(limit, asked).await {
                        let _ = answers.send(answer).await;
                    }
                });
            }
        });
    }
}

/// What a member answers to any question.
fn stands(
    message: &FoundingMessage,
    cluster: u64,
    shards: u16,
    directory: &Directory,
) -> FoundingMessage {
    if let FoundingMessage::Join(me) | FoundingMessage::Hello { me, .. } = message
        && directory.standing(me.node, me.incarnation) == Standing::Removed
    {
        return FoundingMessage::Removed { node: me.node };
    }
    FoundingMessage::Founded(Plan { cluster, members: directory.candidates(), shards })
}

/// Asks one node and waits for its answer; none if nobody answers in time.
pub async fn meet(
    addr: &str,
    tls: Option<&Tls>,
    message: FoundingMessage,
) -> Option<FoundingMessage> {
    let limit = Duration::from_millis(HANDSHAKE_MS);
    timeout(limit, ask(addr, tls, message)).await.ok().flatten()
}

async fn ask(addr: &str, tls: Option<&Tls>, message: FoundingMessage) -> Option<FoundingMessage> {
    let mut stream = dial(addr, tls, None).await.ok()?;
    wire::write(&mut stream, &encode(&Opening::Founding(message))).await.ok()?;
    let answer = wire::read(&mut stream, WELCOME_BYTES_MAX).await.ok()??;
    match decode::<Welcome>(&answer)? {
        Welcome::Founding(message) => Some(message),
        Welcome::Accepted | Welcome::Refused(_) | Welcome::Removed => None,
    }
}
