//! Admits CronWorkflows and WorkflowEventBindings, and reports all problems of wrong ones.

use serde_json::{Value, json};

use super::{Objects, pairs, parsed};
use crate::dialects::argo::admit::{examine_binding, examine_cron};

const CRON: &str = "
apiVersion: argoproj.io/v1alpha1
kind: CronWorkflow
metadata: {name: nightly}
spec:
  schedules: ['0 2 * * *', '@every 90m', 'CRON_TZ=Asia/Tokyo @daily']
  timezone: Europe/Zurich
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 60
  catchUp: {policy: all, limit: 3}
  when: '{{= cronworkflow.lastScheduledTime == nil }}'
  stopStrategy: {expression: 'cronworkflow.failed >= 3'}
  workflowMetadata: {labels: {team: data}}
  workflowSpec:
    entrypoint: main
    podGC: {strategy: OnPodSuccess, labelSelector: {matchLabels: {a: b}}, deleteDelayDuration: 10s}
    templates:
    - name: main
      container: {image: i, command: [echo, '{{workflow.scheduledTime}} {{workflow.labels.team}}']}
";

const BINDING: &str = "
apiVersion: argoproj.io/v1alpha1
kind: WorkflowEventBinding
metadata: {name: on-push}
spec:
  event: {selector: 'payload.message != \"\" && metadata[\"x-kind\"] == [\"push\"]'}
  submit:
    workflowTemplateRef: {name: t}
    metadata: {generateName: \"'run-'\", labels: {who: payload.who}}
    arguments: {parameters: [{name: p, valueFrom: {event: payload.message}}]}
";

fn changed(text: &str, pointer: &str, value: Value) -> Value {
    let mut object = parsed(text);
    let (place, key) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(place).unwrap()[key] = value;
    object
}

#[test]
fn what_makes_sense_is_let_in() {
    let told = |object: &Value| {
        let (problems, warnings) = examine_cron(object, &Objects::default());
        [pairs(&problems), pairs(&warnings)].concat()
    };
    assert_eq!(told(&parsed(CRON)), []);
    let older = changed(CRON, "/spec/schedule", json!("* * * * *"));
    assert_eq!(told(&older), []);
    let (problems, warnings) = examine_binding(&parsed(BINDING), &Objects::default());
    assert_eq!(pairs(&problems), []);
    assert_eq!(pairs(&warnings), [("OF1040".to_owned(), "spec.submit.workflowTemplateRef.name".to_owned())]);
    let objects = Objects {
        templates: vec![json!({"kind": "WorkflowTemplate", "metadata": {"name": "t"}})],
        ..Objects::default()
    };
    assert_eq!(pairs(&examine_binding(&parsed(BINDING), &objects).1), []);
}

#[test]
fn a_condition_of_braces_is_judged_in_one_pass() {
    let began = std::time::Instant::now();
    for text in ["{{=".repeat(200_000), "{{='".repeat(200_000) + "}}"] {
        examine_cron(&changed(CRON, "/spec/when", json!(text)), &Objects::default());
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(60), "it took {:?}", began.elapsed());
}

#[test]
fn a_wrong_cron_workflow_is_told_where() {
    for (pointer, value, code, path) in [
        ("/spec/schedules", json!([]), "OF1070", "spec.schedules"),
        ("/spec/schedules", json!(["0 2 * * *", "0 25 * * *"]), "OF1070", "spec.schedules[1]"),
        ("/spec/timezone", json!("Zurich"), "OF1070", "spec.timezone"),
        ("/spec/concurrencyPolicy", json!("Never"), "OF1041", "spec.concurrencyPolicy"),
        ("/spec/catchUp", json!({"limit": 3}), "OF1016", "spec.catchUp"),
        ("/spec/catchUp", json!({"policy": "all", "limit": 5000}), "OF1041", "spec.catchUp.limit"),
        ("/spec/when", json!("{{= 1 + }}"), "OF1030", "spec.when"),
        (
            "/spec/stopStrategy",
            json!({"expression": "cronworkflw.failed > 1"}),
            "OF1029",
            "spec.stopStrategy.expression",
        ),
        ("/metadata/name", json!("n".repeat(53)), "OF1014", "metadata.name"),
        ("/metadata/name", json!("Nightly"), "OF1014", "metadata.name"),
        ("/spec/workflowSpec/entrypoint", json!("other"), "OF1018", "spec.workflowSpec.entrypoint"),
        (
            "/spec/workflowSpec/templates/0/container",
            json!({"image": "i", "command": ["{{workflow.labels.x}}"]}),
            "OF1029",
            "spec.workflowSpec.templates[0].container.command[0]",
        ),
        (
            "/spec/workflowSpec/templates/0/container/imag",
            json!("x"),
            "OF1003",
            "spec.workflowSpec.templates[0].container.imag",
        ),
        ("/spec/workflowSpec", json!(null), "OF1016", "spec"),
        (
            "/spec/workflowSpec/arguments",
            json!({"parameters": [{"name": "p"}]}),
            "OF1020",
            "spec.workflowSpec.arguments.parameters[0]",
        ),
        ("/apiVersion", json!("v1"), "OF1012", "apiVersion"),
    ] {
        let (problems, _) = examine_cron(&changed(CRON, pointer, value.clone()), &Objects::default());
        assert_eq!(pairs(&problems), [(code.to_owned(), path.to_owned())], "{pointer} {value}");
    }
}

#[test]
fn a_wrong_binding_is_told_where() {
    for (pointer, value, code, path) in [
        ("/spec/event", json!({"selector": "payload."}), "OF1030", "spec.event.selector"),
        ("/spec/event", json!({"selector": "paylod.x == 1"}), "OF1029", "spec.event.selector"),
        ("/spec/event", json!({}), "OF1016", "spec"),
        ("/spec/submit/metadata/labels", json!({"who": "1 +"}), "OF1030", "spec.submit.metadata.labels.who"),
        ("/spec/submit/workflowTemplateRef", json!({}), "OF1016", "spec.submit.workflowTemplateRef"),
        ("/spec/submit/arguments/parameters", json!([{"name": "p"}]), "OF1016", "spec.submit.arguments.parameters[0]"),
        (
            "/spec/submit/arguments/parameters",
            json!([{"name": "p", "value": "x", "valueFrom": {"event": "payload"}}]),
            "OF1003",
            "spec.submit.arguments.parameters[0].value",
        ),
    ] {
        let (problems, _) = examine_binding(&changed(BINDING, pointer, value.clone()), &Objects::default());
        assert_eq!(pairs(&problems), [(code.to_owned(), path.to_owned())], "{pointer} {value}");
    }
}

#[test]
fn everything_wrong_is_told_at_once() {
    let mut object = changed(CRON, "/spec/schedules", json!(["nonsense"]));
    object["spec"]["workflowSpec"]["entrypoint"] = json!("other");
    object["metadata"]["name"] = json!("-");
    assert_eq!(examine_cron(&object, &Objects::default()).0.len(), 3);
}
