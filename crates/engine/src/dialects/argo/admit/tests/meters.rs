//! Custom metrics that are admitted, refused, and warned about.

use serde_json::{Value, json};

use super::{Objects, pairs, parsed, with_templates};
use crate::dialects::argo::admit::admit;

fn workflow(metrics: Value) -> Value {
    let mut object = parsed(&with_templates(
        "
  - name: main
    inputs: {parameters: [{name: p, value: x}]}
    outputs: {parameters: [{name: o, valueFrom: {path: /o}}]}
    container: {image: i, command: [c]}
",
    ));
    object["spec"]["templates"][0]["metrics"] = json!({"prometheus": metrics});
    object
}

fn metric(change: Value) -> Value {
    let mut metric = json!({"name": "m", "help": "H", "counter": {"value": "1"}});
    let fields = metric.as_object_mut().unwrap();
    for (key, value) in change.as_object().unwrap() {
        fields.insert(key.clone(), value.clone());
    }
    metric
}

fn gauge(gauge: Value) -> Value {
    metric(json!({"counter": null, "gauge": gauge}))
}

type Told = Vec<(String, String)>;

/// Returns problems and warnings.
fn told(object: &Value) -> (Told, Told) {
    match admit(object, &Objects::default()) {
        Ok(admitted) => (Vec::new(), pairs(admitted.warnings())),
        Err(problems) => (pairs(&problems), Vec::new()),
    }
}

#[test]
fn sound_metrics_are_admitted_without_a_word() {
    let all = json!([
        metric(json!({"when": "{{status}} == Failed", "labels": [
            {"key": "a", "value": "{{inputs.parameters.p}} {{outputs.parameters.o}} {{outputs.result}} {{exitCode}}"},
            {"key": "b", "value": "{{resourcesDuration.cpu}} {{workflow.name}}"}]})),
        gauge(json!({"realtime": true, "value": "{{duration}}"})),
        metric(json!({"name": "h", "counter": null, "histogram": {"value": 5, "buckets": [1, "2.5", 10]}})),
        metric(json!({"name": "x_{{inputs.parameters.p}}"})),
    ]);
    let mut all = all;
    all[1]["name"] = json!("g");
    let mut object = workflow(all);
    object["spec"]["metrics"] = json!({"prometheus": [
        {"name": "w", "help": "W", "gauge": {"realtime": true, "value": "{{workflow.duration}}"}},
        {"name": "v", "help": "V", "labels": [{"key": "s", "value": "{{workflow.status}}"}], "gauge": {"value": "{{duration}}"}}]});
    assert_eq!(told(&object), (Vec::new(), Vec::new()));
}

#[test]
fn what_can_never_be_published_is_refused_at_its_place() {
    for (metric, code, place) in [
        (metric(json!({"name": "my-metric"})), "OF1065", ".name"),
        (metric(json!({"name": ""})), "OF1065", ".name"),
        (metric(json!({"name": "1st"})), "OF1065", ".name"),
        (metric(json!({"help": null})), "OF1065", ""),
        (metric(json!({"counter": null})), "OF1065", ""),
        (metric(json!({"gauge": {"value": "1"}})), "OF1065", ""),
        (metric(json!({"counter": {}})), "OF1065", ".counter"),
        (metric(json!({"counter": {"value": "-1"}})), "OF1065", ".counter.value"),
        (metric(json!({"counter": {"value": "1", "realtime": true}})), "OF1011", ".counter.realtime"),
        (metric(json!({"labels": [{"key": "a-b", "value": "x"}]})), "OF1065", ".labels[0].key"),
        (metric(json!({"labels": [{"key": "a:b", "value": "x"}]})), "OF1065", ".labels[0].key"),
        (metric(json!({"labels": [{"key": "__a", "value": "x"}]})), "OF1065", ".labels[0].key"),
        (
            metric(json!({"labels": [{"key": "a", "value": "x"}, {"key": "a", "value": "y"}]})),
            "OF1015",
            ".labels[1].key",
        ),
        (metric(json!({"when": "a == ("})), "OF1031", ".when"),
        (metric(json!({"labels": [{"key": "a", "value": "{{inputs.parameters.q}}"}]})), "OF1029", ".labels[0].value"),
        (gauge(json!({"value": "{{resourcesDuration.cpu}}", "realtime": true})), "OF1065", ".gauge.value"),
        (gauge(json!({"value": "1", "operation": "Mul"})), "OF1041", ".gauge.operation"),
        (
            metric(json!({"counter": null, "histogram": {"value": "1", "buckets": [1, "many"]}})),
            "OF1065",
            ".histogram.buckets",
        ),
        (
            metric(json!({"counter": null, "histogram": {"value": "1", "buckets": [2, 1]}})),
            "OF1065",
            ".histogram.buckets",
        ),
        (
            metric(
                json!({"counter": null, "histogram": {"value": "1", "buckets": [1]}, "labels": [{"key": "le", "value": "x"}]}),
            ),
            "OF1065",
            ".labels[0].key",
        ),
    ] {
        let (wrong, _) = told(&workflow(json!([metric])));
        let place = format!("spec.templates[0].metrics.prometheus[0]{place}");
        assert_eq!(wrong, [(code.to_owned(), place)], "{metric}");
    }
}

#[test]
fn what_fails_only_for_the_metric_is_a_warning() {
    for (metrics, place) in [
        (json!([metric(json!({"counter": {"value": "often"}}))]), "[0].counter.value"),
        (json!([gauge(json!({"value": "{{status}}", "realtime": true}))]), "[0].gauge.value"),
        (json!([metric(json!({})), metric(json!({"help": "Else"}))]), "[1]"),
        (json!([metric(json!({})), gauge(json!({"value": "1"}))]), "[1]"),
        (json!([metric(json!({})), metric(json!({"labels": [{"key": "a", "value": "x"}]}))]), "[1]"),
    ] {
        let (wrong, warned) = told(&workflow(metrics.clone()));
        assert_eq!(wrong, []);
        let place = format!("spec.templates[0].metrics.prometheus{place}");
        assert_eq!(warned, [("OF1065".to_owned(), place)], "{metrics}");
    }
    let (_, warned) = told(&workflow(json!([gauge(json!({"value": "{{durration}}"}))])));
    assert_eq!(warned[0].0, "OF1029");
}

#[test]
fn a_flaw_of_the_defaults_is_told_once_and_at_their_place() {
    let mut object = workflow(json!([]));
    object["spec"]["templates"][0]["metrics"] = Value::Null;
    object["spec"]["templateDefaults"] =
        json!({"metrics": {"prometheus": [{"name": "a-b", "help": "H", "counter": {"value": 1}}]}});
    let (wrong, _) = told(&object);
    assert_eq!(wrong, [("OF1065".to_owned(), "spec.templateDefaults.metrics.prometheus[0].name".to_owned())]);
    object["spec"]["metrics"] =
        json!({"prometheus": [{"name": "w", "help": "W", "counter": {"value": "{{workflow.nam}}"}}]});
    let (wrong, _) = told(&object);
    assert_eq!(wrong[1].1, "spec.metrics.prometheus[0].counter.value");
}

#[test]
fn fields_without_meaning_here_are_known_and_warned_of_once_each() {
    let mut object = workflow(json!([]));
    let fields = json!({"securityContext": {}, "executor": {},
        "hostAliases": [], "schedulerName": "s", "automountServiceAccountToken": false, "podSpecPatch": "{}"});
    for (name, value) in fields.as_object().unwrap() {
        object["spec"][name] = value.clone();
        object["spec"]["templates"][0][name] = value.clone();
    }
    for (name, value) in [
        ("dnsPolicy", json!("Default")),
        ("dnsConfig", json!({})),
        ("hostNetwork", json!(true)),
        ("imagePullSecrets", json!([])),
        ("podDisruptionBudget", json!({})),
        ("ttlSecondsAfterFinished", json!(5)),
    ] {
        object["spec"][name] = value;
    }
    for (name, value) in [("resubmitPendingPods", json!(true)), ("arguments", json!({}))] {
        object["spec"]["templates"][0][name] = value;
    }
    let (wrong, warned) = told(&object);
    assert_eq!(wrong, []);
    assert_eq!(warned.len(), fields.as_object().unwrap().len() + 6 + 2, "{warned:?}");
    assert!(warned.iter().all(|(code, _)| code == "OF1013"), "{warned:?}");
}
