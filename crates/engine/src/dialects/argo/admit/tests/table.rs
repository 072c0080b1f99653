//! Wrong manifests with the codes and paths of their problems, in the order reported.

use serde_json::{Value, json};

use super::{Objects, judged, pairs, parsed, with_templates, wrongs};
use crate::dialects::argo::admit::admit;

/// Returns a valid workflow; each case changes one thing about it.
fn sound() -> Value {
    parsed(&with_templates(
        r#"
  - name: main
    inputs:
      parameters: [{name: who, default: world}]
    steps:
    - - {name: one, template: say, arguments: {parameters: [{name: text, value: "{{inputs.parameters.who}}"}]}}
    - - {name: two, template: say, arguments: {parameters: [{name: text, value: "{{steps.one.outputs.result}}"}]}}
      - {name: graph, template: graph}
  - name: say
    inputs:
      parameters: [{name: text}]
    outputs:
      parameters: [{name: out, valueFrom: {path: /tmp/out}}]
      artifacts: [{name: file, path: /tmp/file}]
    container: {image: busybox, command: [echo], args: ["{{inputs.parameters.text}}"]}
  - name: graph
    dag:
      tasks:
      - {name: a, template: say, arguments: {parameters: [{name: text, value: x}]}}
      - {name: b, template: say, depends: a, arguments: {parameters: [{name: text, value: "{{tasks.a.outputs.parameters.out}}"}]}}
  - name: pause
    suspend: {duration: 10s}
"#,
    ))
}

/// Sets the value at a JSON pointer. A missing last step is added.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let (head, last) = pointer.rsplit_once('/').expect("a pointer begins with a slash");
    let parent = object.pointer_mut(head).unwrap_or_else(|| panic!("nothing at {head}"));
    match parent {
        Value::Array(items) => match last.parse::<usize>() {
            Ok(index) => items[index] = value,
            Err(_) => items.push(value),
        },
        Value::Object(fields) => {
            fields.insert(last.to_owned(), value);
        }
        _ => panic!("{head} is a scalar"),
    }
}

type Case = (&'static str, Value, &'static [(&'static str, &'static str)]);

fn check(cases: &[Case]) {
    for (pointer, value, expected) in cases {
        let mut object = sound();
        set(&mut object, pointer, value.clone());
        let found = match admit(&object, &Objects::default()) {
            Ok(_) => Vec::new(),
            Err(problems) => pairs(&problems),
        };
        let found: Vec<(&str, &str)> = found.iter().map(|(code, path)| (code.as_str(), path.as_str())).collect();
        assert_eq!(found, *expected, "{pointer} = {value}");
    }
}

const STEP: &str = "/spec/templates/0/steps/0/0";
const LEAF: &str = "/spec/templates/1";

fn at(base: &str, rest: &str) -> &'static str {
    Box::leak(format!("{base}{rest}").into_boxed_str())
}

#[test]
fn the_sound_one_is_admitted_without_a_word() {
    let admitted = admit(&sound(), &Objects::default()).unwrap();
    assert!(admitted.warnings().is_empty(), "{:?}", admitted.warnings());
    assert_eq!(admitted.workflow().spec.templates.len(), 4);
}

#[test]
fn kinds_names_and_roots() {
    check(&[
        ("/kind", json!("CronWorkflow"), &[("OF1012", "kind")]),
        ("/kind", json!("Workflo"), &[("OF1012", "kind")]),
        ("/apiVersion", json!("argoproj.io/v1"), &[("OF1012", "apiVersion")]),
        ("/metadata", json!({}), &[("OF1016", "metadata")]),
        ("/metadata", json!({"name": "Big"}), &[("OF1014", "metadata.name")]),
        ("/metadata", json!({"name": "x".repeat(64)}), &[("OF1014", "metadata.name")]),
        ("/metadata", json!({"generateName": "_x-"}), &[("OF1014", "metadata.generateName")]),
        ("/metadata/namespace", json!("a.b"), &[("OF1014", "metadata.namespace")]),
        ("/metadata/labels", json!({"a": 1}), &[("OF1010", "metadata.labels.a")]),
        ("/spec/entrypoint", Value::Null, &[("OF1016", "spec")]),
        ("/spec/entrypoint", json!("mian"), &[("OF1018", "spec.entrypoint")]),
        ("/spec/entrypoint", json!(1), &[("OF1010", "spec.entrypoint")]),
        ("/spec/onExit", json!("nobody"), &[("OF1018", "spec.onExit")]),
        ("/spec/onExit", json!("say"), &[("OF1019", "spec.onExit")]),
        ("/spec/hooks", json!({"exit": {"template": "say"}}), &[("OF1019", "spec.hooks.exit.template")]),
        ("/spec/hooks", json!({"failed": {"template": "pause"}}), &[("OF1039", "spec.hooks.failed")]),
        (
            "/spec/hooks",
            json!({"running": {"template": "say", "expression": "true"}}),
            &[("OF1019", "spec.hooks.running.template")],
        ),
        ("/spec/templates/3/name", json!("say"), &[("OF1015", "spec.templates[3].name")]),
        ("/spec/templates/3/name", json!("a_b"), &[("OF1014", "spec.templates[3].name")]),
        ("/spec/templates/3/name", json!("x".repeat(129)), &[("OF1014", "spec.templates[3].name")]),
        ("/spec/templates/3/name", Value::Null, &[("OF1016", "spec.templates[3].name")]),
        ("/spec/templates/3", json!("pause"), &[("OF1010", "spec.templates[3]")]),
    ]);
}

#[test]
fn locks() {
    let both = json!({"configMapKeyRef": {"name": "m", "key": "k"}, "database": {"key": "k"}});
    check(&[
        ("/spec/synchronization", json!({"mutexes": [{"name": "m", "namespace": "n", "database": true}]}), &[]),
        ("/spec/synchronization", json!({"mutex": {"name": "m"}, "semaphore": {"database": {"key": "k"}}}), &[]),
        ("/spec/synchronization", json!({"mutexes": [{}]}), &[("OF1016", "spec.synchronization.mutexes[0]")]),
        ("/spec/synchronization", json!({"semaphores": [{}]}), &[("OF1016", "spec.synchronization.semaphores[0]")]),
        ("/spec/synchronization", json!({"semaphores": [both]}), &[("OF1034", "spec.synchronization.semaphores[0]")]),
        ("/spec/synchronization", json!({"locks": []}), &[("OF1003", "spec.synchronization.locks")]),
        ("/spec/synchronization", json!({"mutex": "m"}), &[("OF1010", "spec.synchronization.mutex")]),
        (
            at(LEAF, "/synchronization"),
            json!({"semaphore": {"configMapKeyRef": {"name": "m"}}}),
            &[("OF1016", "spec.templates[1].synchronization.semaphore.configMapKeyRef")],
        ),
        (
            at(LEAF, "/synchronization"),
            json!({"semaphores": [{"database": {}}]}),
            &[("OF1016", "spec.templates[1].synchronization.semaphores[0].database")],
        ),
    ]);
}

#[test]
fn shapes_and_support() {
    check(&[
        ("/spec/entrypont", json!("main"), &[("OF1003", "spec.entrypont")]),
        (at(LEAF, "/container/comand"), json!(["x"]), &[("OF1003", "spec.templates[1].container.comand")]),
        (at(LEAF, "/container/args"), json!("x"), &[("OF1010", "spec.templates[1].container.args")]),
        (at(LEAF, "/container/args/0"), json!(1), &[("OF1010", "spec.templates[1].container.args[0]")]),
        ("/spec/parallelism", json!(0), &[("OF1041", "spec.parallelism")]),
        ("/spec/shutdown", json!("stop"), &[("OF1041", "spec.shutdown")]),
        ("/spec/priority", json!(5_000_000_000_i64), &[("OF1041", "spec.priority")]),
        (at(LEAF, "/daemon"), json!(true), &[]),
        (at(LEAF, "/daemon"), json!("yes"), &[("OF1010", "spec.templates[1].daemon")]),
        (at(LEAF, "/daemon"), json!(false), &[]),
        (at(LEAF, "/sidecars"), json!([]), &[]),
        ("/spec/templates/3", json!({"name": "pause", "plugin": {"x": {}}}), &[("OF1011", "spec.templates[3].plugin")]),
        (at(LEAF, "/outputs/artifacts/0/s3"), json!({"key": "k"}), &[]),
        (at(LEAF, "/outputs/artifacts/0/s3"), json!({"key": "k", "bucket": "b", "endpoint": "h:9000"}), &[]),
        (at(LEAF, "/outputs/artifacts/0/gcs"), json!({"key": "k"}), &[]),
        (
            at(LEAF, "/outputs/artifacts/0/gcs"),
            json!({"key": "k", "bucket": "b"}),
            &[("OF1011", "spec.templates[1].outputs.artifacts[0].gcs.bucket")],
        ),
        (
            at(LEAF, "/outputs/artifacts/0/raw"),
            json!({"data": "x"}),
            &[("OF1011", "spec.templates[1].outputs.artifacts[0].raw")],
        ),
        (
            at(LEAF, "/outputs/artifacts/0/git"),
            json!({"repo": "https://example.com/x.git"}),
            &[("OF1011", "spec.templates[1].outputs.artifacts[0].git")],
        ),
        (at(LEAF, "/outputs/artifacts/0/archive"), json!({"zip": {}}), &[]),
        (at(LEAF, "/outputs/artifacts/0/artifactGC"), json!({"strategy": "Never"}), &[]),
        ("/spec/artifactGC", json!({"strategy": "OnWorkflowDeletion", "forceFinalizerRemoval": true}), &[]),
        ("/spec/artifactGC", json!({"strategy": "Sometimes"}), &[("OF1041", "spec.artifactGC.strategy")]),
        (
            at(LEAF, "/container/resources"),
            json!({"requests": {"cpu": "lots"}}),
            &[("OF1010", "spec.templates[1].container.resources.requests.cpu")],
        ),
    ]);
}

#[test]
fn templates() {
    check(&[
        (at(LEAF, "/container/image"), Value::Null, &[("OF1016", "spec.templates[1].container")]),
        (at(LEAF, "/timeout"), json!("10"), &[("OF1033", "spec.templates[1].timeout")]),
        (at(LEAF, "/timeout"), json!("10s"), &[]),
        ("/spec/templates/0/timeout", json!("10s"), &[("OF1034", "spec.templates[0].timeout")]),
        (
            "/spec/templates/2/activeDeadlineSeconds",
            json!(10),
            &[("OF1034", "spec.templates[2].activeDeadlineSeconds")],
        ),
        (at(LEAF, "/activeDeadlineSeconds"), json!("soon"), &[("OF1034", "spec.templates[1].activeDeadlineSeconds")]),
        (at(LEAF, "/activeDeadlineSeconds"), json!("{{inputs.parameters.text}}"), &[]),
        (at(LEAF, "/parallelism"), json!(1), &[("OF1034", "spec.templates[1].parallelism")]),
        ("/spec/templates/0/parallelism", json!(0), &[("OF1034", "spec.templates[0].parallelism")]),
        ("/spec/templates/3/suspend/duration", json!("2d"), &[("OF1033", "spec.templates[3].suspend.duration")]),
        ("/spec/templates/3/suspend/duration", json!(20), &[]),
        (
            at(LEAF, "/retryStrategy"),
            json!({"retryPolicy": "noExist"}),
            &[("OF1032", "spec.templates[1].retryStrategy.retryPolicy")],
        ),
        (at(LEAF, "/retryStrategy"), json!({"limit": "x"}), &[("OF1032", "spec.templates[1].retryStrategy.limit")]),
        (
            at(LEAF, "/retryStrategy"),
            json!({"limit": "{{inputs.parameters.text}}", "backoff": {"duration": "1", "cap": "1h", "maxDuration": "x"}}),
            &[("OF1033", "spec.templates[1].retryStrategy.backoff.maxDuration")],
        ),
        (
            at(LEAF, "/retryStrategy"),
            json!({"expression": "lastRetry.exitCode =="}),
            &[("OF1030", "spec.templates[1].retryStrategy.expression")],
        ),
        (at(LEAF, "/retryStrategy"), json!({"expression": "asInt(lastRetry.exitCode) > 1"}), &[]),
        ("/spec/retryStrategy", json!({"retryPolicy": "onFailure"}), &[("OF1032", "spec.retryStrategy.retryPolicy")]),
        (
            at(LEAF, "/inputs/artifacts"),
            json!([{"name": "i", "optional": true}]),
            &[("OF1036", "spec.templates[1].inputs.artifacts[0]")],
        ),
        (
            at(LEAF, "/inputs/artifacts"),
            json!([{"name": "i", "optional": true, "path": "rel/x"}]),
            &[("OF1038", "spec.templates[1].inputs.artifacts[0].path")],
        ),
        (
            at(LEAF, "/inputs/artifacts"),
            json!([{"name": "i", "optional": true, "path": "/a/../b"}]),
            &[("OF1038", "spec.templates[1].inputs.artifacts[0].path")],
        ),
        (
            "/spec/templates/0/inputs/artifacts",
            json!([{"name": "i", "optional": true, "path": "/a"}]),
            &[("OF1036", "spec.templates[0].inputs.artifacts[0].path")],
        ),
        (
            at(LEAF, "/outputs/parameters/0"),
            json!({"name": "out", "valueFrom": {"parameter": "x"}}),
            &[("OF1035", "spec.templates[1].outputs.parameters[0].valueFrom")],
        ),
        (
            at(LEAF, "/outputs/parameters/0"),
            json!({"name": "out"}),
            &[("OF1035", "spec.templates[1].outputs.parameters[0]")],
        ),
        (
            at(LEAF, "/outputs/parameters/0"),
            json!({"name": "out", "valueFrom": {"path": "/a", "expression": "1"}}),
            &[("OF1035", "spec.templates[1].outputs.parameters[0].valueFrom")],
        ),
        (
            at(LEAF, "/outputs/parameters/0/globalName"),
            json!("a.b"),
            &[("OF1014", "spec.templates[1].outputs.parameters[0].globalName")],
        ),
        (
            "/spec/templates/0/outputs",
            json!({"parameters": [{"name": "o", "valueFrom": {"path": "/x"}}]}),
            &[("OF1035", "spec.templates[0].outputs.parameters[0].valueFrom")],
        ),
        (
            at(LEAF, "/container/volumeMounts"),
            json!([{"name": "v", "mountPath": "/v"}]),
            &[("OF1037", "spec.templates[1].container.volumeMounts[0].name")],
        ),
        (at(LEAF, "/volumes"), json!([{"name": "v"}]), &[("OF1037", "spec.templates[1].volumes[0]")]),
        (
            at(LEAF, "/volumes"),
            json!([{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]),
            &[("OF1015", "spec.templates[1].volumes[1].name")],
        ),
    ]);
}

#[test]
fn arguments_and_loops() {
    check(&[
        ("/spec/arguments", json!({"parameters": [{"name": "p"}]}), &[("OF1020", "spec.arguments.parameters[0]")]),
        (
            "/spec/arguments",
            json!({"parameters": [{"name": "p", "value": "c", "enum": ["a", "b"]}]}),
            &[("OF1021", "spec.arguments.parameters[0].value")],
        ),
        ("/spec/arguments", json!({"parameters": [{"name": "p", "value": 1, "enum": [1, 2]}]}), &[]),
        (
            "/spec/arguments",
            json!({"parameters": [{"name": "p", "value": 1}, {"name": "p", "value": 2}]}),
            &[("OF1015", "spec.arguments.parameters[1].name")],
        ),
        ("/spec/arguments", json!({"parameters": {"p": 1}}), &[("OF1010", "spec.arguments.parameters")]),
        (
            "/spec/arguments",
            json!({"parameters": [{"name": "p", "valueFrom": {"expression": "1"}}]}),
            &[("OF1020", "spec.arguments.parameters[0].valueFrom")],
        ),
        ("/spec/arguments", json!({"artifacts": [{"name": "a"}]}), &[("OF1036", "spec.arguments.artifacts[0]")]),
        (at(STEP, "/arguments"), json!({}), &[("OF1019", "spec.templates[0].steps[0][0]")]),
        (at(STEP, "/template"), json!("sya"), &[("OF1018", "spec.templates[0].steps[0][0].template")]),
        (at(STEP, "/template"), json!("{{inputs.parameters.who}}"), &[]),
        (at(STEP, "/template"), Value::Null, &[("OF1016", "spec.templates[0].steps[0][0]")]),
        (at(STEP, "/inline"), json!({"suspend": {}}), &[("OF1017", "spec.templates[0].steps[0][0]")]),
        (
            at(STEP, "/name"),
            json!("two"),
            &[
                ("OF1015", "spec.templates[0].steps[1][0].name"),
                ("OF1029", "spec.templates[0].steps[1][0].arguments.parameters[0].value"),
            ],
        ),
        (at(STEP, "/withItems"), json!([]), &[]),
        (at(STEP, "/withItems"), json!([1, null]), &[("OF1022", "spec.templates[0].steps[0][0].withItems[1]")]),
        (
            at(STEP, "/withSequence"),
            json!({"count": 2, "end": 3}),
            &[("OF1022", "spec.templates[0].steps[0][0].withSequence")],
        ),
        (at(STEP, "/withSequence"), json!({"start": 2}), &[("OF1022", "spec.templates[0].steps[0][0].withSequence")]),
        (
            at(STEP, "/withSequence"),
            json!({"count": "x"}),
            &[("OF1022", "spec.templates[0].steps[0][0].withSequence.count")],
        ),
        (
            at(STEP, "/withSequence"),
            json!({"start": 5, "end": "-2000000"}),
            &[("OF1023", "spec.templates[0].steps[0][0].withSequence")],
        ),
        (at(STEP, "/withSequence"), json!({"count": 1_000_000}), &[]),
        (at(STEP, "/when"), json!("a == (b"), &[("OF1031", "spec.templates[0].steps[0][0].when")]),
        (at(STEP, "/when"), json!("1 + 1"), &[]),
        (at(STEP, "/onExit"), json!("nobody"), &[("OF1018", "spec.templates[0].steps[0][0].onExit")]),
        (at(STEP, "/onExit"), json!("say"), &[]),
        (
            at(STEP, "/hooks"),
            json!({"exit": {"template": "say", "arguments": {"parameters": [{"name": "text", "value": "{{steps.one.outputs.parameters.out}}"}]}}}),
            &[],
        ),
        (
            at(STEP, "/hooks"),
            json!({"exit": {"template": "say"}}),
            &[("OF1019", "spec.templates[0].steps[0][0].hooks.exit.template")],
        ),
    ]);
    let both = sound();
    let mut both = both;
    set(&mut both, at(STEP, "/withItems"), json!([1]));
    set(&mut both, at(STEP, "/withParam"), json!("[1]"));
    assert_eq!(
        pairs(&admit(&both, &Objects::default()).unwrap_err()),
        [("OF1022".to_owned(), "spec.templates[0].steps[0][0]".to_owned())]
    );
}

const SECOND: &str = "/spec/templates/0/steps/1/0/arguments/parameters/0/value";
const SECOND_PATH: &str = "spec.templates[0].steps[1][0].arguments.parameters[0].value";
const TASK: &str = "/spec/templates/2/dag/tasks/0";
const TASK_VALUE: &str = "spec.templates[2].dag.tasks[0].arguments.parameters[0].value";

#[test]
fn variables() {
    let text = |value: &str| json!(value);
    check(&[
        (
            SECOND,
            text(
                "{{steps.one.outputs.parameters.out}} {{steps.one.status}} {{steps.name}} {{node.name}} {{workflow.name}}",
            ),
            &[],
        ),
        (SECOND, text("{{user.x}} {{ item }} {{foo}} {{ .Values.x }}"), &[]),
        (SECOND, text("{{steps.oen.outputs.result}}"), &[("OF1029", SECOND_PATH)]),
        (SECOND, text("{{steps.two.outputs.result}}"), &[("OF1029", SECOND_PATH)]),
        (SECOND, text("{{steps.graph.status}}"), &[]),
        (SECOND, text("{{steps.one.outputs.parameters.uot}}"), &[("OF1029", SECOND_PATH)]),
        (SECOND, text("{{steps.one.outputs.parameters}}"), &[("OF1029", SECOND_PATH)]),
        (SECOND, text("{{tasks.one.outputs.result}}"), &[("OF1029", SECOND_PATH)]),
        (SECOND, text("{{item.x}}"), &[("OF1029", SECOND_PATH)]),
        (SECOND, text("{{inputs.parameters.whom}}"), &[("OF1029", SECOND_PATH)]),
        (SECOND, text("{{ inputs.parameters.whom }}"), &[]),
        (SECOND, text("{{inputs.parameters.{{workflow.name}}}}"), &[]),
        (SECOND, text("{{pod.name}}"), &[("OF1029", SECOND_PATH)]),
        (SECOND, text("{{workflow.parameters.x}}"), &[("OF1029", SECOND_PATH)]),
        (
            SECOND,
            text("{{workflow.creationTimestamp.Y}} {{workflow.status}} {{workflow.failures}} {{workflow.duration}}"),
            &[],
        ),
        (SECOND, text("{{workflow.nmae}}"), &[("OF1029", SECOND_PATH)]),
        (SECOND, text("{{= steps.one.outputs.result + 'x' }}"), &[]),
        (SECOND, text("{{= steps['oen'].outputs.result }}"), &[("OF1029", SECOND_PATH)]),
        (SECOND, text("{{= steps['oen'].outputs.result ?? 'x' }}"), &[]),
        (SECOND, text("{{= inputs.parameters.whom }}"), &[("OF1029", SECOND_PATH)]),
        (SECOND, text("{{= 1 + }}"), &[("OF1030", SECOND_PATH)]),
        (
            at(LEAF, "/container/args/0"),
            text("{{steps.one.outputs.result}}"),
            &[("OF1029", "spec.templates[1].container.args[0]")],
        ),
        (
            at(LEAF, "/container/args/0"),
            text("{{pod.name}} {{outputs.parameters.out.path}} {{inputs.parameters}}"),
            &[],
        ),
        (
            "/spec/templates/0/outputs",
            json!({"parameters": [{"name": "o", "valueFrom": {"expression": "steps.tow.outputs.result"}}]}),
            &[("OF1029", "spec.templates[0].outputs.parameters[0].valueFrom.expression")],
        ),
        (
            "/spec/templates/0/outputs",
            json!({"artifacts": [{"name": "o", "from": "{{steps.one.outputs.artifacts.file}}"}]}),
            &[],
        ),
    ]);
}

#[test]
fn graphs() {
    check(&[
        ("/spec/templates/2/dag/tasks", json!([]), &[("OF1016", "spec.templates[2].dag.tasks")]),
        ("/spec/templates/2/dag/target", json!("a b"), &[]),
        ("/spec/templates/2/dag/target", json!("a z"), &[("OF1025", "spec.templates[2].dag.target")]),
        (
            "/spec/templates/2/dag/tasks/1/depends",
            json!("a.Suceeded"),
            &[("OF1024", "spec.templates[2].dag.tasks[1].depends")],
        ),
        (
            "/spec/templates/2/dag/tasks/1/depends",
            json!("a &&"),
            &[("OF1024", "spec.templates[2].dag.tasks[1].depends")],
        ),
        (
            "/spec/templates/2/dag/tasks/1/depends",
            json!("a.AnySucceeded"),
            &[("OF1024", "spec.templates[2].dag.tasks[1].depends")],
        ),
        ("/spec/templates/2/dag/tasks/1/depends", json!("a && b"), &[("OF1027", "spec.templates[2].dag.tasks[1]")]),
        (
            at(TASK, "/name"),
            json!("1a"),
            &[
                ("OF1026", "spec.templates[2].dag.tasks[0].name"),
                ("OF1025", "spec.templates[2].dag.tasks[1].depends"),
                ("OF1029", "spec.templates[2].dag.tasks[1].arguments.parameters[0].value"),
            ],
        ),
        (at(TASK, "/arguments/parameters/0/value"), json!("{{tasks.b.outputs.result}}"), &[("OF1028", TASK_VALUE)]),
        (at(TASK, "/arguments/parameters/0/value"), json!("{{= tasks.b.outputs.result}}"), &[("OF1028", TASK_VALUE)]),
        (
            at(TASK, "/when"),
            json!("{{tasks.b.status}} == Failed"),
            &[("OF1028", "spec.templates[2].dag.tasks[0].when")],
        ),
        (
            at(TASK, "/hooks"),
            json!({"exit": {"template": "say", "arguments": {"parameters": [{"name": "text", "value": "{{tasks.a.outputs.result}}"}]}}}),
            &[],
        ),
    ]);
}

#[test]
fn a_missing_dependency_is_told_in_the_words_users_know() {
    let mut object = sound();
    set(&mut object, at(TASK, "/arguments/parameters/0/value"), json!("{{tasks.b.outputs.result}}"));
    let problems = admit(&object, &Objects::default()).unwrap_err();
    assert_eq!(problems.0[0].message, "templates.graph.tasks.a missing dependency 'b' for parameter 'text'");
}

#[test]
fn every_problem_of_a_manifest_is_told_at_once() {
    let manifest = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: ok}\nspec:\n  entrypoint: mian\n  paralelism: 2\n  templates:\n  - name: main\n    timeout: 5s\n    steps:\n    - - {name: a, template: leaf}\n      - {name: a, template: laef}\n  - name: leaf\n    inputs: {parameters: [{name: p}]}\n    container: {image: busybox, args: [1, '{{inputs.parameters.q}}'], comand: [x]}\n  - name: other\n    retryStrategy: {retryPolicy: Never}\n    script: {image: busybox, source: 'echo {{workflow.parameters.z}}'}\n";
    let expected = [
        ("OF1003", "spec.paralelism"),
        ("OF1010", "spec.templates[1].container.args[0]"),
        ("OF1003", "spec.templates[1].container.comand"),
        ("OF1018", "spec.entrypoint"),
        ("OF1034", "spec.templates[0].timeout"),
        ("OF1015", "spec.templates[0].steps[0][1].name"),
        ("OF1018", "spec.templates[0].steps[0][1].template"),
        ("OF1032", "spec.templates[2].retryStrategy.retryPolicy"),
        ("OF1029", "spec.templates[2].script.source"),
    ];
    let found = wrongs(manifest);
    let found: Vec<(&str, &str)> = found.iter().map(|(code, path)| (code.as_str(), path.as_str())).collect();
    let mut sorted = found.clone();
    sorted.sort_unstable();
    let mut wanted = expected.to_vec();
    wanted.sort_unstable();
    assert_eq!(sorted, wanted);
}

#[test]
fn nulls_mean_nothing_and_are_gone_from_what_is_admitted() {
    let admitted = judged(&with_templates(
        "  - name: main\n    inputs: {parameters: null}\n    volumes:\n    container: {image: busybox, args: null, env: [{name: a, value: null}]}\n",
    ))
    .unwrap();
    assert!(!admitted.manifest().to_string().contains("null"), "{}", admitted.manifest());
}

#[test]
fn ignored_fields_are_warned_of_once_and_missing_config_maps_are_no_errors() {
    let text = with_templates(
        "  - name: main\n    schedulerName: s\n    container: {image: busybox, imagePullPolicy: Never, envFrom: [{configMapRef: {name: here}}, {configMapRef: {name: gone}}, {secretRef: {name: gone, optional: true}}]}\n  - name: other\n    schedulerName: s\n    container: {image: busybox, env: [{name: a, valueFrom: {configMapKeyRef: {name: gone, key: k}}}, {name: b, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}\n",
    );
    let admitted = admit(&parsed(&text), &Objects { config_maps: &["here"], ..Objects::default() }).unwrap();
    let mut found = pairs(admitted.warnings());
    found.sort_unstable();
    let expected = [
        ("OF1013", "spec.templates[0].container.imagePullPolicy"),
        ("OF1013", "spec.templates[0].schedulerName"),
        ("OF1013", "spec.templates[1].container.env[1].valueFrom.fieldRef.fieldPath"),
        ("OF1040", "spec.templates[0].container.envFrom[1].configMapRef.name"),
    ];
    assert_eq!(found, expected.map(|(code, path)| (code.to_owned(), path.to_owned())));
}

#[test]
fn a_template_that_only_calls_itself_is_refused() {
    let endless = with_templates("  - name: main\n    steps: [[{name: again, template: main}]]\n");
    assert_eq!(pairs(&judged(&endless).err().unwrap().0), [("OF1042".to_owned(), "spec.templates[0]".to_owned())]);
    let ending = endless.replace("template: main", "template: main, when: '{{workflow.name}} == x'");
    assert!(judged(&ending).unwrap().warnings().is_empty());
}
