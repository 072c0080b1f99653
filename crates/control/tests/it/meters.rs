//! Custom metrics and submission context on a real disk: totals continue after a restart, and nothing counts twice.

use octoflow_control::{Controller, metrics, now, read};
use octoflow_store::{Change, Reader};
use serde_json::{Value, json};

use crate::{container, finish, open, resume, submit};

fn metered(gate: bool) -> Value {
    let metric = |name: &str, kind: Value| {
        let mut metric = json!({"name": name, "help": "H", "labels": [{"key": "status", "value": "{{status}}"}]});
        metric.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        metric
    };
    let wait = if gate { json!([[{"name": "gate", "template": "gate"}]]) } else { json!([]) };
    let mut steps = wait.as_array().unwrap().clone();
    steps.push(json!([{"name": "fan", "template": "leaf", "withSequence": {"count": "3"}}]));
    json!({"spec": {"entrypoint": "main",
    "metrics": {"prometheus": [
        {"name": "runs", "help": "R", "counter": {"value": "1"}},
        {"name": "open", "help": "O", "gauge": {"realtime": true, "value": "{{workflow.duration}}"}},
    ]},
    "templates": [
        {"name": "main", "steps": steps},
        {"name": "gate", "suspend": {}},
        {"name": "leaf", "container": container(), "metrics": {"prometheus": [
            metric("leaves", json!({"counter": {"value": "1"}})),
            metric("sizes", json!({"histogram": {"value": "2.5", "buckets": [1, 3]}})),
        ]}},
    ]}})
}

fn has(controller: &Controller, line: &str) {
    let text = controller.metrics().unwrap();
    assert!(text.lines().any(|own| own == format!("argo_workflows_{line}")), "{line} is missing in\n{text}");
}

#[test]
fn totals_go_on_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let run = controller.submit(submit("one", metered(false))).unwrap();
    finish(&controller, run);
    has(&controller, "leaves{status=\"Succeeded\"} 3");
    let waiting = controller.submit(submit("two", metered(true))).unwrap();
    assert!(controller.metrics().unwrap().contains("# TYPE argo_workflows_open gauge"));
    let before = controller.metrics().unwrap();
    controller.close().unwrap();

    let reader = Reader::open(dir.path()).unwrap();
    let text = metrics(&reader, now()).unwrap();
    let still = |text: &str| {
        text.lines().filter(|line| !line.starts_with("argo_workflows_open")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(still(&text), still(&before), "a reader sees what the controller showed, open runs too");

    let controller = open(dir.path());
    has(&controller, "leaves{status=\"Succeeded\"} 3");
    controller.restore_run(waiting).unwrap();
    controller.command(waiting, resume()).unwrap();
    finish(&controller, waiting);
    has(&controller, "leaves{status=\"Succeeded\"} 6");
    has(&controller, "runs 2");
    has(&controller, "sizes_bucket{status=\"Succeeded\",le=\"1\"} 0");
    has(&controller, "sizes_bucket{status=\"Succeeded\",le=\"3\"} 6");
    has(&controller, "sizes_sum{status=\"Succeeded\"} 15");
    let after = controller.metrics().unwrap();
    assert!(!after.contains("argo_workflows_open"), "what follows a run ends with it:\n{after}");
    controller.close().unwrap();
    assert_eq!(metrics(&Reader::open(dir.path()).unwrap(), now()).unwrap(), after);
}

#[test]
fn a_metric_that_contradicts_one_from_before_a_restart_is_told_on_its_run() {
    let dir = tempfile::tempdir().unwrap();
    let with = |metric: Value| {
        json!({"spec": {"entrypoint": "leaf", "metrics": {"prometheus": [metric]},
            "templates": [{"name": "leaf", "container": container()}]}})
    };
    let controller = open(dir.path());
    let run =
        controller.submit(submit("one", with(json!({"name": "m", "help": "H", "counter": {"value": "1"}})))).unwrap();
    finish(&controller, run);
    controller.close().unwrap();
    let controller = open(dir.path());
    let run =
        controller.submit(submit("two", with(json!({"name": "m", "help": "H", "gauge": {"value": "9"}})))).unwrap();
    let object = finish(&controller, run);
    assert_eq!(object["status"]["phase"], "Succeeded");
    let told = object["status"]["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "MetricsError");
    assert_eq!(
        told.unwrap()["message"],
        "could not construct metric 'm': Found existing counter for custom metric m of type gauge"
    );
    has(&controller, "m 1");
}

#[test]
fn j23_the_second_run_of_a_template_has_an_estimate() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let from = |template: &str| {
        let mut manifest = metered(false);
        manifest["metadata"] = json!({"labels": {"workflows.argoproj.io/workflow-template": template}});
        manifest
    };
    let first = controller.submit(submit("first", from("lib"))).unwrap();
    let object = finish(&controller, first);
    assert!(object["status"].get("estimatedDuration").is_none());
    let second = controller.submit(submit("second", from("lib"))).unwrap();
    let object = finish(&controller, second);
    // The duration depends on the machine, but there must be one.
    let told = |value: &Value| value["estimatedDuration"].as_u64().is_some_and(|seconds| seconds >= 1);
    assert!(told(&object["status"]) && told(&object["status"]["nodes"]["second"]), "{object:#}");
    let nodes = object["status"]["nodes"].as_object().unwrap();
    let item = nodes.values().find(|node| node["displayName"] == "fan(1:1)").unwrap();
    assert!(told(item), "{item}");
    let other = controller.submit(submit("other", from("else"))).unwrap();
    assert!(finish(&controller, other)["status"].get("estimatedDuration").is_none());
    let plain = controller.submit(submit("first-again", metered(false))).unwrap();
    assert!(finish(&controller, plain)["status"].get("estimatedDuration").is_none());
    controller.close().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(read::object(&reader, second).unwrap(), object);
}

#[test]
fn a_failed_run_is_no_estimate() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let labels = json!({"labels": {"workflows.argoproj.io/cron-workflow": "nightly"}});
    let mut manifest = metered(true);
    manifest["metadata"] = labels;
    let first = controller.submit(submit("first", manifest.clone())).unwrap();
    controller.command(first, octoflow_engine::Command::Terminate).unwrap();
    assert_eq!(finish(&controller, first)["status"]["phase"], "Failed");
    let second = controller.submit(submit("second", manifest)).unwrap();
    assert!(controller.object(second).unwrap()["status"].get("estimatedDuration").is_none());
}

#[test]
fn tasks_say_which_machine_they_ran_on() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let run = controller.submit(submit("w", metered(false))).unwrap();
    let object = finish(&controller, run);
    let nodes = object["status"]["nodes"].as_object().unwrap();
    let pods: Vec<&Value> = nodes.values().filter(|node| node["type"] == "Pod").collect();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for pod in &pods {
        assert_eq!(pod["hostNodeName"], host.trim());
        assert_eq!((&pod["resourcesDuration"]["cpu"], &pod["taskResultSynced"]), (&json!(0), &json!(true)));
    }
    assert_eq!(pods.len(), 3);
}

#[test]
fn a_series_that_cannot_be_read_is_told_and_the_others_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let run = controller.submit(submit("w", metered(false))).unwrap();
    finish(&controller, run);
    let broken = Change::PutObject {
        kind: "Meter".to_owned(),
        namespace: "odd".to_owned(),
        name: "[]".to_owned(),
        uid: String::new(),
        body: b"{}".to_vec(),
    };
    controller.store().commit_wait(broken.into()).unwrap();
    controller.close().unwrap();
    let text = metrics(&Reader::open(dir.path()).unwrap(), now()).unwrap();
    assert!(text.contains("argo_workflows_runs 1\n"), "{text}");
    assert!(text.lines().last().unwrap().starts_with("# a series of metric odd is left out: "), "{text}");
    has(&open(dir.path()), "runs 1");
}
