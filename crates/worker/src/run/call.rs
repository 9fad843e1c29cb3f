//! The agent's wishes as calls of the client, and the cluster's words as verdicts.

use std::sync::atomic::Ordering;

use ikada_api::v1::{
    Body, ClaimRequest, CompleteItem, CompleteRequest, FailItem, FailRequest, ItemOutcome, Number,
    OutcomeKind, OutcomeList, RenewItem, RenewRequest,
};

use ikada_api::client::Error;

use super::Context;
use super::register::REMOVED;
use crate::agent::{
    CallFailed, Claim, ClaimBehind, Done, Failure, Input, RenewVerdict, Report, ReportVerdict,
    Ticket,
};

pub(super) async fn claim(context: &Context, number: u64, count_max: u32, wait_ms: u64) -> Input {
    if context.kept_out.load(Ordering::Relaxed) {
        return Input::Claimed(Err(CallFailed));
    }
    let request = wish(context, count_max, wait_ms);
    match context.client.claim_as(&claim_key(context, number), &request).await {
        Ok(answer) => Input::Claimed(Ok(answer.tasks)),
        Err(error) if error.code() == Some(REMOVED) => {
            tracing::warn!(worker = &*context.worker, %error, "the worker was removed");
            Input::Removed
        }
        Err(error) => {
            // Refused for good, says the cluster; but settings change and nodes are upgraded, so the worker asks on.
            if error.code() == Some("unknown_field") && !request.holds.is_empty() {
                // A node of a version that does not ask what workers have.
                context.silent.store(true, Ordering::Relaxed);
            } else if error.code().is_some() {
                tracing::warn!(worker = &*context.worker, %error, "the claim was refused");
            }
            Input::Claimed(Err(CallFailed))
        }
    }
}

fn wish(context: &Context, count_max: u32, wait_ms: u64) -> ClaimRequest {
    ClaimRequest {
        worker: context.worker.to_string(),
        session: Number(context.session),
        queues: context.queues.clone(),
        count_max,
        wait_ms,
        labels: context.labels.clone(),
        holds: holds(context),
    }
}

/// The key of a claim: it finds what was granted under its number, however it was asked for.
fn claim_key(context: &Context, number: u64) -> String {
    format!("{}-{number}", context.claims_key)
}

/// What a claim says that this worker has at hand.
fn holds(context: &Context) -> Vec<String> {
    match &context.programs {
        Some(programs) if !context.silent.load(Ordering::Relaxed) => programs.holds(),
        _ => Vec::new(),
    }
}

/// What became of the reports, and of the claim that goes with them, if one does.
pub(super) async fn report(
    context: &Context,
    reports: Vec<Report>,
    claim: Option<ClaimBehind>,
) -> (Vec<(Ticket, ReportVerdict)>, Option<Input>) {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for report in reports {
        match report.result {
            Ok(result) => done.push((report.claim, result)),
            Err(failure) => failed.push((report.claim, failure)),
        }
    }
    let ((mut verdicts, claimed), others) =
        tokio::join!(complete(context, done, claim), fail(context, failed));
    verdicts.extend(others);
    (verdicts, claimed)
}

async fn complete(
    context: &Context,
    done: Vec<(Claim, Done)>,
    claim: Option<ClaimBehind>,
) -> (Vec<(Ticket, ReportVerdict)>, Option<Input>) {
    if done.is_empty() {
        return (Vec::new(), claim.map(|_| Input::Claimed(Err(CallFailed))));
    }
    let tickets: Vec<Ticket> = done.iter().map(|(claim, _)| claim.ticket).collect();
    let items = done.into_iter().map(|(claim, done)| {
        let Body { json: result, base64: result_base64, bytes: result_bytes } =
            Body::raw(&done.result);
        let (id, fence) = (claim.id, Number(claim.fence));
        CompleteItem {
            id,
            fence,
            result,
            result_base64,
            result_bytes,
            then: done.then.0,
            outputs: done.outputs,
        }
    });
    let (worker, tasks) = (context.worker.to_string(), items.collect());
    let mut request = CompleteRequest { worker, tasks, claim: None };
    let (answer, claimed) = match claim {
        Some(claim) => complete_and_claim(context, &mut request, claim).await,
        None => (context.client.complete(&request).await, None),
    };
    let verdicts = match answer {
        Ok(answer) => {
            tell_of_room(context, &answer.tasks);
            answer.tasks.iter().map(report_verdict).collect()
        }
        Err(error) => vec![call_verdict(&error); tickets.len()],
    };
    count(context, &verdicts, &context.counts.completed);
    (tickets.into_iter().zip(verdicts).collect(), claimed)
}

/// Completes, and claims in the same call where the nodes can do that.
async fn complete_and_claim(
    context: &Context,
    request: &mut CompleteRequest,
    claim: ClaimBehind,
) -> (Result<OutcomeList, Error>, Option<Input>) {
    let kept_out = context.kept_out.load(Ordering::Relaxed);
    if !kept_out && !context.apart.load(Ordering::Relaxed) {
        request.claim = Some(wish(context, claim.count_max, 0));
        let key = claim_key(context, claim.number);
        match context.client.complete_and_claim(&key, request).await {
            // A node of a version that takes no claims with reports.
            Err(error) if error.code() == Some("unknown_field") => {
                context.apart.store(true, Ordering::Relaxed);
            }
            Err(error) => return (Err(error), Some(Input::Claimed(Err(CallFailed)))),
            Ok(mut answer) => {
                let claimed = answer.claimed.take().ok_or(CallFailed);
                return (Ok(answer), Some(Input::Claimed(claimed)));
            }
        }
    }
    request.claim = None;
    let answer = context.client.complete(request).await;
    // Nothing was asked for, and so nothing granted: the next claim is an ordinary one.
    (answer, Some(Input::Claimed(Ok(Vec::new()))))
}

/// Says once, until all of a report is taken, why what tasks have done waits: the cluster has no room for their outputs (its
/// objects or bytes are as many as may be). Nothing is lost meanwhile: the claims are renewed, and the report comes again.
fn tell_of_room(context: &Context, items: &[ItemOutcome]) {
    let waits = |item: &&ItemOutcome| item.outcome == OutcomeKind::Unavailable;
    let problem = items.iter().find(waits).and_then(|item| item.problem.as_deref());
    let was_told = context.lacks_room.swap(problem.is_some(), Ordering::Relaxed);
    if let (Some(problem), false) = (problem, was_told) {
        tracing::warn!(worker = &*context.worker, %problem, "what tasks have done waits");
    }
}

async fn fail(context: &Context, failed: Vec<(Claim, Failure)>) -> Vec<(Ticket, ReportVerdict)> {
    if failed.is_empty() {
        return Vec::new();
    }
    let tickets: Vec<Ticket> = failed.iter().map(|(claim, _)| claim.ticket).collect();
    let items = failed.into_iter().map(|(claim, failure)| FailItem {
        id: claim.id,
        fence: Number(claim.fence),
        error: failure.error,
        retry: failure.retry,
        delay_ms: failure.delay_ms,
    });
    let request = FailRequest { worker: context.worker.to_string(), tasks: items.collect() };
    let verdicts = match context.client.fail(&request).await {
        Ok(answer) => answer.tasks.iter().map(report_verdict).collect(),
        Err(error) => vec![call_verdict(&error); tickets.len()],
    };
    count(context, &verdicts, &context.counts.failed);
    tickets.into_iter().zip(verdicts).collect()
}

fn count(context: &Context, verdicts: &[ReportVerdict], settled: &std::sync::atomic::AtomicU64) {
    for verdict in verdicts {
        match verdict {
            ReportVerdict::Settled => settled.fetch_add(1, Ordering::Relaxed),
            ReportVerdict::Lost => context.counts.lost.fetch_add(1, Ordering::Relaxed),
            _ => continue,
        };
    }
}

pub(super) async fn renew(context: &Context, claims: Vec<Claim>) -> Vec<(Ticket, RenewVerdict)> {
    let tickets: Vec<Ticket> = claims.iter().map(|claim| claim.ticket).collect();
    let items = claims
        .into_iter()
        .map(|claim| {
            let progress = context.board.said(&claim.id, claim.fence);
            RenewItem { id: claim.id, fence: Number(claim.fence), progress }
        })
        .collect();
    let session = Some(Number(context.session));
    let request = RenewRequest { worker: context.worker.to_string(), session, tasks: items };
    match context.client.renew(&request).await {
        Ok(answer) => tickets.into_iter().zip(answer.tasks.iter().map(renew_verdict)).collect(),
        Err(_) => Vec::new(),
    }
}

/// Codes that mean: this claim is over.
fn is_lost(code: &str) -> bool {
    matches!(code, "stale_fence" | "task_finished" | "task_not_found" | "not_owner")
}

fn report_verdict(item: &ItemOutcome) -> ReportVerdict {
    match (item.outcome, &item.problem) {
        (OutcomeKind::Unknown | OutcomeKind::Unavailable, _) => ReportVerdict::Undecided,
        (OutcomeKind::Refused, Some(problem)) if is_lost(&problem.code) => ReportVerdict::Lost,
        (OutcomeKind::Refused, Some(problem)) => ReportVerdict::Refused(problem.to_string()),
        (OutcomeKind::Refused, None) => ReportVerdict::Refused("no reason given".to_owned()),
        _ => ReportVerdict::Settled,
    }
}

/// What a failed call means for each of its items: a refusal is a word about the report itself (a body over the
/// limit, say); everything else leaves it open.
fn call_verdict(error: &ikada_api::client::Error) -> ReportVerdict {
    match error {
        ikada_api::client::Error::Refused(problem) => ReportVerdict::Refused(problem.to_string()),
        _ => ReportVerdict::Undecided,
    }
}

fn renew_verdict(item: &ItemOutcome) -> RenewVerdict {
    match (item.outcome, &item.problem, item.ttl_ms) {
        (OutcomeKind::Renewed, _, Some(ttl_ms)) => RenewVerdict::Renewed { ttl_ms },
        (OutcomeKind::Refused, Some(problem), _) if is_lost(&problem.code) => RenewVerdict::Lost,
        _ => RenewVerdict::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_api::Problem;

    fn item(outcome: OutcomeKind, code: Option<&'static str>) -> ItemOutcome {
        let problem = code.map(|code| Box::new(Problem::new(409, code, "title", "detail")));
        ItemOutcome { id: "a".into(), outcome, lsn: None, ttl_ms: None, retry_at_ms: None, problem }
    }

    // TQ-18
    #[test]
    fn tq_18_only_the_words_of_a_lost_claim_lose_it() {
        for code in ["stale_fence", "task_finished", "task_not_found", "not_owner"] {
            let refused = item(OutcomeKind::Refused, Some(code));
            assert_eq!(report_verdict(&refused), ReportVerdict::Lost);
            assert_eq!(renew_verdict(&refused), RenewVerdict::Lost);
        }
        let refused = item(OutcomeKind::Refused, Some("too_large"));
        assert!(matches!(report_verdict(&refused), ReportVerdict::Refused(_)));
        assert_eq!(renew_verdict(&refused), RenewVerdict::Undecided);
        assert_eq!(report_verdict(&item(OutcomeKind::Unknown, None)), ReportVerdict::Undecided);
        assert_eq!(report_verdict(&item(OutcomeKind::Unavailable, None)), ReportVerdict::Undecided);
        for settled in [OutcomeKind::Completed, OutcomeKind::Retrying, OutcomeKind::Dead] {
            assert_eq!(report_verdict(&item(settled, None)), ReportVerdict::Settled);
        }
    }
}
