//! Custom metrics, what tasks had reserved, and estimates: what is published, and that nothing of it changes a run.

use std::{collections::BTreeMap, time::Duration};

use octoflow_engine::{Engine, engine::fold, meters::Meters};
use octoflow_model::{
    Fact, RunFact, RunId,
    argo::WorkflowFact,
    submission::{EarlierDurations, Submission, SubmitContext},
};
use serde_json::{Value, json};

use crate::{
    answer::{Script, exit, never, prints},
    done::Done,
    play::{DAWN, Play, ROOMY},
    text::manifest,
};

/// Folds the metrics of some runs' facts, each counted once.
fn folded<'d>(runs: impl IntoIterator<Item = &'d Done>) -> Meters {
    let mut meters = Meters::default();
    for fact in runs.into_iter().flat_map(|done| &done.facts) {
        if let Fact::Workflow(WorkflowFact::Metered(metered)) = fact {
            meters.take(metered);
        }
    }
    meters
}

fn text(done: &Done) -> String {
    folded([done]).render(&[])
}

fn has(text: &str, line: &str) {
    assert!(text.lines().any(|own| own == format!("argo_workflows_{line}")), "{line} is missing in\n{text}");
}

fn condition<'d>(done: &'d Done, name: &str) -> Option<&'d Value> {
    done.status()["conditions"].as_array()?.iter().find(|one| one["type"] == name)
}

fn complaint(done: &Done) -> &str {
    condition(done, "MetricsError").and_then(|one| one["message"].as_str()).expect("a metric could not be read")
}

#[test]
fn a_counter_counts_every_node_of_its_template_and_a_gauge_holds_the_last() {
    let done = Play::new(
        "
templates:
- name: main
  dag:
    tasks:
    - {name: A, template: leaf, withItems: [a, b, c], arguments: {parameters: [{name: m, value: '{{item}}'}]}}
    - {name: B, template: leaf, depends: A, arguments: {parameters: [{name: m, value: a}]}}
- name: leaf
  inputs: {parameters: [{name: m}]}
  metrics:
    prometheus:
    - name: ends
      help: How nodes end
      labels: [{key: status, value: '{{status}}'}, {key: m, value: '{{inputs.parameters.m}}'}]
      counter: {value: '1'}
    - {name: seconds, help: How long, gauge: {value: '{{duration}}'}}
    - {name: level, help: Up, gauge: {value: 5, operation: Add}}
    - {name: level, help: Up, gauge: {value: '2', operation: Sub}}
  container: {image: i, command: [c], args: ['{{inputs.parameters.m}}']}",
    )
    .finish();
    assert_eq!((done.phase(), condition(&done, "MetricsError")), ("Succeeded", None));
    let text = text(&done);
    has(&text, "ends{m=\"a\",status=\"Succeeded\"} 2");
    has(&text, "ends{m=\"b\",status=\"Succeeded\"} 1");
    has(&text, "level 12");
    // The fourth task is told to run a second before it ends.
    has(&text, "seconds 1");
}

#[test]
fn a_retried_call_is_read_once_and_knows_its_retries() {
    let spec = "
templates:
- name: main
  steps: [[{name: a, template: flaky}]]
- name: flaky
  retryStrategy: {limit: 2}
  metrics:
    prometheus:
    - {name: tries, help: Tries, labels: [{key: retries, value: '{{retries}}'}, {key: status, value: '{{status}}'}], counter: {value: '1'}}
  container: {image: i, command: [c]}";
    let script = Script::default().on("w[0].a(0)", exit(1)).on("w[0].a(1)", exit(0));
    let done = Play::with(spec, script).finish();
    let text = text(&done);
    has(&text, "tries{retries=\"1\",status=\"Succeeded\"} 1");
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn a_condition_decides_what_is_published_and_a_histogram_counts_by_size() {
    let spec = "
templates:
- name: main
  steps:
  - - {name: a, template: leaf, continueOn: {failed: true}}
    - {name: b, template: leaf}
- name: leaf
  metrics:
    prometheus:
    - {name: failures, help: Bad ends, when: '{{status}} == Failed', counter: {value: '1'}}
    - name: size
      help: What came out
      when: '{{=outputs.exitCode == \"0\"}}'
      histogram: {value: '{{=asInt(outputs.parameters.num) * 2}}', buckets: [2.01, 4.01, 10]}
    - {name: said, help: Said, labels: [{key: text, value: '{{outputs.result}}'}, {key: code, value: '{{exitCode}}'}], counter: {value: 1}}
  outputs: {parameters: [{name: num, valueFrom: {path: /n, default: '3'}}]}
  script: {image: i, command: [sh], source: x}";
    let mut good = prints("hello");
    good.parameters = vec![("num".to_owned(), Some("2".to_owned()))];
    let done = Play::with(spec, Script::default().on("a", exit(3)).on("b", good)).finish();
    let text = text(&done);
    has(&text, "failures 1");
    has(&text, "size_bucket{le=\"2.01\"} 0");
    has(&text, "size_bucket{le=\"4.01\"} 1");
    has(&text, "size_bucket{le=\"+Inf\"} 1");
    has(&text, "size_sum 4");
    has(&text, "said{code=\"0\",text=\"hello\"} 1");
    assert_eq!(condition(&done, "MetricsError"), None, "{text}");
}

#[test]
fn a_runs_own_metrics_know_how_it_ended_and_come_before_its_end() {
    let spec = "
metrics:
  prometheus:
  - name: runs
    help: How runs end
    labels: [{key: status, value: '{{workflow.status}}'}, {key: name, value: '{{workflow.name}}'}]
    counter: {value: '1'}
  - {name: took, help: How long, gauge: {value: '{{workflow.duration}}'}}
onExit: fail
templates:
- name: main
  steps: [[{name: a, template: ok}]]";
    let done = Play::new(spec).finish();
    assert_eq!(done.phase(), "Failed");
    let text = text(&done);
    // The exit handler spoiled it.
    has(&text, "runs{name=\"w\",status=\"Failed\"} 1");
    has(&text, "took 2");
    assert!(matches!(done.facts.last(), Some(Fact::Run(RunFact::Ended { .. }))));
}

#[test]
fn a_metric_that_cannot_be_read_is_a_condition_and_nothing_else() {
    for (metric, why) in [
        (
            "{name: m, help: H, counter: {value: '{{outputs.result}}x'}}",
            "could not construct metric 'm': 'saidx' is not a number",
        ),
        ("{name: m, help: H, counter: {value: '{{inputs.parameters.num}}'}}", "counter cannot decrease in value"),
        (
            "{name: m, help: H, labels: [{key: k, value: '{{nobody}}'}], counter: {value: '1'}}",
            "unable to substitute parameters for metric 'm': failed to resolve {{nobody}}",
        ),
        (
            "{name: m, help: H, when: '{{outputs.result}} ==', counter: {value: '1'}}",
            "unable to compute 'when' clause for metric 'm'",
        ),
        (
            "{name: 'm{{outputs.result}}!', help: H, counter: {value: '1'}}",
            "metric name is invalid: names may only contain alphanumeric characters, '_', or ':'",
        ),
        ("{name: m, help: H, gauge: {value: '1e999'}}", "'1e999' is not a finite number"),
    ] {
        let spec = format!(
            "
templates:
- name: main
  steps: [[{{name: a, template: leaf}}]]
- name: leaf
  inputs: {{parameters: [{{name: num, value: '-1'}}]}}
  metrics: {{prometheus: [{metric}, {{name: fine, help: F, counter: {{value: '1'}}}}]}}
  script: {{image: i, command: [sh], source: x}}"
        );
        let done = Play::with(&spec, Script::default().on("a", prints("said"))).finish();
        assert_eq!((done.phase(), done.node_phase("a")), ("Succeeded", "Succeeded"));
        assert!(complaint(&done).contains(why), "{} instead of {why}", complaint(&done));
        assert!(complaint(&done).contains('m'));
        has(&text(&done), "fine 1");
        assert_eq!(condition(&done, "Completed").unwrap()["status"], "True");
    }
}

#[test]
fn metrics_of_one_name_that_differ_leave_the_first_alone() {
    let spec = "
templates:
- name: main
  steps: [[{name: a, template: one}], [{name: b, template: two}]]
- name: one
  metrics: {prometheus: [{name: m, help: H, counter: {value: '1'}}, {name: m, help: Else, counter: {value: '1'}}]}
  container: {image: i, command: [c]}
- name: two
  metrics: {prometheus: [{name: m, help: H, gauge: {value: '7'}}]}
  container: {image: i, command: [c]}";
    let done = Play::new(spec).finish();
    assert_eq!(done.phase(), "Succeeded");
    has(&text(&done), "m 1");
    assert_eq!(
        complaint(&done),
        "could not construct metric 'm': Found existing counter for custom metric m of type gauge"
    );
    let told = done.facts.iter().filter(|fact| matches!(fact, Fact::Workflow(WorkflowFact::Unmetered { .. }))).count();
    assert_eq!(told, 2, "one in the turn that read the first, one later");
}

#[test]
fn a_gauge_that_follows_is_there_while_the_run_is() {
    let spec = "
metrics: {prometheus: [{name: run, help: R, gauge: {realtime: true, value: '{{workflow.duration}}'}}]}
templates:
- name: main
  steps: [[{name: a, template: leaf}], [{name: b, template: wait}]]
- name: leaf
  metrics:
    prometheus:
    - {name: node, help: Node, labels: [{key: of, value: '{{node.name}}'}], gauge: {realtime: true, value: '{{duration}}'}}
    - {name: of_run, help: Node, gauge: {realtime: true, value: '{{ workflow.duration }}'}}
    - {name: odd, help: Node, gauge: {realtime: true, value: '{{status}}'}}
  container: {image: i, command: [c]}";
    let mut play = Play::with(spec, Script::default().on("a", never()));
    play.advance(Duration::from_secs(10));
    let live = |play: &Play| play.engine.meters().render(&play.engine.live_meters(play.now));
    for line in ["run 10", "node{of=\"w[0].a\"} 10", "of_run 10"] {
        has(&live(&play), line);
    }
    play.advance(Duration::from_secs(5));
    has(&live(&play), "run 15");
    play.restart(ROOMY, false);
    has(&live(&play), "node{of=\"w[0].a\"} 15");
    play.command(octoflow_engine::Command::Terminate).unwrap();
    while !play.over() {
        play.step();
    }
    assert_eq!(live(&play), "");
    let done = play.done();
    assert_eq!(complaint(&done), "'status' is not available as a real time metric");
}

#[test]
fn defaults_and_inline_templates_have_metrics_too() {
    let spec = "
templateDefaults:
  metrics: {prometheus: [{name: steps_done, help: S, labels: [{key: status, value: '{{status}}'}], counter: {value: '1'}}]}
templates:
- name: main
  inputs: {parameters: [{name: p, value: mine}]}
  steps:
  - - name: a
      withItems: [x, z]
      inline:
        metrics:
          prometheus: [{name: inline, help: I, labels: [{key: item, value: '{{item}}-{{inputs.parameters.p}}'}], counter: {value: '1'}}]
        container: {image: i, command: [c]}
  - - {name: b, template: ok}
    - {name: c, template: ok, when: 'false'}";
    let done = Play::new(spec).finish();
    let text = text(&done);
    // The steps node, and the one call that ran: metrics of its own take the place of the defaults.
    has(&text, "steps_done{status=\"Succeeded\"} 2");
    has(&text, "inline{item=\"x-mine\"} 1");
    has(&text, "inline{item=\"z-mine\"} 1");
}

#[test]
fn what_tasks_had_reserved_is_added_up_from_requests_limits_and_defaults() {
    let spec = "
arguments: {parameters: [{name: cores, value: '2'}]}
metrics:
  prometheus: [{name: cpu, help: C, gauge: {value: '{{resourcesDuration.cpu}}'}}]
templates:
- name: main
  metrics:
    prometheus: [{name: memory, help: M, gauge: {value: '{{resourcesDuration.memory}}'}}]
  steps:
  - - {name: first, template: ok}
  - - {name: a, template: asks}
  - - {name: second, template: ok}
  - - {name: b, template: bounded}
- name: asks
  container:
    image: i
    command: [c]
    resources: {requests: {cpu: '{{workflow.parameters.cores}}', memory: 250Mi, nvidia.com/gpu: 1}, limits: {cpu: 8}}
- name: bounded
  container: {image: i, command: [c], resources: {limits: {memory: 1Gi}}}";
    // Every second task is told to run when it is started; the others begin when they end.
    let script = Script::default().on("a", exit(0).after(60)).on("b", exit(1).after(30));
    let done = Play::with(spec, script).finish();
    let usage = |name: &str| done.node(name)["resourcesDuration"].clone();
    assert_eq!(usage("a"), json!({"cpu": 120, "memory": 150, "nvidia.com/gpu": 60}));
    assert_eq!(usage("b"), json!({"cpu": 3, "memory": 307}));
    assert_eq!(usage("[1]"), usage("a"));
    assert_eq!(usage("first"), json!({"cpu": 0, "memory": 0}));
    let whole = json!({"cpu": 123, "memory": 457, "nvidia.com/gpu": 60});
    assert_eq!((usage("w"), &done.status()["resourcesDuration"]), (whole.clone(), &whole));
    has(&text(&done), "cpu 123");
    has(&text(&done), "memory 457");
}

#[test]
fn a_task_that_never_began_had_nothing_and_was_nowhere() {
    let spec = "
templates:
- name: main
  timeout: 5s
  container: {image: i, command: [c]}";
    let capacity = octoflow_engine::Capacity { slots: 0, ..ROOMY };
    let done = Play::prepared(manifest(spec), Script::default(), capacity, &[]).finish();
    assert_eq!(done.phase(), "Failed");
    assert!(done.status().get("resourcesDuration").is_none(), "{:#}", done.status());
    assert!(done.node("w").get("resourcesDuration").is_none());
}

#[test]
fn j23_a_run_says_how_long_one_like_it_took_and_where_its_tasks_ran() {
    let spec = "
templates:
- name: main
  steps:
  - - {name: a, template: ok}
  - - {name: b, template: echo, arguments: {parameters: [{name: m, value: '{{steps.a.hostNodeName}}'}]}}";
    let nodes = BTreeMap::from([(String::new(), 9), ("[0].a".to_owned(), 4), ("[7].gone".to_owned(), 3)]);
    let known = SubmitContext {
        host: Some("box".to_owned()),
        earlier: Some(Box::new(EarlierDurations { run: 10, nodes })),
        ..SubmitContext::default()
    };
    let submission = Submission {
        name: "w".into(),
        namespace: "default".into(),
        uid: "u".into(),
        at: DAWN,
        manifest: manifest(spec),
        stored: Default::default(),
        context: known,
        previous: None,
        parent: None,
        ordered_by: None,
    };
    let mut play = Play::new("templates: [{name: main, suspend: {}}]");
    play.engine = Engine::new(ROOMY);
    play.facts.clear();
    play.submit(submission);
    let done = play.finish();
    assert_eq!(done.phase(), "Succeeded");
    assert_eq!(done.status()["estimatedDuration"], 10);
    assert_eq!((&done.node("w")["estimatedDuration"], &done.node("a")["estimatedDuration"]), (&json!(9), &json!(4)));
    assert!(done.node("b").get("estimatedDuration").is_none());
    assert_eq!(done.node("a")["hostNodeName"], "box");
    assert!(done.node("w").get("hostNodeName").is_none());
    assert_eq!(done.said("b"), "box");
    let again = fold(RunId(1), done.facts.clone()).unwrap();
    assert_eq!(again.object(), done.object);
}

/// An engine that dies at any moment publishes what one that lives does: facts are kept with what they change.
#[test]
fn readings_are_neither_lost_nor_repeated_when_the_engine_dies() {
    let spec = "
metrics: {prometheus: [{name: runs, help: R, counter: {value: '1'}}]}
templates:
- name: main
  dag:
    tasks:
    - {name: a, template: leaf, withSequence: {count: '20'}}
    - {name: b, template: flaky, depends: a}
- name: leaf
  metrics: {prometheus: [{name: leaves, help: L, counter: {value: '1'}}]}
  container: {image: i, command: [c]}
- name: flaky
  retryStrategy: {limit: 3}
  metrics: {prometheus: [{name: calls, help: C, labels: [{key: retries, value: '{{retries}}'}], counter: {value: '1'}}]}
  container: {image: i, command: [c]}";
    for every in 1..6 {
        let script = Script::default().on("w.b(0)", exit(1)).on("w.b(1)", exit(1));
        let mut play = Play::with(spec, script);
        let mut steps = 0;
        while !play.over() {
            steps += 1;
            if steps % every == 0 {
                let kept = play.series.clone();
                play.restart(ROOMY, steps % 2 == 0);
                assert_eq!(play.series, kept, "nothing is over only because the engine came back");
            }
            if !play.over() {
                play.step();
            }
        }
        let live = play.engine.meters().render(&[]);
        let text = text(&play.done());
        assert_eq!(text, live, "the fold of all facts is what lived");
        for line in ["runs 1", "leaves 20"] {
            has(&text, line);
        }
        assert_eq!(text.matches("argo_workflows_calls{").count(), 1, "{text}");
    }
}
