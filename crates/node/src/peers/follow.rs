//! Follows changes of membership: links to new members, no links to those that left, and the list on disk, so that the
//! next start knows whom to dial.

use ikada_replica::Roll;
use ikada_store::RealDisk;
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::{error, info};

use super::dial::Dialling;
use super::directory::Directory;
use super::outgoing::Outgoing;
use crate::boot::Papers;

/// Follows the log's word on who belongs to the cluster until the driver ends.
pub async fn follow(
    mut rolls: UnboundedReceiver<Roll>,
    directory: Directory,
    dialling: Dialling,
    outgoing: Outgoing,
    mut papers: Papers,
    disk: RealDisk,
) {
    while let Some(roll) = rolls.recv().await {
        let news = directory.learn(&roll);
        for member in news.came.iter().filter(|member| member.node != papers.node) {
            info!(node = member.node, addr = %member.peer_addr, "new member");
            dialling.dial(member.node, member.peer_addr.clone(), outgoing.open(member.node));
        }
        for node in &news.went {
            info!(node, "member removed");
            outgoing.close(*node);
        }
        let members = Some(directory.candidates());
        if papers.members != members {
            papers.members = members;
            let (copy, disk) = (papers.clone(), disk.clone());
            let stored = tokio::task::spawn_blocking(move || copy.store(&disk)).await;
            if !matches!(stored, Ok(Ok(()))) {
                error!("the list of members could not be stored; the log still has it");
            }
        }
    }
}
