//! What the attempts of a task have said.

use super::{Client, Error, GetOptions};

/// The bucket of logs.
const BUCKET: &str = "logs";

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    /// Which attempt.
    pub attempt: u16,
    /// The bytes from the place asked for.
    pub bytes: Vec<u8>,
}

impl Client {
    /// What an attempt has said, from this byte on; the newest attempt that has said anything when none is named.
    /// Nothing if there is no such log.
    pub async fn task_log(
        &self,
        id: &str,
        attempt: Option<u16>,
        from: u64,
    ) -> Result<Option<LogPart>, Error> {
        let prefix = format!("{id}/");
        let page = self.objects(BUCKET, &prefix, None, false).await?;
        let logs = page.objects.iter().filter_map(|object| {
            let number: u16 = object.key.strip_prefix(&prefix)?.parse().ok()?;
            attempt.is_none_or(|wanted| wanted == number).then_some((number, object.size))
        });
        let Some((attempt, size)) = logs.max() else {
            return Ok(None);
        };
        if size <= from {
            return Ok(Some(LogPart { attempt, bytes: Vec::new() }));
        }
        let options = GetOptions { from, ..GetOptions::default() };
        let reader = self.get_object(BUCKET, &format!("{prefix}{attempt}"), &options).await?;
        Ok(Some(LogPart { attempt, bytes: reader.collect().await? }))
    }
}
