//! What the row of a kind that starts runs by the clock has beside: how its objects are read, what they start, and how their
//! status is written. The cron scheduler asks nothing else, so a further kind of schedule is a row.

use std::fmt;

use octoflow_model::Time;
use serde_json::Value;

use super::Timetable;
use crate::kinds::Kind;

/// A kind of schedule.
pub struct CronRow {
    /// The kind of the runs it starts.
    pub runs: &'static Kind,
    /// Reads when it is due, or returns everything that is wrong with it.
    pub timetable: fn(&Value) -> Result<Timetable, Vec<String>>,
    /// Builds the manifest of the run for a scheduled time, from the object and its uid. Its name follows from the time, so
    /// that creating it twice cannot result in two runs.
    pub child: fn(&Value, &str, Time) -> Value,
    /// Label of its runs with the name of the schedule. `None`: they are known by their owner.
    pub label: Option<&'static str>,
    pub read: fn(&Value) -> CronStatus,
    pub write: fn(&CronStatus, &mut Value),
}

impl fmt::Debug for CronRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "starts {:?}", self.runs)
    }
}

/// The status of a schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CronStatus {
    pub succeeded: u64,
    pub failed: u64,
    /// Scheduled time of the last run.
    pub last: Option<Time>,
    /// End of the last run that succeeded.
    pub last_success: Option<Time>,
    pub stopped: bool,
    /// References to its open runs.
    pub active: Vec<Value>,
    /// What is wrong with the schedule.
    pub spec_error: Option<String>,
    /// Why the last run could not be started.
    pub submission_error: Option<String>,
}

impl CronStatus {
    /// Adds an open run.
    pub fn add_active(&mut self, kind: &Kind, namespace: &str, name: &str, uid: &str) {
        self.active.push(serde_json::json!({
            "apiVersion": kind.api_version(), "kind": kind.name, "name": name, "namespace": namespace, "uid": uid,
        }));
    }
}
