//! A backup as a stream of bytes, handed on as they come: it may be larger than memory.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;

use super::send::{Ask, innermost};
use super::{Client, Error};
use crate::problem::Problem;

/// A server that sends nothing for this long has gone.
const SILENCE: Duration = Duration::from_secs(60);

impl Client {
    /// Asks one node for a backup and hands its bytes to `take`, in order; the node waits for it. Gives their number.
    pub async fn backup<E: From<Error>>(
        &self,
        mut take: impl AsyncFnMut(Bytes) -> Result<(), E>,
    ) -> Result<u64, E> {
        let ask = Ask::get("/v1/cluster/backup".to_owned());
        let lost = |detail: String| Error::Unavailable { detail, code: None };
        let timeout = self.inner.options.timeout;
        let node = self.inner.current.load(Ordering::Relaxed) % self.inner.urls.len();
        let request = self.build(&ask, node, timeout).map_err(lost)?;
        let asked = self.inner.http.request(request);
        let response = tokio::time::timeout(timeout, asked)
            .await
            .map_err(|_| lost("no answer in time".to_owned()))?
            .map_err(|error| lost(innermost(&error)))?;
        let good = response.status().is_success();
        let mut body = response.into_body();
        let (mut count, mut said) = (0, Vec::new());
        loop {
            let frame = tokio::time::timeout(SILENCE, body.frame()).await;
            let frame = frame.map_err(|_| lost("the stream stands still".to_owned()))?;
            let Some(frame) = frame else { break };
            let Ok(data) = frame.map_err(|error| lost(innermost(&error)))?.into_data() else {
                continue;
            };
            count += data.len() as u64;
            if good {
                take(data).await?;
            } else {
                said.extend_from_slice(&data);
            }
        }
        match (good, serde_json::from_slice::<Problem>(&said)) {
            (true, _) => Ok(count),
            (false, Ok(problem)) => Err(Error::Refused(Box::new(problem)).into()),
            (false, Err(error)) => Err(Error::Protocol { detail: error.to_string() }.into()),
        }
    }
}
