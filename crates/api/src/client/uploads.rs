//! Uploads in parts: each call of its own, for whoever decides which parts are still to be sent.

use std::time::Duration;

use hyper::Method;

use super::objects::{ObjectSource, PutOptions};
use super::send::Ask;
use super::url::{escape, unique_key, with_query};
use super::{Client, Error};
use crate::v1::{
    FinishUpload, NewUpload, ObjectInfo, UploadEnded, UploadPage, UploadPart, UploadView,
};

/// A node reads all parts once to put them together; it is given this long at least.
const FINISH_HOLD: Duration = Duration::from_secs(60);
/// And a second more for so many bytes.
const FINISH_BYTES_PER_S: u64 = 16 << 20;

impl Client {
    /// Begins an upload in parts under an id of the caller's own (32 hex digits), or tells what has arrived of it.
    pub async fn begin_upload(
        &self,
        upload: &str,
        wanted: &NewUpload,
    ) -> Result<UploadView, Error> {
        self.ask(&Ask::json(Method::PUT, upload_path(upload), wanted, None)?).await
    }

    /// Uploads one part.
    pub async fn put_part(
        &self,
        upload: &str,
        part: u32,
        source: &ObjectSource,
        options: &PutOptions,
    ) -> Result<UploadPart, Error> {
        let path = format!("{}/parts/{part}", upload_path(upload));
        self.send_source(Method::PUT, &path, source, options).await
    }

    /// Makes the parts the object; `size` is that of all of them, by which the time that it may take is reckoned.
    pub async fn finish_upload(
        &self,
        upload: &str,
        wanted: &FinishUpload,
        size: u64,
    ) -> Result<ObjectInfo, Error> {
        let path = format!("{}/finish", upload_path(upload));
        let ask = Ask::json(Method::POST, path, wanted, Some(unique_key()))?;
        let hold = FINISH_HOLD + Duration::from_secs(size / FINISH_BYTES_PER_S);
        self.ask(&Ask { hold, ..ask }).await
    }

    /// Gives an upload up.
    pub async fn end_upload(&self, upload: &str) -> Result<UploadEnded, Error> {
        self.ask(&Ask::act(Method::DELETE, upload_path(upload), None)).await
    }

    /// An upload, and which parts of it have arrived.
    pub async fn upload_view(&self, upload: &str) -> Result<UploadView, Error> {
        self.ask(&Ask::get(upload_path(upload))).await
    }

    /// A page of the uploads that were begun and not ended.
    pub async fn uploads(&self, after: Option<&str>) -> Result<UploadPage, Error> {
        let query: Vec<_> = after.map(|after| ("after", after.to_owned())).into_iter().collect();
        self.ask(&Ask::get(with_query("/v1/uploads", &query))).await
    }
}

fn upload_path(upload: &str) -> String {
    format!("/v1/uploads/{}", escape(upload))
}
