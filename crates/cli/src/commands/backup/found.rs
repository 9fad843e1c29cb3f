//! The last step of `restore` and `recover`: what the new cluster is to be, and its beginning in a database if its logs go there.

use std::path::Path;

use ikada_api::state::Shard;
use ikada_node::audit::note_offline;
use ikada_node::offline::{Refounded, Refounding, Seeding, Target};

use crate::args::IntoDatabase;
use crate::failure::Failure;
use crate::typed_url::without_password;

/// Where the logs go.
pub(super) struct Ground {
    seeding: Option<Seeding>,
}

impl Ground {
    /// Looks at the database, if one is named, before anything is made.
    pub(super) async fn look(into: &IntoDatabase) -> Result<Ground, Failure> {
        let Some(url) = &into.log else { return Ok(Ground { seeding: None }) };
        let seeding = Seeding::begin(&target("--log", url)?).await;
        let seeding = seeding.map_err(|error| Failure::failed(error.to_string()))?;
        Ok(Ground { seeding: Some(seeding) })
    }

    /// Brings the states into the database and says what to do next. If that fails, the folder goes too.
    pub(super) async fn finish(
        self,
        action: &'static str,
        folder: &Path,
        into: &IntoDatabase,
        made: &Refounded,
        states: &[Shard],
    ) -> Result<(), Failure> {
        let (cluster, epoch, shown) = (made.plan.cluster, made.epoch, folder.display());
        let is_in_database = self.seeding.is_some();
        if let Some(seeding) = self.seeding
            && let Err(error) = seeding.finish(folder, made, states).await
        {
            // A folder without its logs must not be started by mistake.
            let _ = std::fs::remove_dir_all(folder);
            return Err(Failure::failed(error.to_string()));
        }
        if let Err(error) = note_offline(folder, action, format!("{cluster:016x}")) {
            eprintln!("the audit log of {shown} has no line of this: {error}");
        }
        eprintln!(
            "new cluster {cluster:016x}, restore epoch {epoch}: every fence exceeds all older ones"
        );
        match is_in_database {
            false => eprintln!(
                "next: ikada server --data {shown}, then let nodes join: ikada cluster add"
            ),
            true => eprintln!("next: ikada server --log ... --data {shown}"),
        }
        for (node, peer, client) in &into.members {
            eprintln!(
                "and:  ikada server --log ... --node-id {node} --new-folder --data EMPTY --peer-listen {peer} --listen {client}"
            );
        }
        Ok(())
    }
}

/// A database's address, as typed.
pub(super) fn target(flag: &str, url: &str) -> Result<Target, Failure> {
    without_password(flag, url, "")?;
    Target::parse(url).map_err(|error| Failure::usage(error.to_string()))
}

/// What the new cluster is to be.
pub(super) fn wish(
    node: u64,
    peer_addr: &str,
    client_addr: &str,
    epoch: Option<u16>,
    into: &IntoDatabase,
) -> Result<Refounding, Failure> {
    let others = into.members.clone();
    let mut ids: Vec<u64> = others.iter().map(|(id, ..)| *id).chain([node]).collect();
    ids.sort_unstable();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Failure::usage("two members have the same id"));
    }
    let (peer_addr, client_addr) = (peer_addr.to_owned(), client_addr.to_owned());
    let in_database = into.log.is_some();
    Ok(Refounding { node, peer_addr, client_addr, epoch, in_database, others })
}
