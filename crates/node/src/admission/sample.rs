//! The thread that looks at the machine, so that no call ever has to (CH-25).

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::Admission;
use super::decide::{Load, WHOLE};
use super::lane::Lane;
use super::measure::{CpuReading, Source};

/// Time between two looks.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// The first look at CPU compares over a shorter time, so that a young node knows soon.
const FIRST_AFTER: Duration = Duration::from_millis(100);
/// A node that uses less of the machine than this, in hundredths of a percent, is not what keeps it busy: programs beside
/// it are, its own workers' perhaps, and turning calls away would help nobody.
const OWN_CPU_MIN: u16 = 500;
/// Looks that make a minute.
const LOOKS_PER_MINUTE: usize = 120;

/// What was counted when, for the last minute.
#[derive(Debug, Default)]
pub(super) struct Minute(Mutex<VecDeque<(u64, u64)>>);

impl Minute {
    fn note(&self, admitted: u64, shed: u64) {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        looks.push_back((admitted, shed));
        if looks.len() > LOOKS_PER_MINUTE {
            looks.pop_front();
        }
    }

    /// What was added since the oldest look that is kept.
    pub(super) fn since(&self, admitted: u64, shed: u64) -> (u64, u64) {
        let looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (admitted_before, shed_before) = looks.front().copied().unwrap_or((0, 0));
        (admitted.saturating_sub(admitted_before), shed.saturating_sub(shed_before))
    }
}

/// Watches the load until the admission is dropped.
pub fn watch(
    admission: &Arc<Admission>,
    source: impl Source + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    let watched = Arc::downgrade(admission);
    std::thread::Builder::new().name("ikada-load".into()).spawn(move || run(&watched, source))
}

fn run(watched: &Weak<Admission>, mut source: impl Source) {
    let mut sampler = Sampler::default();
    let mut pause = FIRST_AFTER;
    while let Some(admission) = watched.upgrade() {
        sampler.look(&admission, &mut source);
        drop(admission);
        std::thread::sleep(pause);
        pause = SAMPLE_EVERY;
    }
}

/// Remembers readings, since CPU is what was used between two of them.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    /// The two readings before.
    before: [Option<CpuReading>; 2],
    looked: bool,
    /// What was answered by the look before.
    settled: [u64; Lane::ALL.len()],
}

impl Sampler {
    /// Takes one sample in.
    pub(super) fn look(&mut self, admission: &Admission, source: &mut impl Source) {
        let now = source.cpu();
        // Over two looks, which takes the edge off a short burst.
        let earlier = self.before[1].or(self.before[0]);
        let measured = match (earlier, now) {
            (Some(earlier), Some(now)) => Some(now.used_since(&earlier)),
            // The first look has nothing to compare with; that is not a failure to measure.
            (None, Some(_)) if !self.looked => Some(0),
            _ => None,
        };
        let cpu = measured.unwrap_or(Load::WORST.cpu);
        self.before = [now, if now.is_some() { self.before[0] } else { None }];
        self.looked = true;
        // Without a figure for the whole, nobody can say that it is somebody else's doing (CH-24).
        let own = source.own_cpu();
        let bystands = measured.is_some() && own.is_some_and(|own| own < OWN_CPU_MIN);
        admission.bystands.store(bystands, Relaxed);
        let memory = source.memory().unwrap_or(Load::WORST.memory);
        admission.set_load(Load { cpu: cpu.min(WHOLE), memory: memory.min(WHOLE) });
        admission.service.iter().for_each(|service| service.settle());
        for (lane, before) in self.settled.iter_mut().enumerate() {
            let now = admission.settled[lane].load(Relaxed);
            admission.settled_lately[lane].store(now - *before, Relaxed);
            *before = now;
        }
        let (admitted, shed) = admission.totals();
        admission.minute.note(admitted, shed);
    }
}
