//! Reads log entries on its own, so that a check does not trust the reader that it checks.
//!
//! The format is that of `ikada_state::batch`: version, log time, count, then length and bytes of each order, which is CBOR
//! or, of a plain enqueue or complete, the short form.

use ikada_state::{
    Command, Complete, Enqueue, Fence, Namespace, Order, QueueName, RequestId, RequestKey,
    SharedBytes, TaskId, WorkerId,
};

/// What an entry says.
#[derive(Debug, Default)]
pub struct Batch {
    /// Log time that the leader wrote; 0 for an entry without orders of its own (a leader's first).
    pub time_ms: u64,
    /// Each order, or nothing where its bytes are not one.
    pub orders: Vec<Option<Order>>,
}

/// Reads an entry; an unreadable one is an empty batch.
pub fn read(entry: &[u8]) -> Batch {
    parse(entry).unwrap_or_default()
}

fn parse(entry: &[u8]) -> Option<Batch> {
    let (version, rest) = entry.split_first()?;
    if *version != 1 {
        return None;
    }
    let (time, rest) = rest.split_first_chunk::<8>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let mut orders = Vec::new();
    for _ in 0..u32::from_le_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (body, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        orders.push(order(body));
        rest = after;
    }
    rest.is_empty().then_some(Batch { time_ms: u64::from_le_bytes(*time), orders })
}

fn order(body: &[u8]) -> Option<Order> {
    match body.split_first()? {
        (1, mut parts) => plain_enqueue(&mut parts),
        (2, mut parts) => plain_complete(&mut parts),
        _ => minicbor::decode(body).ok(),
    }
}

fn plain_enqueue(parts: &mut &[u8]) -> Option<Order> {
    let namespace = Namespace::parse(take_name(parts)?).ok()?;
    let id = TaskId::parse(take_name(parts)?).ok()?;
    let queue = QueueName::parse(take_name(parts)?).ok()?;
    let request = take_name(parts)?;
    let item = u32::from_le_bytes(take_bytes(parts)?);
    let request = if request.is_empty() {
        None
    } else {
        Some(RequestKey { id: RequestId::parse(request).ok()?, item })
    };
    let command = Command::Enqueue(Enqueue::new(id, queue, *parts));
    Some(Order { namespace, request, command })
}

fn plain_complete(parts: &mut &[u8]) -> Option<Order> {
    let namespace = Namespace::parse(take_name(parts)?).ok()?;
    let id = TaskId::parse(take_name(parts)?).ok()?;
    let worker = WorkerId::parse(take_name(parts)?).ok()?;
    let fence = Fence(u64::from_le_bytes(take_bytes(parts)?));
    let [has_result] = take_bytes(parts)?;
    let result = (has_result == 1).then(|| SharedBytes::from(*parts));
    let command = Command::Complete(Complete {
        keeps_digest: None,
        id,
        fence,
        worker,
        result,
        then: None,
        outputs: Vec::new(),
    });
    Some(Order { namespace, request: None, command })
}

fn take_name<'a>(parts: &mut &'a [u8]) -> Option<&'a str> {
    let [length] = take_bytes(parts)?;
    let (name, rest) = parts.split_at_checked(usize::from(length))?;
    *parts = rest;
    std::str::from_utf8(name).ok()
}

fn take_bytes<const COUNT: usize>(parts: &mut &[u8]) -> Option<[u8; COUNT]> {
    let (bytes, rest) = parts.split_first_chunk::<COUNT>()?;
    *parts = rest;
    Some(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{BatchBuilder, Cancel};

    fn order_of(request: Option<&str>, command: Command) -> Order {
        let key = |id| RequestKey { id: RequestId::parse(id).unwrap(), item: 3 };
        Order { namespace: Namespace::default(), request: request.map(key), command }
    }

    fn complete(result: Option<&[u8]>) -> Command {
        Command::Complete(Complete {
            keeps_digest: None,
            id: TaskId::parse("t1").unwrap(),
            fence: Fence(9),
            worker: WorkerId::parse("w").unwrap(),
            result: result.map(SharedBytes::from),
            then: None,
            outputs: Vec::new(),
        })
    }

    #[test]
    fn reads_what_the_product_writes() {
        let id = TaskId::parse("k1:t1").unwrap();
        let queue = QueueName::parse("work").unwrap();
        let plain = Enqueue::new(id.clone(), queue, b"do it".as_slice());
        let mut urgent = plain.clone();
        urgent.priority = Some(9);
        let orders = [
            order_of(None, Command::Cancel(Cancel { id })),
            order_of(None, Command::Enqueue(plain.clone())),
            order_of(Some("r1"), Command::Enqueue(plain)),
            order_of(Some("r2"), Command::Enqueue(urgent)),
            order_of(None, complete(None)),
            order_of(None, complete(Some(b""))),
            order_of(Some("r3"), complete(Some(b"done"))),
        ];
        let mut builder = BatchBuilder::new();
        for order in &orders {
            builder.push(order);
        }
        let batch = read(&builder.finish(77));
        assert_eq!(batch.time_ms, 77);
        assert_eq!(batch.orders, orders.map(Some));
        assert!(read(b"").orders.is_empty());
        assert!(read(&[1, 2, 3]).orders.is_empty());
    }
}
