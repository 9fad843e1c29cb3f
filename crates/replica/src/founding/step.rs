//! The founding protocol as a step function.

use std::collections::{BTreeMap, BTreeSet};

use ikada_consensus::NodeId;

use super::message::{Candidate, FoundingMessage, Plan};

/// More candidates than this are not remembered.
const KNOWN_MAX: usize = 64;

/// What the caller shall do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundingOutput {
    /// Store this promise durably before any further output is carried out.
    Promise(Plan),
    /// Ask this address; its answer comes back through `answered`.
    Ask(String, FoundingMessage),
    /// Everyone has promised: write the genesis and start.
    Start(Plan),
}

/// Why this node can never found or join.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoundingError {
    /// The cluster knows our id with another disk (F-17).
    #[error(
        "node {node} was wiped: cluster {cluster:016x} knows this id with another disk; \
         its votes are gone with it, so it may not come back: restore its data folder, or remove the node from the \
         cluster (`ikada cluster remove {node}`) and join with a new --node-id"
    )]
    Wiped {
        /// Our id.
        node: NodeId,
        /// The cluster that knows it.
        cluster: u64,
    },
    /// A cluster exists and we are not in it.
    #[error(
        "cluster {cluster:016x} already stands and node {node} is not a member; \
         to become one, start it with --join instead of --peer and --expect, then run `ikada cluster add`"
    )]
    NotAMember {
        /// Our id.
        node: NodeId,
        /// The cluster found.
        cluster: u64,
    },
    /// The cluster has removed our id.
    #[error(
        "node {node} was removed from the cluster, and ids are not used again: \
         join with an empty data folder and a new --node-id"
    )]
    WasRemoved {
        /// Our id.
        node: NodeId,
    },
    /// Our disk belongs elsewhere.
    #[error(
        "node {node} promised itself to cluster {promised:016x} and cannot join cluster {cluster:016x}; \
         use an empty data folder"
    )]
    Promised {
        /// Our id.
        node: NodeId,
        /// The cluster promised.
        promised: u64,
        /// The cluster found.
        cluster: u64,
    },
    /// Two candidates claim one id.
    #[error(
        "node id {node} is used by two nodes ({first} and {second}); give each its own --node-id"
    )]
    SameId {
        /// The id.
        node: NodeId,
        /// One address.
        first: String,
        /// The other.
        second: String,
    },
    /// Settings differ between nodes.
    #[error("node {peer} at {addr} was started with {what}; give all nodes the same")]
    Mismatch {
        /// The other node.
        peer: NodeId,
        /// Its address.
        addr: String,
        /// What differs, with both values.
        what: String,
    },
}

/// A node without a cluster.
#[derive(Debug)]
pub struct Founding {
    me: Candidate,
    expect: u16,
    shards: u16,
    seeds: Vec<String>,
    fresh_cluster: u64,
    known: BTreeMap<NodeId, Candidate>,
    promise: Option<Plan>,
    promised_by: BTreeSet<NodeId>,
    started: bool,
    refusals: BTreeMap<NodeId, String>,
}

impl Founding {
    /// A node that knows itself and its seeds. `promise` is what its disk says it promised before; `fresh_cluster`
    /// is a random id to use should it be the one to propose.
    pub fn new(
        me: Candidate,
        expect: u16,
        shards: u16,
        seeds: Vec<String>,
        promise: Option<Plan>,
        fresh_cluster: u64,
    ) -> Self {
        let known = BTreeMap::from([(me.node, me.clone())]);
        let promised_by = BTreeSet::new();
        let refusals = BTreeMap::new();
        Founding {
            me,
            expect,
            shards,
            seeds,
            fresh_cluster,
            known,
            promise,
            promised_by,
            started: false,
            refusals,
        }
    }

    /// Who has been heard of, for progress messages.
    pub fn known(&self) -> impl Iterator<Item = &Candidate> {
        self.known.values()
    }

    /// Reasons that others gave for refusing our plan.
    pub fn refusals(&self) -> impl Iterator<Item = (&NodeId, &String)> {
        self.refusals.iter()
    }

    /// Asks everyone worth asking; called every few hundred milliseconds.
    pub fn tick(&mut self) -> Vec<FoundingOutput> {
        let mut out = self.advance();
        if self.started {
            return out;
        }
        let mut addresses: BTreeSet<String> = self.seeds.iter().cloned().collect();
        addresses.extend(self.others().map(|candidate| candidate.peer_addr.clone()));
        addresses.remove(&self.me.peer_addr);
        let message = match &self.promise {
            Some(plan) if self.leads(plan) => FoundingMessage::Propose(plan.clone()),
            _ => self.hello(),
        };
        out.extend(addresses.into_iter().map(|addr| FoundingOutput::Ask(addr, message.clone())));
        out
    }

    /// A question from another node: the answer, and what to do first.
    pub fn asked(
        &mut self,
        message: FoundingMessage,
    ) -> Result<(Vec<FoundingOutput>, FoundingMessage), FoundingError> {
        match message {
            FoundingMessage::Hello { me, expect, shards, known } => {
                self.hear(me, expect, shards, known)?;
                Ok((Vec::new(), self.hello()))
            }
            FoundingMessage::Propose(plan) => Ok(self.consider(plan)),
            FoundingMessage::Founded(plan) => Ok((self.founded(plan)?, self.hello())),
            FoundingMessage::Promised { .. }
            | FoundingMessage::Refused { .. }
            | FoundingMessage::Join(_)
            | FoundingMessage::Waiting { .. }
            | FoundingMessage::Removed { .. } => Ok((Vec::new(), self.hello())),
        }
    }

    /// The answer to a question of ours.
    pub fn answered(
        &mut self,
        message: FoundingMessage,
    ) -> Result<Vec<FoundingOutput>, FoundingError> {
        match message {
            FoundingMessage::Hello { me, expect, shards, known } => {
                self.hear(me, expect, shards, known)?;
            }
            FoundingMessage::Promised { node, cluster } => {
                if self.promise.as_ref().is_some_and(|plan| plan.cluster == cluster) {
                    self.promised_by.insert(node);
                    self.refusals.remove(&node);
                }
            }
            FoundingMessage::Refused { node, why } => {
                self.refusals.insert(node, why);
            }
            FoundingMessage::Founded(plan) => return self.founded(plan),
            FoundingMessage::Removed { node } => return Err(FoundingError::WasRemoved { node }),
            FoundingMessage::Propose(_)
            | FoundingMessage::Join(_)
            | FoundingMessage::Waiting { .. } => {}
        }
        Ok(self.advance())
    }

    fn hello(&self) -> FoundingMessage {
        FoundingMessage::Hello {
            me: self.me.clone(),
            expect: self.expect,
            shards: self.shards,
            known: self.known.values().cloned().collect(),
        }
    }

    fn hear(
        &mut self,
        from: Candidate,
        expect: u16,
        shards: u16,
        known: Vec<Candidate>,
    ) -> Result<(), FoundingError> {
        if expect != self.expect || shards != self.shards {
            let what = format!(
                "--expect {expect} --shards {shards} while this node has --expect {} --shards {}",
                self.expect, self.shards
            );
            return Err(FoundingError::Mismatch { peer: from.node, addr: from.peer_addr, what });
        }
        for candidate in known.into_iter().chain([from]) {
            match self.known.get(&candidate.node) {
                Some(have) if have.incarnation != candidate.incarnation => {
                    return Err(FoundingError::SameId {
                        node: candidate.node,
                        first: have.peer_addr.clone(),
                        second: candidate.peer_addr,
                    });
                }
                Some(_) => {}
                None if self.known.len() < KNOWN_MAX => {
                    self.known.insert(candidate.node, candidate);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Proposes when it is our turn, starts when all have promised.
    fn advance(&mut self) -> Vec<FoundingOutput> {
        if self.started {
            return Vec::new();
        }
        let mut out = Vec::new();
        if self.promise.is_none()
            && self.known.len() == usize::from(self.expect)
            && self.known.keys().next() == Some(&self.me.node)
        {
            let plan = Plan {
                cluster: self.fresh_cluster,
                members: self.known.values().cloned().collect(),
                shards: self.shards,
            };
            self.promise = Some(plan.clone());
            out.push(FoundingOutput::Promise(plan));
        }
        let Some(plan) = self.promise.clone().filter(|plan| self.leads(plan)) else {
            return out;
        };
        self.promised_by.insert(self.me.node);
        if plan.members.iter().all(|member| self.promised_by.contains(&member.node)) {
            self.started = true;
            out.push(FoundingOutput::Start(plan));
        }
        out
    }

    /// Promises a plan if we have promised no other and it names us as we are.
    fn consider(&mut self, plan: Plan) -> (Vec<FoundingOutput>, FoundingMessage) {
        let refuse =
            |why: String| (Vec::new(), FoundingMessage::Refused { node: self.me.node, why });
        if let Some(promised) = &self.promise
            && *promised != plan
        {
            return refuse(format!("already promised to cluster {:016x}", promised.cluster));
        }
        if !plan.members.contains(&self.me) {
            return refuse(format!("the plan does not name node {} as it is now", self.me.node));
        }
        if plan.members.len() != usize::from(self.expect) || plan.shards != self.shards {
            return refuse(format!(
                "the plan has {} members and {} shards, this node was started with --expect {} --shards {}",
                plan.members.len(),
                plan.shards,
                self.expect,
                self.shards
            ));
        }
        let answer = FoundingMessage::Promised { node: self.me.node, cluster: plan.cluster };
        let first = self.promise.is_none();
        self.promise = Some(plan.clone());
        (if first { vec![FoundingOutput::Promise(plan)] } else { Vec::new() }, answer)
    }

    /// A founded node spoke: either we belong to it, or we never will.
    fn founded(&mut self, plan: Plan) -> Result<Vec<FoundingOutput>, FoundingError> {
        let (node, cluster) = (self.me.node, plan.cluster);
        match plan.members.iter().find(|member| member.node == node) {
            None => Err(FoundingError::NotAMember { node, cluster }),
            Some(member) if member.incarnation != self.me.incarnation => {
                Err(FoundingError::Wiped { node, cluster })
            }
            Some(_) if self.started => Ok(Vec::new()),
            Some(_) => {
                self.started = true;
                Ok(vec![FoundingOutput::Start(plan)])
            }
        }
    }

    fn leads(&self, plan: &Plan) -> bool {
        plan.members.first().is_some_and(|member| member.node == self.me.node)
    }

    fn others(&self) -> impl Iterator<Item = &Candidate> {
        self.known.values().filter(|candidate| candidate.node != self.me.node)
    }
}
