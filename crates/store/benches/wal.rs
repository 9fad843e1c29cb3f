//! Speed of the shared log on the disk under the temporary folder: entries per second and CPU per entry.
//!
//! `cargo bench -p ikada-store`; set `TMPDIR` to choose the disk. Two figures per shape: with one sync at the
//! end (the log's own cost) and with one sync per batch (the disk's).

use bytes::Bytes;
use ikada_store::{Identity, Log, LogOptions, RealDisk, Record};
use std::time::Instant;

/// CPU time of this process in microseconds (100 ticks per second), as the kernel counts it.
fn cpu_us() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |parts| parts.1);
    let fields = after_name.split_whitespace().skip(11).take(2);
    fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10_000
}

fn run(shards: u16, batch: usize, entries: usize, sync_each: bool) -> std::io::Result<()> {
    let folder = std::env::temp_dir().join(format!("ikada-wal-bench-{}", std::process::id()));
    let disk = RealDisk::open(&folder)?;
    let identity = Identity { cluster: 1, node: 1, incarnation: 1, name: "bench".into() };
    let opened = Log::open(disk, &identity, LogOptions::default());
    let (mut log, _) = opened.map_err(std::io::Error::other)?;
    let data = Bytes::from(vec![7; 100]);
    let mut next = vec![1u64; usize::from(shards)];
    let mut records = Vec::with_capacity(batch);
    let (cpu, clock) = (cpu_us(), Instant::now());
    for turn in 0..entries / batch {
        records.clear();
        for position in 0..batch {
            let shard = ((turn + position) % usize::from(shards)) as u16;
            let index = next[usize::from(shard)];
            next[usize::from(shard)] += 1;
            let (data, context) = (data.clone(), Bytes::new());
            records.push(Record::Entry { shard, term: 1, index, kind: 0, data, context });
        }
        log.append(&records).map_err(std::io::Error::other)?;
        if sync_each {
            log.sync().map_err(std::io::Error::other)?;
        }
        if turn % 1024 == 1023 {
            for shard in 0..shards {
                let upto = next[usize::from(shard)] - 2;
                log.purge(shard, upto, 1).map_err(std::io::Error::other)?;
            }
        }
    }
    log.sync().map_err(std::io::Error::other)?;
    let (seconds, used) = (clock.elapsed().as_secs_f64(), cpu_us() - cpu);
    let count = (entries / batch * batch) as f64;
    let mode = if sync_each { "sync per batch" } else { "one sync" };
    println!(
        "{shards:>2} shards, batch {batch:>4}, {mode:<14}: {:>9.0} entries/s, {:.2} us CPU per entry, {} syncs",
        count / seconds,
        used as f64 / count,
        log.stats().syncs
    );
    let live = log.stats().live_entries;
    drop(log);
    let (cpu, clock) = (cpu_us(), Instant::now());
    let opened = Log::open(RealDisk::open(&folder)?, &identity, LogOptions::default());
    let found = opened.map_err(std::io::Error::other)?.1;
    assert!(found.findings.is_empty(), "a clean log opens quietly");
    let (wall_ms, cpu_ms) = (clock.elapsed().as_millis(), (cpu_us() - cpu) / 1000);
    println!("    opens again in {wall_ms} ms ({cpu_ms} ms CPU) with {live} live entries");
    std::fs::remove_dir_all(folder)
}

fn main() -> std::io::Result<()> {
    for shards in [1, 16] {
        for batch in [64, 1024] {
            run(shards, batch, 2_000_000, false)?;
            run(shards, batch, 1000 * batch, true)?;
        }
    }
    Ok(())
}
