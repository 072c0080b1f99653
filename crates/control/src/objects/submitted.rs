//! What the server says about a submitted job itself, whoever wrote it: who handed it in, and the labels by which people
//! select it.

use octoflow_model::plugin::JOB_KIND;
use serde_json::{Value, json};

use crate::registry::{Kind, is_label_value};

/// Labels of a submitted job.
const USER_LABEL: &str = "octoflow.io/user";
const KIND_LABEL: &str = "octoflow.io/job-kind";

/// Writes into a new submitted job who hands it in; nobody can say that of himself.
pub(crate) fn stamp(kind: &Kind, object: &mut Value, written_by: &str) {
    if let Some(sign) = kind.dialect().and_then(|dialect| dialect.sign) {
        sign(object, written_by);
    }
    if kind.key != JOB_KIND || !object["spec"].is_object() {
        return;
    }
    for (label, field) in [(USER_LABEL, "userID"), (KIND_LABEL, "jobKind")] {
        let value = object["spec"][field].as_str().unwrap_or_default().to_owned();
        if !value.is_empty()
            && is_label_value(&value)
            && (object["metadata"]["labels"].is_null() || object["metadata"]["labels"].is_object())
        {
            object["metadata"]["labels"][label] = json!(value);
        }
    }
}
