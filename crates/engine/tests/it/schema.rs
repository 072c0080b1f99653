//! The schemas say what the check says: for every manifest of the corpus, and for each of them with every value in turn
//! replaced by something else. Only the keywords our schemas use are understood here; any other fails the test.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::print_stdout, reason = "a skipped corpus is told")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use octoflow_engine::{
    kinds::{Kind, loadable},
    shape::check,
};
use octoflow_manifest::{Limits, read};
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::text::yaml;

struct Schema {
    root: Value,
    patterns: Vec<(String, Regex)>,
}

impl Schema {
    fn of(kind: &Kind) -> Self {
        let mut schema = Self { root: kind.schema().unwrap(), patterns: Vec::new() };
        let mut found = Vec::new();
        collect(&schema.root, &mut found);
        found.sort();
        found.dedup();
        schema.patterns = found.into_iter().map(|text| (text.clone(), Regex::new(&text).unwrap())).collect();
        schema
    }

    fn accepts(&self, value: &Value) -> bool {
        self.holds(&self.root, value)
    }

    fn holds(&self, schema: &Value, value: &Value) -> bool {
        let schema = schema.as_object().expect("a schema is an object");
        schema.iter().all(|(keyword, says)| match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let pointer = says.as_str().and_then(|text| text.strip_prefix('#')).expect("references stay inside");
                self.holds(self.root.pointer(pointer).unwrap_or_else(|| panic!("{says} leads nowhere")), value)
            }
            "type" => match says {
                Value::String(name) => is(value, name),
                names => names.as_array().unwrap().iter().any(|name| is(value, name.as_str().unwrap())),
            },
            "const" => says == value,
            "enum" => says.as_array().unwrap().contains(value),
            "minimum" => value.as_i64().is_none_or(|number| number >= says.as_i64().unwrap()),
            "maximum" => value.as_i64().is_none_or(|number| number <= says.as_i64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| self.pattern(says).is_match(text)),
            "items" => value.as_array().is_none_or(|items| items.iter().all(|item| self.holds(says, item))),
            "required" => value.as_object().is_none_or(|object| {
                says.as_array().unwrap().iter().all(|name| object.contains_key(name.as_str().unwrap()))
            }),
            "properties" => value.as_object().is_none_or(|object| {
                object.iter().all(|(key, value)| says.get(key).is_none_or(|schema| self.holds(schema, value)))
            }),
            "additionalProperties" => value.as_object().is_none_or(|object| {
                let known = schema.get("properties");
                let mut more = object.iter().filter(|(key, _)| known.is_none_or(|known| known.get(key).is_none()));
                match says {
                    Value::Bool(allowed) => *allowed || more.next().is_none(),
                    schema => more.all(|(_, value)| self.holds(schema, value)),
                }
            }),
            other => panic!("the keyword {other} is not understood"),
        })
    }

    fn pattern(&self, text: &Value) -> &Regex {
        let text = text.as_str().unwrap();
        &self.patterns.iter().find(|(known, _)| known == text).expect("all were collected").1
    }
}

fn collect(schema: &Value, patterns: &mut Vec<String>) {
    match schema {
        Value::Object(object) => {
            patterns.extend(object.get("pattern").and_then(Value::as_str).map(str::to_owned));
            object.values().for_each(|value| collect(value, patterns));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, patterns)),
        _ => {}
    }
}

/// A number written with a point is no integer to the check, though it is one to JSON Schema when nothing follows it.
fn is(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("the type {other} is not understood"),
    }
}

fn kind(name: &str) -> &'static Kind {
    loadable().find(|kind| kind.name == name).unwrap()
}

/// Every object of a kind with a schema that the corpus holds, with its file.
fn corpus() -> Vec<(PathBuf, &'static Kind, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/argo");
    if !root.is_dir() {
        assert!(std::env::var_os("CI").is_none(), "the corpus must be there in CI: {}", root.display());
        println!("SKIPPED: no conformance corpus at {}", root.display());
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "yaml") {
                let bytes = fs::read(&path).unwrap();
                let documents = read("corpus", &bytes, &Limits::default()).unwrap_or_default();
                found.extend(documents.into_iter().filter_map(|document| {
                    let kind = loadable().find(|kind| document.value["kind"] == kind.name)?;
                    Some((path.clone(), kind, document.value))
                }));
            }
        }
    }
    assert!(found.len() > 150, "only {} objects were found", found.len());
    found
}

/// The value with each of its parts in turn replaced by each of these, and with one unknown key in each mapping.
fn changed(value: &Value) -> Vec<Value> {
    let replacements =
        [json!({"unheard": 1}), json!(1.5), json!(-1), json!([null]), json!("text"), json!(true), json!(null)];
    let mut results = Vec::new();
    let parts: Vec<String> = match value {
        Value::Object(object) => object.keys().cloned().collect(),
        Value::Array(items) => (0..items.len()).map(|index| index.to_string()).collect(),
        _ => Vec::new(),
    };
    for part in parts {
        let with = |new: Value| {
            let mut copy = value.clone();
            match &mut copy {
                Value::Object(object) => drop(object.insert(part.clone(), new)),
                Value::Array(items) => items[part.parse::<usize>().unwrap()] = new,
                _ => unreachable!("only these have parts"),
            }
            copy
        };
        let old = value.pointer(&format!("/{}", part.replace('~', "~0").replace('/', "~1"))).unwrap();
        results.extend(replacements.iter().cloned().map(with));
        results.extend(changed(old).into_iter().map(with));
    }
    if let Value::Object(object) = value {
        let mut more: Map<String, Value> = object.clone();
        more.insert("unheard".to_owned(), Value::Null);
        results.push(Value::Object(more));
    }
    results
}

/// The schema wants the right kind and version, which the check leaves to admission.
fn says_what_it_is(kind: &Kind, value: &Value) -> bool {
    value["kind"] == kind.name && value["apiVersion"] == kind.api_version()
}

#[test]
fn schemas_accept_and_refuse_what_the_check_does() {
    let schemas: Vec<(&str, Schema)> = loadable().map(|kind| (kind.name, Schema::of(kind))).collect();
    let (mut accepted, mut refused) = (0, 0);
    for (file, kind, value) in corpus() {
        let schema = &schemas.iter().find(|(name, _)| *name == kind.name).unwrap().1;
        let agree = |value: &Value| {
            let checked = check(value, kind.shape.unwrap());
            let right = checked.problems.is_empty() && says_what_it_is(kind, value);
            assert_eq!(schema.accepts(value), right, "{}: {:?}\n{value:#}", file.display(), checked.problems);
            right
        };
        if !agree(&value) {
            refused += 1;
            continue;
        }
        accepted += 1;
        // The largest files say nothing about fields that the others do not say.
        if value.to_string().len() < 1_200 {
            for value in changed(&value) {
                agree(&value);
            }
        }
    }
    println!("{accepted} accepted, {refused} refused");
    assert!(accepted == 0 || accepted > 100, "only {accepted} objects of the corpus were accepted");
}

#[test]
fn every_kind_of_value_is_described_as_it_is_checked() {
    let workflow = kind("Workflow");
    let schema = Schema::of(workflow);
    let cases = [
        ("parallelism: 1", true),
        ("parallelism: 0", false),
        ("shutdown: Stop", true),
        ("shutdown: stop", false),
        ("shutdown: null", true),
        ("priority: 2147483648", false),
        ("templates: [null]", false),
        ("templates: null", true),
        ("securityContext: {anything: [goes]}", true),
        ("affinity: {nodeAffinity: {anything: [goes]}}", false),
        ("tolerations: [{key: a, operator: Exists, effect: NoSchedule}]", true),
        ("tolerations: [{operator: Perhaps}]", false),
        ("metrics: {prometheus: []}", true),
        ("metrics: {prometheus: [{histogram: {buckets: [{}]}}]}", false),
        ("templates: [{plugin: {x: {}}}]", false),
        ("hooks: {exit: {template: a}}", true),
        ("hooks: {exit: {tmplate: a}}", false),
        ("hooks: {exit: null}", true),
        ("templates: [{steps: [[{inline: {steps: [[{inline: {container: {image: x}}}]]}}]]}]", true),
        ("templates: [{steps: [[{inline: {steps: [[{inline: {container: {imge: x}}}]]}}]]}]", false),
        ("templates: [{container: {resources: {limits: {cpu: 500m, memory: 2Gi, x: 3, y: 1e3, z: '{{a}}'}}}}]", true),
        ("templates: [{container: {resources: {limits: {cpu: much}}}}]", false),
        ("templates: [{container: {resources: {limits: {cpu: 1gi}}}}]", false),
        ("templates: [{container: {resources: {limits: {cpu: ''}}}}]", false),
        ("templates: [{outputs: {parameters: [{name: a, valueFrom: {supplied: {}}}]}}]", true),
        ("templates: [{outputs: {parameters: [{name: a, valueFrom: {supplied: {a: b}}}]}}]", false),
        ("templates: [{inputs: {artifacts: [{name: a, mode: 511}]}}]", true),
        ("templates: [{inputs: {artifacts: [{name: a, mode: 4096}]}}]", false),
    ];
    for (spec, right) in cases {
        let value = json!({"apiVersion": workflow.api_version(), "kind": "Workflow", "spec": yaml(spec)[0]});
        assert_eq!(check(&value, workflow.shape.unwrap()).problems.is_empty(), right, "the check: {spec}");
        assert_eq!(schema.accepts(&value), right, "the schema: {spec}");
    }
    assert!(!schema.accepts(&json!({"apiVersion": workflow.api_version(), "spec": {}})), "the kind is required");
}

#[test]
fn fields_are_described_and_marked() {
    let schema = kind("Workflow").schema().unwrap();
    let spec = &schema["$defs"]["spec"]["properties"];
    assert_eq!(spec["entrypoint"]["description"], "The template the run begins with.");
    assert_eq!(
        spec["securityContext"]["description"],
        "Users and rights of the pods. Accepted but without effect: tasks run as processes here, not as pods."
    );
    let template = &schema["$defs"]["template"]["properties"];
    assert_eq!(template.get("plugin"), None, "what is refused is not offered");
    assert_eq!(spec["templates"]["items"]["$ref"], "#/$defs/template");
    let definitions = schema["$defs"].as_object().unwrap();
    assert!(definitions.values().all(|body| body["additionalProperties"] == false), "every object is closed");
    let step = &schema["$defs"]["template"]["properties"]["steps"]["items"]["items"];
    assert_eq!(step["$ref"], "#/$defs/step");
    assert_eq!(
        schema["$defs"]["step"]["properties"]["inline"]["$ref"], "#/$defs/template",
        "a template is written once"
    );
}
