//! Routes of uploads: bytes without a name, and large objects in parts.

use super::parameters::{AFTER_ID, CONSISTENCY, MIN_LSN, NAMESPACE, UPLOADS_LIMIT};
use super::policy::{ARRANGE, LIST, STORE, SUBMIT, VIEW};
use super::shape::{act, look, of};
use super::{Operation, Route, Verb};
use crate::v1;

/// Uploads.
pub(super) const UPLOADS: &[Route] = &[
    Route {
        answer: Some(of::<v1::UploadInfo>),
        keyed: false,
        ..act(
            "/v1/uploads",
            Operation::Upload,
            STORE,
            "Store bytes without a name, for a completion to name as an output within the hour.",
        )
    },
    Route {
        query: &[NAMESPACE, CONSISTENCY, MIN_LSN, AFTER_ID, UPLOADS_LIMIT],
        answer: Some(of::<v1::UploadPage>),
        ..look(
            "/v1/uploads",
            Operation::ListUploads,
            LIST,
            "List the uploads in parts that were begun and not ended, in order of their ids.",
        )
    },
    Route {
        answer: Some(of::<v1::UploadView>),
        ..look(
            "/v1/uploads/{upload}",
            Operation::ShowUpload,
            VIEW,
            "Show an upload in parts and which parts have arrived.",
        )
    },
    Route {
        verb: Verb::Put,
        keyed: false,
        body: Some(of::<v1::NewUpload>),
        answer: Some(of::<v1::UploadView>),
        ..act(
            "/v1/uploads/{upload}",
            Operation::BeginUpload,
            ARRANGE,
            "Begin an upload in parts under an id of the caller's own (32 hex digits), or go on with it; tells which parts have arrived.",
        )
    },
    Route {
        verb: Verb::Delete,
        keyed: false,
        answer: Some(of::<v1::UploadEnded>),
        ..act(
            "/v1/uploads/{upload}",
            Operation::EndUpload,
            SUBMIT,
            "Give an upload in parts up; its parts go.",
        )
    },
    Route {
        verb: Verb::Put,
        answer: Some(of::<v1::UploadPart>),
        ..act(
            "/v1/uploads/{upload}/parts/{part}",
            Operation::PutPart,
            STORE,
            "Store the body as one part of an upload, 1 to 10000; Ikada-Digest is checked.",
        )
    },
    Route {
        body: Some(of::<v1::FinishUpload>),
        answer: Some(of::<v1::ObjectInfo>),
        ..act(
            "/v1/uploads/{upload}/finish",
            Operation::FinishUpload,
            ARRANGE,
            "Make the parts of an upload the object that it was begun for.",
        )
    },
];
