//! Routes about callers: their tokens, who they are, and how much their namespaces may take.

use super::parameters::{CONSISTENCY, MIN_LSN};
use super::policy::{ADMINISTER, KNOWN, LIST, VIEW};
use super::shape::{NONE, act, look, of};
use super::{Operation, Route, Verb};
use crate::v1;

/// Tokens, callers and namespaces.
pub(super) const CALLERS: &[Route] = &[
    Route {
        query: NONE,
        body: Some(of::<v1::NewToken>),
        answer: Some(of::<v1::TokenMade>),
        keyed: false,
        ..act(
            "/v1/tokens",
            Operation::CreateToken,
            ADMINISTER.of_cluster(),
            "Make a token; its text is in the answer and nowhere else.",
        )
    },
    Route {
        query: &[CONSISTENCY, MIN_LSN],
        answer: Some(of::<v1::TokenPage>),
        ..look(
            "/v1/tokens",
            Operation::ListTokens,
            ADMINISTER.of_cluster(),
            "List the tokens, without their secrets.",
        )
    },
    Route {
        verb: Verb::Delete,
        query: NONE,
        answer: Some(of::<v1::TokenRevoked>),
        keyed: false,
        ..act(
            "/v1/tokens/{id}",
            Operation::RevokeToken,
            ADMINISTER.of_cluster(),
            "End a token; every node refuses it within 5 s.",
        )
    },
    Route {
        query: NONE,
        answer: Some(of::<v1::Whoami>),
        ..look("/v1/whoami", Operation::Whoami, KNOWN, "Who the caller is, and what it may do.")
    },
    Route {
        query: &[CONSISTENCY, MIN_LSN],
        answer: Some(of::<v1::NamespacePage>),
        ..look(
            "/v1/namespaces",
            Operation::ListNamespaces,
            LIST.of_cluster(),
            "List the namespaces with their quotas and what they use.",
        )
    },
    Route {
        query: &[CONSISTENCY, MIN_LSN],
        answer: Some(of::<v1::NamespaceInfo>),
        ..look(
            "/v1/namespaces/{name}",
            Operation::ShowNamespace,
            VIEW.of_cluster(),
            "Show a namespace's quota and what it uses.",
        )
    },
    Route {
        verb: Verb::Put,
        query: NONE,
        keyed: false,
        body: Some(of::<v1::QuotaBody>),
        answer: Some(of::<v1::NamespaceInfo>),
        ..act(
            "/v1/namespaces/{name}",
            Operation::SetQuota,
            ADMINISTER.of_cluster(),
            "Change a namespace's quota; what is absent stays as it is.",
        )
    },
    Route {
        answer: Some(of::<v1::NamespaceInfo>),
        ..look(
            "/v1/quota",
            Operation::ShowQuota,
            VIEW,
            "Show the quota of the caller's namespace and what it uses.",
        )
    },
];
