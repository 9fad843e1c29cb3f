//! The public words of Ikada: version 1 of the HTTP/JSON types, their conversion to and from the state's types,
//! the problem documents, and a client. Beside them, the words of S3 that the node's door and the command line share, and those of Azure's store.
//!
//! Server and client use the same structs, so that the two cannot drift apart; the OpenAPI schemas are derived from
//! them as well. Unknown fields are refused by name everywhere a client speaks; answers may gain fields.
//!
//! Leaves out: routing and status codes (the node's business), and any decision about tasks (the state's).

mod abreast;
pub mod azure;
pub mod cbor;
pub mod client;
pub mod convert;
pub mod courier;
pub mod openapi;
pub mod pipe;
pub mod problem;
pub mod routes;
pub mod s3;
pub mod socket;
pub mod v1;

pub use abreast::abreast;
pub use client::Client;
pub use problem::Problem;

/// The state's own types, for callers that speak of both worlds.
pub use ikada_state as state;
