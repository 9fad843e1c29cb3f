//! `POST /v1/cluster/nodes`, `DELETE /v1/cluster/nodes/{id}` and `PUT /v1/cluster/nodes/{id}`.
//!
//! A change is recorded in the log and driven by the leader of shard 0; the answer says that it has begun (202) or is
//! so already (200). Progress shows in `GET /v1/cluster`. A change that would leave too few connected voters for a
//! majority is refused here, before anything is recorded.

use std::time::{Duration, Instant};

use hyper::StatusCode;
use ikada_api::Problem;
use ikada_api::state::{ChangeMembers, Command, Member, Order, Reply as StateReply, SteerMember};
use ikada_api::v1::{AddNode, ChangeView, SteerNode};
use ikada_replica::call::{Answer, Outcome, Request};
use ikada_replica::founding::{Candidate, FoundingMessage};
use ikada_replica::status::NodeStatus;

use super::show::{describe, show_change};
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, read_document};
use crate::peers::PROTOCOL;

/// Time between two looks at what other nodes have.
const COPIES_PAUSE: Duration = Duration::from_millis(200);

pub(in crate::http) async fn add<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let wish: AddNode = read_document(context, body)?;
    context.subject.is(|| match &wish.replaces {
        Some(node) => format!("{} in place of {}", wish.peer_addr, node.0),
        None => wish.peer_addr.clone(),
    });
    check_mode(&app.door.status().await)?;
    let (candidate, level) = meet(app, &wish.peer_addr).await?;
    let Candidate { node, incarnation, peer_addr, client_addr } = candidate;
    let add = Some(Member { node, incarnation, peer_addr, client_addr });
    let remove = wish.replaces.map(|node| node.0);
    begin(app, context, ChangeMembers { add, remove, level }).await
}

pub(in crate::http) async fn remove<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let remove = Some(node_id(context)?);
    begin(app, context, ChangeMembers { add: None, remove, level: 0 }).await
}

pub(in crate::http) async fn steer<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let SteerNode { cordoned, priority } = read_document(context, body)?;
    let node = node_id(context)?;
    let command = Command::SteerMember(SteerMember { node, cordoned, priority });
    match write(app, context, command).await? {
        StateReply::MemberSteered => {}
        _ => return Err(mismatch("steer member")),
    }
    show_document(context, StatusCode::OK, &describe(&app.door.status().await))
}

fn node_id(context: &Context) -> Result<u64, Problem> {
    let text = &context.names[0];
    text.parse().map_err(|_| problems::bad_parameter("id", "must be the number of a node"))
}

/// Who waits at an address, and what its program understands.
async fn meet<D: Door>(app: &App<D>, peer_addr: &str) -> Result<(Candidate, u32), Stop> {
    let refuse = |code: &'static str, detail: String| {
        Stop::from(Problem::new(409, code, "node cannot be added", detail).with_field("peer_addr"))
    };
    let join = &app.door.info().peer_addr;
    match app.door.meet(peer_addr).await {
        Some(FoundingMessage::Waiting { protocol, .. }) if protocol != PROTOCOL => {
            let detail = format!(
                "the node at {peer_addr} speaks protocol {protocol}, this cluster {PROTOCOL}; install the same version"
            );
            Err(refuse("other_version", detail))
        }
        Some(FoundingMessage::Waiting { me, level, .. }) => Ok((me, level)),
        Some(FoundingMessage::Founded(plan)) => {
            // A node that was added before is named by its own list: asking again is harmless.
            let own = plan.members.into_iter().find(|member| member.peer_addr == peer_addr);
            match own.filter(|_| plan.cluster == app.door.info().cluster) {
                Some(member) => Ok((member, 0)),
                None => {
                    let detail = format!(
                        "the node at {peer_addr} belongs to cluster {:016x}; stop it, and start it with an empty data folder and --join {join}",
                        plan.cluster
                    );
                    Err(refuse("other_cluster", detail))
                }
            }
        }
        Some(_) => {
            let detail = format!(
                "the node at {peer_addr} founds a cluster of its own; start it with --join {join} instead"
            );
            Err(refuse("not_waiting", detail))
        }
        None => {
            let detail = format!(
                "no node answers at {peer_addr}; start it there with `ikada server --join {join}`, then ask again"
            );
            Err(refuse("node_unreachable", detail))
        }
    }
}

async fn begin<D: Door>(
    app: &App<D>,
    context: &Context,
    order: ChangeMembers,
) -> Result<Reply, Stop> {
    let status = app.door.status().await;
    check_mode(&status)?;
    check_majority(&status, &order)?;
    if let Some(leaving) = order.remove {
        wait_for_copies(app, context, leaving).await?;
    }
    let (add, remove) = (order.add.as_ref().map(|member| member.node), order.remove);
    let StateReply::ChangeBegun { number } =
        write(app, context, Command::ChangeMembers(order)).await?
    else {
        return Err(mismatch("change members"));
    };
    let status = app.door.status().await;
    let running = show_change(&status).filter(|change| change.number == number);
    let shards = status.shards.len() as u16;
    let view = running.unwrap_or_else(|| ChangeView {
        number,
        add: add.map(Into::into),
        remove: remove.map(Into::into),
        since_ms: 0,
        shards_done: if number == 0 { shards } else { 0 },
        shards,
        stage: if number == 0 { "done".to_owned() } else { "begun".to_owned() },
    });
    let code = if number == 0 { StatusCode::OK } else { StatusCode::ACCEPTED };
    show_document(context, code, &view)
}

/// Waits until the others have the bytes of objects that a leaving member has: its disk must not take the last copies
/// along. They fetch them by themselves.
async fn wait_for_copies<D: Door>(
    app: &App<D>,
    context: &Context,
    leaving: u64,
) -> Result<(), Problem> {
    // Time is left for the change itself.
    let until = Instant::now() + context.timeout * 4 / 5;
    loop {
        let looked = app.door.shelf().missing_without(&app.door, leaving);
        let missing = tokio::time::timeout_at(until.into(), looked).await.ok().flatten();
        let detail = match missing {
            Some(0) => return Ok(()),
            Some(missing) => format!(
                "{missing} pieces of objects are on too few nodes without node {leaving}; the others fetch them now, try again in a moment"
            ),
            None => "not all bytes of objects could be looked at in time; try again: the look goes on where it stopped".to_owned(),
        };
        if Instant::now() + COPIES_PAUSE >= until {
            return Err(Problem::new(409, "copies_missing", "node cannot leave yet", detail));
        }
        tokio::time::sleep(COPIES_PAUSE).await;
    }
}

/// Refuses what no log in a database could carry out: it would stand as begun for ever.
fn check_mode(status: &NodeStatus) -> Result<(), Problem> {
    if status.elections_ms.is_some() || status.stopping {
        return Ok(());
    }
    let detail = "the log lives in a database: the nodes that founded this cluster are its nodes, none is added or removed at run time";
    Err(Problem::new(409, "members_unsupported", "change refused", detail))
}

/// Refuses what would leave a cluster without a majority of connected voters.
fn check_majority(status: &NodeStatus, order: &ChangeMembers) -> Result<(), Problem> {
    let is_up = |node: u64| {
        let peer = status.peers.iter().find(|peer| peer.node == node);
        node == status.node || peer.is_some_and(|peer| peer.connected)
    };
    let stay = status.members.iter().map(|member| member.node);
    let stay: Vec<u64> = stay.filter(|node| Some(*node) != order.remove).collect();
    let is_new = |add: &&Member| !stay.contains(&add.node);
    let new = usize::from(order.add.as_ref().filter(is_new).is_some());
    let after = stay.len() + new;
    let up = stay.iter().filter(|node| is_up(**node)).count() + new;
    if after == 0 || up > after / 2 {
        return Ok(());
    }
    let detail = format!(
        "of the {after} members that would remain only {up} are connected: the cluster would lose its majority; bring a node back first, or replace the one that is gone"
    );
    Err(Problem::new(409, "no_majority_left", "change refused", detail))
}

/// Has one order of the cluster itself committed.
pub(super) async fn write<D: Door>(
    app: &App<D>,
    context: &Context,
    command: Command,
) -> Result<StateReply, Stop> {
    let namespace = context.namespace.clone();
    let order = Order { namespace, request: None, command };
    let answer = call(app, context, Request::Write(vec![order]), context.routing).await?;
    let Answer::Written(mut outcomes) = answer else {
        return Err(mismatch("write"));
    };
    match outcomes.pop() {
        Some(Outcome::Reply { reply: StateReply::Refused { code }, .. }) => {
            Err(problems::refusal(code).into())
        }
        Some(Outcome::Reply { reply, .. }) => Ok(reply),
        Some(Outcome::Unavailable(reason)) => Err(problems::unavailable(&reason).into()),
        Some(Outcome::Unknown) | None => Err(problems::unknown(None).into()),
    }
}
