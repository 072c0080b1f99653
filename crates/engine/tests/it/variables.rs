//! Every variable of the dialect, as a tag and as an expression, with the value it has.

use serde_json::{Value, json};

use crate::{
    answer::{Answer, Script, exit, prints},
    play::Play,
    text::yaml,
};

/// Expected value of each name in `take`, the second step of the workflow below.
const IN_A_LEAF: &[(&str, &str)] = &[
    ("workflow.name", "w"),
    ("workflow.namespace", "default"),
    ("workflow.uid", "u-1"),
    ("workflow.mainEntrypoint", "main"),
    ("workflow.serviceAccountName", "builder"),
    ("workflow.priority", "5"),
    ("workflow.status", "Running"),
    ("workflow.duration", "1.000000"),
    ("workflow.scheduledTime", "2026-04-29T00:00:00Z"),
    ("workflow.parameters.greeting", "hello"),
    ("workflow.parameters.json", r#"[{"name":"greeting","value":"hello"}]"#),
    ("workflow.labels.app", "demo"),
    ("workflow.annotations.owner", "us"),
    ("workflow.labels.json", r#"{"app":"demo"}"#),
    ("workflow.creationTimestamp.Y", "2023"),
    ("workflow.creationTimestamp.m", "11"),
    ("workflow.creationTimestamp.d", "14"),
    ("workflow.creationTimestamp.H", "22"),
    ("workflow.creationTimestamp.M", "13"),
    ("workflow.creationTimestamp.S", "20"),
    ("workflow.creationTimestamp.s", "1700000000"),
    ("workflow.creationTimestamp.RFC3339", "2023-11-14T22:13:20Z"),
    ("workflow.outputs.parameters.shared", "exported"),
    ("inputs.parameters.text", "given"),
    ("inputs.artifacts.file.path", "/tmp/in"),
    ("node.name", "w[1].take(0)"),
    ("steps.name", "take"),
    ("retries", "0"),
    ("lastRetry.exitCode", "0"),
    ("lastRetry.status", ""),
    ("lastRetry.duration", "0"),
    ("lastRetry.message", ""),
];

/// Only as a tag: an expression sees the parts.
const AS_TAGS: &[(&str, &str)] = &[
    ("workflow.parameters", r#"[{"name":"greeting","value":"hello"}]"#),
    ("workflow.labels", r#"{"app":"demo"}"#),
    ("workflow.annotations", r#"{"owner":"us","workflows.argoproj.io/scheduled-time":"2026-04-29T00:00:00Z"}"#),
    ("workflow.creationTimestamp", "2023-11-14T22:13:20Z"),
    ("workflow.failures", r#""[]""#),
    ("inputs.parameters", r#"[{"name":"text","value":"given"}]"#),
    ("outputs.parameters.out.path", "/tmp/out"),
    ("outputs.artifacts.file.path", "/tmp/file"),
    ("user.defined", "{{user.defined}}"),
    ("  workflow.name  ", "w"),
];

/// Expected value of each name in the arguments of a step of the second group.
const OF_STEPS: &[(&str, &str)] = &[
    ("steps.make.status", "Succeeded"),
    ("steps.make.id", "w-1260525640"),
    ("steps.make.startedAt", "2023-11-14T22:13:21Z"),
    ("steps.make.finishedAt", "2023-11-14T22:13:21Z"),
    ("steps.make.hostNodeName", "localhost"),
    ("steps.make.exitCode", "0"),
    ("steps.make.outputs.exitCode", "0"),
    ("steps.make.outputs.result", "printed"),
    ("steps.make.outputs.parameters.out", "exported"),
    ("steps.many.outputs.result", r#"["printed","printed"]"#),
    ("steps.many.outputs.parameters.out", r#"["exported","exported"]"#),
    ("item.key", "k"),
];

const STEP_TAGS: &[(&str, &str)] =
    &[("steps.many.outputs.parameters", r#"[{"out":"exported"},{"out":"exported"}]"#), ("item", r#"{"key":"k"}"#)];

/// A name in brackets wherever that is allowed: `steps['make'].outputs['result']`.
fn bracketed(name: &str) -> String {
    let mut parts = name.split('.');
    let root = parts.next().unwrap_or_default();
    parts.fold(root.to_owned(), |text, part| format!("{text}['{part}']"))
}

/// Each name in three spellings, one to a line.
fn asked(both: &[(&str, &str)], tags: &[(&str, &str)]) -> String {
    let lines = both.iter().flat_map(|(name, _)| {
        [format!("{{{{{name}}}}}"), format!("{{{{={name}}}}}"), format!("{{{{= {} }}}}", bracketed(name))]
    });
    lines.chain(tags.iter().map(|(name, _)| format!("{{{{{name}}}}}"))).collect::<Vec<_>>().join("\n")
}

fn told(both: &[(&str, &str)], tags: &[(&str, &str)]) -> Vec<(String, String)> {
    let both = both.iter().flat_map(|(name, value)| {
        ["tag", "expression", "brackets"].map(|how| (format!("{name} as {how}"), (*value).to_owned()))
    });
    both.chain(tags.iter().map(|(name, value)| (format!("{name} as tag"), (*value).to_owned()))).collect()
}

fn workflow() -> Value {
    let mut manifest = yaml(
        "
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  name: w
  labels: {app: demo}
  annotations: {owner: us, workflows.argoproj.io/scheduled-time: '2026-04-29T00:00:00Z'}
spec:
  entrypoint: main
  onExit: bye
  serviceAccountName: builder
  priority: 5
  arguments: {parameters: [{name: greeting, value: hello}]}
  templates:
  - name: main
    steps:
    - - {name: make, template: make}
      - {name: many, template: make, withItems: [1, 2]}
    - - name: take
        template: take
        arguments:
          parameters: [{name: text, value: given}]
          artifacts: [{name: file, from: '{{steps.make.outputs.artifacts.file}}'}]
      - name: ask
        template: say
        withItems: [{key: k}]
        arguments: {parameters: [{name: text, value: ASKED}]}
  - name: make
    outputs:
      parameters: [{name: out, globalName: shared, valueFrom: {path: /tmp/out}}]
      artifacts: [{name: file, path: /tmp/file}]
    script: {image: i, command: [sh], source: make}
  - name: take
    retryStrategy: {limit: 1}
    inputs:
      parameters: [{name: text}]
      artifacts: [{name: file, path: /tmp/in}]
    outputs:
      parameters: [{name: out, valueFrom: {path: /tmp/out}}]
      artifacts: [{name: file, path: /tmp/file}]
    container: {image: i, command: [c], args: [ASKED]}
  - name: say
    inputs: {parameters: [{name: text}]}
    container: {image: i, command: [c], args: ['{{inputs.parameters.text}}']}
  - name: bye
    container: {image: i, command: [c], args: ['{{workflow.status}} {{workflow.failures}} {{=workflow.status}}']}
",
    )
    .remove(0);
    manifest["spec"]["templates"][2]["container"]["args"] = json!([asked(IN_A_LEAF, AS_TAGS)]);
    manifest["spec"]["templates"][0]["steps"][1][1]["arguments"]["parameters"][0]["value"] =
        json!(asked(OF_STEPS, STEP_TAGS));
    manifest
}

#[test]
fn every_variable_has_its_value_in_every_spelling() {
    let made = Answer { parameters: vec![("out".to_owned(), Some("exported".to_owned()))], ..prints("printed") };
    let script = Script::default().on("make", made).on("take", exit(0));
    let done = Play::of(workflow(), script).finish();
    assert_eq!(done.phase(), "Succeeded", "{}", done.message());
    for (node, expected) in [("take(0)", told(IN_A_LEAF, AS_TAGS)), ("ask(0:key:k)", told(OF_STEPS, STEP_TAGS))] {
        let said: Vec<&str> = done.said(node).split('\n').collect();
        assert_eq!(said.len(), expected.len(), "{}", done.said(node));
        let wrong: Vec<String> = expected
            .iter()
            .zip(said)
            .filter(|((_, value), said)| value != said)
            .map(|((name, value), said)| format!("{name}: expected {value}, got {said}"))
            .collect();
        assert!(wrong.is_empty(), "{node}:\n{}", wrong.join("\n"));
    }
    assert_eq!(done.said("w.onExit"), r#"Succeeded "[]" Succeeded"#);
}

#[test]
fn tasks_are_called_tasks_and_attempts_know_the_one_before() {
    let manifest = yaml(
        "
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: w}
spec:
  entrypoint: main
  templates:
  - name: main
    dag:
      tasks:
      - {name: a, template: flaky}
      - {name: b, template: say, depends: a, arguments: {parameters: [{name: t, value: \"{{tasks.a.status}} {{tasks.a.exitCode}} {{=tasks['a'].outputs.exitCode}}\"}]}}
  - name: flaky
    retryStrategy: {limit: 2}
    container: {image: i, command: [c], args: ['{{tasks.name}} {{retries}} {{lastRetry.exitCode}} {{lastRetry.status}} {{=asInt(retries) + 1}} {{pod.name}}']}
  - name: say
    inputs: {parameters: [{name: t}]}
    container: {image: i, command: [c], args: ['{{inputs.parameters.t}}']}
",
    )
    .remove(0);
    let script = Script::default().on("a(0)", exit(3));
    let done = Play::of(manifest, script).finish();
    assert_eq!(done.phase(), "Succeeded", "{}", done.message());
    let said = |node: &str| done.said(node).rsplit_once(' ').map(|(rest, _)| rest.to_owned());
    assert_eq!(said("a(0)").as_deref(), Some("a 0 0  1"));
    assert_eq!(said("a(1)").as_deref(), Some("a 1 3 Failed 2"));
    assert!(done.said("a(1)").contains(" w-flaky-"), "{}", done.said("a(1)"));
    assert_eq!(done.said("b"), "Succeeded 0 0");
}
