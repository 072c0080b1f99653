//! I: parameters, variables, outputs and artifacts.

use octoflow_model::{order::Order, task::ArtifactSource};

use crate::{
    answer::Script,
    check::check,
    play::{Play, ROOMY},
    text::manifest,
};

#[test]
fn i03_a_config_map_may_be_named_by_variables_and_have_a_default() {
    let spec = |name: &str, rest: &str| {
        format!(
            "
arguments: {{parameters: [{{name: cm, value: cm}}, {{name: x, valueFrom: {{configMapKeyRef: {{name: '{name}', key: one}}{rest}}}}}]}}
templates: [{{name: main, container: {{image: i, command: [c], args: ['{{{{workflow.parameters.x}}}}']}}}}]"
        )
    };
    let play = |spec: &str| Play::prepared(manifest(spec), Script::default(), ROOMY, &[("cm", "one", "first")]);
    assert_eq!(play(&spec("cm", "")).finish().said("w"), "first");
    assert_eq!(play(&spec("other", ", default: d")).finish().said("w"), "d");
    let done = play(&spec("other", "")).done();
    assert_eq!(done.phase(), "Error");
    assert!(done.message().contains("ConfigMap 'other' not found"), "{}", done.message());
    let local = "
arguments: {parameters: [{name: cm, value: cm}]}
templates:
- name: main
  inputs: {parameters: [{name: m, valueFrom: {configMapKeyRef: {name: '{{workflow.parameters.cm}}', key: one}}}]}
  container: {image: i, command: [c], args: ['{{inputs.parameters.m}}']}";
    assert_eq!(play(local).finish().said("w"), "first");
}

#[test]
fn i05_labels_annotations_and_parameters_are_json_too() {
    let done = check(
        "
metadata: {labels: {l: one}, annotations: {note: two}}
arguments: {parameters: [{name: p, value: three}]}
templates:
- name: main
  script:
    image: i
    command: [sh]
    source: |
      {{workflow.labels.json}}
      {{workflow.annotations.json}}
      {{workflow.parameters.json}}
      {{workflow.labels.l}} {{workflow.annotations.note}} {{workflow.parameters.p}}
      {{=jsonpath(workflow.parameters.json, '$[0].value')}}
---
phase: Succeeded",
    );
    let source = String::from_utf8(done.tasks["w"].files[0].contents.clone()).unwrap();
    let lines: Vec<&str> = source.lines().collect();
    assert_eq!(
        lines,
        [r#"{"l":"one"}"#, r#"{"note":"two"}"#, r#"[{"name":"p","value":"three"}]"#, "one two three", "three"]
    );
    assert_eq!(done.said("w"), "/argo/staging/script");
}

#[test]
fn i07_the_workflow_and_the_node_can_be_named() {
    check(
        "
metadata: {annotations: {workflows.argoproj.io/scheduled-time: '2024-01-01T00:00:00Z'}}
templates:
- {name: main, steps: [[{name: a, template: t}]]}
- name: t
  container:
    image: i
    command: [c]
    args: ['{{workflow.mainEntrypoint}} {{node.name}} {{workflow.scheduledTime}} {{workflow.name}} {{workflow.uid}} {{steps.name}} {{workflow.creationTimestamp.Y}}']
---
phase: Succeeded
said: {a: 'main w[0].a 2024-01-01T00:00:00Z w u-1 a 2023'}",
    );
}

#[test]
fn i13_a_global_output_is_seen_by_later_steps_and_the_exit_handler() {
    let done = check(
        "
onExit: handler
templates:
- name: main
  steps:
  - [{name: early, template: t}]
  - [{name: a, template: g, arguments: {parameters: [{name: m, value: one}]}}]
  - [{name: b, template: echo, arguments: {parameters: [{name: m, value: '{{workflow.outputs.parameters.X}}'}]}}]
  - [{name: c, template: g, arguments: {parameters: [{name: m, value: two}]}}]
  - [{name: d, template: t}]
- {name: t, container: {image: i, command: [c], args: ['{{workflow.outputs.parameters.X}}']}}
- name: g
  inputs: {parameters: [{name: m}]}
  container: {image: i, command: [c], args: ['{{inputs.parameters.m}}']}
  outputs: {parameters: [{name: p, globalName: X, valueFrom: {path: /tmp/p}}]}
- {name: handler, container: {image: i, command: [c], args: ['{{workflow.outputs.parameters.X}}']}}
---
phase: Succeeded
said: {early: '{{workflow.outputs.parameters.X}}', b: one, d: two, w.onExit: two}",
    );
    assert_eq!(done.status()["outputs"]["parameters"][0], serde_json::json!({"name": "X", "value": "two"}));
}

#[test]
fn i13_a_later_value_of_a_global_output_wins_inside_the_template_that_reads_it_twice() {
    check(
        "
templates:
- name: main
  steps:
  - [{name: a, template: g, arguments: {parameters: [{name: m, value: one}]}}]
  - [{name: inner, template: inner}]
- name: inner
  steps:
  - [{name: b, template: echo, arguments: {parameters: [{name: m, value: '{{workflow.outputs.parameters.X}}'}]}}]
  - [{name: c, template: g, arguments: {parameters: [{name: m, value: two}]}}]
  - [{name: d, template: echo, arguments: {parameters: [{name: m, value: '{{=workflow.outputs.parameters.X}}'}]}}]
- name: g
  inputs: {parameters: [{name: m}]}
  container: {image: i, command: [c], args: ['{{inputs.parameters.m}}']}
  outputs: {parameters: [{name: p, globalName: X, valueFrom: {path: /tmp/p}}]}
---
phase: Succeeded
said: {b: one, d: two}",
    );
}

#[test]
fn i14_a_result_is_captured_only_when_someone_refers_to_it() {
    let done = check(
        "
templates:
- name: main
  steps:
  - [{name: a, template: say}, {name: b, template: say}]
  - [{name: c, template: echo, arguments: {parameters: [{name: m, value: '{{steps.a.outputs.result}}'}]}}]
---
answers: {a: {result: spoken}}
phase: Succeeded
said: {c: spoken}",
    );
    assert!(done.tasks["w[0].a"].wanted.result && !done.tasks["w[0].b"].wanted.result);
    assert_eq!(done.node("a")["outputs"]["result"], "spoken");
    assert!(done.node("b")["outputs"].get("result").is_none());
}

const PASSING: &str = "
templates:
- name: main
  dag:
    tasks:
    - {name: make, template: maker}
    - {name: use, depends: make, template: user, arguments: {artifacts: [{name: in, from: '{{tasks.make.outputs.artifacts.out}}'}]}}
- name: maker
  container: {image: i, command: [c]}
  outputs: {artifacts: [{name: out, path: /tmp/out, OPTIONAL}]}
- name: user
  inputs: {artifacts: [{name: in, path: /tmp/in, OPTIONAL}]}
  container: {image: i, command: [c], args: ['{{inputs.artifacts.in.path}}']}";

#[test]
fn an_artifact_passes_from_one_task_to_the_next() {
    let done = Play::new(&PASSING.replace(", OPTIONAL", "")).finish();
    assert_eq!((done.phase(), done.said("use")), ("Succeeded", "/tmp/in"));
    let key = format!("w/{}/out.tgz", done.tasks["w.make"].name);
    let [input] = &done.tasks["w.use"].inputs[..] else { panic!("one artifact is passed") };
    let ArtifactSource::Stored { artifact, .. } = &input.source else { panic!("it is a stored one") };
    assert_eq!((artifact.key.as_str(), input.path.as_str()), (key.as_str(), "/tmp/in"));
}

#[test]
fn i15_an_optional_artifact_may_be_missing_and_any_other_may_not() {
    let mut answer = crate::answer::exit(0);
    answer.no_artifacts = vec!["out".to_owned()];
    let script = Script::default().on("make", answer);
    let done = Play::with(&PASSING.replace("OPTIONAL", "optional: true"), script.clone()).finish();
    assert_eq!(done.phase(), "Succeeded");
    assert!(done.tasks["w.use"].inputs.is_empty());
    let done = Play::with(&PASSING.replace(", OPTIONAL", ""), script).finish();
    assert_eq!((done.phase(), done.node_phase("make"), done.node_phase("use")), ("Error", "Error", "Omitted"));
}

#[test]
fn artifacts_pass_through_the_outputs_of_a_template() {
    let done = check(
        "
templates:
- name: main
  steps:
  - [{name: a, template: inner}]
  - [{name: b, template: user, arguments: {artifacts: [{name: in, from: '{{steps.a.outputs.artifacts.o}}'}, {name: raw, raw: {data: 'x{{workflow.name}}'}}]}}]
- name: inner
  dag: {tasks: [{name: m, template: maker}]}
  outputs: {artifacts: [{name: o, from: '{{tasks.m.outputs.artifacts.out}}'}]}
- {name: maker, container: {image: i, command: [c]}, outputs: {artifacts: [{name: out, path: /tmp/out, globalName: glob}]}}
- {name: user, inputs: {artifacts: [{name: in, path: /tmp/in}, {name: raw, path: /tmp/raw}]}, container: {image: i, command: [c]}}
---
phase: Succeeded",
    );
    let inputs = &done.tasks["w[1].b"].inputs;
    assert!(matches!(&inputs[0].source, ArtifactSource::Stored { .. }));
    assert_eq!(inputs[1].source, ArtifactSource::Raw { data: "xw".to_owned() });
    assert_eq!(done.status()["outputs"]["artifacts"][0]["name"], "glob");
}

#[test]
fn outputs_of_a_template_may_be_chosen_by_expression() {
    let done = check(
        "
templates:
- name: main
  steps:
  - - {name: heads, template: make, when: 'true', arguments: {parameters: [{name: m, value: H}]}}
    - {name: tails, template: make, when: 'false', arguments: {parameters: [{name: m, value: T}]}}
  outputs:
    parameters:
    - name: side
      valueFrom: {expression: \"steps.heads.status == 'Succeeded' ? steps.heads.outputs.parameters.p : steps.tails.outputs.parameters.p\"}
---
phase: Succeeded",
    );
    assert_eq!(done.output("w", "side"), "H");
}

#[test]
fn braces_of_other_languages_survive() {
    check(
        "
templates:
- {name: main, container: {image: i, command: [c], args: ['{{user.x}} {{ .Values.y }} {{workflow.name}} ${{z}} {{items.k}}']}}
---
phase: Succeeded
said: {w: '{{user.x}} {{ .Values.y }} w ${{z}} {{items.k}}'}",
    );
}

#[test]
fn what_a_task_printed_is_never_read_as_a_template() {
    let done = check(
        "
templates:
- name: main
  steps:
  - [{name: gen, template: say}]
  - [{name: use, template: inner, arguments: {parameters: [{name: x, value: '{{steps.gen.outputs.result}}'}]}}]
- name: inner
  inputs: {parameters: [{name: x}]}
  dag:
    tasks:
    - {name: a, template: echo, arguments: {parameters: [{name: m, value: '{{inputs.parameters.x}} {{retries}}'}]}}
    - {name: b, template: echo, when: 'true', withItems: [1], arguments: {parameters: [{name: m, value: '{{item}} {{inputs.parameters.x}}'}]}}
---
answers: {gen: {result: '{{item}} {{tasks.none.outputs.result}} {{workflow.name}}'}}
phase: Succeeded",
    );
    assert_eq!(done.input("a", "m"), "{{item}} {{tasks.none.outputs.result}} {{workflow.name}} {{retries}}");
    assert_eq!(done.input("b(0:1)", "m"), "1 {{item}} {{tasks.none.outputs.result}} {{workflow.name}}");
}

#[test]
fn calls_of_a_retried_template_know_which_attempt_they_belong_to() {
    check(
        "
templates:
- name: main
  retryStrategy: {limit: 2}
  steps:
  - [{name: a, template: echo, arguments: {parameters: [{name: m, value: '{{retries}} {{node.name}} {{=lastRetry.status}}'}]}}]
  - [{name: b, template: fail, when: '{{retries}} == 0'}]
---
phase: Succeeded
said: {'w(0)[0].a': '0 w(0) ', 'w(1)[0].a': '1 w(1) Failed'}",
    );
}

#[test]
fn values_are_put_in_as_they_are_whatever_they_hold() {
    let done = check(
        r#"
arguments: {parameters: [{name: x, value: "a\"b\\n\nc {{workflow.name}} $(HOME)"}]}
templates:
- {name: main, steps: [[{name: a, template: echo, arguments: {parameters: [{name: m, value: '<{{workflow.parameters.x}}>'}]}}]]}
---
phase: Succeeded"#,
    );
    assert_eq!(done.input("a", "m"), "<a\"b\\n\nc w $(HOME)>");
}

#[test]
fn a_task_is_told_everything_it_needs() {
    let spec = "
volumes: [{name: work, emptyDir: {}}, {name: conf, configMap: {name: cm}}]
templates:
- name: main
  container:
    image: alpine
    command: [sh, -c]
    args: ['echo $(GREETING)']
    workingDir: /work
    env: [{name: GREETING, value: hi}, {name: FROM, valueFrom: {configMapKeyRef: {name: cm, key: one}}}]
    volumeMounts: [{name: work, mountPath: /work}, {name: conf, mountPath: /etc/conf}]
    resources: {requests: {cpu: 500m, memory: 1Ki}}";
    let play = Play::prepared(manifest(spec), Script::default(), ROOMY, &[("cm", "one", "first")]);
    let Some(Order::Start { task, .. }) = play.orders.first() else { panic!("it starts at once") };
    assert_eq!(
        (task.name.as_str(), task.main.image.as_str(), task.main.args.join("")),
        ("w", "alpine", "echo hi".to_owned())
    );
    assert!(task.main.env.iter().any(|(name, value)| name == "FROM" && value.reveal() == "first"));
    assert_eq!((task.files[0].path.as_str(), &task.files[0].contents[..]), ("/etc/conf/one", &b"first"[..]));
    assert_eq!(task.mounts[0].path, "/work");
    assert_eq!((task.resources.cpu_milli, task.resources.memory_bytes), (500, 1024));
}
