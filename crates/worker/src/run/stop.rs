//! A word to a run that should end in its own way instead of being dropped.

use tokio::sync::watch;

/// The other end of [`Stop`].
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    /// Asks the run to end.
    pub fn stop(&self) {
        // A run that has ended needs no word.
        let _ = self.0.send(true);
    }
}

/// Tells a run that it should end: its claim is lost, or the worker leaves.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// A pair of ends.
    pub fn pair() -> (Stopper, Stop) {
        let (sender, receiver) = watch::channel(false);
        (Stopper(sender), Stop(receiver))
    }

    /// Whether the word was given.
    pub(crate) fn is_told(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the word. A sender that is gone never speaks.
    pub(crate) async fn told(&mut self) {
        if self.0.wait_for(|told| *told).await.is_err() {
            std::future::pending().await
        }
    }
}
