//! Failure in the words of S3.

use hyper::StatusCode;
use ikada_api::Problem;

use crate::http::answer::{Reply, text};
use ikada_api::s3::xml::escape;

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) detail: String,
    retry_after_s: Option<u32>,
}

impl Fault {
    pub(super) fn new(status: u16, code: &'static str, detail: impl Into<String>) -> Fault {
        Fault { status, code, detail: detail.into(), retry_after_s: None }
    }

    pub(super) fn denied(detail: &str) -> Fault {
        Fault::new(403, "AccessDenied", detail)
    }

    pub(super) fn key_unknown() -> Fault {
        let detail = "this access key is not known; make one with `ikada auth s3-key create`";
        Fault::new(403, "InvalidAccessKeyId", detail)
    }

    pub(super) fn signature() -> Fault {
        let detail = "the signature does not fit the request; check the secret key";
        Fault::new(403, "SignatureDoesNotMatch", detail)
    }

    pub(super) fn argument(detail: impl Into<String>) -> Fault {
        Fault::new(400, "InvalidArgument", detail)
    }

    pub(super) fn malformed_xml() -> Fault {
        Fault::new(400, "MalformedXML", "the document is not what this call takes")
    }

    pub(super) fn digest(detail: &str) -> Fault {
        Fault::new(400, "BadDigest", format!("{detail}; nothing was stored"))
    }

    pub(super) fn incomplete() -> Fault {
        Fault::new(400, "IncompleteBody", "the body did not arrive whole; nothing was stored")
    }

    pub(super) fn no_upload() -> Fault {
        Fault::new(404, "NoSuchUpload", "there is no such upload; it was ended or never begun")
    }

    pub(super) fn old_signature() -> Fault {
        let detail = "this address is signed by version 2; have the client sign by version 4 (signature_version = s3v4)";
        Fault::new(400, "InvalidRequest", detail)
    }

    pub(super) fn unsupported(what: &str) -> Fault {
        Fault::new(501, "NotImplemented", format!("{what} is not part of this door"))
    }

    /// The answer.
    pub(super) fn show(&self, path: &str) -> Reply {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let page = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>{}</Message><Resource>{}</Resource></Error>",
            self.code,
            escape(&self.detail),
            escape(path)
        );
        let mut response = text(status, "application/xml", page);
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert("retry-after", seconds.into());
        }
        response
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Fault {
        let code = match (problem.code.as_ref(), problem.status) {
            ("object_not_found", _) => "NoSuchKey",
            ("precondition_failed", _) => "PreconditionFailed",
            ("wrong_digest", _) => "BadDigest",
            ("body_incomplete", _) => "IncompleteBody",
            ("upload_not_found", _) => "NoSuchUpload",
            // Nothing that coming back later would change.
            ("namespace_objects_full", _) => "QuotaExceeded",
            (_, 401 | 403) => "AccessDenied",
            (_, 413) => "EntityTooLarge",
            (_, 404) => "NoSuchKey",
            // Clients know it, and come back later.
            (_, 429 | 503) => "SlowDown",
            (_, 507) => "ServiceUnavailable",
            (_, 400..=499) => "InvalidArgument",
            _ => "InternalError",
        };
        let (status, retry_after_s) = match problem.status {
            _ if code == "QuotaExceeded" => (403, None),
            429 => (503, problem.retry_after_s),
            status => (status, problem.retry_after_s),
        };
        let detail = format!("{}: {}", problem.code, problem.detail);
        Fault { status, code, detail, retry_after_s }
    }
}
