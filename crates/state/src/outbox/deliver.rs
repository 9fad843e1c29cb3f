//! `Deliver`: applies a message of another shard, each number once and in order. Only settings may overtake.

use minicbor::{Decode, Encode};

use super::{Inbox, Message};
use crate::hash::{RecordKind, digest_record};
use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};
use crate::{Fence, RefusalCode, Reply, ShardId};

/// One message on its way.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Deliver {
    /// Shard that sent it.
    #[n(0)]
    pub source: ShardId,
    /// Its number in the line from there.
    #[n(1)]
    pub sequence: u64,
    /// What it says.
    #[n(2)]
    pub message: Message,
}

impl Shard {
    pub(crate) fn apply_deliver(&mut self, batch: &mut Batch, order: &Deliver) -> Reply {
        if order.source == self.core.shard || !self.may_exist(order.source) {
            return Reply::refused(RefusalCode::WrongShard);
        }
        let applied = self.core.inbox.get(&order.source).copied().unwrap_or(0);
        if order.sequence <= applied {
            if planted::active(Bug::OutboxAppliedTwice) {
                let _ = self.take_message(batch, &order.message);
            }
            return Reply::Delivered { fresh: false };
        }
        if order.sequence != applied + 1 {
            // Settings are whole and have a version, so they may come early; in their turn they change nothing more.
            // Otherwise a paused queue of a full shard could never be resumed: the task that waits for room would hold
            // up the order that makes some.
            if order.message.may_overtake() {
                let _ = self.take_message(batch, &order.message);
            }
            return Reply::refused(RefusalCode::OutboxGap);
        }
        if let Err(code) = self.take_message(batch, &order.message) {
            return Reply::refused(code);
        }
        let source = order.source;
        self.learn_shard(source);
        if applied > 0 {
            let before = Inbox { source, applied };
            self.core.hash.remove(digest_record(RecordKind::Inbox, &before));
        }
        let after = Inbox { source, applied: order.sequence };
        self.core.hash.add(digest_record(RecordKind::Inbox, &after));
        self.core.inbox.insert(source, order.sequence);
        Reply::Delivered { fresh: true }
    }

    fn take_message(&mut self, batch: &mut Batch, message: &Message) -> Result<(), RefusalCode> {
        let (namespace, queue, settings) = match message {
            Message::QueueSettings { namespace, queue, settings } => (namespace, queue, settings),
            Message::Submit { namespace, task } => {
                return self.take_fired_message(batch, namespace, (**task).clone());
            }
            Message::Settings { queues } => return self.take_settings(batch, queues),
            Message::Leave { slot, target, map_version, last } => {
                return self.leave_slot(batch, (*slot, *target), *map_version, *last);
            }
            Message::Part { slot, bytes } => return self.take_part(*slot, bytes),
            Message::Arrive { slot, parts, epoch, grants, map_version, sequence } => {
                if *grants > Fence::COUNTER_MAX {
                    return Err(RefusalCode::BadValue);
                }
                let reached = (Fence::new(*epoch, *grants), *sequence);
                return self.arrive_slot(batch, (*slot, *parts), reached, *map_version);
            }
            Message::Settled { slot, has_objects } => {
                self.slot_settled(batch, *slot, *has_objects);
                return Ok(());
            }
            Message::Forget { slot } => {
                self.forget_slot(*slot);
                return Ok(());
            }
            Message::BindLease(bind) => {
                self.take_bind(batch, bind);
                return Ok(());
            }
            Message::WorkerGone { namespace, worker, session } => {
                if !planted::active(Bug::GoneWorkerKeepsClaims) {
                    self.reopen_claims(batch, namespace, worker, *session);
                }
                return Ok(());
            }
            Message::Remember { namespace, key, stored } => {
                self.keep_result(namespace, *key, stored);
                return Ok(());
            }
            Message::Recall(recall) => {
                self.take_recall(batch, recall);
                return Ok(());
            }
            Message::Recalled { recall, stored } => {
                self.take_recalled(batch, recall, stored.as_deref());
                return Ok(());
            }
            Message::Quotas { quotas } => {
                self.take_quotas(quotas);
                return Ok(());
            }
            Message::UnbindLease { namespace, lease } => {
                self.take_unbind(batch, namespace, lease);
                return Ok(());
            }
        };
        if !settings.is_valid(&self.core.limits) {
            return Err(RefusalCode::BadValue);
        }
        // Shard 0 bounds the queues that have settings, so this shard's own bound does not apply: a
        // message that could not be taken would block its line for ever.
        let queue = self.open_queue_unbounded(namespace, queue);
        let current = self.core.queues[queue as usize].settings.version;
        if settings.version > current || planted::active(Bug::OutboxAppliedTwice) {
            self.store_settings(batch, queue, settings.clone());
        }
        Ok(())
    }
}
