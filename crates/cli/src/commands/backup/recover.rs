//! `ikada cluster recover`: the last disk of a lost majority, or a database that was set back, becomes a new cluster.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ikada_api::state::{Digest, Shard};
use ikada_node::offline::{Offline, read_database, read_offline, refound};

use super::found::{Ground, target, wish};
use super::position;
use super::report::{ObjectsReport, Report, ShardReport};
use crate::args::RecoverArgs;
use crate::failure::Failure;
use crate::render::Screen;
use crate::typed_url::without_password;

/// What must be typed, since acknowledged work may be lost.
const PHRASE: &str = "acknowledged work may be lost";

pub(crate) async fn recover(args: &RecoverArgs, screen: &Screen) -> Result<(), Failure> {
    if let Some(url) = &args.into.log {
        without_password("--log", url, "")?;
    }
    let old = read(args).await?;
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
            "entries that only the lost nodes, or a newer state of the database, held are gone, though they may have been acknowledged; if those cannot be brought back, run this again with --phrase '{PHRASE}'"
        )));
    }
    let ground = Ground::look(&args.into).await?;
    let (peer, client) = (&args.peer_advertise, &args.advertise);
    let wish = wish(args.node_id, peer, client, None, &args.into)?;
    let states: Vec<_> = old.shards.into_iter().map(|found| found.state).collect();
    let mut left = Leftover::of(&args.data, &states);
    let made = refound(&args.to, &wish, &states, &mut || left.next_piece())
        .map_err(|error| Failure::failed(error.to_string()))?;
    report.made = Some(args.to.display().to_string());
    report.cluster = Some(format!("{:016x}", made.plan.cluster));
    report.epoch = Some(made.epoch);
    let report = Report { objects: Some(left.report()), ..report };
    if left.missing > 0 {
        eprintln!(
            "{} pieces of objects are not on this disk: those objects cannot be read",
            left.missing
        );
    }
    eprintln!(
        "cluster {:016x} is given up: its nodes cannot join the new one; keep {} until all is well",
        old.cluster,
        args.data.display()
    );
    ground.finish("Recover", &args.to, &args.into, &made, &states).await?;
    report.show(screen)
}

/// What is left of the old cluster.
async fn read(args: &RecoverArgs) -> Result<Offline, Failure> {
    match &args.from_log {
        None => read_offline(&args.data).map_err(|error| Failure::failed(error.to_string())),
        Some(url) => {
            let found = read_database(&target("--from-log", url)?).await;
            found.map_err(|error| Failure::failed(error.to_string()))
        }
    }
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
