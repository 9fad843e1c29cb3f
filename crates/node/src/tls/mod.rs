//! Certificates: the cluster's own authority, a node's certificate, and who may speak to whom.
//!
//! Promise (X2): nodes speak mutual TLS 1.3 among themselves; a certificate says in one URI which cluster, which role and
//! which node it is for (`ikada://<cluster>/node/<id>`), and nothing else in it counts. Whoever cannot show a node's
//! certificate of this cluster is cut off before a byte of its frames is read. Clients are served with the same
//! certificate. Files are looked at again every few seconds, so that a new certificate needs no restart.
//!
//! The authority is made by the first node; others get their certificates from it by a join token (X3).
//!
//! Clients show tokens, or certificates of their own (`ikada://<cluster>/client/<role>/<name>`), which the cluster knows by
//! their digests: what is not recorded, or was revoked, names nobody.
//!
//! Leaves out: revocation lists (nodes' certificates are short-lived, and a member that was removed is refused by its id).

mod authority;
mod client;
mod dates;
mod files;
mod join;
mod name;
mod newest;
mod reload;
mod token;
mod verify;

#[cfg(test)]
pub(crate) use authority::new_key;
pub use authority::{Authority, TlsError};
pub use client::{ClientPapers, Shown};
pub use dates::{Life, life_of};
pub use files::{JOIN_TOKEN_FILE, Papers, TLS_FOLDER};
pub use join::{JOIN_PROTOCOL, JoinAnswer, JoinAsk, JoinDesk, Newcomer, any_name, serve_join};
pub use name::{ClientName, Name, ShownNode, client_of, name_of, node_of};
pub use newest::Newest;
pub use reload::{PEER_PROTOCOL, Tls};
pub use token::{Deed, Grant, JoinRole, JoinToken, JoinTokens, Unfit};
