//! Renders the tasks of a run as Kubernetes pods, from the run's object; pods are never stored. Those that `podGC`
//! removed are left out; their logs stay with the run.

use std::collections::BTreeMap;

use octoflow_model::Time;
use serde_json::{Map, Value, json};

use super::pod_node::{self, PodNode};
use crate::{
    dialects::argo::{
        DIALECT,
        lifetime::{pod_hidden_at, pod_is_shown},
    },
    run::view::{MAIN, Pods, owner, uid},
};

/// Returns the pods of a run that exist at this time, by name.
pub(super) fn all(run: &Value, now: Time) -> Pods {
    let mut containers: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for node in run["status"]["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values()) {
        if node["type"] == "Container" {
            containers.entry(node["boundaryID"].as_str().unwrap_or_default()).or_default().push(node);
        }
    }
    let mut pods = Pods::default();
    for pod in pod_node::of(run) {
        let labels: BTreeMap<String, String> = labels(run, pod, template(run, pod))
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())))
            .collect();
        if !pod_is_shown(run, pod.node, &labels, now) {
            continue;
        }
        let hidden_at = pod_hidden_at(run, pod.node, &labels);
        pods.until = pods.until.into_iter().chain(hidden_at).min();
        let set = containers.get(pod.text("id")).map_or(&[][..], Vec::as_slice);
        pods.items.push((pod.name(), render(run, pod, set)));
    }
    pods
}

/// Renders only the name and labels of a pod, for selectors.
pub(super) fn labelled(run: &Value, pod: PodNode<'_>) -> Value {
    json!({"metadata": {"name": pod.name(), "labels": labels(run, pod, template(run, pod))}})
}

fn render(run: &Value, pod: PodNode<'_>, set: &[&Value]) -> Value {
    let metadata = &run["metadata"];
    let template = template(run, pod);
    let name = pod.name();
    let mut annotations: Map<String, Value> =
        template["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    annotations.insert("workflows.argoproj.io/node-id".to_owned(), json!(pod.text("id")));
    annotations.insert("workflows.argoproj.io/node-name".to_owned(), json!(pod.text("name")));
    annotations.insert("kubectl.kubernetes.io/default-container".to_owned(), json!(MAIN));
    let parts: Vec<Part<'_>> = match set {
        [] => vec![Part { name: MAIN, given: own(template), node: pod.node }],
        set => {
            let listed = template["containerSet"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
            set.iter()
                .map(|node| {
                    let name = node["displayName"].as_str().unwrap_or_default();
                    let given = listed.iter().find(|one| one["name"] == name).unwrap_or(&Value::Null);
                    Part { name, given, node }
                })
                .collect()
        }
    };
    if !parts.iter().any(|part| part.name == MAIN) {
        let first = parts.first().map_or(MAIN, |part| part.name);
        annotations.insert("kubectl.kubernetes.io/default-container".to_owned(), json!(first));
    }
    let sidecars = template["sidecars"].as_array().map_or(&[][..], Vec::as_slice);
    let spec = |name: &str, given: &Value| {
        let mut container = json!({"name": name});
        for field in ["image", "command", "args", "workingDir", "resources", "imagePullPolicy"] {
            if !given[field].is_null() {
                container[field] = filled(&given[field], pod.node);
            }
        }
        container
    };
    let mut containers: Vec<Value> = parts.iter().map(|part| spec(part.name, part.given)).collect();
    containers.extend(sidecars.iter().map(|one| spec(one["name"].as_str().unwrap_or_default(), one)));
    let statuses: Vec<Value> = parts.iter().map(Part::status).collect();
    let mut status = json!({
        "phase": phase(pod.text("phase")),
        "startTime": pod.node["startedAt"],
        "conditions": conditions(pod),
        "containerStatuses": statuses,
        "qosClass": "BestEffort",
    });
    for (field, from) in [("message", "message"), ("podIP", "podIP")] {
        if !pod.text(from).is_empty() {
            status[field] = pod.node[from].clone();
        }
    }
    if !pod.text("podIP").is_empty() {
        status["podIPs"] = json!([{"ip": pod.node["podIP"]}]);
    }
    // Whoever waits for the end of a preempted pod must not mistake its next attempt for it.
    let attempt = match pod.node["preempted"]["count"].as_u64() {
        None | Some(0) => "pod".to_owned(),
        Some(count) => format!("pod-{count}"),
    };
    let mut spec = json!({"containers": containers, "restartPolicy": "Never"});
    if !pod.text("hostNodeName").is_empty() {
        spec["nodeName"] = pod.node["hostNodeName"].clone();
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "uid": uid(&[metadata["uid"].as_str().unwrap_or_default(), pod.text("id"), &attempt]),
            "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": pod.node["startedAt"],
            "labels": labels(run, pod, template),
            "annotations": annotations,
            "ownerReferences": [owner(run)],
        },
        "spec": spec,
        "status": status,
    })
}

/// A container: its spec, and the node with its status.
struct Part<'a> {
    name: &'a str,
    given: &'a Value,
    node: &'a Value,
}

impl Part<'_> {
    fn status(&self) -> Value {
        let text = |field: &str| self.node[field].as_str().unwrap_or_default();
        let phase = text("phase");
        let code = self.node["outputs"]["exitCode"].as_str().and_then(|code| code.parse::<i64>().ok());
        let state = match phase {
            "Pending" | "" => json!({"waiting": {"reason": "ContainerCreating", "message": text("message")}}),
            "Running" => json!({"running": {"startedAt": self.node["startedAt"]}}),
            phase => {
                let good = matches!(phase, "Succeeded" | "Skipped" | "Omitted");
                let code = code.unwrap_or(i64::from(!good));
                let reason = match code {
                    0 => "Completed",
                    137 if text("message").contains("OOMKilled") => "OOMKilled",
                    _ => "Error",
                };
                json!({"terminated": {
                    "exitCode": code, "reason": reason,
                    "message": text("message"), "startedAt": self.node["startedAt"], "finishedAt": self.node["finishedAt"],
                }})
            }
        };
        json!({
            "name": self.name, "image": self.given["image"].as_str().unwrap_or_default(), "imageID": "",
            "ready": phase == "Running", "started": phase == "Running", "restartCount": 0, "state": state,
        })
    }
}

fn labels(run: &Value, pod: PodNode<'_>, template: &Value) -> Map<String, Value> {
    let mut labels: Map<String, Value> = template["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    labels.insert(DIALECT.pod_label.to_owned(), run["metadata"]["name"].clone());
    labels.insert("workflows.argoproj.io/completed".to_owned(), json!(pod.over().to_string()));
    labels
}

/// Finds the template of a pod, in the run's own spec or among the stored templates.
fn template<'a>(run: &'a Value, pod: PodNode<'_>) -> &'a Value {
    let name = pod.template();
    let named = |list: &'a Value| list.as_array().into_iter().flatten().find(|template| template["name"] == name);
    if pod.node["templateRef"].is_null()
        && let Some(own) = named(&run["spec"]["templates"])
            .or_else(|| named(&run["status"]["storedWorkflowTemplateSpec"]["templates"]))
    {
        return own;
    }
    let stored = run["status"]["storedTemplates"].as_object();
    let ends = |key: &str| key.rsplit_once('/').is_some_and(|(_, last)| last == name);
    let of = pod.node["templateRef"]["name"].as_str();
    let mut found = stored.into_iter().flatten().filter(|(key, _)| ends(key));
    let found = found.find(|(key, _)| of.is_none_or(|of| key.split('/').nth(1) == Some(of)));
    found.map_or(&Value::Null, |(_, template)| template)
}

/// Returns the spec of a template's own container.
fn own(template: &Value) -> &Value {
    ["container", "script"].iter().map(|field| &template[*field]).find(|part| !part.is_null()).unwrap_or(&Value::Null)
}

/// Fills the node's own inputs into a value; other variables stay as written.
fn filled(value: &Value, node: &Value) -> Value {
    match value {
        Value::String(text) if text.contains("{{") => {
            let inputs = node["inputs"]["parameters"].as_array().into_iter().flatten();
            let mut text = text.clone();
            for input in inputs {
                let (name, value) =
                    (input["name"].as_str().unwrap_or_default(), input["value"].as_str().unwrap_or_default());
                text = text.replace(&format!("{{{{inputs.parameters.{name}}}}}"), value);
            }
            Value::String(text)
        }
        Value::Array(items) => items.iter().map(|item| filled(item, node)).collect(),
        Value::Object(fields) => fields.iter().map(|(key, item)| (key.clone(), filled(item, node))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn phase(of_node: &str) -> &'static str {
    match of_node {
        "Running" => "Running",
        "Succeeded" | "Skipped" | "Omitted" => "Succeeded",
        "Failed" | "Error" => "Failed",
        _ => "Pending",
    }
}

fn conditions(pod: PodNode<'_>) -> Value {
    let said = |holds: bool| if holds { "True" } else { "False" };
    let running = pod.text("phase") == "Running";
    let began = pod.text("phase") != "Pending";
    json!([
        {"type": "PodScheduled", "status": said(began)},
        {"type": "Initialized", "status": said(began)},
        {"type": "ContainersReady", "status": said(running)},
        {"type": "Ready", "status": said(running)},
    ])
}
