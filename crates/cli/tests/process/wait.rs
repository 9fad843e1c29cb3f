//! Waiting for something to become true, with a limit that turns a hang into a failure.

use std::time::{Duration, Instant};

/// No wait lasts longer, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Repeats a look until it gives something.
pub async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
