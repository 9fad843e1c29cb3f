//! Q9 Honest outcome: what a client was told was not carried out is not carried out; what may have been is *unknown*.

use ikada_state::Order;

use super::{Verdict, violation};

/// `honest` is what the clients' book says about a denial or a commit.
pub fn check(order: &Order, honest: bool) -> Verdict {
    if honest {
        return Ok(());
    }
    violation(
        "Q9 honest_outcome",
        format!("request {:?} was reported as not carried out, and was committed", order.request),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{Cancel, Command, Namespace, TaskId};

    #[test]
    fn a_lie_is_noticed() {
        let order = Order {
            namespace: Namespace::default(),
            request: None,
            command: Command::Cancel(Cancel { id: TaskId::parse("t").unwrap() }),
        };
        assert!(check(&order, true).is_ok());
        assert!(check(&order, false).is_err());
    }
}
