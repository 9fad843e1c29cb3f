//! Lanes: calls that are admitted by the same rules. The first are served longest.

use ikada_api::routes::{Class, Operation, Route};

/// A lane. Traffic between nodes has a port of its own and is in none: it is never shed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Brings results home.
    Settle,
    /// Keeps claims alive.
    Renew,
    /// Hands work out.
    Claim,
    /// People who run the cluster.
    Operate,
    /// Looks at one thing.
    Read,
    /// Fetches bytes of objects.
    Download,
    /// Brings new work.
    Submit,
    /// Brings bytes of objects.
    Upload,
    /// Looks at many things.
    List,
}

impl Lane {
    /// All lanes in their order.
    pub const ALL: [Lane; 9] = [
        Lane::Settle,
        Lane::Renew,
        Lane::Claim,
        Lane::Operate,
        Lane::Read,
        Lane::Download,
        Lane::Submit,
        Lane::Upload,
        Lane::List,
    ];

    /// The lane's public name.
    pub fn as_str(self) -> &'static str {
        match self {
            Lane::Settle => "settle",
            Lane::Renew => "renew",
            Lane::Claim => "claim",
            Lane::Operate => "operate",
            Lane::Read => "read",
            Lane::Download => "download",
            Lane::Submit => "submit",
            Lane::Upload => "upload",
            Lane::List => "list",
        }
    }

    /// The lane with a name.
    pub fn parse(name: &str) -> Option<Lane> {
        Lane::ALL.into_iter().find(|lane| lane.as_str() == name)
    }

    /// The lane of a route; none for what is always answered.
    pub fn of(route: &Route) -> Option<Lane> {
        match (route.operation, route.policy.class) {
            (Operation::PutObject | Operation::PutPart | Operation::FinishUpload, _) => {
                Some(Lane::Upload)
            }
            (Operation::GetObject, _) => Some(Lane::Download),
            // Outputs of a task that is about to be completed.
            (Operation::Upload, _) => Some(Lane::Settle),
            (_, Class::Health) => None,
            // Bytes of the binary cost less than a refusal, and a page without one of its scripts is blank.
            (Operation::Dashboard, _) => None,
            (_, Class::Settle) => Some(Lane::Settle),
            (_, Class::Renew) => Some(Lane::Renew),
            (_, Class::Claim) => Some(Lane::Claim),
            (_, Class::Operate) => Some(Lane::Operate),
            (_, Class::Read) => Some(Lane::Read),
            (_, Class::Submit) => Some(Lane::Submit),
            (_, Class::List) => Some(Lane::List),
        }
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }
}
