//! The short form of the two orders that nearly every entry is made of: a plain enqueue and a plain complete.
//!
//! Reading CBOR took half the time of applying such an order. A short order begins with a byte that no CBOR order begins
//! with, then its parts one after another, each with its length, the last without. An order with anything out of the
//! ordinary (settings, follow-ups, a very long name) is written as CBOR; both forms are read for ever.

use crate::{
    Command, Complete, Enqueue, Fence, Namespace, Order, QueueName, RequestId, RequestKey,
    SharedBytes, TaskId, WorkerId,
};

/// First bytes of short orders: CBOR numbers, where an order would be an array.
const ENQUEUE: u8 = 1;
const COMPLETE: u8 = 2;
/// Longest name in a short order: its length is one byte.
const NAME_MAX: usize = u8::MAX as usize;

/// Whether an order begins like a short one of a kind that is not known here.
pub(super) fn is_unknown_brief(first: u8) -> bool {
    // Numbers of one byte in CBOR.
    first < 24 && first != ENQUEUE && first != COMPLETE
}

/// Appends the short form of an order; false if it has none.
pub(super) fn write_brief(order: &Order, out: &mut Vec<u8>) -> bool {
    match &order.command {
        Command::Enqueue(verb) if is_plain(verb) => {
            let key = order.request.as_ref();
            let names = [
                order.namespace.as_str(),
                verb.id.as_str(),
                verb.queue.as_str(),
                key.map_or("", |key| key.id.as_str()),
            ];
            let fits = write_names(ENQUEUE, names, out);
            if fits {
                out.extend_from_slice(&key.map_or(0, |key| key.item).to_le_bytes());
                out.extend_from_slice(&verb.payload);
            }
            fits
        }
        Command::Complete(verb)
            if verb.then.is_none()
                && verb.outputs.is_empty()
                && verb.keeps_digest.is_none()
                && order.request.is_none() =>
        {
            let names = [order.namespace.as_str(), verb.id.as_str(), verb.worker.as_str()];
            let fits = write_names(COMPLETE, names, out);
            if fits {
                out.extend_from_slice(&verb.fence.0.to_le_bytes());
                // Told apart from an empty result.
                out.push(u8::from(verb.result.is_some()));
                out.extend_from_slice(verb.result.as_deref().unwrap_or(&[]));
            }
            fits
        }
        _ => false,
    }
}

fn is_plain(verb: &Enqueue) -> bool {
    let Enqueue {
        id: _,
        queue: _,
        payload: _,
        priority,
        run_at_ms,
        delay_ms,
        max_attempts,
        ttl_ms,
        backoff,
        options,
    } = verb;
    priority.is_none()
        && run_at_ms.is_none()
        && delay_ms.is_none()
        && max_attempts.is_none()
        && ttl_ms.is_none()
        && backoff.is_none()
        && options.is_none()
}

fn write_names<const COUNT: usize>(kind: u8, names: [&str; COUNT], out: &mut Vec<u8>) -> bool {
    if names.iter().any(|name| name.len() > NAME_MAX) {
        return false;
    }
    out.push(kind);
    for name in names {
        out.push(name.len() as u8);
        out.extend_from_slice(name.as_bytes());
    }
    true
}

/// Reads a short order. The outer none: it is not one; the inner: it is malformed.
pub(super) fn read_brief(bytes: &[u8]) -> Option<Option<Order>> {
    let (kind, rest) = bytes.split_first()?;
    match *kind {
        ENQUEUE => Some(read_enqueue(rest)),
        COMPLETE => Some(read_complete(rest)),
        _ => None,
    }
}

fn read_enqueue(rest: &[u8]) -> Option<Order> {
    let (namespace, rest) = split_name(rest)?;
    let (id, rest) = split_name(rest)?;
    let (queue, rest) = split_name(rest)?;
    let (request, rest) = split_name(rest)?;
    let (item, payload) = rest.split_first_chunk::<4>()?;
    let item = u32::from_le_bytes(*item);
    let request = match request {
        "" if item == 0 => None,
        id => Some(RequestKey { id: RequestId::parse_quietly(id)?, item }),
    };
    let (id, queue) = (TaskId::parse_quietly(id)?, QueueName::parse_quietly(queue)?);
    let command = Command::Enqueue(Enqueue::new(id, queue, payload));
    Some(Order { namespace: Namespace::parse_quietly(namespace)?, request, command })
}

fn read_complete(rest: &[u8]) -> Option<Order> {
    let (namespace, rest) = split_name(rest)?;
    let (id, rest) = split_name(rest)?;
    let (worker, rest) = split_name(rest)?;
    let (fence, rest) = rest.split_first_chunk::<8>()?;
    let (given, result) = rest.split_first()?;
    let result = match given {
        0 if result.is_empty() => None,
        1 => Some(SharedBytes::from(result)),
        _ => return None,
    };
    let command = Command::Complete(Complete {
        keeps_digest: None,
        id: TaskId::parse_quietly(id)?,
        fence: Fence(u64::from_le_bytes(*fence)),
        worker: WorkerId::parse_quietly(worker)?,
        result,
        then: None,
        outputs: Vec::new(),
    });
    Some(Order { namespace: Namespace::parse_quietly(namespace)?, request: None, command })
}

fn split_name(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(*length))?;
    Some((std::str::from_utf8(name).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::decode_order;

    fn enqueue(request: Option<u32>) -> Order {
        let id = TaskId::parse("k1:t1").unwrap();
        let queue = QueueName::parse("mail").unwrap();
        let key = |item| RequestKey { id: RequestId::parse("r1").unwrap(), item };
        let command = Command::Enqueue(Enqueue::new(id, queue, b"do it".as_slice()));
        Order { namespace: Namespace::default(), request: request.map(key), command }
    }

    fn complete(result: Option<&[u8]>) -> Order {
        let command = Command::Complete(Complete {
            keeps_digest: None,
            id: TaskId::parse("t1").unwrap(),
            fence: Fence(u64::MAX),
            worker: WorkerId::parse("w").unwrap(),
            result: result.map(SharedBytes::from),
            then: None,
            outputs: Vec::new(),
        });
        Order { namespace: Namespace::parse("team").unwrap(), request: None, command }
    }

    fn brief(order: &Order) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(write_brief(order, &mut bytes), "{order:?}");
        bytes
    }

    #[test]
    fn short_orders_come_back_as_they_were() {
        let orders = [
            enqueue(None),
            enqueue(Some(0)),
            enqueue(Some(7)),
            complete(None),
            complete(Some(b"")),
            complete(Some(b"\xff\x00")),
        ];
        for order in orders {
            assert_eq!(decode_order(&brief(&order)), Some(order.clone()));
            // The long form means the same.
            assert_eq!(decode_order(&minicbor::to_vec(&order).unwrap()), Some(order));
        }
    }

    #[test]
    fn uncommon_orders_have_no_short_form() {
        let mut settings = enqueue(None);
        if let Command::Enqueue(verb) = &mut settings.command {
            verb.priority = Some(9);
        }
        let mut keyed = complete(None);
        keyed.request = Some(RequestKey { id: RequestId::parse("r").unwrap(), item: 0 });
        let mut long = enqueue(None);
        if let Command::Enqueue(verb) = &mut long.command {
            verb.id = TaskId::parse(&format!("{0}:{0}", "x".repeat(128))).unwrap();
        }
        for order in [settings, keyed, long] {
            let mut bytes = Vec::new();
            assert!(!write_brief(&order, &mut bytes) && bytes.is_empty(), "{order:?}");
        }
    }

    // Q14
    #[test]
    fn broken_short_orders_are_refused() {
        for order in [enqueue(Some(1)), complete(Some(b"r"))] {
            let whole = brief(&order);
            for length in 1..whole.len() {
                let read = decode_order(&whole[..length]);
                assert!(read.as_ref() != Some(&order), "{length}");
            }
            for place in 0..whole.len() {
                let mut other = whole.clone();
                other[place] ^= 0x80;
                // Whatever it is now, it is no panic and not the same order.
                assert!(decode_order(&other).as_ref() != Some(&order), "{place}");
            }
        }
        let mut anonymous = brief(&enqueue(None));
        let end = anonymous.len() - b"do it".len();
        anonymous[end - 4] = 1;
        assert_eq!(decode_order(&anonymous), None, "an item number without a request");
    }
}
