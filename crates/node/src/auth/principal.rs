//! A caller, once known.

use ikada_api::state::{HolderName, Namespace, Role, Token, TokenId, WorkerId};

/// Who calls, as what, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The name that stands in the audit log.
    pub name: String,
    /// The token that was shown; none when this node asks for none.
    pub token: Option<TokenId>,
    /// What it may do.
    pub role: Role,
    /// Where it may do it; empty means everywhere.
    pub namespaces: Vec<Namespace>,
    /// When its token ends; 0 if it does not.
    pub expires_ms: u64,
}

impl Principal {
    /// The caller of a node that asks for no tokens: whoever reaches the port.
    pub fn anyone() -> Principal {
        Principal {
            name: "anyone".to_owned(),
            token: None,
            role: Role::Admin,
            namespaces: Vec::new(),
            expires_ms: 0,
        }
    }

    /// The caller that a token stands for.
    pub fn of_token(token: &Token) -> Principal {
        Principal {
            name: token.name.to_string(),
            token: Some(token.id.clone()),
            role: token.role,
            namespaces: token.namespaces.clone(),
            expires_ms: token.expires_ms,
        }
    }

    /// Whether it may use a namespace.
    pub fn may_use(&self, namespace: &Namespace) -> bool {
        self.namespaces.is_empty() || self.namespaces.contains(namespace)
    }

    /// Whether it is bound to some namespaces.
    pub fn is_bound(&self) -> bool {
        !self.namespaces.is_empty()
    }

    /// The namespace of a request that names none.
    pub fn home(&self) -> Namespace {
        match self.namespaces.as_slice() {
            [only] => only.clone(),
            _ => Namespace::default(),
        }
    }

    /// The holder of leases of this caller under a name, as for workers.
    pub fn holder(&self, holder: HolderName) -> Option<HolderName> {
        match self.token {
            None => Some(holder),
            Some(_) => HolderName::parse(&format!("{}.{holder}", self.name)).ok(),
        }
    }

    /// The worker of this caller under a name: claims are bound to who made them, since a fence is no credential (X5).
    /// Callers with tokens have their own name put before it; a principal's name holds no dot.
    pub fn worker(&self, worker: WorkerId) -> Option<WorkerId> {
        match self.token {
            None => Some(worker),
            Some(_) => WorkerId::parse(&format!("{}.{worker}", self.name)).ok(),
        }
    }
}
