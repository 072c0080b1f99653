//! Status of a CronWorkflow: read from the object and written back in Argo's format.

use octoflow_engine::{argo::fields::API_VERSION, cron::COMPLETED};
use octoflow_model::Time;
use octoflow_store::RunRow;
use serde_json::{Value, json};

const SPEC_ERROR: &str = "SpecError";
const SUBMISSION_ERROR: &str = "SubmissionError";

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Status {
    pub succeeded: u64,
    pub failed: u64,
    /// Scheduled time of the last run.
    pub last: Option<Time>,
    pub stopped: bool,
    /// References to its open runs.
    pub active: Vec<Value>,
    spec_error: Option<String>,
    submission_error: Option<String>,
}

impl Status {
    pub(super) fn read(object: &Value) -> Self {
        let status = &object["status"];
        let condition = |kind: &str| {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let mut found = conditions.filter(|condition| condition["type"] == kind && condition["status"] == "True");
            Some(found.next()?["message"].as_str().unwrap_or_default().to_owned())
        };
        Self {
            succeeded: status["succeeded"].as_u64().unwrap_or_default(),
            failed: status["failed"].as_u64().unwrap_or_default(),
            last: status["lastScheduledTime"].as_str().and_then(Time::parse),
            stopped: status["phase"] == "Stopped",
            active: status["active"].as_array().cloned().unwrap_or_default(),
            spec_error: condition(SPEC_ERROR),
            submission_error: condition(SUBMISSION_ERROR),
        }
    }

    pub(super) fn spec_error(&mut self, why: Option<String>) {
        self.spec_error = why;
    }

    pub(super) fn submission_error(&mut self, why: Option<String>) {
        self.submission_error = why;
    }

    pub(super) fn add_active(&mut self, row: &RunRow) {
        self.active.push(json!({
            "apiVersion": API_VERSION, "kind": "Workflow", "name": row.name, "namespace": row.namespace, "uid": row.uid,
        }));
    }

    pub(super) fn write(&self, object: &mut Value) {
        let mut conditions = Vec::new();
        for (kind, why) in [(SPEC_ERROR, &self.spec_error), (SUBMISSION_ERROR, &self.submission_error)] {
            if let Some(why) = why {
                conditions.push(json!({"type": kind, "status": "True", "message": why}));
            }
        }
        let status = &mut object["status"];
        if !status.is_object() {
            *status = json!({});
        }
        status["active"] = json!(self.active);
        status["conditions"] = Value::Array(conditions);
        status["succeeded"] = json!(self.succeeded);
        status["failed"] = json!(self.failed);
        status["phase"] = json!(if self.stopped { "Stopped" } else { "Active" });
        status["lastScheduledTime"] = json!(self.last.map(|last| last.to_string()));
        if self.stopped {
            if !object["metadata"]["labels"].is_object() {
                object["metadata"]["labels"] = json!({});
            }
            object["metadata"]["labels"][COMPLETED] = json!("true");
        }
    }
}
