//! The same for each object of a folder, a few at a time.

use std::collections::BTreeMap;
use std::future::Future;

use tokio::task::JoinSet;

use crate::failure::Failure;

/// Transfers of one folder under way at a time: small objects wait for answers more than for bytes.
pub(super) const TRANSFERS_MAX: usize = 8;

/// Does the work for each; what came of it is in the order of the items. The first failure ends it all.
pub(super) async fn each<T, R, F>(
    items: impl IntoIterator<Item = T>,
    mut work: impl FnMut(T) -> F,
) -> Result<Vec<R>, Failure>
where
    F: Future<Output = Result<R, Failure>> + Send + 'static,
    R: Send + 'static,
{
    let (mut under_way, mut done) = (JoinSet::new(), BTreeMap::new());
    let mut items = items.into_iter().enumerate();
    loop {
        while under_way.len() < TRANSFERS_MAX
            && let Some((number, item)) = items.next()
        {
            let working = work(item);
            under_way.spawn(async move { (number, working.await) });
        }
        let Some(ended) = under_way.join_next().await else { break };
        let (number, result) = ended.map_err(|error| Failure::failed(error.to_string()))?;
        done.insert(number, result?);
    }
    Ok(done.into_values().collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_few_are_under_way_and_results_keep_their_order() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = |number: usize| {
            let (now, most) = (now.clone(), most.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                // The first take longest.
                for _ in number..50 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::Relaxed);
                if number == 40 { Err(Failure::failed("40")) } else { Ok(number) }
            }
        };
        assert_eq!(each(0..30, work).await.unwrap(), (0..30).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::Relaxed), TRANSFERS_MAX);
        assert_eq!(each(35..50, work).await.unwrap_err().to_string(), "40");
    }
}
