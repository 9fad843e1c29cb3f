//! The usual shapes of routes: a look, an act, and the schemas of their bodies.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::parameters::{CONSISTENCY, MIN_LSN, NAMESPACE};
use super::policy::Policy;
use super::{Operation, Parameter, Route, Verb};
use crate::v1;

pub(super) const READ: &[Parameter] = &[NAMESPACE, CONSISTENCY, MIN_LSN];
pub(super) const WRITE: &[Parameter] = &[NAMESPACE];
pub(super) const NONE: &[Parameter] = &[];

pub(super) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// One task as the object itself, or a list of them.
pub(super) fn one_or_many(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<v1::NewTask>();
    let many = generator.subschema_for::<v1::EnqueueBatch>();
    schemars::json_schema!({ "oneOf": [one, many] })
}

/// A route that looks at something.
pub(super) const fn look(
    path: &'static str,
    operation: Operation,
    policy: Policy,
    summary: &'static str,
) -> Route {
    let (verb, query) = (Verb::Get, READ);
    Route { verb, path, operation, policy, summary, query, body: None, answer: None, keyed: false }
}

/// A route that acts.
pub(super) const fn act(
    path: &'static str,
    operation: Operation,
    policy: Policy,
    summary: &'static str,
) -> Route {
    let (verb, query) = (Verb::Post, WRITE);
    Route { verb, path, operation, policy, summary, query, body: None, answer: None, keyed: true }
}
