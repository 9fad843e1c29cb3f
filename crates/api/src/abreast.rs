//! Several calls side by side: a bounded number of futures at one time, results in the order in which they were begun.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Carries out what an iterator gives, at most so many at one time. Ends with the first error that any of them meets; those that
/// run then are dropped, and the rest is never begun.
pub async fn abreast<F, T, E>(most: usize, calls: impl IntoIterator<Item = F>) -> Result<Vec<T>, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut calls = calls.into_iter().fuse();
    let mut running: Vec<(usize, Pin<Box<F>>)> = Vec::new();
    let mut results: Vec<Option<T>> = Vec::new();
    poll_fn(|context| {
        loop {
            while running.len() < most.max(1)
                && let Some(call) = calls.next()
            {
                running.push((results.len(), Box::pin(call)));
                results.push(None);
            }
            let (mut place, mut has_ended) = (0, false);
            while let Some((number, call)) = running.get_mut(place) {
                match call.as_mut().poll(context) {
                    Poll::Pending => place += 1,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Ready(Ok(result)) => {
                        results[*number] = Some(result);
                        running.remove(place);
                        has_ended = true;
                    }
                }
            }
            // Whoever took the place of one that ended has not been asked yet.
            match (running.is_empty(), has_ended) {
                (true, false) => return Poll::Ready(Ok(())),
                (false, false) => return Poll::Pending,
                (_, true) => {}
            }
        }
    })
    .await?;
    Ok(results.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Ends after so many looks.
    async fn after(looks: u32, running: &Cell<(u32, u32)>, result: u32) -> Result<u32, u32> {
        let (now, most) = running.get();
        running.set((now + 1, most.max(now + 1)));
        let mut left = looks;
        poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        let (now, most) = running.get();
        running.set((now - 1, most));
        if result == 13 { Err(result) } else { Ok(result) }
    }

    #[tokio::test]
    async fn so_many_at_one_time_and_results_in_order() {
        let running = Cell::new((0, 0));
        let calls = (0..10).map(|number| after(10 - number, &running, number));
        assert_eq!(abreast(3, calls).await, Ok((0..10).collect()));
        assert_eq!(running.get(), (0, 3));
        let none = std::iter::empty::<std::future::Ready<Result<u32, u32>>>();
        assert_eq!(abreast(3, none).await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn the_first_error_ends_all() {
        let running = Cell::new((0, 0));
        let begun = Cell::new(0);
        let calls = (12..100).map(|number| {
            begun.set(begun.get() + 1);
            after(u32::from(number != 13) * 50, &running, number)
        });
        assert_eq!(abreast(2, calls).await, Err(13));
        assert_eq!(begun.get(), 2, "the rest is never begun");
    }
}
