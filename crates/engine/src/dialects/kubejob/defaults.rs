//! What a job's manifest means where it says nothing: the defaults that Kubernetes writes into the object. The manifest
//! itself stays as it was given.

use octoflow_model::kubejob::{Job, mark};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The most failed pods of a job.
pub(super) const BACKOFF_LIMIT: u32 = 6;

/// Reads a manifest with its defaults.
pub(super) fn read(manifest: &Value) -> Result<Job, serde_json::Error> {
    let mut object = manifest.clone();
    fill(&mut object);
    Job::deserialize(&object)
}

/// Fills in the defaults in place. What has the wrong type is left alone.
pub(super) fn fill(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let is_missing = |spec: &Map<String, Value>, name: &str| spec.get(name).is_none_or(Value::is_null);
    if is_missing(spec, "completions") && is_missing(spec, "parallelism") {
        spec.insert("completions".to_owned(), json!(1));
    }
    put(spec, "parallelism", json!(1));
    put(spec, "completionMode", json!("NonIndexed"));
    let per_index = !is_missing(spec, "backoffLimitPerIndex");
    put(spec, "backoffLimit", json!(if per_index { i32::MAX as u32 } else { BACKOFF_LIMIT }));
    put(spec, "suspend", json!(false));
    let by_policy = !is_missing(spec, "podFailurePolicy");
    put(spec, "podReplacementPolicy", json!(if by_policy { "Failed" } else { "TerminatingOrFailed" }));
    let rules = spec.get_mut("podFailurePolicy").and_then(|policy| policy.get_mut("rules"));
    for rule in rules.and_then(Value::as_array_mut).into_iter().flatten() {
        let conditions = rule.get_mut("onPodConditions").and_then(Value::as_array_mut).into_iter().flatten();
        for condition in conditions.filter_map(Value::as_object_mut) {
            put(condition, "status", json!("True"));
        }
    }
}

/// Adds the selector and the pods' labels that identify the job, which nobody can know before it has its name and uid.
pub(super) fn identify(object: &mut Value, name: &str, uid: &str) {
    let manual = object["spec"]["manualSelector"] == true;
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if !manual {
        spec.insert("selector".to_owned(), json!({"matchLabels": {mark::CONTROLLER_UID: uid}}));
    }
    let Some(template) = spec.get_mut("template").filter(|template| template.is_object()) else { return };
    let labels = labels(&template["metadata"]["labels"], name, uid, manual);
    if !template["metadata"].is_object() {
        template["metadata"] = json!({});
    }
    template["metadata"]["labels"] = Value::Object(labels);
}

/// Returns the labels of a job's pods: those of its template, and those that identify the job.
pub(super) fn labels(given: &Value, name: &str, uid: &str, manual: bool) -> Map<String, Value> {
    let mut labels = given.as_object().cloned().unwrap_or_default();
    for key in [mark::JOB_NAME, mark::OLD_JOB_NAME] {
        labels.insert(key.to_owned(), json!(name));
    }
    if !manual {
        for key in [mark::CONTROLLER_UID, mark::OLD_CONTROLLER_UID] {
            labels.insert(key.to_owned(), json!(uid));
        }
    }
    labels
}

/// Returns those of a pod template's labels that identify its job.
pub(super) fn identifying_labels(labels: &Value) -> Map<String, Value> {
    let keys = [mark::JOB_NAME, mark::OLD_JOB_NAME, mark::CONTROLLER_UID, mark::OLD_CONTROLLER_UID];
    let of = |key: &str| labels.get(key).map(|value| (key.to_owned(), value.clone()));
    keys.into_iter().filter_map(of).collect()
}

fn put(fields: &mut Map<String, Value>, name: &str, value: Value) {
    if fields.get(name).is_none_or(Value::is_null) {
        fields.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(spec: Value) -> Value {
        let mut object = json!({"spec": spec});
        fill(&mut object);
        let once = object.clone();
        fill(&mut object);
        assert_eq!(object, once, "filling in twice changes nothing");
        object["spec"].clone()
    }

    #[test]
    fn a_minimal_job_gets_the_defaults_of_kubernetes() {
        let spec = filled(json!({}));
        assert_eq!(
            (&spec["completions"], &spec["parallelism"], &spec["backoffLimit"]),
            (&json!(1), &json!(1), &json!(6))
        );
        assert_eq!((&spec["completionMode"], &spec["suspend"]), (&json!("NonIndexed"), &json!(false)));
        assert_eq!(spec["podReplacementPolicy"], "TerminatingOrFailed");
        assert_eq!(filled(json!({"parallelism": 3}))["completions"], Value::Null, "a work queue has no number of them");
        assert_eq!(filled(json!({"podFailurePolicy": {"rules": []}}))["podReplacementPolicy"], "Failed");
        assert_eq!(filled(json!({"backoffLimitPerIndex": 1}))["backoffLimit"], i32::MAX);
    }

    #[test]
    fn a_selector_of_ones_own_is_left_alone() {
        let own = json!({"manualSelector": true, "selector": {"matchLabels": {"a": "b"}}, "template": {}});
        let mut object = json!({"spec": own});
        identify(&mut object, "j", "u");
        assert_eq!(object["spec"]["selector"], json!({"matchLabels": {"a": "b"}}));
        assert_eq!(object["spec"]["template"]["metadata"]["labels"][mark::JOB_NAME], "j");
        assert!(object["spec"]["template"]["metadata"]["labels"][mark::CONTROLLER_UID].is_null());
        let mut object = json!({"spec": {"template": {}}});
        identify(&mut object, "j", "u");
        assert_eq!(object["spec"]["selector"], json!({"matchLabels": {mark::CONTROLLER_UID: "u"}}));
    }
}
