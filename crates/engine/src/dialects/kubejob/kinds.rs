//! The kinds of Kubernetes' batch group: their rows in the table of kinds, and their table columns.

use octoflow_model::{
    Time,
    kubejob::{CRON_KIND, GROUP, KIND, VERSION},
};
use serde_json::{Value, json};

use super::{
    admit::{advice, check_cron, examine_cron},
    cron::SCHEDULE,
    dialect::DIALECT,
    fields::{CRON_JOB as CRON_FIELDS, JOB as FIELDS},
};
use crate::kinds::{AGE, Kind, NAME, Rows, Storage, human, number, since, text, text_column, wide};

pub static ROWS: Rows = Rows { kinds: &[&JOB, &CRON_JOB], refused: &[] };

pub static JOB: Kind = Kind {
    plural: "jobs",
    singular: "job",
    categories: &["all"],
    // Other groups have Jobs too.
    key: "KubeJob",
    storage: Storage::Run(&DIALECT),
    schema_prefix: "io.k8s.api.batch.v1.",
    shape: Some(&FIELDS),
    has_status: true,
    advise: Some(advice),
    columns: &[
        NAME,
        text_column("Status", "How far it has come"),
        text_column("Completions", "Pods that have succeeded, of those that have to"),
        text_column("Duration", "How long it has been active"),
        AGE,
        wide(text_column("Containers", "The names of its containers")),
        wide(text_column("Images", "Their images")),
        wide(text_column("Selector", "The labels that select its pods")),
    ],
    cells,
    ..Kind::new(GROUP, VERSION, KIND)
};

pub static CRON_JOB: Kind = Kind {
    plural: "cronjobs",
    singular: "cronjob",
    short: &["cj"],
    categories: &["all"],
    schema_prefix: "io.k8s.api.batch.v1.",
    shape: Some(&CRON_FIELDS),
    has_status: true,
    starts_runs: true,
    schedule: Some(&SCHEDULE),
    not_run: Some((
        "a CronJob makes Jobs on its schedule, and does not run by itself",
        "give it to a server; `octoflow cron preview` shows when it would run",
    )),
    check: Some(check_cron),
    examine: Some(examine_cron),
    columns: &[
        NAME,
        text_column("Schedule", "When Jobs are made"),
        text_column("Timezone", "Whose clock the schedule means"),
        text_column("Suspend", "Whether no Jobs are made for now"),
        number("Active", "Jobs that have not ended"),
        text_column("Last Schedule", "How long ago a Job was last made"),
        AGE,
        wide(text_column("Containers", "The names of its containers")),
        wide(text_column("Images", "Their images")),
        wide(text_column("Selector", "The labels that select its pods")),
    ],
    cells: cron_cells,
    ..Kind::new(GROUP, VERSION, CRON_KIND)
};

fn cron_cells(object: &Value, now: Time) -> Vec<Value> {
    let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
    let last = &status["lastScheduleTime"];
    let last = if last.is_string() { json!(since(last, now)) } else { text(&Value::Null) };
    let mut cells = vec![
        metadata["name"].clone(),
        text(&spec["schedule"]),
        text(&spec["timeZone"]),
        json!(if spec["suspend"] == true { "True" } else { "False" }),
        json!(status["active"].as_array().map_or(0, Vec::len)),
        last,
        json!(since(&metadata["creationTimestamp"], now)),
    ];
    let job = &spec["jobTemplate"]["spec"];
    cells.extend(template_cells(&job["template"], &job["selector"]));
    cells
}

fn cells(object: &Value, now: Time) -> Vec<Value> {
    let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
    let mut cells = vec![
        metadata["name"].clone(),
        json!(shown_status(object)),
        json!(completions(spec, status)),
        json!(duration(status, now)),
        json!(since(&metadata["creationTimestamp"], now)),
    ];
    cells.extend(template_cells(&spec["template"], &spec["selector"]));
    cells
}

/// Returns the word that kubectl shows: that of the newest condition that holds.
fn shown_status(object: &Value) -> &'static str {
    let conditions = object["status"]["conditions"].as_array();
    let holds = |kind: &str| {
        conditions.into_iter().flatten().any(|condition| condition["type"] == kind && condition["status"] == "True")
    };
    if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if !object["metadata"]["deletionTimestamp"].is_null() {
        "Terminating"
    } else if holds("Suspended") {
        "Suspended"
    } else if holds("FailureTarget") {
        "FailureTarget"
    } else if holds("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(spec: &Value, status: &Value) -> String {
    let succeeded = status["succeeded"].as_u64().unwrap_or_default();
    match (spec["completions"].as_u64(), spec["parallelism"].as_u64().unwrap_or(1)) {
        (Some(all), _) => format!("{succeeded}/{all}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(status: &Value, now: Time) -> String {
    let time = |field: &str| status[field].as_str().and_then(Time::parse);
    let Some(started) = time("startTime") else { return String::new() };
    // A failed job has no completion time; it is shown until its end all the same.
    human(time("completionTime").or(time("finishedAt")).unwrap_or(now).since(started))
}

/// Renders containers, images and selector of a pod template.
fn template_cells(template: &Value, selector: &Value) -> [Value; 3] {
    let containers = || template["spec"]["containers"].as_array().into_iter().flatten();
    let all =
        |field: &str| containers().map(|one| one[field].as_str().unwrap_or_default()).collect::<Vec<_>>().join(",");
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    [json!(all("name")), json!(all("image")), json!(labels.join(","))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_those_of_kubectl() {
        let (start, end) = ("2020-01-01T00:00:00Z", "2020-01-01T00:00:10Z");
        let now = Time::parse("2020-01-01T00:01:00Z").unwrap();
        let job = |spec: Value, status: Value| json!({"metadata": {"name": "j", "creationTimestamp": start}, "spec": spec, "status": status});
        let shown = |object: Value| {
            let row = cells(&object, now);
            assert_eq!(row.len(), JOB.columns.len());
            row[..5].iter().map(|cell| cell.as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>().join(" ")
        };
        let done = json!({"succeeded": 2, "startTime": start, "completionTime": end,
                          "conditions": [{"type": "SuccessCriteriaMet", "status": "True"},
                                         {"type": "Complete", "status": "True"}]});
        assert_eq!(shown(job(json!({"completions": 2}), done)), "j Complete 2/2 10s 60s");
        let open = json!({"startTime": start, "conditions": [{"type": "Suspended", "status": "False"}]});
        assert_eq!(shown(job(json!({"parallelism": 3}), open.clone())), "j Running 0/1 of 3 60s 60s");
        assert_eq!(shown(job(json!({"parallelism": 1}), open)), "j Running 0/1 60s 60s");
        let held = json!({"conditions": [{"type": "Suspended", "status": "True"}]});
        assert_eq!(shown(job(json!({"completions": 1}), held)), "j Suspended 0/1  60s");
    }
}
