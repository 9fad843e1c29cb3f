//! `ikada cluster events`: role changes of one node as a list, of whichever node answers as they come, or of all nodes as a
//! picture.
//!
//! Promise of following: when the node goes away, another one is asked, and what may be missing in between is said.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ikada_api::Client;
use ikada_api::client::{Error, Heard};
use ikada_api::v1::{ClusterView, EventSource, EventView};
use serde::Serialize;

use crate::args::{EventsArgs, SharedArgs};
use crate::failure::Failure;
use crate::render::{OutputKind, Screen, draw, plain, put, say, while_heard, write};

/// Columns of a timeline.
const TIMELINE_COLUMNS: usize = 60;
/// A node that does not answer within this time is left out of a timeline.
const NODE_PATIENCE: Duration = Duration::from_secs(3);

pub(super) async fn events(
    shared: &SharedArgs,
    args: &EventsArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    if let Some(minutes) = args.timeline {
        return show_timeline(shared, minutes, screen.kind()).await;
    }
    if args.follow {
        return while_heard(follow(shared, args, screen)).await;
    }
    let page = shared.client()?.events(args.after).await?;
    eprintln!("role changes of node {}, by its own clock", page.node);
    screen.show(&page.events)
}

/// Shows changes as they come, until the reader has enough.
async fn follow(
    shared: &SharedArgs,
    args: &EventsArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let mut stream = all_nodes(shared).await?.follow_events(args.after);
    if shared.output == OutputKind::Table {
        screen.show(&Vec::<EventView>::new())?;
    }
    let mut told_by = None;
    loop {
        match stream.next().await {
            Ok(Heard::Change(change)) => screen.show_next(&vec![*change])?,
            Ok(Heard::Source(source)) => {
                tell_source(&source, told_by, shared.output)?;
                told_by = Some(source.node);
            }
            Err(Error::Unavailable { detail, .. }) if told_by.is_some() => {
                say(&format!("no node tells its changes, trying again: {detail}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// A client that also asks the nodes that were not named, once those that were are gone.
pub(super) async fn all_nodes(shared: &SharedArgs) -> Result<Client, Failure> {
    let (mut urls, options) = shared.reach()?;
    let known = Client::with(urls.clone(), options.clone())?;
    // A token of one namespace may not see the cluster; then the named nodes must do.
    let members = match known.cluster().await {
        Ok(cluster) => addresses(&cluster, is_secure(&urls)),
        Err(Error::Refused(_)) => BTreeMap::new(),
        Err(error) => return Err(error.into()),
    };
    let named: Vec<&str> = urls.iter().map(|url| url.trim_end_matches('/')).collect();
    let more: Vec<String> =
        members.into_values().filter(|url| !named.contains(&url.as_str())).collect();
    urls.extend(more);
    Ok(Client::with(urls, options)?)
}

/// Says whose changes follow, if that is news or something is missing.
fn tell_source(
    source: &EventSource,
    told_by: Option<ikada_api::v1::Number>,
    output: OutputKind,
) -> Result<(), Failure> {
    if output == OutputKind::Json {
        let line = serde_json::json!({ "source": source });
        return put(format!("{line}\n").as_bytes());
    }
    let missing = match source.left_out {
        0 => String::new(),
        count => format!("; {count} older changes are left out"),
    };
    match (told_by, source.continues) {
        (None, _) => {
            say(&format!("role changes of node {}, by its own clock{missing}", source.node));
        }
        (Some(_), true) if source.left_out == 0 => {}
        (Some(_), true) => say(&format!("{} changes came too fast to be told", source.left_out)),
        (Some(before), false) => say(&format!(
            "the stream of node {before} ended: what it saw after this is not known. Now node {}, from shortly before that{missing}",
            source.node
        )),
    }
    Ok(())
}

/// Where the members are reached.
fn addresses(cluster: &ClusterView, secure: bool) -> BTreeMap<u64, String> {
    let scheme = if secure { "https" } else { "http" };
    let members = cluster.members.iter();
    members.map(|it| (it.node.0, format!("{scheme}://{}", it.client_addr))).collect()
}

fn is_secure(urls: &[String]) -> bool {
    urls.iter().any(|url| url.starts_with("https:"))
}

/// Role changes of all nodes that told theirs, each by its own clock.
#[derive(Serialize)]
struct Timeline<'a> {
    from_ms: u64,
    to_ms: u64,
    nodes: &'a BTreeMap<u64, Vec<EventView>>,
}

/// Asks every member that answers for its events, and draws them.
async fn show_timeline(
    shared: &SharedArgs,
    minutes: u64,
    output: OutputKind,
) -> Result<(), Failure> {
    let (urls, options) = shared.reach()?;
    let cluster = Client::with(urls.clone(), options.clone())?.cluster().await?;
    let mut events = BTreeMap::new();
    for (node, url) in addresses(&cluster, is_secure(&urls)) {
        let client = Client::with([url], options.clone())?.with_timeout(NODE_PATIENCE);
        match client.events(0).await {
            Ok(page) => drop(events.insert(node, page.events)),
            Err(error) => {
                eprintln!("node {node} does not tell its events: {}", plain(&error.to_string()));
            }
        }
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let to_ms = now.as_millis() as u64;
    let from_ms = to_ms.saturating_sub(minutes.max(1) * 60_000);
    match output {
        OutputKind::Table => {
            let lines = draw(&events, from_ms, to_ms, TIMELINE_COLUMNS);
            write(&lines.into_iter().map(|line| line + "\n").collect::<String>())
        }
        OutputKind::Json => {
            let document = Timeline { from_ms, to_ms, nodes: &events };
            let text = serde_json::to_string_pretty(&document);
            let text = text.map_err(|error| Failure::failed(error.to_string()))?;
            write(&format!("{text}\n"))
        }
        // The nodes whose changes are known.
        OutputKind::Quiet => {
            write(&events.keys().map(|node| format!("{node}\n")).collect::<String>())
        }
    }
}
