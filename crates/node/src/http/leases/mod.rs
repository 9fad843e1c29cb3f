//! Leases: one file per verb.

mod acquire;
mod list;
mod release;
mod renew;
mod show;

pub(super) use acquire::acquire;
pub(super) use list::list;
pub(super) use release::release;
pub(super) use renew::renew;
pub(super) use show::show;

use std::time::Duration;

use ikada_api::state::HolderName;

use super::problems;
use super::request::Context;

/// A wait ends this long before the caller gives up, so that news of the last moment still reach it.
const MARGIN: Duration = Duration::from_millis(250);

/// The wait that fits into the caller's time.
fn fitting_wait_ms(context: &Context, wait_ms: u64) -> u64 {
    wait_ms.min(context.timeout.saturating_sub(MARGIN).as_millis() as u64)
}

/// The holder of this caller under a name; holdings are bound to who made them, as claims are.
fn full_holder(context: &Context, holder: HolderName) -> Result<HolderName, ikada_api::Problem> {
    context.principal.holder(holder).ok_or_else(|| {
        let name = &context.principal.name;
        let detail =
            format!("is too long: {name} is put before it, and both together may have 128 bytes");
        problems::bad_field(&ikada_api::convert::FieldError::bad_value("holder", detail))
    })
}
