//! The bounds of a run: what grows without end ends in an error of a node, and the run ends with it.

use std::time::Duration;

use octoflow_engine::{Engine, Input, Setup, argo::status};
use octoflow_model::submission::{Stored, Submission};
use serde_json::Value;

use crate::{
    inputs,
    play::{DAWN, ROOMY, RUN},
    text::manifest,
};

/// The status of a run whose templates start no tasks, in an engine with small limits.
fn status_of(spec: &str, nodes: usize, bytes: u64) -> Value {
    let mut engine = Engine::new(Setup { max_nodes: nodes, max_bytes: bytes, ..ROOMY.into() });
    let (name, namespace, uid) = ("w".into(), "default".into(), "u".into());
    let submission = Submission {
        name,
        namespace,
        uid,
        at: DAWN,
        manifest: manifest(spec),
        stored: Stored::default(),
        context: Default::default(),
        previous: None,
        parent: None,
        ordered_by: None,
    };
    let mut now = DAWN;
    let mut outcome = inputs::submit(&mut engine, RUN, Box::new(submission), now);
    for _ in 0..10_000 {
        assert!(outcome.orders.is_empty(), "nothing here needs a task: {:?}", outcome.orders);
        let run = engine.run_of::<octoflow_engine::argo::Run>(RUN).expect("the run is there until it is forgotten");
        if run.state.finished() {
            return status::status(run);
        }
        now = engine.wake_at().unwrap_or(now).max(now.saturating_add(Duration::from_secs(1)));
        outcome = engine.handle(Input::Tick, now);
    }
    panic!("the run does not end");
}

fn messages(status: &Value) -> Vec<&str> {
    let nodes = status["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
    nodes.filter_map(|node| node["message"].as_str()).collect()
}

const MEGABYTE: u64 = 1024 * 1024;

#[test]
fn a_recursion_that_multiplies_ends_at_the_limit_of_nodes() {
    let spec = "
templates:
- name: main
  steps:
  - - {name: a, template: main, when: '{{workflow.name}} == w', withItems: [1, 2, 3, 4]}";
    let status = status_of(spec, 1000, 100 * MEGABYTE);
    assert_eq!(status["phase"], "Failed", "{}", status["message"]);
    assert!(messages(&status).iter().any(|text| text.contains("the run has 1000 nodes, its limit")));
    let nodes = status["nodes"].as_object().unwrap().len();
    assert!((1000..2000).contains(&nodes), "{nodes}");
}

#[test]
fn a_retry_that_runs_nothing_ends_at_the_limit_of_nodes() {
    let spec = "
templates:
- name: main
  retryStrategy: {}
  steps:
  - - {name: a, template: main, when: '{{workflow.name}} == w'}";
    let status = status_of(spec, 1000, 100 * MEGABYTE);
    assert!(matches!(status["phase"].as_str(), Some("Failed" | "Error")), "{}", status["phase"]);
    assert!(messages(&status).iter().any(|text| text.contains("the run has 1000 nodes, its limit")));
}

#[test]
fn a_value_that_doubles_is_refused_before_it_is_made() {
    let spec = "
arguments: {parameters: [{name: x, value: 0123456789abcdef0123456789abcdef}]}
templates:
- name: main
  inputs: {parameters: [{name: x}]}
  steps:
  - - name: a
      template: main
      when: '{{workflow.name}} == w'
      arguments: {parameters: [{name: x, value: '{{inputs.parameters.x}}{{inputs.parameters.x}}'}]}";
    let status = status_of(spec, 100_000, 8 * MEGABYTE);
    let told = messages(&status);
    assert!(told.iter().any(|text| text.contains("would take more than 8 MiB, its limit")), "{told:?}");
}

#[test]
fn a_large_value_copied_into_every_item_of_a_loop_is_refused() {
    let spec = "
templates:
- name: main
  inputs: {parameters: [{name: x, value: \"{{=repeat('x', 100000)}}\"}]}
  steps:
  - - {name: a, template: pause, withSequence: {count: 50}, arguments: {parameters: [{name: x, value: '{{inputs.parameters.x}}'}]}}
- name: pause
  inputs: {parameters: [{name: x}]}
  suspend: {duration: '0'}";
    let status = status_of(spec, 100_000, 2 * MEGABYTE);
    assert_eq!(status["phase"], "Failed", "{}", status["message"]);
    let refused = messages(&status).iter().filter(|text| text.contains("pass large data as artifacts")).count();
    assert!(refused >= 30, "{refused}");
    assert_eq!(status_of(spec, 100_000, 20 * MEGABYTE)["phase"], "Succeeded");
}

#[test]
fn items_and_outputs_count_too() {
    let items = "
templates:
- name: main
  steps:
  - - {name: a, template: pause, withParam: \"{{=toJson(map(1..10, repeat('y', 100000)))}}\"}
- {name: pause, suspend: {duration: '0'}}";
    let status = status_of(items, 100_000, MEGABYTE / 2);
    assert_eq!(status["nodes"].as_object().unwrap().len(), 3, "no item was made");
    assert!(messages(&status).iter().any(|text| text.contains("its limit")), "{:?}", messages(&status));
    let outputs = "
templates:
- name: main
  steps:
  - - {name: a, template: make}
  - - {name: b, template: make}
- name: make
  outputs: {parameters: [{name: p, valueFrom: {expression: \"repeat('z', 700000)\"}}]}
  steps: [[{name: s, template: pause}]]
- {name: pause, suspend: {duration: '0'}}";
    let status = status_of(outputs, 100_000, MEGABYTE);
    assert!(messages(&status).iter().any(|text| text.contains("its limit")), "{:?}", messages(&status));
    assert_eq!(status_of(outputs, 100_000, 2 * MEGABYTE)["phase"], "Succeeded");
}

#[test]
fn numbers_and_formats_that_are_only_known_at_run_time_are_refused_too() {
    let spec = |sequence: &str| {
        format!(
            "
arguments: {{parameters: [{{name: many, value: '1000000000'}}, {{name: wide, value: '%999999999d'}}]}}
templates:
- name: main
  steps:
  - - {{name: a, template: pause, withSequence: {sequence}}}
- {{name: pause, suspend: {{duration: '0'}}}}"
        )
    };
    let status = status_of(&spec("{count: '{{workflow.parameters.many}}'}"), 100_000, MEGABYTE);
    assert!(messages(&status).iter().any(|text| text.contains("at most 1000000 are allowed")), "{status}");
    let status = status_of(&spec("{count: 2, format: '{{workflow.parameters.wide}}'}"), 100_000, MEGABYTE);
    assert!(messages(&status).iter().any(|text| text.contains("pads numbers to more than")), "{status}");
    let listed = "
templates:
- name: main
  steps:
  - - {name: a, template: pause, withParam: '{{=toJson(1..1000000000)}}'}
- {name: pause, suspend: {duration: '0'}}";
    let status = status_of(listed, 100_000, MEGABYTE);
    assert!(messages(&status).iter().any(|text| text.contains("compute this in a task instead")), "{status}");
}
