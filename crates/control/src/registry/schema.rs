//! OpenAPI schemas of all kinds, generated from the engine's tables so that tools explain and check what admission
//! accepts. It describes only; it validates nothing.

use std::collections::{HashMap, VecDeque};

use octoflow_engine::shape::{Field, Shape, Support};
use serde_json::{Map, Value, json};

use super::{Kind, kinds};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const OWNER: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference";

/// Returns the name of a kind's schema.
pub fn schema_name(kind: &Kind) -> String {
    format!("{}{}", kind.schema_prefix, kind.name)
}

/// Returns the schemas of all kinds of a group and of everything they refer to, by name. References have the form of
/// OpenAPI 3.
pub fn schemas(group: &str) -> Map<String, Value> {
    let mut writer = SchemaWriter { prefix: schema_prefix(group), ..SchemaWriter::default() };
    for kind in kinds::all().filter(|kind| kind.group == group) {
        let mut schema = match kind.shape {
            Some(shape) => writer.object(shape, kind.name, true),
            None => view_schema(),
        };
        if let Some(fields) = schema["properties"].as_object_mut() {
            let about = "Its name, labels and what else the server knows of it.";
            fields.insert("metadata".to_owned(), referred(META, about));
        }
        let article = if kind.name.starts_with(['A', 'E', 'I', 'O', 'U']) { "An" } else { "A" };
        schema["description"] = json!(format!("{article} {}.", kind.name));
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": kind.group, "version": kind.version, "kind": kind.name}]);
        writer.done.insert(schema_name(kind), schema);
    }
    while let Some((name, shape)) = writer.waiting.pop_front() {
        let schema = writer.object(shape, &name, false);
        writer.done.insert(name, schema);
    }
    writer.done.insert(META.to_owned(), metadata());
    writer.done.insert(OWNER.to_owned(), owner());
    writer.done
}

/// Returns the common prefix of the schema names of a group.
fn schema_prefix(group: &str) -> &'static str {
    kinds::all().find(|kind| kind.group == group).map_or("", |kind| kind.schema_prefix)
}

/// Generates schemas. Each object type is written once and referred to by name, so that recursive types terminate.
#[derive(Default)]
struct SchemaWriter {
    prefix: &'static str,
    names: HashMap<*const Shape, String>,
    waiting: VecDeque<(String, &'static Shape)>,
    done: Map<String, Value>,
}

impl SchemaWriter {
    fn object(&mut self, shape: &'static Shape, owner: &str, root: bool) -> Value {
        let mut properties = Map::new();
        for field in shape.fields().filter(|field| field.support != Support::Refused) {
            let schema = match field.support {
                // Kinds share their metadata, which has a schema of its own.
                _ if root && field.name == "metadata" => continue,
                Support::Yes => self.value(field.shape, field.name, owner),
                Support::Ignored(_) | Support::Refused if field.name == "status" => any_object(),
                Support::Ignored(_) | Support::Refused => json!({}),
            };
            properties.insert(field.name.to_owned(), described(schema, field));
        }
        json!({"type": "object", "properties": properties})
    }

    fn value(&mut self, shape: &'static Shape, name: &str, owner: &str) -> Value {
        match shape {
            Shape::Object(_) if shape.fields().next().is_none() => json!({"type": "object"}),
            Shape::Object(_) => {
                let name = self.definition(shape, name, owner);
                json!({"$ref": format!("#/components/schemas/{name}")})
            }
            Shape::List(inner) => json!({"type": "array", "items": self.value(inner, singular(name), owner)}),
            Shape::Map(inner) => {
                json!({"type": "object", "additionalProperties": self.value(inner, singular(name), owner)})
            }
            Shape::Text => json!({"type": "string"}),
            Shape::Word(words) => json!({"type": "string", "enum": words}),
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Int { least, most } => {
                let small = *least >= i64::from(i32::MIN) && *most <= i64::from(i32::MAX);
                json!({"type": "integer", "format": if small { "int32" } else { "int64" }})
            }
            Shape::IntOrText => {
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
            }
            Shape::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            Shape::Scalar | Shape::Like { .. } => {
                json!({"oneOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]})
            }
            Shape::Either(..) | Shape::Any => json!({}),
        }
    }

    /// Returns the name of an object's schema: that of the field it was first seen at, longer where it is taken.
    fn definition(&mut self, shape: &'static Shape, name: &str, owner: &str) -> String {
        if let Some(known) = self.names.get(&std::ptr::from_ref(shape)) {
            return known.clone();
        }
        let owner = owner.strip_prefix(self.prefix).unwrap_or(owner);
        let candidates = [format!("{}{}", self.prefix, camel(name)), format!("{}{owner}{}", self.prefix, camel(name))];
        let numbered = (2..).map(|number| format!("{}{number}", candidates[1]));
        let kinds: Vec<String> = kinds::all().map(schema_name).collect();
        let taken = |candidate: &String| kinds.contains(candidate) || self.names.values().any(|name| name == candidate);
        let chosen = candidates.iter().cloned().chain(numbered).find(|candidate| !taken(candidate));
        let chosen = chosen.expect("numbers have no end");
        self.names.insert(std::ptr::from_ref(shape), chosen.clone());
        self.waiting.push_back((chosen.clone(), shape));
        chosen
    }
}

fn described(schema: Value, field: &Field) -> Value {
    let about = match field.support {
        Support::Ignored(why) => format!("{}. Accepted but without effect: {why}.", field.about),
        Support::Yes | Support::Refused => format!("{}.", field.about),
    };
    match schema["$ref"].as_str() {
        // A reference may have no siblings.
        Some(_) => json!({"allOf": [schema], "description": about}),
        None => {
            let mut schema = schema;
            schema["description"] = json!(about);
            schema
        }
    }
}

fn referred(name: &str, about: &str) -> Value {
    json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}], "description": about})
}

/// Schema of an object with any fields, set by the server.
fn any_object() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Schema of a kind that is read-only.
fn view_schema() -> Value {
    let mut spec = any_object();
    spec["description"] = json!("What it is made of.");
    let mut status = any_object();
    status["description"] = json!("What became of it.");
    json!({
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string", "description": "The group and its version."},
            "kind": {"type": "string", "description": "What kind of object this is."},
            "spec": spec,
            "status": status,
        },
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// Schema of the metadata; descriptions and types are those of the Kubernetes API.
fn metadata() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let time = |about: &str| json!({"type": "string", "format": "date-time", "description": about});
    let number = |about: &str| json!({"type": "integer", "format": "int64", "description": about});
    let texts =
        |about: &str| json!({"type": "object", "additionalProperties": {"type": "string"}, "description": about});
    json!({
        "description": "The name of an object, and what else the server knows of it.",
        "type": "object",
        "properties": {
            "name": text("The name, unique in its namespace."),
            "generateName": text("The beginning of a name that is made unique when the object is created."),
            "namespace": text("The namespace; `default` when left out."),
            "uid": text("An id that is never used again. The server sets it."),
            "labels": texts("Short texts to select objects by."),
            "annotations": texts("Texts for tools and people."),
            "finalizers": {
                "type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-list-type": "set", "description": "Who must agree before it is deleted.",
            },
            "ownerReferences": {
                "type": "array", "items": {"$ref": format!("#/components/schemas/{OWNER}")},
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid",
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
                "description": "The objects it belongs to; it is deleted with the last of them.",
            },
            "creationTimestamp": time("When it was created. The server sets it."),
            "deletionTimestamp": time("When its deletion was asked for. The server sets it."),
            "deletionGracePeriodSeconds": number("How long its deletion may take. The server sets it."),
            "generation": number("How often its specification changed. The server sets it."),
            "managedFields": {
                "type": "array", "items": {"type": "object"}, "description": "Who wrote which field. The server sets it.",
            },
            "resourceVersion": text("The revision it was last changed in. The server sets it."),
            "selfLink": text("Its address; not used any more."),
        },
    })
}

fn owner() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let flag = |about: &str| json!({"type": "boolean", "description": about});
    json!({
        "description": "An object that another one belongs to.",
        "type": "object",
        "required": ["apiVersion", "kind", "name", "uid"],
        "properties": {
            "apiVersion": text("The group and version of the owner."),
            "kind": text("The kind of the owner."),
            "name": text("The name of the owner."),
            "uid": text("The id of the owner."),
            "controller": flag("Whether the owner manages it; one owner may."),
            "blockOwnerDeletion": flag("Whether the owner waits for it when it is deleted in the foreground."),
        },
    })
}

/// Returns the name of one entry of a list.
fn singular(name: &str) -> &str {
    name.strip_suffix('s').filter(|rest| !rest.is_empty() && !rest.ends_with('s')).unwrap_or(name)
}

fn camel(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        for group in ["", "argoproj.io", "octopus.openi.pcl.cn", "scheduling.incubator.k8s.io"] {
            let schemas = schemas(group);
            let text = Value::Object(schemas.clone()).to_string();
            for reference in text.split("#/components/schemas/").skip(1) {
                let name = reference.split('"').next().unwrap();
                assert!(schemas.contains_key(name), "{name}");
            }
            for kind in kinds::all().filter(|kind| kind.group == group) {
                let schema = &schemas[&schema_name(kind)];
                assert!(schema["properties"]["metadata"]["allOf"].is_array(), "{schema}");
            }
        }
    }
}
