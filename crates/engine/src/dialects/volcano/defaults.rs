//! What a job's manifest means where it says nothing: the defaults that the original writes into the object. The manifest
//! itself stays as it was given.

use octoflow_model::volcano::Job;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The most attempts of a job, and container restarts of a task.
const MAX_RETRY: i64 = 3;

/// Returns the manifest with everything filled in but its queue, which may come from its namespace.
pub(super) fn filled(manifest: &Value) -> Value {
    let mut object = manifest.clone();
    fill(&mut object);
    object
}

/// Reads a manifest with its defaults.
pub(super) fn read(manifest: &Value) -> Result<Job, serde_json::Error> {
    Job::deserialize(&filled(manifest))
}

/// Fills in the defaults in place. What has the wrong type is left alone.
pub(super) fn fill(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    put(spec, "schedulerName", json!("volcano"));
    if spec.get("maxRetry").is_none_or(|retry| retry.is_null() || *retry == 0) {
        spec.insert("maxRetry".to_owned(), json!(MAX_RETRY));
    }
    let mut least = 0u64;
    let tasks = spec.get_mut("tasks").and_then(Value::as_array_mut).into_iter().flatten().enumerate();
    for (index, task) in tasks {
        let Some(task) = task.as_object_mut() else { continue };
        least = least.saturating_add(fill_task(task, index));
    }
    if spec.get("minAvailable").is_none_or(|least| least.is_null() || *least == 0) {
        spec.insert("minAvailable".to_owned(), json!(least));
    }
    if let Some(plugins) = spec.get_mut("plugins").and_then(Value::as_object_mut) {
        let has = |plugins: &Map<String, Value>, names: &[&str]| names.iter().any(|name| plugins.contains_key(*name));
        if has(plugins, &["tensorflow", "pytorch", "mpi", "ray"]) {
            put(plugins, "svc", json!([]));
        }
        if has(plugins, &["mpi"]) {
            put(plugins, "ssh", json!([]));
        }
    }
}

/// Fills in a task; returns how many of its pods must be there.
fn fill_task(task: &mut Map<String, Value>, index: usize) -> u64 {
    if task.get("name").is_none_or(|name| name.is_null() || *name == "") {
        task.insert("name".to_owned(), json!(format!("default{index}")));
    }
    put(task, "replicas", json!(1));
    if task.get("maxRetry").is_none_or(|retry| retry.is_null() || *retry == 0) {
        task.insert("maxRetry".to_owned(), json!(MAX_RETRY));
    }
    let replicas = task["replicas"].as_u64().unwrap_or(0);
    let parts = task.get("partitionPolicy").filter(|policy| policy.is_object());
    let of_parts = parts.and_then(|policy| {
        let size = policy["partitionSize"].as_u64()?;
        policy["minPartitions"].as_u64()?.checked_mul(size)
    });
    put(task, "minAvailable", json!(of_parts.unwrap_or(replicas)));
    if let Some(pod) = task.get_mut("template").and_then(|template| template.get_mut("spec"))
        && pod["hostNetwork"] == true
        && let Some(pod) = pod.as_object_mut()
    {
        put(pod, "dnsPolicy", json!("ClusterFirstWithHostNet"));
    }
    task["minAvailable"].as_u64().unwrap_or(0)
}

fn put(fields: &mut Map<String, Value>, name: &str, value: Value) {
    if fields.get(name).is_none_or(Value::is_null) {
        fields.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vj01_a_minimal_job_gets_its_defaults() {
        let job = filled(&json!({"spec": {"tasks": [{"replicas": 3, "template": {"spec": {"hostNetwork": true}}}]}}));
        let (spec, task) = (&job["spec"], &job["spec"]["tasks"][0]);
        assert_eq!(
            (&spec["maxRetry"], &spec["minAvailable"], &spec["schedulerName"]),
            (&json!(3), &json!(3), &json!("volcano"))
        );
        assert_eq!(
            (&task["name"], &task["minAvailable"], &task["maxRetry"]),
            (&json!("default0"), &json!(3), &json!(3))
        );
        assert_eq!(task["template"]["spec"]["dnsPolicy"], "ClusterFirstWithHostNet");
        assert_eq!(filled(&job), job, "filling in twice changes nothing");
    }

    #[test]
    fn a_task_of_partitions_needs_the_least_of_them() {
        let policy = json!({"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2});
        let job = filled(&json!({"spec": {"tasks": [{"replicas": 6, "partitionPolicy": policy}, {"replicas": 2}]}}));
        assert_eq!(job["spec"]["tasks"][0]["minAvailable"], 4);
        assert_eq!(job["spec"]["minAvailable"], 6);
    }

    #[test]
    fn vj19_vj21_plugins_bring_those_they_need() {
        let of = |name: &str| filled(&json!({"spec": {"plugins": {name: []}}}))["spec"]["plugins"].clone();
        assert_eq!(of("pytorch"), json!({"pytorch": [], "svc": []}));
        assert_eq!(of("mpi"), json!({"mpi": [], "ssh": [], "svc": []}));
        assert_eq!(of("env"), json!({"env": []}));
    }
}
