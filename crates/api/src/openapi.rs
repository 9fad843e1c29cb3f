//! The OpenAPI document, built from the route table and the types.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::problem::{PROBLEM_TYPE, Problem};
use crate::routes::{Access, Operation, ROUTES, Route};
use crate::v1::{IDEMPOTENCY_KEY, LSN_HEADER, ROUTING_HEADER, TIMEOUT_HEADER};

/// Builds the document.
pub fn document(version: &str) -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<Problem>().to_value();
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let body = route.body.map(|schema| schema(&mut generator).to_value());
        let answer = route.answer.map(|schema| schema(&mut generator).to_value());
        let described = describe(route, body, answer, &problem);
        let path = paths.entry(route.path.replace("*}", "}")).or_insert_with(|| json!({}));
        path[route.verb.as_str().to_lowercase()] = described;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ikada",
            "version": version,
            "description": "A replicated job orchestrator. Any node takes any request.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" }
        },
        "paths": paths,
        "components": { "schemas": generator.take_definitions(true) }
    })
}

fn describe(route: &Route, body: Option<Value>, answer: Option<Value>, problem: &Value) -> Value {
    let operation = format!("{:?}", route.operation);
    let mut described = json!({
        "operationId": operation,
        "summary": route.summary,
        "parameters": parameters(route),
        "x-ikada-roles": roles(route),
        "x-ikada-class": route.policy.class.as_str(),
        "responses": {
            "200": success(answer),
            "default": {
                "description": "A problem.",
                "content": { PROBLEM_TYPE: { "schema": problem } }
            }
        }
    });
    if let Some(schema) = body {
        described["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    if matches!(route.operation, Operation::PutObject | Operation::PutPart | Operation::Upload) {
        let bytes = json!({ "type": "string", "format": "binary" });
        described["requestBody"] =
            json!({ "required": true, "content": { "*/*": { "schema": bytes } } });
    }
    described
}

/// The roles that a route lets in; none listed means anyone.
fn roles(route: &Route) -> Vec<&'static str> {
    match route.policy.access {
        Access::Anyone => Vec::new(),
        Access::Roles(roles) => roles.iter().map(|role| role.as_str()).collect(),
    }
}

fn success(answer: Option<Value>) -> Value {
    let Some(schema) = answer else {
        return json!({ "description": "Success." });
    };
    json!({
        "description": "Success.",
        "headers": {
            LSN_HEADER: {
                "description": "Positions written or read: shard:term:index, separated by commas.",
                "schema": { "type": "string" }
            }
        },
        "content": { "application/json": { "schema": schema } }
    })
}

fn parameters(route: &Route) -> Vec<Value> {
    let parameter = |place: &str, name: &str, about: &str, required: bool| {
        json!({
            "in": place, "name": name, "description": about, "required": required,
            "schema": { "type": "string" }
        })
    };
    let mut all = Vec::new();
    for segment in route.path.split('/') {
        if let Some(name) = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let (name, about) = match name.strip_suffix('*') {
                Some(name) => (name, "A path: 1 to 1024 bytes, no part of it empty, `.` or `..`."),
                None => (name, "A name: [A-Za-z0-9._-]{1,128}."),
            };
            all.push(parameter("path", name, about, true));
        }
    }
    for query in route.query {
        all.push(parameter("query", query.name, query.about, false));
    }
    if route.keyed {
        let about = "Names the request: a resend under the same key is not carried out twice.";
        all.push(parameter("header", IDEMPOTENCY_KEY, about, false));
    }
    if route.path.starts_with("/v1/") {
        let about = "How long the caller waits, in ms; 10000 when absent, at most 120000.";
        all.push(parameter("header", TIMEOUT_HEADER, about, false));
        let about = "`redirect`: answer 307 with the leader's address instead of forwarding.";
        all.push(parameter("header", ROUTING_HEADER, about, false));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_described_and_every_reference_resolves() {
        let document = document("1.2.3");
        for route in ROUTES {
            let described = &document["paths"][route.path.replace("*}", "}")]
                [route.verb.as_str().to_lowercase()];
            assert_eq!(described["summary"], route.summary);
            let anyone = route.policy.access == Access::Anyone;
            assert_eq!(described["x-ikada-roles"].as_array().unwrap().is_empty(), anyone);
        }
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"").skip(1) {
            let target = reference.split('"').next().unwrap().trim_start_matches('#');
            assert!(document.pointer(target).is_some(), "{target}");
        }
        assert_eq!(document["components"]["schemas"]["NewTask"]["additionalProperties"], false);
        let body = &document["paths"]["/v1/tasks"]["post"]["requestBody"];
        let forms = &body["content"]["application/json"]["schema"]["oneOf"];
        assert_eq!(forms.as_array().map(Vec::len), Some(2));
    }
}
