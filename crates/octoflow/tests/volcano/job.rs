//! Jobs of few words, and what their objects say.

use serde_json::{Value, json};

use crate::stage::Stage;

pub(crate) fn job(name: &str, tasks: Value, more: Value) -> Value {
    let mut job = json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name},
                         "spec": {"tasks": tasks}});
    job["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    job
}

/// A task whose pods run a shell command.
pub(crate) fn task(name: &str, replicas: u32, command: &str, more: Value) -> Value {
    let mut task = json!({"name": name, "replicas": replicas, "template": {"spec": {"containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", command]}]}}});
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

/// Mounts a directory of the test at `/out`, for what must outlive a pod.
pub(crate) fn shared(dir: &str, mut task: Value) -> Value {
    let spec = &mut task["template"]["spec"];
    spec["volumes"] = json!([{"name": "out", "hostPath": {"path": dir}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "out", "mountPath": "/out"}]);
    task
}

impl Stage {
    /// Writes a job; returns the path of its file.
    pub(crate) fn job(&self, name: &str, tasks: Value, more: Value) -> String {
        self.file(&format!("{name}.yaml"), job(name, tasks, more).to_string())
    }

    pub(crate) fn here(&self) -> String {
        self.path("").display().to_string()
    }
}

/// The phases that a job had, in their order.
pub(crate) fn phases(object: &Value) -> Vec<&str> {
    object["status"]["conditions"].as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect()
}

pub(crate) fn phase(object: &Value) -> &str {
    object["status"]["state"]["phase"].as_str().unwrap()
}

/// What the status says of a pod.
pub(crate) fn pod<'o>(object: &'o Value, name: &str) -> &'o Value {
    let pods = object["status"]["pods"].as_array().unwrap();
    pods.iter().find(|pod| pod["name"] == name).unwrap_or_else(|| panic!("there is no pod {name}: {object:#}"))
}
