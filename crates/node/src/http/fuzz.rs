//! Fuzz targets of the client door: heads, bodies, signatures of S3 and frames of a pipe (see `crate::fuzz`).
//!
//! A request runs through the same HTTP/1 server as in the product, then through everything that reads its head and its
//! body. Nobody is asked who calls, so that what is behind that question is read, too.

use std::convert::Infallible;
use std::io::Cursor;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use ikada_api::cbor::to_vec;
use ikada_api::convert::{
    AnyProgram, Form, acquire_lease, checkpoint_order, claim_holds, claim_names, complete_order,
    enqueue_order, fail_order, lease_holder, register_worker, set_queue_order, set_quota_order,
    set_schedule_order, submit_job_order, worker_name,
};
use ikada_api::pipe::{FrontFrame, LENGTH_BYTES, PipeAsk, PipeVerb, front_frame, push_frame};
use ikada_api::routes::{Found, find};
use ikada_api::state::{Namespace, Order, RequestId, RequestKey, WorkerId};
use ikada_api::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::connection::protocol;
use super::guard::{OwnHosts, check_origin};
use super::limits::HttpLimits;
use super::pipe::is_wanted;
use super::request::{Context, read_document_as};
use super::s3;
use super::security::read_token;
use crate::auth::Principal;
#[cfg(test)]
pub(crate) use s3::fuzz::{SECRET, SIGNED_MS};

/// Most of a body that is read.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Longest frame of a pipe.
const FRAME_BYTES_MAX: usize = 1 << 16;
/// In the first byte of a body: it is CBOR.
pub(crate) const CBOR: u8 = 0x80;

/// Requests on the port of the API, one after another on one connection.
pub fn pre_auth_http(bytes: &[u8]) {
    serve(bytes, |parts, body| {
        let own = OwnHosts::new("127.0.0.1:7400", &[]);
        let _ = check_origin(&parts.method, &parts.headers, &own, false);
        let _ = read_token(&parts.headers);
        let Found::Route(route, names) = find(parts.method.as_str(), parts.uri.path()) else {
            return;
        };
        let principal = Arc::new(Principal::anyone());
        let context = Context::read(route, names, &parts, &HttpLimits::default(), principal);
        if let (Ok(context), Some(body)) = (context, body) {
            (0..DOCUMENTS.len()).for_each(|place| DOCUMENTS[place](context.form_given, &body));
        }
    });
}

/// The same on the port for S3.
pub fn pre_auth_s3(bytes: &[u8]) {
    serve(bytes, |parts, body| s3::fuzz::read(&parts, &body.unwrap_or_default()));
}

/// Serves what came on a connection; requests go to a reader, with their bodies if those are whole.
fn serve(bytes: &[u8], read: impl Fn(Parts, Option<Bytes>)) {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    }
    // What was said is there at once and at an end after it; answers go nowhere.
    let stream = tokio::io::join(Cursor::new(bytes.to_vec()), tokio::io::sink());
    let service = service_fn(|request: Request<Incoming>| {
        is_wanted(&request);
        let (parts, body) = request.into_parts();
        async {
            let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
            read(parts, body.ok().map(|body| body.to_bytes()));
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    RUNTIME.with(|runtime| {
        let _guard = runtime.enter();
        let connection =
            protocol(&HttpLimits::default()).serve_connection(TokioIo::new(stream), service);
        // Nonsense ends a connection, and nothing else.
        let _ = runtime.block_on(connection);
    });
}

/// Frames on a pipe.
pub fn pre_auth_pipe(bytes: &[u8]) {
    let mut buffer = BytesMut::from(bytes);
    while let FrontFrame::Whole(message) = front_frame(&buffer, FRAME_BYTES_MAX) {
        let length = message.len();
        if let Ok(ask) = minicbor::decode::<PipeAsk<'_>>(message) {
            let mut again = Vec::new();
            push_frame(&mut again, &ask);
            let again = minicbor::decode::<PipeAsk<'_>>(&again[LENGTH_BYTES..]).ok();
            assert_eq!(again.as_ref(), Some(&ask), "a call is read again");
            let document = match ask.verb {
                PipeVerb::Enqueue => 1,
                PipeVerb::Claim => 2,
                PipeVerb::Complete => 3,
                PipeVerb::Fail => 4,
                PipeVerb::Renew => 5,
            };
            DOCUMENTS[document](Form::Cbor, ask.body);
        }
        buffer.advance(LENGTH_BYTES + length);
    }
}

/// Bodies: the first byte says which document, and whether it is CBOR.
pub fn pre_auth_bodies(bytes: &[u8]) {
    let Some((form, body)) = bytes.split_first() else { return };
    let document = DOCUMENTS[usize::from(form & !CBOR) % DOCUMENTS.len()];
    document(if form & CBOR == 0 { Form::Json } else { Form::Cbor }, body);
}

type ReadDocument = fn(Form, &[u8]);

/// Every document that callers send. The places are those of seeds in the corpus.
pub(crate) const DOCUMENTS: [ReadDocument; 24] = [
    |form, body| read::<v1::NewTask>(form, body, |task| drop(enqueue(&task))),
    |form, body| {
        read::<v1::EnqueueBatch>(form, body, |batch| {
            batch.tasks.iter().for_each(|task| drop(enqueue(task)));
        });
    },
    |form, body| {
        read::<v1::ClaimRequest>(form, body, |claim| {
            drop((claim_names(&claim), claim_holds(&claim)))
        })
    },
    |form, body| {
        read::<v1::CompleteRequest>(form, body, |report| {
            let worker = WorkerId::parse("w").expect("a name");
            for item in &report.tasks {
                let _ = complete_order(&Namespace::default(), &worker, item, &AnyProgram);
            }
        });
    },
    |form, body| {
        read::<v1::FailRequest>(form, body, |report| {
            let worker = WorkerId::parse("w").expect("a name");
            for item in &report.tasks {
                let _ = fail_order(&Namespace::default(), &worker, item);
            }
        });
    },
    |form, body| read::<v1::RenewRequest>(form, body, drop),
    |form, body| {
        read::<v1::QueueSettingsBody>(form, body, |settings| {
            let _ = set_queue_order(&Namespace::default(), key(), "q", &settings);
        });
    },
    |form, body| {
        read::<v1::ScheduleBody>(form, body, |schedule| {
            let _ = set_schedule_order(&Namespace::default(), key(), "s", &schedule, &AnyProgram);
        });
    },
    |form, body| {
        read::<v1::NewJob>(form, body, |job| {
            let _ = submit_job_order(&Namespace::default(), key(), &job, &AnyProgram);
        });
    },
    |form, body| {
        read::<v1::QuotaBody>(form, body, |quota| drop(set_quota_order("n", &quota, 4)));
    },
    |form, body| {
        read::<v1::AcquireLease>(form, body, |lease| drop(acquire_lease("l", &lease)));
    },
    |form, body| {
        read::<v1::WorkerBeat>(form, body, |beat| {
            let _ = worker_name("w").map(|worker| register_worker(worker, &beat));
        });
    },
    |form, body| read::<v1::NewProgram>(form, body, drop),
    |form, body| read::<v1::NewToken>(form, body, drop),
    |form, body| read::<v1::AddNode>(form, body, drop),
    |form, body| read::<v1::TransferRequest>(form, body, drop),
    |form, body| read::<v1::SteerNode>(form, body, drop),
    |form, body| read::<v1::NewUpload>(form, body, drop),
    |form, body| read::<v1::FinishUpload>(form, body, drop),
    |form, body| {
        read::<v1::NewCheckpoint>(form, body, |checkpoint| {
            let _ = worker_name(&checkpoint.worker)
                .map(|worker| checkpoint_order(&Namespace::default(), &worker, "a", &checkpoint));
        });
    },
    |form, body| read::<v1::GrowRequest>(form, body, drop),
    |form, body| read::<v1::TuneElections>(form, body, drop),
    |form, body| {
        read::<v1::RenewLease>(form, body, |lease| drop(lease_holder(&lease.holder)));
    },
    |form, body| {
        read::<v1::ReleaseLease>(form, body, |lease| drop(lease_holder(&lease.holder)));
    },
];

fn key() -> RequestKey {
    RequestKey { id: RequestId::parse("r").expect("a name"), item: 0 }
}

fn enqueue(task: &v1::NewTask) -> Option<Order> {
    enqueue_order(&Namespace::default(), key(), task, &AnyProgram).ok()
}

/// Reads a document and makes of it what its route does. It can be sent on in both forms.
fn read<T: DeserializeOwned + Serialize>(form: Form, body: &[u8], then: impl FnOnce(T)) {
    let Ok(document) = read_document_as::<T>(form, body) else { return };
    let shown = serde_json::to_vec(&document).expect("a document that was read can be written");
    assert!(read_document_as::<T>(Form::Json, &shown).is_ok() || form == Form::Cbor);
    let _ = to_vec(&document);
    then(document);
}
