//! The API as an `OpenAPI` 3.1 document. Its schemas are made from the types that are sent.

use std::sync::LazyLock;

use driftline_core::{Severity, Status};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::api::{CompareAnswer, DriftAnswer, Overview, RulesAnswer, VersionsAnswer};
use crate::context::Problem;
use crate::drift_query::{MOST_LIMIT, Sort, USUAL_LIMIT};
use crate::model::{Acceptance, Accepted, Posture, Resource, Topology};
use crate::words::STATUSES;

pub(crate) static DOCUMENT: LazyLock<Vec<u8>> =
    LazyLock::new(|| serde_json::to_vec_pretty(&document()).expect("a document of texts can be written"));

fn document() -> Value {
    let mut sent = SchemaSettings::draft2020_12().for_serialize();
    sent.definitions_path = "/components/schemas".into();
    sent.meta_schema = None;
    let mut taken = SchemaSettings::draft2020_12().for_deserialize();
    taken.definitions_path = "/components/schemas".into();
    taken.meta_schema = None;
    let (mut sent, mut taken) = (sent.into_generator(), taken.into_generator());

    let mut paths = Map::new();
    let mut get = |path: &str, say: &str, parameters: Value, schema: Value| {
        let operation = json!({
            "operationId": path.trim_start_matches("/api/v1/"),
            "summary": say,
            "parameters": parameters,
            "responses": responses("200", say, &schema, &["304", "400", "401", "404"]),
        });
        paths.insert(path.to_owned(), json!({"get": operation}));
    };
    let found = filters();
    let points = json!([point("from", false), point("to", false)]);
    let mut compared = found.clone();
    compared.extend([point("from", true), point("to", true)]);
    get("/api/v1/overview", "How things stand.", json!([]), of::<Overview<'_>>(&mut sent));
    get("/api/v1/drift", "A part of the findings.", json!(found), of::<DriftAnswer<'_>>(&mut sent));
    let named = json!([
        text("id", "The canonical id of a resource; this or `finding` is given."),
        text("finding", "The id of a finding about it.")
    ]);
    get("/api/v1/resource", "One resource, as everybody who saw it tells.", named, of::<Resource>(&mut sent));
    get("/api/v1/topology", "The graph, and what became of it.", points, of::<Topology>(&mut sent));
    get("/api/v1/posture", "Compliance by rule.", json!([]), of::<Posture>(&mut sent));
    get("/api/v1/versions", "The versions of every source.", json!([]), of::<VersionsAnswer>(&mut sent));
    get("/api/v1/rules", "What excuses what, and how often.", json!([]), of::<RulesAnswer<'_>>(&mut sent));
    get("/api/v1/compare", "Two points in time.", json!(compared), of::<CompareAnswer<'_>>(&mut sent));
    get("/api/v1/openapi.json", "This document.", json!([]), json!({"type": "object"}));

    let problem = of::<Problem>(&mut sent);
    let accepted = of::<Accepted>(&mut sent);
    let accept = json!({"post": {
        "operationId": "accept",
        "summary": "Accepts findings on top of the baseline. It writes to the store alone.",
        "requestBody": {"required": true, "content": {"application/json": {"schema": of::<Acceptance>(&mut taken)}}},
        "responses": responses("200", "What was accepted.", &accepted,
            &["400", "401", "403", "404", "409", "413", "415"]),
    }});
    paths.insert("/api/v1/accept".into(), accept);

    let mut schemas = taken.take_definitions(true);
    schemas.extend(sent.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Driftline",
            "version": "1",
            "description": "What changed in your infrastructure. Field names are a contract; fields may be added.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": crate::access::COOKIE},
            },
            "responses": {"Problem": {
                "description": "Why there is no answer, and what to do next.",
                "content": {"application/problem+json": {"schema": problem}},
            }},
        },
    })
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().into()
}

fn responses(good: &str, say: &str, schema: &Value, others: &[&str]) -> Value {
    let mut all = Map::new();
    all.insert(good.into(), json!({"description": say, "content": {"application/json": {"schema": schema}}}));
    for other in others {
        let response = match *other {
            "304" => json!({"description": "It is as the given tag says."}),
            _ => json!({"$ref": "#/components/responses/Problem"}),
        };
        all.insert((*other).to_owned(), response);
    }
    // Busy, too slow, or a mistake of ours.
    all.insert("default".into(), json!({"$ref": "#/components/responses/Problem"}));
    Value::Object(all)
}

fn text(name: &str, say: &str) -> Value {
    json!({"name": name, "in": "query", "description": say, "schema": {"type": "string"}})
}

fn point(name: &str, required: bool) -> Value {
    json!({
        "name": name, "in": "query", "required": required, "schema": {"type": "string", "minLength": 1},
        "description": "A point in time: `v3`, a time, `now`, or `baseline:NAME`.",
        "examples": {"version": {"value": "v1"}, "now": {"value": "now"}},
    })
}

/// The parameters that choose findings.
fn filters() -> Vec<Value> {
    let many = |name: &str, say: &str, items: Value| {
        json!({"name": name, "in": "query", "description": say, "style": "form", "explode": true,
            "schema": {"type": "array", "items": items, "maxItems": 100}})
    };
    let word = |name: &str, say: &str, words: Vec<&str>| json!({"name": name, "in": "query", "description": say, "schema": {"type": "string", "enum": words}});
    let cursor = |name: &str| {
        json!({"name": name, "in": "query", "description": "Take it from `next` or `previous` of an answer.",
            "schema": {"type": "string", "pattern": "^[0-9a-f]{1,64}\\.[0-9]{1,9}$"}})
    };
    vec![
        many("source", "Only of these sources.", json!({"type": "string"})),
        many("type", "Only of these types.", json!({"type": "string"})),
        text("place", "Only in this place, and everything in it."),
        many(
            "status",
            "Only with these; without it, all that are not in sync.",
            json!({"type": "string", "enum": STATUSES.map(Status::name)}),
        ),
        many("severity", "Only with these.", json!({"type": "string", "enum": Severity::ALL.map(Severity::name)})),
        text("q", "Part of an id, a type, a place, a source, a reason or the path of a change."),
        word("sort", "By what they are ordered.", Sort::ALL.iter().map(|sort| sort.name()).collect()),
        word("dir", "In which direction.", vec!["asc", "desc"]),
        cursor("after"),
        cursor("before"),
        json!({"name": "limit", "in": "query", "description": "How many at most.",
            "schema": {"type": "integer", "minimum": 1, "maximum": MOST_LIMIT, "default": USUAL_LIMIT}}),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_of_the_document_leads_somewhere() {
        fn walk(value: &Value, root: &Value, seen: &mut usize) {
            match value {
                Value::Object(members) => {
                    if let Some(Value::String(reference)) = members.get("$ref") {
                        let pointer = reference.strip_prefix('#').unwrap_or_default();
                        assert!(root.pointer(pointer).is_some(), "{reference}");
                        *seen += 1;
                    }
                    members.values().for_each(|member| walk(member, root, seen));
                }
                Value::Array(items) => items.iter().for_each(|item| walk(item, root, seen)),
                _ => {}
            }
        }
        let document = document();
        let mut seen = 0;
        walk(&document, &document, &mut seen);
        assert!(seen > 20, "{seen}");
        assert!(document.pointer("/components/schemas/Finding/properties/severity/enum").is_some());
    }
}
