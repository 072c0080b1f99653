//! CronJobs: their row for the cron scheduler, the Job of one scheduled time, and their status as Kubernetes has it.

use octoflow_model::{
    Time,
    kubejob::{API_VERSION, CRON_KIND, KIND, mark},
};
use serde_json::{Map, Value, json};

use super::kinds::JOB;
use crate::cron::{CronRow, CronStatus, Timetable, schedule};

pub(super) static SCHEDULE: CronRow = CronRow { runs: &JOB, timetable, child, label: None, read, write };

/// Reads a CronJob as a timetable. As in Kubernetes, the latest of the times that were missed is made up for, unless it is
/// later than `startingDeadlineSeconds` allows.
fn timetable(object: &Value) -> Result<Timetable, Vec<String>> {
    let spec = &object["spec"];
    let mut alike = Map::new();
    for field in [
        "schedule",
        "suspend",
        "concurrencyPolicy",
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    ] {
        alike.extend(spec.get(field).map(|value| (field.to_owned(), value.clone())));
    }
    alike.insert("timezone".to_owned(), spec["timeZone"].clone());
    alike.insert("catchUp".to_owned(), json!({"policy": "latest"}));
    Timetable::read(&json!({"metadata": object["metadata"], "spec": alike}))
}

/// Builds the Job of a scheduled time.
pub(super) fn child(object: &Value, uid: &str, nominal: Time) -> Value {
    let (metadata, template) = (&object["metadata"], &object["spec"]["jobTemplate"]);
    let name = metadata["name"].as_str().unwrap_or_default();
    let given = |field: &str| template["metadata"][field].as_object().cloned().unwrap_or_default();
    let mut annotations = given("annotations");
    annotations.insert(mark::SCHEDULED_AT.to_owned(), json!(in_zone(nominal, object["spec"]["timeZone"].as_str())));
    let owner = json!({
        "apiVersion": API_VERSION, "kind": CRON_KIND, "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    });
    let mut manifest = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": child_name(name, nominal), "annotations": annotations, "ownerReferences": [owner],
        },
        "spec": template["spec"],
    });
    let labels = given("labels");
    if !labels.is_empty() {
        manifest["metadata"]["labels"] = Value::Object(labels);
    }
    if let Some(namespace) = metadata["namespace"].as_str().filter(|namespace| !namespace.is_empty()) {
        manifest["metadata"]["namespace"] = json!(namespace);
    }
    manifest
}

/// Returns the name of the Job of a scheduled time: the minutes since 1970 are added, as in Kubernetes.
pub(super) fn child_name(cron: &str, nominal: Time) -> String {
    format!("{cron}-{}", nominal.seconds() / 60)
}

/// Writes a time in the zone of the schedule.
fn in_zone(time: Time, zone: Option<&str>) -> String {
    match zone.filter(|zone| !zone.is_empty()).and_then(|zone| schedule::zone(zone).ok()) {
        Some(zone) => time.timestamp().to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        None => time.to_string(),
    }
}

fn read(object: &Value) -> CronStatus {
    let status = &object["status"];
    let time = |field: &str| status[field].as_str().and_then(Time::parse);
    CronStatus {
        last: time("lastScheduleTime"),
        last_success: time("lastSuccessfulTime"),
        active: status["active"].as_array().cloned().unwrap_or_default(),
        ..CronStatus::default()
    }
}

fn write(own: &CronStatus, object: &mut Value) {
    let mut status = Map::new();
    if !own.active.is_empty() {
        status.insert("active".to_owned(), json!(own.active));
    }
    for (field, at) in [("lastScheduleTime", own.last), ("lastSuccessfulTime", own.last_success)] {
        status.extend(at.map(|at| (field.to_owned(), json!(at.to_string()))));
    }
    // Ours beside: what is wrong with it, which Kubernetes tells in events.
    let wrong = own.spec_error.as_ref().or(own.submission_error.as_ref());
    status.extend(wrong.map(|why| ("message".to_owned(), json!(why))));
    object["status"] = Value::Object(status);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cron() -> Value {
        json!({"metadata": {"name": "c", "namespace": "n", "creationTimestamp": "2026-05-01T00:00:00Z"}, "spec": {
            "schedule": "0 6 * * *", "timeZone": "Europe/Zurich", "concurrencyPolicy": "Forbid",
            "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"completions": 2}},
        }})
    }

    #[test]
    fn the_job_of_a_time_is_named_by_its_minute_and_belongs_to_the_cron_job() {
        let at = Time::parse("2026-05-01T04:00:00Z").unwrap();
        let made = child(&cron(), "u", at);
        assert_eq!(made["metadata"]["name"], format!("c-{}", at.seconds() / 60));
        assert_eq!(made["metadata"]["annotations"][mark::SCHEDULED_AT], "2026-05-01T06:00:00+02:00");
        assert_eq!(made["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!((&made["spec"], &made["metadata"]["namespace"]), (&json!({"completions": 2}), &json!("n")));
    }

    #[test]
    fn the_timetable_is_read_in_its_zone() {
        let table = timetable(&cron()).unwrap();
        let next = table.next_after(Time::parse("2026-05-01T05:00:00Z").unwrap()).unwrap();
        assert_eq!(next.to_string(), "2026-05-02T04:00:00Z");
        assert_eq!((table.keep_succeeded, table.keep_failed), (3, 1));
        let mut wrong = cron();
        wrong["spec"]["timeZone"] = json!("Nowhere/Land");
        assert!(timetable(&wrong).is_err());
    }

    #[test]
    fn a_status_survives_being_written() {
        let mut object = cron();
        let mut status = CronStatus {
            last: Some(Time::from_secs(60)),
            last_success: Some(Time::from_secs(61)),
            ..CronStatus::default()
        };
        status.add_active(&JOB, "n", "c-1", "u1");
        write(&status, &mut object);
        assert_eq!(read(&object), status);
        assert_eq!(object["status"]["active"][0]["apiVersion"], "batch/v1");
    }
}
