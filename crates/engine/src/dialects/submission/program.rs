//! A compiled submission: the job as it was handed in, and its header. Immutable; it decides nothing.

use octoflow_model::submitted::{SubmittedJob, SubmittedSpec};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub struct Program {
    pub job: SubmittedJob,
}

impl Program {
    /// Compiles an admitted manifest; on error returns the reason in one sentence.
    pub fn compile(manifest: &Value) -> Result<Self, String> {
        let job = SubmittedJob::deserialize(manifest)
            .map_err(|error| format!("the submitted job cannot be read: {error}"))?;
        Ok(Self { job })
    }
}

/// Returns the header that plugins are selected by and are sent: what the user wrote, with the reserved names set.
pub fn header(spec: &SubmittedSpec, id: &str) -> Value {
    let mut header = spec.header.clone();
    let mut put = |key: &str, value: &str| drop(header.insert(key.to_owned(), json!(value)));
    put("jobID", id);
    put("userID", &spec.user_id);
    put("jobName", &spec.job_name);
    put("jobKind", &spec.job_kind);
    put("submittedBy", &spec.submitted_by);
    if !spec.cluster.is_empty() {
        put("cluster", &spec.cluster);
    }
    Value::Object(header)
}
