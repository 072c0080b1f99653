//! Kubernetes Jobs, a CronJob and JobFlows under the same kills: what was acknowledged is there, ends well, and nothing is
//! there that nobody made.

use std::{collections::BTreeMap, net::SocketAddr, path::Path};

use serde_json::{Value, json};

use crate::{
    load::{Ledger, Town, Word, ask},
    wire::http::call,
};

pub(crate) const KUBE_JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
pub(crate) const FLOWS: &str = "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobflows";
const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";
const JOB_TEMPLATES: &str = "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobtemplates";

/// The CronJob, and what the names of its Jobs begin with.
const CRON: &str = "tick";

fn pod(script: &str, host: &Path) -> Value {
    json!({"spec": {"restartPolicy": "Never",
        "volumes": [{"name": "out", "hostPath": {"path": host}}],
        "containers": [{"name": "main", "image": "bash", "command": ["bash", "-c", script],
            "volumeMounts": [{"name": "out", "mountPath": "/out"}]}]}})
}

/// Two pods with an index each, of which each leaves a line. A lost one is not tried again.
fn kube_job(name: &str, host: &Path) -> Value {
    let script = format!("echo {name} r$JOB_COMPLETION_INDEX 0 >> /out/marks; sleep 0.05");
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 0,
            "template": pod(&script, host)},
    })
}

fn flow(name: &str) -> Value {
    json!({
        "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": name},
        "spec": {"jobRetainPolicy": "retain",
            "flows": [{"name": "first"}, {"name": "second", "dependsOn": {"targets": ["first"]}}]},
    })
}

/// Creates what exists before the first kill: the templates of the flows, and the CronJob.
pub(crate) fn prepare(town: &Town<'_>) {
    for name in ["first", "second"] {
        let tasks = json!([{"name": "main", "replicas": 1, "template": pod("sleep 0.05", town.host)}]);
        let template = json!({
            "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate", "metadata": {"name": name},
            "spec": {"tasks": tasks},
        });
        let (status, said) = ask(town, "POST", JOB_TEMPLATES, Some(&template)).expect("the server answers");
        assert_eq!(status, 201, "{said}");
    }
    let cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": CRON},
        "spec": {"schedule": "@every 1s", "concurrencyPolicy": "Allow", "successfulJobsHistoryLimit": 1000,
            "failedJobsHistoryLimit": 1000,
            "jobTemplate": {"spec": {"backoffLimit": 0, "template": pod("true", town.host)}}},
    });
    let (status, said) = ask(town, "POST", CRON_JOBS, Some(&cron)).expect("the server answers");
    assert_eq!(status, 201, "{said}");
}

/// Suspends the CronJob.
pub(crate) fn hold(to: SocketAddr) {
    let path = format!("{CRON_JOBS}/{CRON}");
    let mut cron = call(to, "GET", &path, None).expect("the server answers").body;
    cron["spec"]["suspend"] = json!(true);
    cron["metadata"]["resourceVersion"] = Value::Null;
    let answer = call(to, "PUT", &path, Some(&cron)).expect("the server answers");
    assert_eq!(answer.status, 200, "{}", answer.body);
}

pub(crate) fn make(name: &str, path: &'static str, town: &Town<'_>) {
    let object = if path == FLOWS { flow(name) } else { kube_job(name, town.host) };
    town.ledger.lock().unwrap().others.insert((path, name.to_owned()), Word::Maybe);
    let Some((status, said)) = ask(town, "POST", path, Some(&object)) else { return };
    let mut ledger = town.ledger.lock().unwrap();
    match status {
        201 => drop(ledger.others.insert((path, name.to_owned()), Word::Yes)),
        status => ledger.violations.push(format!("{path} is answered {status}: {said}")),
    }
}

/// All Kubernetes Jobs and JobFlows there are, by path and name.
pub(crate) fn listed(server: SocketAddr) -> BTreeMap<(&'static str, String), Value> {
    let mut all = BTreeMap::new();
    for path in [KUBE_JOBS, FLOWS] {
        let answer = call(server, "GET", path, None).expect("the server answers");
        assert_eq!(answer.status, 200, "{}", answer.body);
        let items = answer.body["items"].as_array().cloned().unwrap_or_default();
        all.extend(items.into_iter().map(|item| {
            let name = item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            ((path, name), item)
        }));
    }
    all
}

fn has(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == condition && one["status"] == "True")
}

fn well(path: &str, object: &Value) -> bool {
    if path == FLOWS { object["status"]["state"]["phase"] == "Succeed" } else { has(object, "Complete") }
}

pub(crate) fn is_over(path: &str, object: &Value) -> bool {
    let failed = if path == FLOWS {
        matches!(object["status"]["state"]["phase"].as_str(), Some("Failed" | "Terminated"))
    } else {
        has(object, "Failed")
    };
    failed || well(path, object)
}

/// What was acknowledged is there and ended well, unless a pod was lost with the spawner; every index of a Job ran.
pub(crate) fn check(ledger: &Ledger, found: &BTreeMap<(&'static str, String), Value>, host: &Path) -> Vec<String> {
    let marks = std::fs::read_to_string(host.join("marks")).unwrap_or_default();
    let mut broken = Vec::new();
    for ((path, name), word) in &ledger.others {
        let Some(object) = found.get(&(*path, name.clone())) else {
            if *word == Word::Yes {
                broken.push(format!("{path}/{name} was acknowledged and is lost"));
            }
            continue;
        };
        if !well(path, object) {
            if !ledger.spawner_killed {
                broken.push(format!("{path}/{name} ended {}", object["status"]));
            }
            continue;
        }
        let missing = |index: &i32| !marks.lines().any(|line| line == format!("{name} r{index} 0"));
        if *path == KUBE_JOBS {
            let never = (0..2).filter(missing);
            broken.extend(never.map(|index| format!("{name} is complete and its index {index} never ran")));
        }
    }
    let of_cron = |name: &str| name.strip_prefix(CRON).is_some_and(|rest| rest.starts_with('-'));
    let mut ticks = 0;
    for ((path, name), object) in found.iter().filter(|(key, _)| !ledger.others.contains_key(*key)) {
        if *path != KUBE_JOBS || !of_cron(name) {
            broken.push(format!("{path}/{name} is there and nobody made it"));
        } else if !well(path, object) && !ledger.spawner_killed {
            broken.push(format!("{name} of the CronJob ended {}", object["status"]));
        }
        ticks += 1;
    }
    // Its Jobs are named by the minute, so that there is one for each minute at most.
    if ticks < 1 {
        broken.push("the CronJob made no Job".to_owned());
    }
    broken
}
