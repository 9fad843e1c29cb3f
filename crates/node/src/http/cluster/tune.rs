//! `PUT /v1/cluster/elections`: how long silence lasts before an election, on all nodes and from now on (MQ-33).

use hyper::StatusCode;
use ikada_api::Problem;
use ikada_api::state::{
    Command, ELECTION_MS_MAX, ELECTION_MS_MIN, Reply as StateReply, TuneElections,
};
use ikada_api::v1;
use ikada_replica::consensus::lease::LeaseConfig;

use super::members::write;
use super::show::describe;
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, read_document};

pub(in crate::http) async fn tune<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let v1::TuneElections { timeout_ms } = read_document(context, body)?;
    context.subject.is(|| match timeout_ms {
        Some(timeout_ms) => format!("timeout_ms={timeout_ms}"),
        None => "timeout_ms=default".to_owned(),
    });
    let bounds = ELECTION_MS_MIN..=ELECTION_MS_MAX;
    if timeout_ms.is_some_and(|timeout_ms| !bounds.contains(&timeout_ms)) {
        let detail = format!("must be {ELECTION_MS_MIN} to {ELECTION_MS_MAX}, or null");
        return Err(problems::bad_parameter("timeout_ms", detail).into());
    }
    if app.door.status().await.elections_ms.is_none() {
        let LeaseConfig { ttl_ms, renew_ms, .. } = LeaseConfig::default();
        let detail = format!(
            "the log lives in a database, and a lease there decides who leads: it holds for {ttl_ms} ms and is renewed every {renew_ms} ms, on all nodes alike and for good"
        );
        return Err(Problem::new(409, "no_elections", "there are no elections", detail).into());
    }
    match write(app, context, Command::TuneElections(TuneElections { timeout_ms })).await? {
        StateReply::ElectionsTuned => {}
        _ => return Err(mismatch("tune elections")),
    }
    show_document(context, StatusCode::OK, &describe(&app.door.status().await))
}
