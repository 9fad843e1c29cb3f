//! Who may use a route, how it ranks when the node is busy, and how large its body may be.
//!
//! Promise: a route cannot be written down without a policy (X4): `look` and `act` in the table ask for one. Policies
//! are few and have names; a new route takes the one that fits.
//!
//! Leaves out: who the caller is, and how a refusal is told (`node::http`).

pub use ikada_state::Role;

/// Whom a route lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone, without any credential.
    Anyone,
    /// Callers with one of these roles.
    Roles(&'static [Role]),
}

/// What a route reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Only what is in the request's namespace, which the caller must be allowed to use.
    Namespace,
    /// The cluster or all namespaces: a caller that is bound to namespaces may not use it.
    Cluster,
    /// Nothing that belongs to anyone.
    Nothing,
}

/// How routes rank when not all can be served; the first is served longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Always answered, even when the door is full.
    Health,
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
    /// Brings new work.
    Submit,
    /// Looks at many things.
    List,
}

impl Class {
    /// The class's public name.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Health => "health",
            Class::Settle => "settle",
            Class::Renew => "renew",
            Class::Claim => "claim",
            Class::Operate => "operate",
            Class::Read => "read",
            Class::Submit => "submit",
            Class::List => "list",
        }
    }
}

/// How large a body may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyBound {
    /// There is none, or it is left unread.
    Nothing,
    /// One document of settings.
    Document,
    /// A list of tasks or reports.
    List,
    /// Bytes of any length, taken as they come.
    Stream,
}

/// A route's policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whom it lets in.
    pub access: Access,
    /// What it reaches.
    pub scope: Scope,
    /// How it ranks.
    pub class: Class,
    /// How large its body may be.
    pub body: BodyBound,
}

impl Policy {
    /// Whether callers of this role are let in.
    pub fn admits(&self, role: Role) -> bool {
        match self.access {
            Access::Anyone => true,
            Access::Roles(roles) => roles.contains(&role),
        }
    }

    /// The same policy for a route that reaches beyond namespaces.
    #[must_use]
    pub const fn of_cluster(self) -> Policy {
        Policy { scope: Scope::Cluster, ..self }
    }

    const fn new(roles: &'static [Role], class: Class, body: BodyBound) -> Policy {
        Policy { access: Access::Roles(roles), scope: Scope::Namespace, class, body }
    }
}

const LOOKERS: &[Role] = &[Role::Admin, Role::Operator, Role::Submitter, Role::Viewer];
const LEASERS: &[Role] = &[Role::Admin, Role::Operator, Role::Submitter, Role::Worker];
const WORKERS: &[Role] = &[Role::Admin, Role::Worker];

/// Tells nothing about anyone and is answered always.
pub const HEALTH: Policy = Policy {
    access: Access::Anyone,
    scope: Scope::Nothing,
    class: Class::Health,
    body: BodyBound::Nothing,
};
/// The same for everyone, and holds nothing of anyone: a page asks for its token after it was loaded.
pub const PAGE: Policy = Policy { class: Class::Read, ..HEALTH };
/// For every caller that is known at all.
pub const KNOWN: Policy =
    Policy { scope: Scope::Nothing, ..Policy::new(&Role::ALL, Class::Read, BodyBound::Nothing) };
/// Looks at one thing.
pub const VIEW: Policy = Policy::new(LOOKERS, Class::Read, BodyBound::Nothing);
/// Looks at many things.
pub const LIST: Policy = Policy::new(LOOKERS, Class::List, BodyBound::Nothing);
/// Brings new work, or takes own work back.
pub const SUBMIT: Policy =
    Policy::new(&[Role::Admin, Role::Operator, Role::Submitter], Class::Submit, BodyBound::List);
/// Brings bytes of objects, which jobs need and make.
pub const STORE: Policy = Policy::new(
    &[Role::Admin, Role::Operator, Role::Submitter, Role::Worker],
    Class::Submit,
    BodyBound::Stream,
);
/// Says what bytes of objects are to become.
pub const ARRANGE: Policy = Policy { body: BodyBound::Document, ..STORE };
/// Takes bytes of objects away: no work of a worker needs that.
pub const REMOVE: Policy =
    Policy::new(&[Role::Admin, Role::Operator, Role::Submitter], Class::Submit, BodyBound::Stream);
/// Fetches bytes of objects.
pub const FETCH: Policy = Policy::new(&Role::ALL, Class::Read, BodyBound::Nothing);
/// Takes work.
pub const CLAIM: Policy = Policy::new(WORKERS, Class::Claim, BodyBound::Document);
/// Keeps claims.
pub const RENEW: Policy = Policy::new(WORKERS, Class::Renew, BodyBound::List);
/// Reports on work.
pub const SETTLE: Policy = Policy::new(WORKERS, Class::Settle, BodyBound::List);
/// Says that a worker lives.
pub const BEAT: Policy = Policy::new(WORKERS, Class::Renew, BodyBound::Document);
/// Takes a lease, waiting for it if need be.
pub const LEASE: Policy = Policy::new(LEASERS, Class::Claim, BodyBound::Document);
/// Keeps a lease.
pub const KEEP_LEASE: Policy = Policy::new(LEASERS, Class::Renew, BodyBound::Document);
/// Gives a lease back.
pub const END_LEASE: Policy = Policy::new(LEASERS, Class::Settle, BodyBound::Document);
/// Looks at one lease, waiting for news if need be.
pub const WATCH_LEASE: Policy = Policy::new(&Role::ALL, Class::Read, BodyBound::Nothing);
/// Opens a pipe; every call on it is checked as its own route.
pub const PIPE: Policy = Policy {
    scope: Scope::Nothing,
    ..Policy::new(
        &[Role::Admin, Role::Operator, Role::Submitter, Role::Worker],
        Class::Claim,
        BodyBound::Nothing,
    )
};
/// Runs the queues.
pub const OPERATE: Policy =
    Policy::new(&[Role::Admin, Role::Operator], Class::Operate, BodyBound::Document);
/// Destroys, or decides who may do what (X18).
pub const ADMINISTER: Policy = Policy::new(&[Role::Admin], Class::Operate, BodyBound::Document);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::routes::{Operation, ROUTES, Verb};

    #[test]
    fn x_4_every_route_has_a_policy_that_fits_its_shape() {
        for route in ROUTES {
            let policy = route.policy;
            let name = format!("{:?}", route.operation);
            assert!(policy.admits(Role::Admin), "{name} shuts the admin out");
            let anyone = policy.access == Access::Anyone;
            let empty = matches!(route.operation, Operation::Health | Operation::Dashboard);
            assert_eq!(anyone, empty, "{name}: X19");
            if route.body.is_some() {
                assert_ne!(policy.body, BodyBound::Nothing, "{name} has a body without a bound");
            }
            if route.verb != Verb::Get {
                assert!(!policy.admits(Role::Viewer), "{name}: a viewer only looks");
            }
            let named = route.query.iter().any(|query| query.name == "namespace");
            assert_eq!(named, policy.scope == Scope::Namespace, "{name}: scope and parameters");
        }
    }

    /// What everyone may do, whether a token is shown or not, and what everyone with a token may.
    const OPEN: &str = "Dashboard Health";
    const KNOWN: &str = "OpenApi Whoami";
    const LOOK: &str = "ExplainTask FollowJob ListBuckets ListEvents ListJobTasks ListJobs ListLeases ListNamespaces \
        ListObjects ListPrograms ListQueues ListSchedules ListTasks ListUploads ListWorkers Live Metrics Ready \
        ShowCluster ShowJob ShowJobResult ShowNamespace ShowNode ShowProgram ShowQueue ShowQuota ShowRequest \
        ShowScaling ShowSchedule ShowTask ShowUpload ShowWorker";
    const FETCH: &str = "GetObject JobLogs ShowLease TaskLogs";
    const STORE: &str = "AcquireLease BeginUpload FinishUpload Pipe PutObject PutPart ReleaseLease RenewLease Upload";
    const WORK: &str = "Beat Checkpoint Claim Complete Fail Renew";
    const SUBMIT: &str = "CancelJob CancelTask DeleteObject DeleteProgram EndUpload Enqueue PushProgram SubmitJob VoidRequest";
    const OPERATE: &str = "DeleteSchedule DrainWorker DropTask PauseQueue PauseSchedule RemoveWorker ResumeQueue \
        ResumeSchedule RetryQueue RetryTask SetQueue SetSchedule SteerNode Transfer TuneElections";
    const ADMINISTER: &str = "AddNode Backup CreateToken DropQueue Grow ListTokens PurgeQueue RemoveNode RevokeToken SetQuota";

    // Written out, and not taken from the table: a route that moves must be moved here, too, and in docs/guides/access.md.
    #[test]
    fn x_4_each_role_may_do_exactly_what_is_written_here() {
        let common = [OPEN, KNOWN, FETCH];
        for (role, more) in [
            (Role::Viewer, &[LOOK][..]),
            (Role::Worker, &[WORK, STORE]),
            (Role::Submitter, &[LOOK, STORE, SUBMIT]),
            (Role::Operator, &[LOOK, STORE, SUBMIT, OPERATE]),
            (Role::Admin, &[LOOK, STORE, SUBMIT, OPERATE, WORK, ADMINISTER]),
        ] {
            let lists = common.iter().chain(more);
            let wanted: BTreeSet<&str> = lists.flat_map(|list| list.split_whitespace()).collect();
            let admitted = ROUTES.iter().filter(|route| route.policy.admits(role));
            let found: BTreeSet<String> =
                admitted.map(|route| format!("{:?}", route.operation)).collect();
            let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
            assert_eq!(found, wanted, "{role:?}");
        }
    }

    #[test]
    fn x_18_destruction_is_for_admins() {
        let admins_only = |operation| {
            let route = ROUTES.iter().find(|route| route.operation == operation).unwrap();
            Role::ALL.into_iter().all(|role| route.policy.admits(role) == (role == Role::Admin))
        };
        for operation in [
            Operation::PurgeQueue,
            Operation::DropQueue,
            Operation::AddNode,
            Operation::RemoveNode,
            Operation::Grow,
            Operation::Backup,
            Operation::SetQuota,
            Operation::CreateToken,
            Operation::ListTokens,
            Operation::RevokeToken,
        ] {
            assert!(admins_only(operation), "{operation:?}");
        }
    }

    #[test]
    fn role_names_return() {
        assert!(Role::ALL.iter().all(|role| Role::parse(role.as_str()) == Some(*role)));
        assert_eq!(Role::parse("Admin"), None);
    }
}
