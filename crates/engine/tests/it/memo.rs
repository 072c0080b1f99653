//! H: memoization.

use octoflow_engine::engine::Keyed;
use octoflow_model::{Fact, argo::WorkflowFact, meta::KeyedData};

use crate::{
    answer::{Script, exit, prints},
    check::check,
    done::Done,
    inputs,
    play::{Play, ROOMY, RUN, refused},
    text::manifest,
};

const MEMO: &str = "
- name: memo
  inputs: {parameters: [{name: k, default: key-1}]}
  memoize: {key: '{{inputs.parameters.k}}', cache: {configMap: {name: cache}}}
  container: {image: i, command: [c], args: [made]}
  outputs: {parameters: [{name: p, valueFrom: {path: /p}}]}";

fn starts(done: &Done) -> Vec<&str> {
    done.starts.iter().map(|(_, name)| name.as_str()).collect()
}

#[test]
fn h09_a_second_call_with_the_same_key_takes_the_outputs_and_starts_nothing() {
    let done = check(&format!(
        "
templates:
- name: main
  steps:
  - - {{name: a, template: memo}}
  - - {{name: b, template: memo}}
  - - {{name: c, template: memo, arguments: {{parameters: [{{name: k, value: key-2}}]}}}}
  - - {{name: d, template: echo, arguments: {{parameters: [{{name: m, value: '{{{{steps.b.outputs.parameters.p}}}}'}}]}}}}{MEMO}
---
phase: Succeeded
progress: 4/4
nodes: {{a: Succeeded, b: Succeeded, c: Succeeded}}
said: {{d: made}}"
    ));
    assert_eq!(starts(&done), ["w[0].a", "w[2].c", "w[3].d"]);
    let memo = |name: &str| done.node(name)["memoizationStatus"].clone();
    assert_eq!(memo("a"), serde_json::json!({"hit": false, "key": "key-1", "cacheName": "cache"}));
    assert_eq!(memo("b"), serde_json::json!({"hit": true, "key": "key-1", "cacheName": "cache"}));
    assert_eq!(done.node("b")["type"], "Pod");
    assert_eq!(memo("c")["hit"], false);
    assert!(memo("d").is_null());
}

#[test]
fn h09_whole_templates_and_retried_ones_are_memoized_too() {
    for outputs in ["{}", "{parameters: [{name: o, valueFrom: {parameter: '{{steps.x.outputs.parameters.p}}'}}]}"] {
        let done = check(&format!(
            "
templates:
- name: main
  dag:
    tasks:
    - {{name: s1, template: steps}}
    - {{name: s2, template: steps, depends: s1}}
    - {{name: d1, template: dag, depends: s2}}
    - {{name: d2, template: dag, depends: d1}}
    - {{name: r1, template: again, depends: d2}}
    - {{name: r2, template: again, depends: r1}}
    - {{name: last, template: ok, depends: r2}}
- name: steps
  memoize: {{key: s, cache: {{configMap: {{name: cache}}}}}}
  steps: [[{{name: x, template: make}}]]
  outputs: {outputs}
- name: dag
  memoize: {{key: d, cache: {{configMap: {{name: cache}}}}}}
  dag: {{tasks: [{{name: z, template: make}}]}}
- name: again
  memoize: {{key: r, cache: {{configMap: {{name: cache}}}}}}
  retryStrategy: {{limit: 2}}
  container: {{image: i, command: [c]}}
---
answers: {{'r1(0)': 1}}
phase: Succeeded
nodes: {{s2: Succeeded, d2: Succeeded, r2: Succeeded}}"
        ));
        assert_eq!(starts(&done), ["w.s1[0].x", "w.d1.z", "w.r1(0)", "w.r1(1)", "w.last"]);
        for (name, kind) in [("s2", "Steps"), ("d2", "DAG"), ("r2", "Pod")] {
            let node = done.node(name);
            assert_eq!(node["memoizationStatus"]["hit"], true, "{name}");
            assert_eq!(node["type"], kind);
        }
        assert_eq!(done.node("s1")["outputs"], done.node("s2")["outputs"]);
        assert_eq!(done.status()["progress"], "5/6", "one attempt failed, and what was found counts as one task");
    }
}

#[test]
fn h10_an_entry_older_than_its_age_is_made_anew() {
    let spec = |age: &str| {
        format!(
            "
templates:
- {{name: main, steps: [[{{name: a, template: memo}}], [{{name: nap, template: nap}}], [{{name: b, template: memo}}]]}}
- {{name: nap, suspend: {{duration: 90s}}}}
- {{name: memo, memoize: {{key: k, maxAge: {age}, cache: {{configMap: {{name: cache}}}}}}, container: {{image: i, command: [c]}}}}
---
phase: Succeeded"
        )
    };
    assert_eq!(check(&spec("1m")).node("b")["memoizationStatus"]["hit"], false);
    assert_eq!(check(&spec("2m")).node("b")["memoizationStatus"]["hit"], true);
}

#[test]
fn h11_a_cache_without_its_label_or_with_a_broken_entry_is_an_error() {
    let spec = "{templates: [{name: main, steps: [[{name: a, template: memo}]]}]}";
    let mut object = manifest(spec);
    object["spec"]["templates"]
        .as_array_mut()
        .unwrap()
        .extend(crate::text::yaml(MEMO).remove(0).as_array().unwrap().iter().cloned());
    let done = Play::prepared(object.clone(), Script::default(), ROOMY, &[("cache", "other", "x")]).finish();
    assert_eq!(done.node_phase("a"), "Error");
    assert!(
        done.node_message("a").contains("workflows.argoproj.io/configmap-type: Cache"),
        "{}",
        done.node_message("a")
    );
    let mut labelled = KeyedData::default();
    labelled.labels.insert("workflows.argoproj.io/configmap-type".to_owned(), "Cache".to_owned());
    labelled.entries.insert("key-1".to_owned(), b"{\"nodeID\": 3}".to_vec());
    let done = Play::keyed(object.clone(), "cache", labelled.clone()).finish();
    assert_eq!(done.node_phase("a"), "Error");
    assert!(done.node_message("a").contains("malformed cache entry 'key-1'"), "{}", done.node_message("a"));
    // One that another controller wrote is read.
    let entry = br#"{"nodeID":"x","outputs":{"parameters":[{"name":"p","value":"old"}]},"creationTimestamp":"2020-01-01T00:00:00Z","lastHitTimestamp":"2020-01-01T00:00:00Z"}"#;
    labelled.entries.insert("key-1".to_owned(), entry.to_vec());
    let done = Play::keyed(object, "cache", labelled).finish();
    assert_eq!((done.phase(), done.starts.len()), ("Succeeded", 0));
    assert_eq!(done.node("a")["outputs"]["parameters"][0]["value"], "old");
}

#[test]
fn only_what_succeeded_is_kept_and_two_that_miss_at_once_both_run() {
    let done = check(&format!(
        "
templates:
- name: main
  steps:
  - - {{name: a, template: memo, continueOn: {{failed: true}}}}
  - - {{name: b, template: memo}}
    - {{name: c, template: memo}}
  - - {{name: d, template: memo}}{MEMO}
---
answers: {{a: 1}}
phase: Succeeded"
    ));
    assert_eq!(starts(&done), ["w[0].a", "w[1].b", "w[1].c"]);
    let kept = done.facts.iter().filter(|fact| matches!(fact, Fact::Workflow(WorkflowFact::Memoized { .. }))).count();
    assert_eq!(kept, 2);
}

#[test]
fn the_lookup_comes_after_the_lock() {
    let done = check(
        "
templates:
- {name: main, steps: [[{name: a, template: memo}, {name: b, template: memo}, {name: c, template: memo}]]}
- name: memo
  synchronization: {mutexes: [{name: m}]}
  memoize: {key: k, cache: {configMap: {name: cache}}}
  container: {image: i, command: [c]}
---
phase: Succeeded",
    );
    assert_eq!(starts(&done), ["w[0].a"]);
    assert_eq!(done.node("c")["memoizationStatus"]["hit"], true);
}

#[test]
fn memoized_calls_keep_to_the_limits() {
    let done = check(
        "
parallelism: 2
templates:
- {name: main, parallelism: 3, steps: [[{name: a, template: memo, withSequence: {count: '9'}, arguments: {parameters: [{name: k, value: '{{item}}'}]}}]]}
- name: memo
  inputs: {parameters: [{name: k}]}
  memoize: {key: '{{inputs.parameters.k}}', cache: {configMap: {name: cache}}}
  container: {image: i, command: [c]}
---
phase: Succeeded
progress: 9/9",
    );
    assert_eq!(done.crowd, 2);
}

#[test]
fn a_found_output_is_exported_like_a_made_one_and_its_hooks_fire() {
    check(
        "
templates:
- name: main
  steps:
  - - {name: a, template: memo}
  - - {name: b, template: memo, hooks: {over: {expression: steps.b.status == 'Succeeded', template: ok}, running: {expression: steps.b.status == 'Running', template: ok}}}
  - - {name: c, template: echo, arguments: {parameters: [{name: m, value: '{{workflow.outputs.parameters.g}} {{steps.b.outputs.result}}'}]}}
- name: memo
  memoize: {key: k, cache: {configMap: {name: cache}}}
  script: {image: i, command: [c], source: x}
  outputs: {parameters: [{name: p, globalName: g, valueFrom: {path: /p}}]}
---
answers: {a: {result: printed, parameters: {p: given}}}
phase: Succeeded
said: {c: given printed}
nodes: {b.hooks.over: Succeeded}
absent: [b.hooks.running]",
    );
}

#[test]
fn a_key_that_is_none_is_refused_or_an_error() {
    let spec = |key: &str| {
        format!(
            "{{templates: [{{name: main, steps: [[{{name: a, template: memo, arguments: {{parameters: [{{name: k, value: 'a b'}}]}}}}]]}}, {{name: memo, inputs: {{parameters: [{{name: k}}]}}, memoize: {{key: '{key}', cache: {{configMap: {{name: c}}}}}}, container: {{image: i}}}}]}}"
        )
    };
    assert!(refused(&spec("a b")).contains("memoize.key 'a b' is invalid"), "{}", refused(&spec("a b")));
    let done = Play::new(&spec("{{inputs.parameters.k}}")).finish();
    assert_eq!(done.node_phase("a"), "Error");
    assert!(done.node_message("a").contains("invalid cache key: 'a b'"), "{}", done.node_message("a"));
    let none = "{templates: [{name: main, memoize: {key: k, maxAge: soon}, container: {image: i}}]}";
    assert!(refused(none).contains("cache.configMap.name is required"), "{}", refused(none));
    assert!(refused(none).contains("maxAge 'soon' is not a duration"), "{}", refused(none));
}

#[test]
fn a_cache_that_is_given_anew_keeps_what_runs_put_into_it() {
    let spec = format!("templates:\n- {{name: main, steps: [[{{name: a, template: memo}}]]}}{MEMO}");
    let mut play = Play::with(&spec, Script::default().on("a", prints("x")).on("b", exit(0)));
    while !play.over() {
        play.step();
    }
    let mut given = KeyedData::default();
    given.labels.insert("workflows.argoproj.io/configmap-type".to_owned(), "Cache".to_owned());
    play.input(inputs::object(Keyed::ConfigMap, "cache", given));
    let kept = play.engine.keyed(Keyed::ConfigMap, "default", "cache").unwrap();
    assert!(kept.entries.contains_key("key-1"));
    assert!(play.engine.run_of::<octoflow_engine::argo::Run>(RUN).is_some());
}
