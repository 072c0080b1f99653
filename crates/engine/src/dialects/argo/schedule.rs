//! CronWorkflows as schedules: their row for the cron scheduler, and their status in Argo's format.

use octoflow_model::Time;
use serde_json::{Value, json};

use super::kinds::WORKFLOW;
use crate::cron::{COMPLETED, CronRow, CronStatus, LABEL, Timetable, child::child};

pub(super) static SCHEDULE: CronRow =
    CronRow { runs: &WORKFLOW, timetable: Timetable::read, child, label: Some(LABEL), read, write };

const SPEC_ERROR: &str = "SpecError";
const SUBMISSION_ERROR: &str = "SubmissionError";

fn read(object: &Value) -> CronStatus {
    let status = &object["status"];
    let condition = |kind: &str| {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut found = conditions.filter(|condition| condition["type"] == kind && condition["status"] == "True");
        Some(found.next()?["message"].as_str().unwrap_or_default().to_owned())
    };
    CronStatus {
        succeeded: status["succeeded"].as_u64().unwrap_or_default(),
        failed: status["failed"].as_u64().unwrap_or_default(),
        last: status["lastScheduledTime"].as_str().and_then(Time::parse),
        last_success: None,
        stopped: status["phase"] == "Stopped",
        active: status["active"].as_array().cloned().unwrap_or_default(),
        spec_error: condition(SPEC_ERROR),
        submission_error: condition(SUBMISSION_ERROR),
    }
}

fn write(own: &CronStatus, object: &mut Value) {
    let mut conditions = Vec::new();
    for (kind, why) in [(SPEC_ERROR, &own.spec_error), (SUBMISSION_ERROR, &own.submission_error)] {
        if let Some(why) = why {
            conditions.push(json!({"type": kind, "status": "True", "message": why}));
        }
    }
    let status = &mut object["status"];
    if !status.is_object() {
        *status = json!({});
    }
    status["active"] = json!(own.active);
    status["conditions"] = Value::Array(conditions);
    status["succeeded"] = json!(own.succeeded);
    status["failed"] = json!(own.failed);
    status["phase"] = json!(if own.stopped { "Stopped" } else { "Active" });
    status["lastScheduledTime"] = json!(own.last.map(|last| last.to_string()));
    if own.stopped {
        if !object["metadata"]["labels"].is_object() {
            object["metadata"]["labels"] = json!({});
        }
        object["metadata"]["labels"][COMPLETED] = json!("true");
    }
}
