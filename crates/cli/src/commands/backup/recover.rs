//! `ikada cluster recover`: the last disk of a lost majority becomes a new cluster.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ikada_api::state::{Digest, Shard};
use ikada_node::offline::{read_offline, refound};

use super::report::{ObjectsReport, Report, ShardReport};
use super::{position, tell_next, wish};
use crate::args::RecoverArgs;
use crate::failure::Failure;
use crate::render::Screen;

/// What must be typed, since acknowledged work may be lost.
const PHRASE: &str = "acknowledged work may be lost";

pub(crate) fn recover(args: &RecoverArgs, screen: &Screen) -> Result<(), Failure> {
    let old = read_offline(&args.data).map_err(|error| Failure::failed(error.to_string()))?;
    let shards = old.shards.iter().enumerate().map(|(shard, found)| ShardReport {
        shard,
        position: position(found.last),
        commit: Some(found.commit),
        damaged: found.is_damaged,
        ..ShardReport::default()
    });
    let mut report = Report { shards: shards.collect(), ..Report::default() };
    if args.phrase.as_deref() != Some(PHRASE) {
        report.show(screen)?;
        return Err(Failure::usage(format!(
            "entries that only the lost nodes held are gone, though they may have been acknowledged; if no majority can be brought back, run this again with --phrase '{PHRASE}'"
        )));
    }
    let wish = wish(args.node_id, &args.peer_advertise, &args.advertise, None);
    let states: Vec<_> = old.shards.into_iter().map(|found| found.state).collect();
    let mut left = Leftover::of(&args.data, &states);
    let (cluster, epoch) = refound(&args.to, &wish, &states, &mut || left.next_piece())
        .map_err(|error| Failure::failed(error.to_string()))?;
    report.made = Some(args.to.display().to_string());
    (report.cluster, report.epoch) = (Some(format!("{cluster:016x}")), Some(epoch));
    let report = Report { objects: Some(left.report()), ..report };
    report.show(screen)?;
    if left.missing > 0 {
        eprintln!(
            "{} pieces of objects are not on this disk: those objects cannot be read",
            left.missing
        );
    }
    eprintln!(
        "cluster {:016x} is given up: its nodes cannot join the new one; keep node {}'s old folder until all is well",
        old.cluster, old.node
    );
    tell_next(&args.to, cluster, epoch);
    Ok(())
}

/// The bytes of objects that a disk still has.
struct Leftover {
    folder: PathBuf,
    wanted: std::collections::btree_set::IntoIter<Digest>,
    found: u64,
    found_bytes: u64,
    missing: u64,
}

impl Leftover {
    fn of(folder: &Path, states: &[Shard]) -> Leftover {
        let all = states.iter().flat_map(|state| state.references(None, usize::MAX).digests);
        let wanted = all.collect::<BTreeSet<_>>().into_iter();
        Leftover { folder: folder.to_owned(), wanted, found: 0, found_bytes: 0, missing: 0 }
    }

    fn report(&self) -> ObjectsReport {
        ObjectsReport { pieces: self.found, bytes: self.found_bytes, missing: self.missing }
    }

    /// The next piece that is there, whole.
    fn next_piece(&mut self) -> Result<Option<(Digest, Vec<u8>)>, String> {
        for digest in self.wanted.by_ref() {
            let name = digest.to_string();
            let file = self.folder.join("blob").join(&name[..2]).join(&name);
            match std::fs::read(&file) {
                Ok(bytes) if *blake3::hash(&bytes).as_bytes() == digest.0 => {
                    self.found += 1;
                    self.found_bytes += bytes.len() as u64;
                    return Ok(Some((digest, bytes)));
                }
                Ok(_) => self.missing += 1,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.missing += 1,
                Err(error) => return Err(format!("{}: {error}", file.display())),
            }
        }
        Ok(None)
    }
}
