//! The OpenAPI document of all faces, generated from the table of routes: `/openapi.json`. Each route has its
//! description beside it (`operation`); its privilege comes from the table, and errors are the same for all routes of a
//! face. Serves no other request.

pub(crate) mod operation;
pub(crate) mod shapes;

use std::sync::OnceLock;

use axum::http::StatusCode;
use octoflow_control::registry::{kinds, schemas};
use serde_json::{Map, Value, json};

use self::operation::Content;
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    route::{self, Face, Need, Route, Table},
};

pub(crate) const PATH: &str = "/openapi.json";

/// Status codes of errors with their meaning.
const FAULTS: &[(u16, &str)] = &[
    (400, "The request is wrong; the message says what and where"),
    (401, "No token, or one that is not valid"),
    (403, "The token may not do this"),
    (404, "There is nothing of that name"),
    (405, "The path does not know the method, or the kind is read-only"),
    (406, "Nothing the caller accepts can be answered"),
    (408, "The body came too slowly"),
    (409, "It exists already, or has changed meanwhile, or cannot be done in this state"),
    (410, "The revision is too old; list again"),
    (413, "The body or the answer is too large"),
    (414, "Path and query are too long"),
    (415, "A body of this media type cannot be read here"),
    (421, "The server is not known by this name"),
    (422, "The object is not valid; the causes name its fields"),
    (429, "Too many requests at once; try again later"),
    (431, "The headers are too long"),
    (500, "The server failed"),
    (503, "The server closes or cannot write; try again later"),
    (504, "The server did not get done in time"),
    (507, "The disk of the server is full"),
];

pub(crate) fn routes() -> Table {
    let mut table = Table::new(Face::Own);
    table
        .get(PATH, Need::Token, serve)
        .about("This document: every path of every face")
        .gives(Content::json(json!({"type": "object", "required": ["openapi", "info", "paths"]})));
    table
}

async fn serve(_: Call) -> Result<Answer, Fault> {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let bytes = BYTES.get_or_init(|| document(&route::all()).to_string().into_bytes());
    Ok(answer::bytes_as(StatusCode::OK, "application/json", bytes.clone()))
}

/// Generates the document of these routes.
fn document(routes: &[Route]) -> Value {
    let schemas: Map<String, Value> = kinds::all().flat_map(|kind| schemas(kind.group)).collect();
    let refused: Vec<Value> = routes
        .iter()
        .filter(|route| route.operation.refuses)
        .map(|route| json!(format!("{} {}", route.method, place(&route.path))))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Octoflow", "version": env!("CARGO_PKG_VERSION"),
            "description": "Workflows, TaskSets and submitted jobs: in the words of the Kubernetes API, of Argo Server, of the submission \
                pipeline, and our own.",
        },
        "servers": [{"url": "/"}],
        "paths": paths(routes, |_| true),
        "components": components(schemas, &[Face::Kube, Face::Argo, Face::Own, Face::Submission]),
        "x-octoflow-not-offered": refused,
    })
}

/// Components that operations of these faces refer to, besides schemas of their own.
pub(crate) fn components(mut schemas: Map<String, Value>, faces: &[Face]) -> Value {
    schemas.extend(shapes::of(faces));
    json!({
        "schemas": schemas, "responses": responses(faces),
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer", "description": "A token of the server"},
            "basic": {"type": "http", "scheme": "basic", "description": "A token as the password, of any user"},
        },
    })
}

/// Generates the path items of matching routes.
pub(crate) fn paths(routes: &[Route], wanted: impl Fn(&Route) -> bool) -> Map<String, Value> {
    let mut paths = Map::new();
    for route in routes.iter().filter(|route| !route.operation.refuses && wanted(route)) {
        let item = paths.entry(place(&route.path)).or_insert_with(|| json!({}));
        item[route.method.as_str().to_ascii_lowercase()] = described(route);
    }
    paths
}

fn described(route: &Route) -> Value {
    let operation = &route.operation;
    let parameters: Vec<Value> = parts(&route.path)
        .map(path_parameter)
        .chain(operation.query.iter().map(operation::Parameter::document))
        .collect();
    let mut answers = Map::new();
    for (status, content) in &operation.answers {
        answers.insert(status.to_string(), json!({"description": "Done", "content": content.document()}));
    }
    for (status, _) in FAULTS {
        let name = format!("{}{status}", face_name(route.face));
        answers.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{name}")}));
    }
    let mut value = json!({
        "operationId": operation_id(route), "summary": operation.summary, "tags": [face_name(route.face)],
        "parameters": parameters, "responses": answers,
        "security": if route.need == Need::Nothing { json!([]) } else { json!([{"bearer": []}, {"basic": []}]) },
        "x-octoflow-privilege": route.need.word(),
    });
    if let Some(body) = &operation.body {
        value["requestBody"] = json!({"required": body.required, "content": body.content.document()});
    }
    for (name, extension) in &operation.extensions {
        value[name] = extension.clone();
    }
    value
}

/// Error responses in the format of each face.
fn responses(faces: &[Face]) -> Map<String, Value> {
    let mut responses = Map::new();
    for face in faces.iter().copied() {
        let schema = operation::refer(shapes::fault(face));
        for (status, about) in FAULTS {
            let content = Content::json(schema.clone()).document();
            let response = json!({"description": about, "content": content});
            responses.insert(format!("{}{status}", face_name(face)), response);
        }
    }
    responses
}

/// Returns the path in OpenAPI's notation, which has no parameters of several segments.
pub(crate) fn place(path: &str) -> String {
    path.replace("{*", "{")
}

/// Returns the names of the parameters in a path.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| name.trim_start_matches('*'))
}

fn path_parameter(name: &str) -> Value {
    const NAME: &str = "^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$";
    const NAMESPACE: &str = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";
    let (schema, about) = match name {
        "namespace" => (json!({"type": "string", "pattern": NAMESPACE}), "The namespace"),
        "name" => (json!({"type": "string", "pattern": NAME}), "The name of the object; of runs also `@latest`"),
        "uid" => (json!({"type": "string", "minLength": 1}), "The uid of the workflow"),
        "id" => (json!({"type": "string", "minLength": 1}), "The id"),
        "pod" => (json!({"type": "string", "minLength": 1}), "The name of the pod"),
        "node" => (json!({"type": "string", "minLength": 1}), "The id of the node"),
        "artifact" => (json!({"type": "string", "minLength": 1}), "The name of the artifact"),
        "key" => (json!({"type": "string", "pattern": "^[-._a-zA-Z0-9]{1,253}$"}), "The key of the limit"),
        "side" => (json!({"type": "string", "enum": ["outputs", "inputs"]}), "Outputs or inputs of the node"),
        "sort" => (json!({"type": "string", "enum": ["workflows", "archived-workflows"]}), "What the id is an id of"),
        "discriminator" => (json!({"type": "string", "minLength": 1}), "A word that bindings can ask for"),
        "feature" => (json!({"type": "string", "minLength": 1}), "The name of the feature"),
        "plugin" => (json!({"type": "string", "minLength": 1}), "The key of the plugin: TYPE.FEATURE.AUTHOR"),
        "author" => (json!({"type": "string", "minLength": 1}), "The author; `all` for everybody"),
        "type" => (json!({"type": "string", "minLength": 1}), "The type of plugin"),
        "jobID" => (json!({"type": "string", "minLength": 1}), "The id of the job"),
        _ => (json!({"type": "string", "minLength": 1}), "The rest of the path"),
    };
    json!({"name": name, "in": "path", "required": true, "description": about, "schema": schema})
}

/// Returns a unique id for each operation: `getApiV1WorkflowsByNamespace`.
fn operation_id(route: &Route) -> String {
    let mut id = route.method.as_str().to_ascii_lowercase();
    for part in route.path.split('/') {
        let (start, word) = match part.strip_prefix('{') {
            Some(name) => ("By", name.trim_end_matches('}').trim_start_matches('*')),
            None => ("", part),
        };
        id.push_str(start);
        let mut upper = true;
        for letter in word.chars() {
            if letter.is_ascii_alphanumeric() {
                id.push(if upper { letter.to_ascii_uppercase() } else { letter });
            }
            upper = !letter.is_ascii_alphanumeric();
        }
    }
    if route.path.ends_with('/') {
        id.push_str("Slash");
    }
    id
}

fn face_name(face: Face) -> &'static str {
    match face {
        Face::Kube => "Kubernetes",
        Face::Argo => "Argo",
        Face::Own => "Octoflow",
        Face::Submission => "Submission",
    }
}

#[cfg(test)]
mod tests;
