//! From a request to a response: guard, route, context, body, handler. Routes only; verbs live in their files.

use std::time::Duration;

use bytes::Bytes;
use hyper::Request;
use hyper::body::Body;
use hyper::http::request::Parts;
use ikada_api::routes::{Access, BodyBound, Class, Found, Operation, Route, Scope, find};
use ikada_replica::call;

use super::answer::{self, Reply, Stop};
use super::app::App;
use super::door::Door;
use super::passage::{Arrived, check_head, contain, finish, in_lane};
use super::request::{Context, form_wanted, take_body};
use super::security::{Source, allow, enter, recognise};
use super::trace::{Line, Trace, subject_of};
use super::{
    cluster, dashboard, jobs, leases, live, logs, namespaces, objects, operate, problems, programs,
    queues, requests, schedules, tasks, tokens, uploads, workers,
};
use crate::admission::Lane;

/// The node answers at its deadline; this is only the net below it.
const NET: Duration = Duration::from_secs(2);

/// Answers one request, whatever happens.
pub(super) async fn answer<D, B>(app: &App<D>, request: Request<B>) -> Reply
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let form = form_wanted(request.headers());
    let source = request.extensions().get::<Source>().map(|source| source.address);
    let mut line = Line::new(app, Trace { source, ..Trace::default() });
    let outcome = contain(app, Box::pin(respond(app, request, &mut line))).await;
    let response = match outcome {
        Some(Ok(response)) => response,
        Some(Err(Stop::Problem(problem))) => answer::problem_as(&problem, form),
        Some(Err(Stop::Redirect(node))) => match app.door.address_of(node) {
            Some(address) => answer::redirect(app.scheme(), &address, &path),
            None => answer::problem_as(&problems::no_leader_address(node), form),
        },
        None => answer::problem(&problems::internal()),
    };
    finish(app, line, &response).await;
    response
}

async fn respond<D, B>(app: &App<D>, request: Request<B>, trace: &mut Trace) -> Result<Reply, Stop>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    check_head(app, &parts)?;
    let found = find(parts.method.as_str(), parts.uri.path());
    if let Found::Route(route, names) = &found {
        trace.operation = Some(route.operation);
        trace.object = (!names.is_empty()).then(|| names.join("/"));
    }
    let anyone = matches!(&found, Found::Route(route, _) if route.policy.access == Access::Anyone);
    // Strangers learn nothing, not even which paths exist.
    let principal = match anyone {
        true => app.anyone.clone(),
        false => recognise(app, &parts.headers, parts.extensions.get()).await?,
    };
    trace.principal = Some(principal.clone());
    let (route, names) = match found {
        Found::Route(route, names) => (route, names),
        Found::OtherVerbs(verbs) => {
            return Ok(answer::method_not_allowed(parts.method.as_str(), &verbs));
        }
        Found::Nothing => return Err(problems::no_route(parts.uri.path()).into()),
    };
    allow(app, route.operation, &route.policy, &principal)?;
    let mut context = Context::read(route, names, &parts, &app.limits, principal)?;
    trace.request = context.key.clone();
    trace.subject = subject_of(app, route.operation);
    context.subject = trace.subject.clone();
    if route.policy.scope == Scope::Namespace {
        trace.namespace = Some(context.named.clone().unwrap_or_else(|| context.principal.home()));
        context.namespace = enter(app, &context.principal, context.named.take())?;
    }
    // Health must answer when the door is full.
    let Some(lane) = Lane::of(route) else {
        return serve(app, route, &context, &parts, body).await;
    };
    let serving = || serve(app, route, &context, &parts, body);
    in_lane(app, lane, context.left(lane), &parts, serving).await
}

/// Serves a call that was let in.
async fn serve<D, B>(
    app: &App<D>,
    route: &Route,
    context: &Context,
    parts: &Parts,
    body: B,
) -> Result<Reply, Stop>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let standing = app.security.standing(&context.principal);
    let running = carry_out(app, route, context, parts, standing.vouch_for(body));
    // A write is never cut off: its outcome would be hidden, and not undone.
    if !matches!(route.policy.class, Class::Claim | Class::Read | Class::List) {
        return running.await;
    }
    // A claim may wait for minutes; what it was granted by then goes back.
    tokio::select! {
        biased;
        reply = running => reply,
        () = standing.ended() => Err(problems::unauthenticated().into()),
    }
}

/// Carries out a call, whoever makes it.
async fn carry_out<D, B>(
    app: &App<D>,
    route: &Route,
    context: &Context,
    parts: &Parts,
    body: B,
) -> Result<Reply, Stop>
where
    D: Door,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if route.policy.body == BodyBound::Stream
        || matches!(route.operation, Operation::GetObject | Operation::TaskLogs)
    {
        let answered = objects::answer(app, route.operation, context, parts, body).await;
        return answered.unwrap_or_else(|| Err(mismatch("object")));
    }
    if route.operation == Operation::Dashboard {
        return dashboard::serve(&context.names, parts);
    }
    let (body, _memory) = take(app, route, parts, body).await?;
    let arrived = Arrived::now();
    run(app, route.operation, context, &body).await.map(|reply| arrived.mark(reply))
}

/// Reads the body of a route that has one; any other body is left unread.
async fn take<'a, D, B>(
    app: &'a App<D>,
    route: &Route,
    parts: &Parts,
    body: B,
) -> Result<(Bytes, Option<tokio::sync::SemaphorePermit<'a>>), Stop>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let bytes_max = match route.policy.body {
        _ if route.body.is_none() => return Ok((Bytes::new(), None)),
        BodyBound::Nothing | BodyBound::Stream => return Ok((Bytes::new(), None)),
        BodyBound::Document => app.limits.task_body_bytes_max,
        BodyBound::List => app.limits.batch_body_bytes_max,
    };
    let (body, permit) = take_body(app, parts, body, bytes_max).await?;
    Ok((body, Some(permit)))
}

/// Every operation and its handler; what is streamed was answered before.
pub(super) async fn run<D: Door>(
    app: &App<D>,
    operation: Operation,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    match operation {
        Operation::Enqueue => tasks::enqueue(app, context, body).await,
        Operation::ListTasks => tasks::list(app, context).await,
        Operation::ShowTask => tasks::show(app, context).await,
        Operation::CancelTask => tasks::cancel(app, context).await,
        Operation::Checkpoint => tasks::checkpoint(app, context, body).await,
        Operation::RetryTask => tasks::retry(app, context).await,
        Operation::ExplainTask => tasks::explain(app, context).await,
        Operation::DropTask => tasks::drop_task(app, context).await,
        Operation::Claim => tasks::claim(app, context, body).await,
        Operation::Complete => tasks::complete(app, context, body).await,
        Operation::Fail => tasks::fail(app, context, body).await,
        Operation::Renew => tasks::renew(app, context, body).await,
        Operation::ListQueues => queues::list(app, context).await,
        Operation::ShowQueue => queues::show(app, context).await,
        Operation::SetQueue => queues::set(app, context, body).await,
        Operation::PauseQueue => queues::pause(app, context, true).await,
        Operation::ResumeQueue => queues::pause(app, context, false).await,
        Operation::RetryQueue => queues::retry(app, context).await,
        Operation::DropQueue => queues::drop_all(app, context).await,
        Operation::PurgeQueue => queues::purge(app, context).await,
        Operation::ListSchedules => schedules::list(app, context).await,
        Operation::ShowSchedule => schedules::show(app, context).await,
        Operation::SetSchedule => schedules::set(app, context, body).await,
        Operation::DeleteSchedule => schedules::delete(app, context).await,
        Operation::PauseSchedule => schedules::pause(app, context, true).await,
        Operation::ResumeSchedule => schedules::pause(app, context, false).await,
        Operation::ListObjects => objects::list(app, context).await,
        Operation::ListBuckets => objects::list_buckets(app, context).await,
        Operation::PutObject
        | Operation::GetObject
        | Operation::DeleteObject
        | Operation::TaskLogs
        | Operation::Upload
        | Operation::PutPart => Err(mismatch("object")),
        Operation::ListUploads => uploads::list(app, context).await,
        Operation::ShowUpload => uploads::show(app, context).await,
        Operation::BeginUpload => uploads::begin(app, context, body).await,
        Operation::FinishUpload => uploads::finish(app, context, body).await,
        Operation::EndUpload => uploads::end(app, context).await,
        Operation::VoidRequest => requests::void(app, context).await,
        Operation::ShowRequest => requests::show(app, context).await,
        Operation::Pipe => Err(problems::upgrade_required().into()),
        Operation::CreateToken => tokens::create(app, context, body).await,
        Operation::ListTokens => tokens::list(app, context).await,
        Operation::RevokeToken => tokens::revoke(app, context).await,
        Operation::Whoami => tokens::whoami(context),
        Operation::ListNamespaces => namespaces::list(app, context).await,
        Operation::ShowNamespace => namespaces::show(app, context).await,
        Operation::SetQuota => namespaces::set(app, context, body).await,
        Operation::ShowQuota => namespaces::own(app, context).await,
        Operation::ShowCluster => cluster::show(app, context).await,
        Operation::ShowScaling => cluster::autoscale(app, context).await,
        Operation::Live => live::follow(app, context).await,
        Operation::ListEvents => cluster::events(app, context).await,
        Operation::Transfer => cluster::transfer(app, context, body).await,
        Operation::Backup => cluster::backup(app, context).await,
        Operation::AddNode => cluster::add(app, context, body).await,
        Operation::RemoveNode => cluster::remove(app, context).await,
        Operation::SteerNode => cluster::steer(app, context, body).await,
        Operation::TuneElections => cluster::tune(app, context, body).await,
        Operation::Grow => cluster::grow(app, context, body).await,
        Operation::ShowNode => cluster::node(app, context).await,
        Operation::Dashboard => Err(mismatch("dashboard")),
        Operation::Metrics => operate::metrics(app).await,
        Operation::Health => Ok(operate::health()),
        Operation::Ready => operate::ready(app).await,
        Operation::OpenApi => operate::openapi(app),
        Operation::PushProgram => programs::push(app, context, body).await,
        Operation::ListPrograms => programs::list(app, context).await,
        Operation::ShowProgram => programs::show(app, context).await,
        Operation::DeleteProgram => programs::delete(app, context).await,
        Operation::ListWorkers => workers::list(app, context).await,
        Operation::ShowWorker => workers::show(app, context).await,
        Operation::Beat => workers::beat(app, context, body).await,
        Operation::DrainWorker => workers::drain(app, context).await,
        Operation::RemoveWorker => workers::remove(app, context).await,
        Operation::ListLeases => leases::list(app, context).await,
        Operation::ShowLease => leases::show(app, context).await,
        Operation::AcquireLease => leases::acquire(app, context, body).await,
        Operation::RenewLease => leases::renew(app, context, body).await,
        Operation::ReleaseLease => leases::release(app, context, body).await,
        Operation::SubmitJob => jobs::submit(app, context, body).await,
        Operation::ListJobs => jobs::list(app, context).await,
        Operation::ShowJob => jobs::show(app, context).await,
        Operation::ShowJobResult => jobs::result(app, context).await,
        Operation::ListJobTasks => jobs::tasks(app, context).await,
        Operation::FollowJob => jobs::follow(app, context).await,
        Operation::JobLogs => logs::of_job(app, context).await,
        Operation::CancelJob => jobs::cancel(app, context).await,
    }
}

/// Carries out a call. What is no answer to the question itself stops the handler.
pub(super) async fn call<D: Door>(
    app: &App<D>,
    context: &Context,
    request: call::Request,
    routing: call::Routing,
) -> Result<call::Answer, Stop> {
    call_within(app, context, request, routing, context.timeout).await
}

/// Carries out one of several calls, within the time that is left.
pub(super) async fn call_within<D: Door>(
    app: &App<D>,
    context: &Context,
    request: call::Request,
    routing: call::Routing,
    left: Duration,
) -> Result<call::Answer, Stop> {
    // Much may have come before: a slow body, a wait for a place, other steps of the same call (X17).
    if !app.security.standing(&context.principal).holds() {
        return Err(problems::unauthenticated().into());
    }
    let called = app.door.call(request, left, routing);
    let Ok(answer) = tokio::time::timeout(left + NET, called).await else {
        return Err(problems::unknown(context.key.as_ref().map(|key| key.as_str())).into());
    };
    judge(answer)
}

/// What is no answer to the question itself stops the handler.
pub(super) fn judge(answer: call::Answer) -> Result<call::Answer, Stop> {
    match answer {
        call::Answer::Redirect(node) => Err(Stop::Redirect(node)),
        call::Answer::Unavailable(reason) => Err(problems::unavailable(&reason).into()),
        call::Answer::Refused { code, detail } => {
            Err(problems::admin_refusal(&code, &detail).into())
        }
        other => Ok(other),
    }
}

/// The node answered another question than the one asked: a defect of ours.
pub(super) fn mismatch(operation: &str) -> Stop {
    tracing::error!(operation, "the node's answer does not fit the question");
    problems::internal().into()
}
