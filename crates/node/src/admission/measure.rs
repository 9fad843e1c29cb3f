//! Reading CPU and memory in use: of the control group if it is bounded, else of the machine.
//!
//! Both versions of control groups are understood. Bounds of all groups above count too: the tightest decides. Anything
//! that cannot be read gives no figure, and the caller assumes the worst.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::decide::WHOLE;

/// CPU time used and available, counted up from some start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuReading {
    /// Time used.
    pub busy: u64,
    /// Time there was, in the same unit.
    pub total: u64,
}

impl CpuReading {
    /// The share used since an earlier reading, in hundredths of a percent. Counters that went back are not believed.
    pub fn used_since(&self, earlier: &CpuReading) -> u16 {
        let busy = self.busy.checked_sub(earlier.busy);
        let total = self.total.checked_sub(earlier.total);
        match (busy, total) {
            (Some(busy), Some(total)) if total > 0 => share(busy, total),
            _ => WHOLE,
        }
    }
}

/// Where figures come from. Tests bring their own.
pub trait Source: Send {
    /// CPU time so far; none if it cannot be read.
    fn cpu(&mut self) -> Option<CpuReading>;
    /// Memory in use, hundredths of a percent; none if it cannot be read.
    fn memory(&mut self) -> Option<u16>;
    /// How much of the machine this process itself has used since it was last asked, hundredths of a percent; none if it
    /// is not known.
    fn own_cpu(&mut self) -> Option<u16> {
        None
    }
}

/// The machine, by its `/proc` and `/sys`.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
    start: Instant,
    /// When this process's own use was last asked for, and what it was.
    own: Option<(Instant, u64)>,
}

/// What a group says of its pages of files, by name.
struct Cached {
    /// Read once, and often.
    pages: [&'static str; 2],
    /// Not on the disk yet, or on the way there; counted among the others.
    unwritten: [&'static str; 2],
}

const CACHED_V1: Cached = Cached {
    pages: ["total_inactive_file", "total_active_file"],
    unwritten: ["total_dirty", "total_writeback"],
};
const CACHED_V2: Cached =
    Cached { pages: ["inactive_file", "active_file"], unwritten: ["file_dirty", "file_writeback"] };

/// Microseconds per unit of `/proc/self/stat`.
const TICK_US: u64 = 10_000;

impl Default for Machine {
    fn default() -> Self {
        Machine::at(Path::new("/"))
    }
}

impl Source for Machine {
    fn cpu(&mut self) -> Option<CpuReading> {
        let elapsed_us = self.start.elapsed().as_micros() as u64;
        match self.group_cpu(elapsed_us) {
            Some(reading) => Some(reading),
            None => read_stat(&self.read("proc/stat")?),
        }
    }

    fn memory(&mut self) -> Option<u16> {
        match self.group_memory() {
            Some(used) => Some(used),
            None => read_meminfo(&self.read("proc/meminfo")?),
        }
    }

    fn own_cpu(&mut self) -> Option<u16> {
        let used_us = read_own(&self.read("proc/self/stat")?)? * TICK_US;
        let now = Instant::now();
        let (then, before_us) = self.own.replace((now, used_us))?;
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let there_was_us = (now - then).as_micros() as u64 * cores;
        Some(share(used_us.saturating_sub(before_us), there_was_us))
    }
}

impl Machine {
    /// A machine whose files are below this folder.
    pub fn at(root: &Path) -> Machine {
        Machine { root: root.to_owned(), start: Instant::now(), own: None }
    }

    fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        read_to_string(self.root.join(path)).ok()
    }

    /// The folders of this process's group and all groups above, for a controller (none: version 2).
    fn groups(&self, controller: Option<&str>) -> Vec<PathBuf> {
        let Some(lines) = self.read("proc/self/cgroup") else { return Vec::new() };
        let Some(path) = lines.lines().find_map(|line| group_path(line, controller)) else {
            return Vec::new();
        };
        let mount = Path::new("sys/fs/cgroup").join(controller.unwrap_or(""));
        // Inside a container the path may be that of the host, and only the mount itself is there.
        Path::new(path.trim_start_matches('/'))
            .ancestors()
            .map(|group| mount.join(group))
            .filter(|group| self.root.join(group).is_dir())
            .collect()
    }

    fn group_cpu(&self, elapsed_us: u64) -> Option<CpuReading> {
        let v2 = self.groups(None).into_iter().filter_map(|group| {
            let (quota, period) = read_pair(&self.read(group.join("cpu.max"))?)?;
            let busy = field(&self.read(group.join("cpu.stat"))?, "usage_usec")?;
            Some((quota, period, busy))
        });
        let v1 = self.groups(Some("cpu")).into_iter().filter_map(|group| {
            let quota = number(&self.read(group.join("cpu.cfs_quota_us"))?)?;
            let period = number(&self.read(group.join("cpu.cfs_period_us"))?)?;
            if period == 0 {
                return None;
            }
            let accounted = Path::new("sys/fs/cgroup/cpuacct");
            let below = group.strip_prefix("sys/fs/cgroup/cpu").ok()?;
            let usage = accounted.join(below).join("cpuacct.usage");
            Some((quota, period, number(&self.read(usage)?)? / 1_000))
        });
        let cores = |(quota, period, _): &(u64, u64, u64)| quota.saturating_mul(1_000) / period;
        let (quota, period, busy) = v2.chain(v1).min_by_key(cores)?;
        let total = (u128::from(elapsed_us) * u128::from(quota) / u128::from(period)) as u64;
        Some(CpuReading { busy, total })
    }

    fn group_memory(&self) -> Option<u16> {
        let machine = field(&self.read("proc/meminfo")?, "MemTotal:")? * 1_024;
        let used = |usage: u64, stat: Option<String>, names: &Cached| {
            usage.saturating_sub(stat.map_or(0, |stat| reclaimable(&stat, names)))
        };
        let v2 = self.groups(None).into_iter().filter_map(|group| {
            let bound = number(&self.read(group.join("memory.max"))?)?;
            let usage = number(&self.read(group.join("memory.current"))?)?;
            Some((bound, used(usage, self.read(group.join("memory.stat")), &CACHED_V2)))
        });
        let v1 = self.groups(Some("memory")).into_iter().filter_map(|group| {
            let bound = number(&self.read(group.join("memory.limit_in_bytes"))?)?;
            let usage = number(&self.read(group.join("memory.usage_in_bytes"))?)?;
            let stat = self.read(group.join("memory.stat"));
            Some((bound, used(usage, stat, &CACHED_V1)))
        });
        // A bound above what the machine has is none.
        let bounded = v2.chain(v1).filter(|(bound, _)| *bound > 0 && *bound < machine);
        bounded.map(|(bound, used)| share(used, bound)).max()
    }
}

fn share(part: u64, whole: u64) -> u16 {
    let share = u128::from(part) * u128::from(WHOLE) / u128::from(whole.max(1));
    share.min(u128::from(WHOLE)) as u16
}

/// The path in a line of `/proc/self/cgroup`, if the line is about this controller.
fn group_path<'a>(line: &'a str, controller: Option<&str>) -> Option<&'a str> {
    let mut parts = line.splitn(3, ':');
    let (number, names, path) = (parts.next()?, parts.next()?, parts.next()?);
    let meant = match controller {
        None => number == "0" && names.is_empty(),
        Some(controller) => names.split(',').any(|name| name == controller),
    };
    meant.then_some(path)
}

/// The first line of `/proc/stat`.
fn read_stat(text: &str) -> Option<CpuReading> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Option<Vec<u64>> =
        line.split_whitespace().take(8).map(|word| word.parse().ok()).collect();
    let ticks = ticks.filter(|ticks| ticks.len() >= 5)?;
    let total: u64 = ticks.iter().sum();
    // Idle, and idle while the disk works.
    Some(CpuReading { busy: total - ticks[3] - ticks[4], total })
}

/// User and system time of a process, in ticks; its name may hold anything, and ends with the last bracket.
fn read_own(text: &str) -> Option<u64> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(|word| word.parse::<u64>().ok());
    Some(ticks.next()?? + ticks.next()??)
}

fn read_meminfo(text: &str) -> Option<u16> {
    let total = field(text, "MemTotal:")?;
    let available = field(text, "MemAvailable:")?;
    (total > 0).then(|| share(total.saturating_sub(available), total))
}

fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
}

/// Pages of files, which are given back when they are needed: the disk has the same, but for what is still to be
/// written. Whether they were read once or often makes no difference; a store that is read all day has mostly the latter.
fn reclaimable(stat: &str, names: &Cached) -> u64 {
    let sum = |names: &[&str]| {
        let found = names.iter().filter_map(|name| field(stat, name));
        found.fold(0, u64::saturating_add)
    };
    sum(&names.pages).saturating_sub(sum(&names.unwritten))
}

/// A number; none for `max`, `-1` and the like, which mean that there is no bound.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn read_pair(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace();
    let (quota, period) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (period > 0).then_some((quota, period))
}
