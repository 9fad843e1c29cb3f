//! The page `docs/reference/api.md` says what the OpenAPI document says.
//!
//! `IKADA_WRITE_REFERENCE=1 cargo test -p ikada-api --test reference` writes it anew.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

const HEAD: &str = "# All routes\n\nMade from the OpenAPI document that every node serves at `/openapi.json`. How calls, errors, consistency and batches work is told in [HTTP](../http.md).\n";

#[test]
fn the_page_of_all_routes_is_that_of_the_document() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/api.md");
    let made = render(&ikada_api::openapi::document("any"));
    if std::env::var_os("IKADA_WRITE_REFERENCE").is_some() {
        std::fs::write(&page, &made).expect("the page can be written");
    }
    let kept = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(kept == made, "IKADA_WRITE_REFERENCE=1 with this test writes the page anew");
}

fn render(document: &Value) -> String {
    let mut out = HEAD.to_owned();
    for (path, verbs) in entries(&document["paths"]) {
        for (verb, route) in entries(verbs) {
            render_route(&mut out, &verb.to_uppercase(), path, route);
        }
    }
    out.push_str("\n# Types\n");
    for (name, schema) in entries(&document["components"]["schemas"]) {
        let _ = write!(out, "\n## {name}\n\n");
        if let Some(text) = words(schema) {
            let _ = write!(out, "{text}\n\n");
        }
        render_type(&mut out, schema);
    }
    out
}

fn render_route(out: &mut String, verb: &str, path: &str, route: &Value) {
    let _ = write!(out, "\n## {verb} {path}\n\n{}\n\n", text(&route["summary"]));
    let roles: Vec<&str> =
        route["x-ikada-roles"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let who = if roles.is_empty() { "anyone".to_owned() } else { roles.join(", ") };
    let _ = writeln!(out, "- for: {who}");
    for parameter in route["parameters"].as_array().into_iter().flatten() {
        let (name, place) = (text(&parameter["name"]), text(&parameter["in"]));
        let told = text(&parameter["description"]);
        let _ =
            writeln!(out, "- {place} `{name}`{}{told}", if told.is_empty() { "" } else { ": " });
    }
    for (_, body) in entries(&route["requestBody"]["content"]) {
        let _ = writeln!(out, "- takes {}", kind(&body["schema"]));
    }
    for (_, answer) in entries(&route["responses"]["200"]["content"]) {
        let _ = writeln!(out, "- answers {}", kind(&answer["schema"]));
    }
}

fn render_type(out: &mut String, schema: &Value) {
    let needed: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields: Vec<_> = entries(&schema["properties"]).collect();
    if fields.is_empty() {
        let _ = writeln!(out, "{}", kind(schema));
        return;
    }
    out.push_str("| field | type | what |\n|---|---|---|\n");
    for (name, field) in fields {
        let must = if needed.contains(&name.as_str()) { ", needed" } else { "" };
        let told = words(field).unwrap_or_default().replace('|', "\\|");
        let _ = writeln!(out, "| `{name}` | {}{must} | {told} |", kind(field));
    }
}

/// A schema's description in one line.
fn words(schema: &Value) -> Option<String> {
    Some(schema["description"].as_str()?.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A schema's type in a few words; a link where it is a type of its own.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for many in ["anyOf", "oneOf", "allOf"] {
        if let Some(kinds) = schema[many].as_array() {
            let mut kinds: Vec<String> = kinds.iter().map(kind).collect();
            kinds.retain(|kind| kind != "null");
            kinds.dedup();
            return kinds.join(" or ");
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", text(word))).collect();
        return words.join(", ");
    }
    if let Some(word) = schema["const"].as_str() {
        return format!("`{word}`");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(&schema["items"])),
        Value::String(name) if name == "object" && schema["additionalProperties"].is_object() => {
            format!("map to {}", kind(&schema["additionalProperties"]))
        }
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names: Vec<&str> =
                names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect();
            match names.as_slice() {
                ["array"] => format!("list of {}", kind(&schema["items"])),
                names => names.join(" or "),
            }
        }
        _ => "any value".to_owned(),
    }
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
