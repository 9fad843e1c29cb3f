//! What a request of S3 asks for. Buckets stand in the path; names of hosts are not looked at.

use hyper::Method;
use hyper::http::request::Parts;
use ikada_api::routes::{Operation, read_query};
use ikada_api::s3::escape::decode;

use super::copy::copies;
use super::fault::Fault;
use super::headers;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    ListBuckets,
    CreateBucket,
    HeadBucket,
    DeleteBucket,
    Location,
    /// Whether versions are kept: not in the sense of S3.
    Versioning,
    ListObjects,
    DeleteMany,
    Put,
    Copy,
    /// `HEAD` too.
    Get,
    Tags,
    Delete,
    BeginUpload,
    PutPart,
    CopyPart,
    CompleteUpload,
    AbortUpload,
    ListParts,
}

impl Action {
    /// Whether it gives an object its bytes, now or at the end of an upload.
    pub(super) fn writes(self) -> bool {
        use Action::{BeginUpload, CompleteUpload, Copy, CopyPart, Put, PutPart};
        matches!(self, Put | Copy | BeginUpload | PutPart | CopyPart | CompleteUpload)
    }

    /// The operation whose policy decides.
    pub(super) fn operation(self) -> Operation {
        match self {
            Action::ListBuckets => Operation::ListBuckets,
            Action::HeadBucket
            | Action::Location
            | Action::Versioning
            | Action::ListObjects
            | Action::ListParts => Operation::ListObjects,
            Action::Get | Action::Tags => Operation::GetObject,
            Action::Delete | Action::DeleteMany | Action::DeleteBucket | Action::AbortUpload => {
                Operation::DeleteObject
            }
            Action::CreateBucket
            | Action::Put
            | Action::Copy
            | Action::BeginUpload
            | Action::PutPart
            | Action::CopyPart
            | Action::CompleteUpload => Operation::PutObject,
        }
    }
}

/// A request, understood.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) action: Action,
    pub(super) bucket: String,
    pub(super) key: String,
    query: Vec<(String, String)>,
}

impl Call {
    pub(super) fn read(parts: &Parts) -> Result<Call, Fault> {
        let broken = || Fault::new(400, "InvalidURI", "the path or query has a broken escape");
        let path = parts.uri.path().strip_prefix('/').ok_or_else(broken)?;
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let text = |part| decode(part).and_then(|bytes| String::from_utf8(bytes).ok());
        let bucket = text(bucket).ok_or_else(broken)?;
        let key = text(key).ok_or_else(broken)?;
        let query = read_query(parts.uri.query().unwrap_or("")).ok_or_else(broken)?;
        let mut call = Call { action: Action::ListBuckets, bucket, key, query };
        call.action = call.find(parts)?;
        Ok(call)
    }

    /// A query parameter.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// For the audit log.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.bucket, self.key)
    }

    /// Refuses what would be passed over.
    fn check(&self, parts: &Parts) -> Result<(), Fault> {
        headers::check(&parts.headers)?;
        for (name, value) in &self.query {
            let header = name.to_ascii_lowercase();
            if KNOWN.contains(&name.as_str()) || SIGNATURE.contains(&header.as_str()) {
                continue;
            }
            match header.starts_with("x-amz-") {
                // Whoever presigns an address may put headers there.
                true => headers::check_one(&header, value)?,
                false if name == OLD_KEY => return Err(Fault::old_signature()),
                false => return Err(Fault::unsupported(name)),
            }
        }
        let asked = SHOWN.into_iter().find(|name| self.query(name).is_some());
        match asked.filter(|_| parts.method != Method::GET) {
            Some(name) => Err(Fault::unsupported(name)),
            None => Ok(()),
        }
    }

    fn find(&self, parts: &Parts) -> Result<Action, Fault> {
        let has = |name| self.query(name).is_some();
        self.check(parts)?;
        let verb = match parts.method {
            Method::HEAD => "GET",
            _ => parts.method.as_str(),
        };
        let head = parts.method == Method::HEAD;
        let on = (self.bucket.is_empty(), self.key.is_empty());
        Ok(match (verb, on) {
            ("GET", (true, _)) => Action::ListBuckets,
            ("GET", (_, true)) if head => Action::HeadBucket,
            ("GET", (_, true)) if has("location") => Action::Location,
            ("GET", (_, true)) if has("versioning") => Action::Versioning,
            ("GET", (_, true)) if has("tagging") || has("uploads") => {
                return Err(Fault::unsupported("tagging or uploads of a bucket"));
            }
            ("GET", (_, true)) => Action::ListObjects,
            ("PUT", (false, true)) => Action::CreateBucket,
            ("DELETE", (false, true)) => Action::DeleteBucket,
            ("POST", (false, true)) if has("delete") => Action::DeleteMany,
            ("GET", (_, false)) if has("uploadId") => Action::ListParts,
            ("GET", (_, false)) if has("partNumber") => {
                return Err(Fault::unsupported("reading a part"));
            }
            ("GET", (_, false)) if has("tagging") => Action::Tags,
            ("GET", (_, false)) => Action::Get,
            ("PUT", (false, false)) if has("partNumber") => match copies(&parts.headers) {
                true => Action::CopyPart,
                false => Action::PutPart,
            },
            ("PUT", (false, false)) if copies(&parts.headers) => Action::Copy,
            ("PUT", (false, false)) => Action::Put,
            ("DELETE", (false, false)) if has("uploadId") => Action::AbortUpload,
            ("DELETE", (false, false)) => Action::Delete,
            ("POST", (false, false)) if has("uploads") => Action::BeginUpload,
            ("POST", (false, false)) if has("uploadId") => Action::CompleteUpload,
            _ => {
                let detail = "this method is not possible here";
                return Err(Fault::new(405, "MethodNotAllowed", detail));
            }
        })
    }
}

/// Query parameters that are understood, or change nothing that is stored. Anything else would be taken for a plain call on
/// the object: with `versionId` a removal of one version would remove all, with `legal-hold` a setting would become its
/// bytes.
const KNOWN: [&str; 26] = [
    "continuation-token",
    "delete",
    "delimiter",
    "encoding-type",
    "fetch-owner",
    "list-type",
    "location",
    "marker",
    "max-buckets",
    "max-keys",
    "max-parts",
    "part-number-marker",
    "partNumber",
    "prefix",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "start-after",
    "tagging",
    "uploadId",
    "uploads",
    "versioning",
    // By this name some clients say which call it is.
    "x-id",
];

/// Parameters of a presigned address that are its signature, or tell how it was made.
const SIGNATURE: [&str; 6] = [
    "x-amz-algorithm",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-expires",
    "x-amz-signature",
    "x-amz-signedheaders",
];

/// What is told, since there is none of it, and cannot be changed.
const SHOWN: [&str; 2] = ["tagging", "versioning"];

/// In addresses that are signed by version 2.
const OLD_KEY: &str = "AWSAccessKeyId";
