//! Gathers what has ended and sends it, in documents of a bounded size.

use std::time::Duration;

use ikada_api::courier::Courier;
use ikada_replica::output::Ended;
use serde_json::Value;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;
use tracing::warn;

use super::Origin;
use super::spans::{add_spans, document};
use crate::counters::SharedCounters;
use crate::seldom::Seldom;

/// A document is sent once it has so many spans.
const SPANS_MAX: usize = 512;
/// Or once its first span has waited so long.
const GATHER: Duration = Duration::from_secs(1);
/// Tries of one document.
const TRIES_MAX: u32 = 4;
/// The first wait between them; it doubles.
const WAIT_FIRST: Duration = Duration::from_millis(250);

/// Sends until the line's other end is gone and all is sent.
pub(crate) async fn export(
    origin: Origin,
    collector: Courier,
    mut line: Receiver<Ended>,
    counters: SharedCounters,
) {
    let seldom = Seldom::default();
    while let Some(first) = line.recv().await {
        let mut spans = Vec::new();
        add_spans(&origin, &first, &mut spans);
        let until = Instant::now() + GATHER;
        while spans.len() < SPANS_MAX
            && let Ok(Some(next)) = tokio::time::timeout_at(until, line.recv()).await
        {
            add_spans(&origin, &next, &mut spans);
        }
        match send(&collector, &document(&origin, &spans)).await {
            Ok(()) => counters.traced(spans.len(), true),
            Err(why) => {
                counters.traced(spans.len(), false);
                if let Some(unsaid) = seldom.turn(std::time::Instant::now()) {
                    warn!(%why, unsaid, "the collector of traces takes no spans; they are dropped");
                }
            }
        }
    }
}

/// Sends one document; what may pass by itself is tried again.
async fn send(collector: &Courier, document: &Value) -> Result<(), String> {
    let body = document.to_string().into_bytes();
    let mut wait = WAIT_FIRST;
    let mut tries = 0;
    loop {
        tries += 1;
        let why = match collector.post_json(body.clone()).await {
            Ok(posted) if (200..300).contains(&posted.status) => return Ok(()),
            Ok(posted) => {
                let said: String = posted.text.chars().take(200).collect();
                let why = format!("{}: {said}", posted.status);
                if !matches!(posted.status, 429 | 502 | 503 | 504) {
                    return Err(why);
                }
                why
            }
            Err(why) => why,
        };
        if tries >= TRIES_MAX {
            return Err(why);
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
}
