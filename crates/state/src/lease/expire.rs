//! `ExpireLease`: ends a holding or a wait whose lifetime is over. The leader's clock decides when to propose it; the
//! fence or the place decides whether it counts, so a late or repeated proposal changes nothing.

use minicbor::{Decode, Encode};

use super::LeaseMark;
use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};
use crate::{LeaseName, Namespace, RefusalCode, Reply};

/// Ends what somebody had of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ExpireLease {
    /// The lease.
    #[n(0)]
    pub name: LeaseName,
    /// Which holding or wait.
    #[n(1)]
    pub mark: LeaseMark,
}

impl Shard {
    pub(crate) fn apply_expire_lease(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &ExpireLease,
    ) -> Reply {
        let key = (namespace.clone(), order.name.clone());
        let Some(lease) = self.core.leases.get(&key) else {
            return Reply::refused(RefusalCode::LeaseNotHeld);
        };
        let unfenced = planted::active(Bug::LeaseExpireUnfenced);
        if lease.ttl_of(order.mark).is_none() && !unfenced {
            return Reply::refused(RefusalCode::StaleFence);
        }
        match order.mark {
            LeaseMark::Held(_) => self.pass_lease(batch, key),
            LeaseMark::Waits(place) => self.leave_lease_line(batch, &key, place),
        }
        Reply::LeaseExpired
    }
}
