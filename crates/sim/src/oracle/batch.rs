//! Reads log entries on its own, so that a check does not trust the reader that it checks.
//!
//! The format is that of `ikada_state::batch`: version, log time, count, then length and bytes of each order.

use ikada_state::Order;

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
        orders.push(minicbor::decode(body).ok());
        rest = after;
    }
    rest.is_empty().then_some(Batch { time_ms: u64::from_le_bytes(*time), orders })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{BatchBuilder, Cancel, Command, Namespace, TaskId};

    #[test]
    fn reads_what_the_product_writes() {
        let order = Order {
            namespace: Namespace::default(),
            request: None,
            command: Command::Cancel(Cancel { id: TaskId::parse("t1").unwrap() }),
        };
        let mut builder = BatchBuilder::new();
        builder.push(&order);
        let batch = read(&builder.finish(77));
        assert_eq!(batch.time_ms, 77);
        assert_eq!(batch.orders, vec![Some(order)]);
        assert!(read(b"").orders.is_empty());
        assert!(read(&[1, 2, 3]).orders.is_empty());
    }
}
