//! `POST /v1/tasks`: one task, or a list of them.

use hyper::StatusCode;
use ikada_api::convert::{AnyProgram, FindProgram, Form, enqueue_order};
use ikada_api::state::{Command, Order, RequestId, RequestKey};
use ikada_api::v1::{EnqueueAnswer, EnqueueBatch, NewTask, OutcomeKind};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::items::{at_place, bad_item, read_batch};
use super::write::{Item, Written, write};
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::jobs::pin_task;
use crate::http::namespaces::admit_tasks;
use crate::http::problems;
use crate::http::programs::with_programs;
use crate::http::request::{Context, check_count, read_document};

/// Tells the two forms of the body apart without judging them.
#[derive(Deserialize)]
struct Probe {
    #[serde(default)]
    tasks: Option<IgnoredAny>,
}

/// Whether the body is one task itself. A CBOR list of tasks is known by its first key, so that it is read once.
fn is_single(context: &Context, body: &[u8]) -> Result<bool, Stop> {
    if context.form_given == Form::Cbor {
        let mut decoder = minicbor::Decoder::new(body);
        let first = decoder.map().and_then(|_| decoder.str());
        return Ok(!matches!(first, Ok("tasks")));
    }
    Ok(read_document::<Probe>(context, body)?.tasks.is_none())
}

/// A submission that was read and can be sent.
pub(in crate::http) struct Enqueuing {
    single: bool,
    request: RequestId,
    pub(in crate::http) items: Vec<Item>,
}

impl Enqueuing {
    /// Reads the body.
    pub(in crate::http) fn read<D: Door>(
        app: &App<D>,
        context: &Context,
        body: &[u8],
        programs: &dyn FindProgram,
    ) -> Result<Enqueuing, Stop> {
        let single = is_single(context, body)?;
        let tasks = if single {
            if body.len() > app.limits.task_body_bytes_max {
                return Err(problems::body_too_large(app.limits.task_body_bytes_max).into());
            }
            vec![Ok(read_document::<NewTask>(context, body)?)]
        } else {
            read_batch(context, body, |batch: EnqueueBatch| batch.tasks)?
        };
        check_count("tasks", tasks.len(), app.limits.items_max)?;
        let request = app.request_id(context);
        let mut items = Vec::with_capacity(tasks.len());
        for (position, task) in tasks.into_iter().enumerate() {
            let key = RequestKey { id: request.clone(), item: position as u32 };
            items.push(match task {
                Ok(task) => prepare(context, programs, key, task, (!single).then_some(position)),
                Err(bad) => Item { id: bad.id, order: Err(bad.problem) },
            });
        }
        context.subject.are(items.iter().map(|item| &item.id));
        Ok(Enqueuing { single, request, items })
    }

    /// The request id to ask about.
    pub(in crate::http) fn request(&self) -> &str {
        self.request.as_str()
    }

    /// The answer to the submission.
    pub(in crate::http) fn show(self, context: &Context, written: Written) -> Result<Reply, Stop> {
        let (status, items, positions) = if self.single {
            let (item, positions) = written.only()?;
            let created = item.outcome == OutcomeKind::Created;
            (if created { StatusCode::CREATED } else { StatusCode::OK }, vec![item], positions)
        } else {
            (StatusCode::OK, written.items, written.positions)
        };
        let document = EnqueueAnswer { request: self.request.to_string(), tasks: items };
        let mut response = show_document(context, status, &document)?;
        add_positions(&mut response, &positions);
        Ok(response)
    }
}

pub(in crate::http) async fn enqueue<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let read = |programs: &dyn FindProgram| Enqueuing::read(app, context, body, programs);
    let mut enqueuing = with_programs(app, context, read).await?;
    let mut items = std::mem::take(&mut enqueuing.items);
    let single = enqueuing.single;
    for (position, item) in items.iter_mut().enumerate() {
        let Ok(order) = &mut item.order else { continue };
        match pin_task(app, context, order).await {
            // An input that is not there is the fault of this task alone: the others are taken.
            Err(Stop::Problem(problem)) if problem.status == 404 => {
                item.order = Err(if single { *problem } else { at_place(position, *problem) });
            }
            pinned => pinned?,
        }
    }
    admit_tasks(app, context, items.len())?;
    let written = write(app, context, items, Some(enqueuing.request())).await?;
    enqueuing.show(context, written)
}

/// Has a task that names programs known by what was asked for: sent again after a program was pushed anew, it is the same.
fn keep_asked(context: &Context, order: &mut Order, task: &NewTask) {
    let Order { request: Some(key), command: Command::Enqueue(enqueue), .. } = order else {
        return;
    };
    if !enqueue.may_name_programs() {
        return;
    }
    let asked = enqueue_order(&context.namespace, key.clone(), task, &AnyProgram);
    if let Ok(Order { command: Command::Enqueue(asked), .. }) = asked {
        enqueue.keep_asked(&asked);
    }
}

/// The order of one task; `position` is its place in a list.
fn prepare(
    context: &Context,
    programs: &dyn FindProgram,
    key: RequestKey,
    task: NewTask,
    position: Option<usize>,
) -> Item {
    match enqueue_order(&context.namespace, key, &task, programs) {
        Ok(mut order) => {
            keep_asked(context, &mut order, &task);
            let id = match &order.command {
                Command::Enqueue(enqueue) => enqueue.id.to_string(),
                _ => String::new(),
            };
            Item { id, order: Ok(order) }
        }
        Err(error) => {
            let problem = match position {
                Some(position) => bad_item(position, error),
                None => problems::bad_field(&error),
            };
            Item { id: task.id.unwrap_or_default(), order: Err(problem) }
        }
    }
}
