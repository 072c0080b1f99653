//! What plugins and volumes of a job add to its pods, as Kubernetes shows them: variables, ports, mounts, containers that
//! run before. A projection of the manifest; what a runtime is told is built elsewhere, from the same functions.

use octoflow_model::task::{EnvValue, Labels};
use serde_json::{Value, json};

use super::text;
use crate::dialects::volcano::{
    claims::{self, VolumeSource},
    plugin::PodAdditions,
    program::Program,
};

/// What is added to the pods of one job.
pub(super) struct Additions {
    /// `None` if nothing is added, or the manifest cannot be read any more: then nothing is shown beside the template.
    program: Option<Program>,
    job: String,
    /// Volumes of every pod, each with its mount.
    volumes: Vec<(Value, Value)>,
    /// Variables that are keys of the job's ConfigMap.
    listed: Vec<String>,
}

impl Additions {
    pub(super) fn of(job: &Value) -> Self {
        let (name, uid) = (text(&job["metadata"], "name").to_owned(), text(&job["metadata"], "uid"));
        let spec = &job["spec"];
        let adds = spec["plugins"].as_object().is_some_and(|all| !all.is_empty()) || spec["volumes"].is_array();
        let program = adds.then(|| Program::compile(job).ok()).flatten();
        let mut volumes = Vec::new();
        for object in program.iter().flat_map(|program| program.plugins.mounted(&name)) {
            let source = match object.secret_mode {
                Some(mode) => json!({"secret": {"secretName": object.name, "defaultMode": mode}}),
                None => json!({"configMap": {"name": object.name}}),
            };
            volumes.push(mounted(&object.name, source, &object.path));
        }
        let all = program.iter().flat_map(|program| program.job.spec.volumes.iter().enumerate());
        for (index, volume) in all {
            let source = match claims::source(volume, index, &name, uid) {
                VolumeSource::Named(claim) | VolumeSource::Made(claim) => {
                    json!({"persistentVolumeClaim": {"claimName": claim}})
                }
                VolumeSource::Empty => json!({"emptyDir": {}}),
            };
            volumes.push(mounted(&format!("job-volume-{index}"), source, &volume.mount_path));
        }
        let listed = program.as_ref().map(|program| program.plugins.listed(program)).unwrap_or_default();
        Self { program, job: name, volumes, listed }
    }

    fn of_pod(&self, pod: &Value) -> Option<PodAdditions> {
        let program = self.program.as_ref()?;
        let task = program.job.spec.tasks.iter().position(|task| task.name == text(pod, "task"))?;
        let index = u32::try_from(pod["index"].as_u64()?).ok()?;
        Some(program.plugins.shown(program, &self.job, task, index))
    }

    /// Returns the annotations that plugins give a pod.
    pub(super) fn annotations(&self, pod: &Value) -> Vec<(String, Value)> {
        let added: Labels = self.of_pod(pod).map(|added| added.annotations).unwrap_or_default();
        added.into_iter().map(|(key, value)| (key, json!(value))).collect()
    }

    /// Adds everything to the specification of a pod.
    pub(super) fn add_to(&self, spec: &mut Value, pod: &Value) {
        let Some(added) = self.of_pod(pod) else { return };
        if self.program.as_ref().is_some_and(|program| program.plugins.names_pods()) {
            spec["hostname"] = pod["name"].clone();
            spec["subdomain"] = json!(self.job);
        }
        for one in &added.before {
            let container = &one.container;
            push(
                spec,
                "initContainers",
                json!({
                    "name": container.name, "image": container.image, "command": container.command,
                }),
            );
        }
        if let Some((name, command)) = &added.command {
            let list = spec["containers"].as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
            let at = list.iter().position(|one| one["name"] == name.as_str()).unwrap_or_default();
            if let Some(container) = list.get_mut(at).and_then(Value::as_object_mut) {
                container.insert("command".to_owned(), json!(["sh", "-c", command]));
                container.remove("args");
            }
        }
        for list in ["initContainers", "containers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                self.variables(container, &added);
                self.volumes.iter().for_each(|(_, mount)| push(container, "volumeMounts", mount.clone()));
                for (name, port) in added.ports.iter().filter(|_| list == "containers") {
                    push(container, "ports", json!({"name": name, "containerPort": port}));
                }
            }
        }
        self.volumes.iter().for_each(|(volume, _)| push(spec, "volumes", volume.clone()));
    }

    /// Adds variables that the container does not set itself.
    fn variables(&self, container: &mut Value, added: &PodAdditions) {
        let plain = added.variables.iter().filter_map(|(name, value)| match value {
            EnvValue::Plain(value) => Some(json!({"name": name, "value": value})),
            EnvValue::Secret(_) => None,
        });
        let map = format!("{}-svc", self.job);
        let listed = self
            .listed
            .iter()
            .map(|name| json!({"name": name, "valueFrom": {"configMapKeyRef": {"name": map, "key": name}}}));
        for variable in plain.chain(listed) {
            let own = container["env"].as_array().into_iter().flatten();
            if !own.into_iter().any(|one| one["name"] == variable["name"]) {
                push(container, "env", variable);
            }
        }
    }
}

fn mounted(name: &str, source: Value, path: &str) -> (Value, Value) {
    let mut volume = source;
    volume["name"] = json!(name);
    (volume, json!({"name": name, "mountPath": path}))
}

/// Adds a value to a list, which may not be there yet.
fn push(object: &mut Value, list: &str, value: Value) {
    match object[list].as_array_mut() {
        Some(all) => all.push(value),
        None => object[list] = json!([value]),
    }
}
