//! `ikada task claim|complete|fail|renew`: a worker by hand.
//!
//! Each command is one call. There is no session: nothing here claims that a list is all that a worker holds, so that claims
//! of other shells are left alone.

use std::time::Duration;

use ikada_api::Client;
use ikada_api::v1::{
    Body, ClaimAnswer, ClaimRequest, CompleteItem, CompleteRequest, FailItem, FailRequest, Number,
    OutcomeList, RenewItem, RenewRequest,
};

use super::task::{read_labels, read_payload};
use crate::args::{ClaimArgs, CompleteArgs, FailArgs, HeldArgs};
use crate::failure::Failure;
use crate::render::Screen;

pub(super) async fn claim(
    client: &Client,
    args: ClaimArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let request = ClaimRequest {
        holds: Vec::new(),
        worker: args.worker,
        session: Number::default(),
        queues: args.queue,
        count_max: args.count,
        wait_ms: Duration::from_secs(args.wait).as_millis() as u64,
        labels: read_labels(&args.labels)?,
    };
    let mut answer = client.claim(&request).await?;
    show_as_text(&mut answer);
    screen.show(&answer)?;
    if answer.tasks.is_empty() {
        eprintln!("there was nothing to claim; `ikada task explain` tells why a task waits");
    }
    Ok(())
}

/// Payloads as JSON shows them, however they travelled.
fn show_as_text(answer: &mut ClaimAnswer) {
    for task in &mut answer.tasks {
        if let Some(bytes) = task.payload_bytes.take() {
            let body = Body::of(&bytes.0);
            (task.payload, task.payload_base64) = (body.json, body.base64);
        }
    }
}

pub(super) async fn complete(
    client: &Client,
    args: CompleteArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let (result, result_base64) =
        read_payload("result", args.result.as_deref(), args.result_file.as_deref())?;
    let HeldArgs { id, fence, worker } = args.held;
    let then = args.then;
    let item = CompleteItem {
        id,
        fence: Number(fence),
        result,
        result_base64,
        then,
        ..CompleteItem::default()
    };
    let answer =
        client.complete(&CompleteRequest { worker, tasks: vec![item], claim: None }).await?;
    show_one(answer, screen)
}

pub(super) async fn fail(
    client: &Client,
    args: FailArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let HeldArgs { id, fence, worker } = args.held;
    let item = FailItem {
        id,
        fence: Number(fence),
        error: args.error,
        retry: !args.give_up,
        delay_ms: args.delay_ms,
    };
    let answer = client.fail(&FailRequest { worker, tasks: vec![item] }).await?;
    show_one(answer, screen)
}

pub(super) async fn renew(
    client: &Client,
    args: HeldArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let HeldArgs { id, fence, worker } = args;
    let tasks = vec![RenewItem { id, fence: Number(fence), progress: None }];
    let answer = client.renew(&RenewRequest { worker, session: None, tasks }).await?;
    show_one(answer, screen)
}

/// Shows what became of the one task, and ends as it did.
fn show_one(answer: OutcomeList, screen: &mut Screen) -> Result<(), Failure> {
    for item in answer.tasks {
        screen.show(&item)?;
        let Some(problem) = item.problem else { continue };
        return Err(match item.outcome.is_settled() {
            true => Failure::refused(&problem),
            false => Failure::Unavailable {
                message: problem.to_string(),
                next: "repeat the command: the fence makes that safe".to_owned(),
            },
        });
    }
    Ok(())
}
