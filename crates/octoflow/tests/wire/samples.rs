//! One small object of every kind that users can create, made from the table of kinds: a new kind without one fails the
//! tests that need them. Shared by the tests of the server and of the program.

use octoflow_control::registry::{Kind, kinds};
use serde_json::{Value, json};

/// Kinds that nobody creates, with the reason.
const NOT_MADE: &[(&str, &str)] = &[
    ("Service", "only runs bring some along"),
    ("Command", "it is carried out and not kept"),
    ("Namespace", "it is there as soon as something is in it"),
    ("Pod", "a view of a run"),
    ("Event", "a view of a run"),
    ("Node", "a view of the machine"),
];

/// An object of every kind that can be created, with its kind. `metadata` is that of all of them; `mark` is a text in
/// each.
pub(crate) fn samples(metadata: &Value, mark: &str) -> Vec<(&'static Kind, Value)> {
    let mut all = Vec::new();
    for kind in kinds::all().filter(|kind| kind.alternate_of.is_none()) {
        if NOT_MADE.iter().any(|(name, _)| *name == kind.name) {
            continue;
        }
        let rest = rest(kind, mark).unwrap_or_else(|| panic!("write a sample of {} {}", kind.group, kind.name));
        let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.name, "metadata": metadata});
        object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        if !kind.namespaced {
            object["metadata"].as_object_mut().unwrap().remove("namespace");
        }
        all.push((kind, object));
    }
    all
}

/// Path of the objects of a kind in a namespace.
pub(crate) fn path(kind: &Kind, namespace: &str) -> String {
    let group = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    let namespace = if kind.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
    format!("{group}/{}{namespace}/{}", kind.version, kind.plural)
}

fn rest(kind: &Kind, mark: &str) -> Option<Value> {
    let workflow = json!({"entrypoint": "main", "templates": [{"name": "main", "suspend": {}}]});
    let pod = json!({"spec": {"restartPolicy": "Never",
        "containers": [{"name": "main", "image": "busybox", "command": ["echo", mark]}]}});
    let tasks = json!({"tasks": [{"name": "main", "replicas": 1, "template": pod}]});
    Some(match (kind.group, kind.name) {
        ("argoproj.io", "Workflow" | "WorkflowTemplate" | "ClusterWorkflowTemplate") => json!({"spec": workflow}),
        ("argoproj.io", "CronWorkflow") => json!({"spec": {"schedules": ["0 0 1 1 *"], "workflowSpec": workflow}}),
        ("argoproj.io", "WorkflowEventBinding") => json!({"spec":
            {"event": {"selector": "true"}, "submit": {"workflowTemplateRef": {"name": "thing"}}}}),
        ("", "ConfigMap") => json!({"data": {"limit": "3", "k": mark}}),
        ("", "Secret") => json!({"stringData": {"k": mark}}),
        ("", "PersistentVolumeClaim") => json!({"spec":
            {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}),
        ("octopus.openi.pcl.cn", "TaskSet") => json!({"spec": {"roles": [{
            "name": "main", "replicas": 1, "completionPolicy": {"maxFailed": 1, "minSucceeded": 1}, "template": pod}]}}),
        ("batch.volcano.sh", "Job") | ("flow.volcano.sh", "JobTemplate") => json!({"spec": tasks}),
        // It waits for a template that nobody makes.
        ("flow.volcano.sh", "JobFlow") => json!({"spec": {"flows": [{"name": "absent"}]}}),
        ("batch", "Job") => json!({"spec": {"suspend": true, "template": pod}}),
        ("batch", "CronJob") => json!({"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": pod}}}}),
        ("scheduling.volcano.sh", "Queue") => json!({"spec": {"weight": 1}}),
        ("scheduling.volcano.sh", "PodGroup") => json!({"spec": {"minMember": 1}}),
        ("scheduling.k8s.io", "PriorityClass") => json!({"value": 1000}),
        // It fails: nobody translates it.
        ("octoflow.io", "SubmittedJob") => {
            json!({"spec": {"userID": "u", "jobName": mark, "jobKind": "Thing", "job": {"kind": "Thing"}}})
        }
        ("octoflow.io", "Feature") => {
            json!({"spec": {"author": "a", "description": mark, "jobSelector": {"expression": "*"}}})
        }
        _ => return None,
    })
}
