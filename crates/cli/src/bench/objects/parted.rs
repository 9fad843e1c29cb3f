//! One large file sent in parts, by the code of `ikada object put`: how long it takes with its two readings, of the file for
//! its digests and of the parts for the whole, and what it costs the nodes in memory.
//!
//! The cluster is one of its own: what another workload stored would not be stored a second time.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::client::{ObjectSource, PutOptions};

use super::report::Figure;
use super::transfers::{MEMORY_EVERY, largest};
use super::{START_PATIENCE, bytes_of};
use crate::args::ObjectsBenchArgs;
use crate::commands::{Counted, put_in_parts};
use crate::failure::Failure;
use crate::local::Nodes;

const BUCKET: &str = "bench";
const KEY: &str = "parted";
/// No piece of it is one of another workload's.
const SEED: u64 = 1 << 32;

/// Measures on a cluster that was just prepared.
pub(super) async fn measure(
    args: &ObjectsBenchArgs,
    mut nodes: Nodes,
) -> Result<Vec<Figure>, Failure> {
    nodes.start_missing()?;
    nodes.agree(START_PATIENCE).await?;
    let folder = tempfile::tempdir().map_err(|error| Failure::failed(error.to_string()))?;
    let file = folder.path().join("large.bin");
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", file.display()));
    write(&file, args.large_mib).map_err(failed)?;
    let client = Client::new(nodes.urls()).map_err(|error| Failure::failed(error.to_string()))?;
    let (source, options) = (ObjectSource::File(file.clone()), PutOptions::default());
    let pids = nodes.pids();
    let before = largest(&pids);
    let mut peak = before;
    let began = Instant::now();
    let sending = put_in_parts(&client, (BUCKET, KEY), &source, &options, &Counted::Alone);
    tokio::pin!(sending);
    let stored = loop {
        tokio::select! {
            stored = &mut sending => break stored?,
            () = tokio::time::sleep(MEMORY_EVERY) => peak = peak.max(largest(&pids)),
        }
    };
    let took = began.elapsed();
    peak = peak.max(largest(&pids));
    let size = stored.map_or(0, |stored| stored.size);
    if size != u64::from(args.large_mib) << 20 {
        return Err(Failure::failed(format!("the file has {size} bytes as an object")));
    }
    Ok(figures(args.large_mib, took, peak.saturating_sub(before)))
}

fn figures(mib: u32, took: Duration, extra: u64) -> Vec<Figure> {
    let seconds = took.as_secs_f64();
    let rate = f64::from(mib) * 1.048_576 / seconds.max(f64::MIN_POSITIVE);
    let line = |what: &str, value: String| {
        eprintln!("{what}: {value}");
        Figure { what: what.to_owned(), value }
    };
    vec![
        line(
            &format!("upload of {mib} MiB in parts, with both readings"),
            format!("{seconds:.1} s, {rate:.0} MB/s"),
        ),
        line("most extra memory of a node while it came in parts", format!("{} MiB", extra >> 20)),
    ]
}

fn write(path: &Path, mib: u32) -> std::io::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    for number in 0..u64::from(mib) {
        file.write_all(&bytes_of(SEED + number, 1 << 20))?;
    }
    file.flush()
}
