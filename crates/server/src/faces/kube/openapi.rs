//! The OpenAPI documents for kubectl, versions 2 and 3: schemas of all kinds and the paths that tools look up.
//! Generated once.

use std::{collections::BTreeMap, sync::OnceLock};

use axum::http::StatusCode;
use octoflow_control::registry::{Kind, kinds, schema_name, schemas};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{accept, discovery::group_versions, proto, root, verbs};
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::{self, operation::Content},
    route::{self, Face, Need, Table},
};

const V2_PROTO: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// Media type as clients ask for it; some cannot parse it in an answer, where its @ makes it invalid.
const V2_PROTO_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

pub(super) fn routes(table: &mut Table) {
    let object = || Content::json(json!({"type": "object"}));
    table
        .get("/openapi/v2", Need::Token, second)
        .about("The kinds in OpenAPI version 2, for kubectl")
        .gives(object().or(V2_PROTO, None));
    table.get("/openapi/v3", Need::Token, index).about("Where the documents of the groups are").gives(object());
    for (group, version) in group_versions() {
        let path = format!("/openapi/v3/{}", place(group, version));
        table
            .get(path, Need::Token, move |call| third(call, group, version))
            .about("The kinds of one group in OpenAPI version 3, for kubectl")
            .gives(object());
    }
}

/// Returns `api/v1`, or `apis/GROUP/VERSION`.
fn place(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

async fn second(call: Call) -> Result<Answer, Fault> {
    static JSON: OnceLock<Vec<u8>> = OnceLock::new();
    static PROTO: OnceLock<Vec<u8>> = OnceLock::new();
    for media in accept::accepted(&call) {
        if media.json() {
            let bytes = JSON.get_or_init(|| v2().to_string().into_bytes());
            return Ok(answer::bytes_as(StatusCode::OK, "application/json", bytes.clone()));
        }
        if media.is(V2_PROTO) || media.is(V2_PROTO_ASKED) {
            let bytes = PROTO.get_or_init(|| proto::document(&v2()));
            return Ok(answer::bytes_as(StatusCode::OK, V2_PROTO, bytes.clone()));
        }
    }
    Err(accept::not_acceptable("the document is written as application/json or as protobuf of OpenAPI version 2"))
}

async fn index(_: Call) -> Result<Answer, Fault> {
    let mut paths = Map::new();
    for (group, version) in group_versions() {
        let place = place(group, version);
        let hash = Sha256::digest(v3(group, version));
        let hash: String = hash.iter().take(16).map(|byte| format!("{byte:02X}")).collect();
        let address = json!({"serverRelativeURL": format!("/openapi/v3/{place}?hash={hash}")});
        paths.insert(place, address);
    }
    Ok(answer::json(&json!({"paths": paths})))
}

async fn third(call: Call, group: &'static str, version: &'static str) -> Result<Answer, Fault> {
    if !accept::accepted(&call).iter().any(accept::MediaType::json) {
        return Err(accept::not_acceptable("the document is written as application/json"));
    }
    Ok(answer::bytes_as(StatusCode::OK, "application/json", v3(group, version).to_vec()))
}

fn v3(group: &'static str, version: &'static str) -> &'static [u8] {
    static ALL: OnceLock<BTreeMap<(&str, &str), Vec<u8>>> = OnceLock::new();
    let all = ALL.get_or_init(|| group_versions().into_iter().map(|of| (of, document(of.0, of.1))).collect());
    all.get(&(group, version)).map_or(&[], Vec::as_slice)
}

fn document(group: &str, version: &str) -> Vec<u8> {
    let root = format!("/{}/", place(group, version));
    let document = json!({
        "openapi": "3.0.0", "info": info(),
        "paths": openapi::paths(&route::all(), |route| route.path.starts_with(&root)),
        "components": openapi::components(schemas(group), &[Face::Kube]),
    });
    document.to_string().into_bytes()
}

fn v2() -> Value {
    let mut definitions = Map::new();
    for (group, _) in group_versions() {
        definitions.extend(schemas(group).into_iter().map(|(name, schema)| (name, older(schema))));
    }
    json!({"swagger": "2.0", "info": info(), "paths": paths(), "definitions": definitions})
}

fn info() -> Value {
    json!({"title": "Octoflow", "version": format!("v{}", env!("CARGO_PKG_VERSION"))})
}

/// Converts a schema of version 3 to version 2, which has no alternatives.
fn older(schema: Value) -> Value {
    match schema {
        Value::Object(mut fields) => {
            if let Some(alternatives) = fields.remove("oneOf") {
                let several = alternatives.as_array().is_some_and(|all| all.iter().any(|one| one["type"] == "boolean"));
                if !several {
                    fields.insert("type".to_owned(), json!("string"));
                }
            }
            if let Some(Value::Array(whole)) = fields.remove("allOf")
                && let Some(Value::Object(reference)) = whole.into_iter().next()
            {
                fields.extend(reference);
            }
            let changed = fields.into_iter().map(|(name, value)| match value {
                Value::String(text) if name == "$ref" => {
                    (name, json!(text.replace("#/components/schemas/", "#/definitions/")))
                }
                value => (name, older(value)),
            });
            Value::Object(changed.collect())
        }
        Value::Array(items) => items.into_iter().map(older).collect(),
        plain => plain,
    }
}

/// Paths with the options that each verb of a kind takes, which tools look up before they send one.
fn paths() -> Map<String, Value> {
    let mut paths = Map::new();
    for kind in kinds::all() {
        let collection = if kind.namespaced {
            format!("{}/namespaces/{{namespace}}/{}", root(kind), kind.plural)
        } else {
            format!("{}/{}", root(kind), kind.plural)
        };
        let can = |verb| verbs(kind).contains(&verb);
        let operation = |action: &str, verb: &str, options: &[&str]| {
            let named = !matches!(verb, "list" | "create");
            let space = kind.namespaced.then(|| path_parameter("namespace"));
            let name = named.then(|| path_parameter("name"));
            let body = matches!(verb, "create" | "replace" | "patch").then(|| body_parameter(kind, verb));
            let parameters = space.into_iter().chain(name).chain(body);
            let parameters = parameters.chain(options.iter().map(|name| query_parameter(name)));
            json!({
                "description": format!("{verb} of {}", kind.plural), "operationId": format!("{verb}{}", kind.name),
                "parameters": parameters.collect::<Vec<_>>(),
                "responses": {"200": {"description": "OK"}},
                "x-kubernetes-action": action,
                "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.name},
            })
        };
        const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
        let mut many = Map::new();
        let mut one = Map::new();
        many.insert(
            "get".to_owned(),
            operation("list", "list", &["labelSelector", "fieldSelector", "limit", "continue"]),
        );
        one.insert("get".to_owned(), operation("get", "read", &[]));
        if can("create") {
            many.insert("post".to_owned(), operation("post", "create", WRITE));
        }
        if can("update") {
            one.insert("put".to_owned(), operation("put", "replace", WRITE));
        }
        if can("patch") {
            one.insert("patch".to_owned(), operation("patch", "patch", &[WRITE, &["force"]].concat()));
        }
        if can("delete") {
            one.insert("delete".to_owned(), operation("delete", "delete", &["dryRun", "propagationPolicy"]));
        }
        paths.insert(format!("{collection}/{{name}}"), Value::Object(one));
        paths.insert(collection, Value::Object(many));
    }
    paths
}

fn query_parameter(name: &str) -> Value {
    json!({"name": name, "in": "query", "type": kind_of(name), "uniqueItems": true})
}

fn path_parameter(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "type": "string"})
}

fn body_parameter(kind: &Kind, verb: &str) -> Value {
    let whole = json!({"$ref": format!("#/definitions/{}", schema_name(kind))});
    let schema = if verb == "patch" { json!({"type": "object"}) } else { whole };
    json!({"name": "body", "in": "body", "required": true, "schema": schema})
}

fn kind_of(name: &str) -> &'static str {
    match name {
        "limit" => "integer",
        "force" => "boolean",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_document_has_no_word_of_the_newer_one() {
        let document = v2();
        let text = document.to_string();
        assert!(!text.contains("oneOf") && !text.contains("allOf") && !text.contains("#/components"), "{text}");
        for kind in kinds::all() {
            let schema = &document["definitions"][&schema_name(kind)];
            assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], kind.name);
        }
    }
}
