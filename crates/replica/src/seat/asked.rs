//! When workers last asked for each queue of a shard, and with which labels, as its leader remembers it.

use ikada_state::{Labels, QueueHandle};

/// Most pairs of queue and label set remembered: more kinds of workers than most clusters have.
const OFFERS_MAX: usize = 256;

/// Times by queue; empty on nodes that do not lead. Bounded by the shard's queues.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Monotonic time plus one; 0 is never.
    times: Vec<u64>,
    /// What workers with labels asked for, and when they last did.
    offers: Vec<(QueueHandle, Labels, u64)>,
    /// Newest time of an offer that had to be forgotten: until then nothing is known for sure.
    forgotten_ms: Option<u64>,
}

impl Asked {
    pub fn clear(&mut self) {
        *self = Asked::default();
    }

    /// A claim has named this queue.
    pub fn note(&mut self, queue: QueueHandle, now_ms: u64) {
        let place = queue.0 as usize;
        if self.times.len() <= place {
            self.times.resize(place + 1, 0);
        }
        self.times[place] = now_ms.saturating_add(1);
    }

    /// When a claim last named this queue.
    pub fn last_ms(&self, queue: QueueHandle) -> Option<u64> {
        self.times.get(queue.0 as usize)?.checked_sub(1)
    }

    /// A claim for this queue came from a worker with these labels.
    pub fn note_labels(&mut self, queue: QueueHandle, labels: &Labels, now_ms: u64) {
        if labels.is_empty() {
            return;
        }
        let known = self.offers.iter_mut().find(|(of, held, _)| *of == queue && held == labels);
        if let Some((_, _, asked_ms)) = known {
            *asked_ms = now_ms;
            return;
        }
        if self.offers.len() >= OFFERS_MAX {
            let oldest = self.offers.iter().enumerate().min_by_key(|(_, offer)| offer.2);
            if let Some((place, _)) = oldest {
                let (_, _, asked_ms) = self.offers.swap_remove(place);
                self.forgotten_ms = self.forgotten_ms.max(Some(asked_ms));
            }
        }
        self.offers.push((queue, labels.clone(), now_ms));
    }

    /// When a claim for this queue last came, or may have come, from a worker that has these labels.
    pub fn last_with_ms(&self, queue: QueueHandle, wanted: &Labels) -> Option<u64> {
        let fits = self.offers.iter().filter(|(of, held, _)| *of == queue && held.satisfy(wanted));
        fits.map(|(_, _, asked_ms)| *asked_ms).chain(self.forgotten_ms).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::Label;

    fn labels(value: &str) -> Labels {
        let label = |text: &str| Label::parse(text).unwrap();
        Labels::new(vec![(label("gpu"), label(value))]).unwrap()
    }

    #[test]
    fn label_sets_are_bounded_and_forgetting_one_claims_no_silence() {
        let mut asked = Asked::default();
        let queue = QueueHandle(0);
        for number in 0..OFFERS_MAX as u64 {
            asked.note_labels(queue, &labels(&format!("v{number}")), 100 + number);
        }
        assert_eq!(asked.last_with_ms(queue, &labels("v0")), Some(100));
        assert_eq!(asked.last_with_ms(queue, &labels("other")), None);
        assert_eq!(asked.last_with_ms(QueueHandle(1), &labels("v0")), None);
        asked.note_labels(queue, &labels("one-more"), 900);
        assert_eq!(asked.offers.len(), OFFERS_MAX);
        assert_eq!(asked.last_with_ms(queue, &labels("other")), Some(100), "v0 was forgotten");
    }
}
