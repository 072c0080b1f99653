//! `octoflow test`: what passes, what fails, what is wrong with a test file, and how each is told.

use serde_json::{Value, json};

use crate::stage::Stage;

/// A workflow that is tried again three times.
const RETRIED: &str = "
workflow:
  spec:
    entrypoint: main
    templates:
    - name: main
      retryStrategy: {limit: 3, backoff: {duration: 1h, factor: 2}}
      container: {image: alpine, command: [echo, hello]}
stubs:
- template: main
  after: 5s
  attempts: [{exit: 1}, {exit: 2}, {exit: 0}]
";

fn play(text: &str) -> Value {
    let stage = Stage::new();
    let file = stage.file("w.test.yaml", text);
    let said = stage.octoflow(&["test", "-o", "json", &file]);
    serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said}"))
}

/// What differed, as `what: expected / actual` at which line.
fn misses(text: &str) -> Vec<(u64, String)> {
    let cases = play(text);
    let misses = cases.as_array().unwrap().iter().flat_map(|case| case["misses"].as_array().unwrap().clone());
    misses
        .map(|miss| {
            let word = |key: &str| miss[key].as_str().unwrap().to_owned();
            (miss["line"].as_u64().unwrap(), format!("{}: {} / {}", word("what"), word("expected"), word("actual")))
        })
        .collect()
}

fn passes(text: &str) {
    let found = misses(text);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn hours_of_back_off_pass_in_a_blink() {
    passes(&format!(
        "{RETRIED}
expect:
  phase: Succeeded
  duration: 3h15s
  tasks: 3
  atOnce: 1
  all:
    w: {{type: Retry, phase: Succeeded, attempts: 3}}
    w(0): {{type: Pod, phase: Failed, started: 0s, finished: 5s, outputs: {{exitCode: 1}}}}
    w(1): {{phase: Failed, started: 1h5s, duration: 5s, flags: [retried]}}
    w(2): {{phase: Succeeded, launched: 3h10s, given: {{command: [echo, hello], image: alpine}}}}
  order: [{{before: [w(0), w(1), w(2)]}}]
  moments:
  - {{at: 30m, phase: Running, explain: {{w: {{contains: before attempt 2}}}}, absent: [w(1)]}}
"
    ));
}

#[test]
fn every_difference_is_told_at_its_own_line() {
    let found = misses(&format!(
        "{RETRIED}
expect:
  phase: Failed
  duration: <=1h
  progress: 9/9
  message: {{matches: '^no$'}}
  tasks: '>3'
  nodes:
    w(0): Succeeded
    w(1): {{phase: Failed, message: {{contains: exit code 3}}, started: 2h}}
    w(7): Failed
    w(2): {{given: {{command: [echo, bye]}}}}
  absent: ['w(*)']
  only: [w]
  order: [{{before: [w(1), w(0)]}}, {{together: [w(0), w(1)]}}]
  json: {{status.phase: Failed, 'status.conditions[9]': 1}}
"
    ));
    let text = found.iter().map(|(line, text)| format!("{line} {text}")).collect::<Vec<_>>().join("\n");
    for wanted in [
        "15 phase: Failed / Succeeded",
        "16 duration: <=1h / 3h15s",
        "17 progress: 9/9 / 1/3",
        "18 message: matches /^no$/ / \"\"",
        "19 tasks: >3 / 3",
        "21 nodes.w(0).phase: Succeeded / Failed: main: Error (exit code 1)",
        "22 nodes.w(1).message: contains exit code 3 / main: Error (exit code 2)",
        "22 nodes.w(1).started: 2h / 1h5s",
        "23 nodes.w(7): a node of this name / there is none; did you mean `w(0)`?",
        "24 nodes.w(2).given.command[1]: bye / hello",
        "25 absent: no node `w(*)` / w(0) is Failed",
        "26 only: w / there too: w(0)",
        "27 order.before: w(1) is over before w(0) starts / w(0) is over before the other starts",
        "27 order.together: w(0) and w(1) run at the same time / w(0) is over before the other starts",
        "28 json.status.phase: \"Failed\" / \"Succeeded\"",
        "28 json.status.conditions[9]: 1 / null",
    ] {
        assert!(text.contains(wanted), "{wanted} is missing in\n{text}");
    }
}

#[test]
fn data_flows_through_stubs() {
    passes(
        "
workflow:
  spec:
    entrypoint: main
    arguments: {parameters: [{name: seed}]}
    templates:
    - name: main
      dag:
        tasks:
        - {name: make, template: make, arguments: {parameters: [{name: x, value: '{{workflow.parameters.seed}}'}]}}
        - name: use
          depends: make
          template: use
          arguments:
            parameters: [{name: t, value: '{{tasks.make.outputs.parameters.out}}'}]
            artifacts: [{name: f, from: '{{tasks.make.outputs.artifacts.file}}'}]
    - name: make
      inputs: {parameters: [{name: x}]}
      container: {image: alpine, command: [make], args: ['{{inputs.parameters.x}}'], env: [{name: E, value: e}]}
      outputs:
        parameters: [{name: out, valueFrom: {path: /tmp/out}}, {name: gone, valueFrom: {path: /tmp/gone, default: d}}]
        artifacts: [{name: file, path: /tmp/file}]
    - name: use
      inputs: {parameters: [{name: t}], artifacts: [{name: f, path: /tmp/f}]}
      script: {image: alpine, command: [sh], source: 'echo {{inputs.parameters.t}}'}
parameters: {seed: 1.10}
stubs:
- template: make
  parameters: {out: '{{inputs.parameters.x}}-{{args[0]}}-{{env.E}}-{{node.displayName}}'}
  artifacts: {file: 'by {{template}}'}
  missing: [gone]
- {template: us*, result: '{{source}}; {{inputs.artifacts.f}}'}
expect:
  phase: Succeeded
  nodes:
    make: {outputs: {parameters: {out: 1.10-1.10-e-make, gone: d}, artifacts: {file: by make}}}
    use:
      inputs: {parameters: {t: 1.10-1.10-e-make}, artifacts: {f: {contains: make}}, none: [z]}
      given: {source: echo 1.10-1.10-e-make}
",
    );
}

#[test]
fn a_stub_that_refers_to_nothing_fails_the_case_at_its_place() {
    let found = misses(
        "
workflow: {spec: {entrypoint: a, templates: [{name: a, script: {image: i, command: [c], source: s}}]}}
stubs: [{template: a, result: '{{inputs.parameters.x}}'}]
expect: {phase: Succeeded}
",
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == 3 && found[0].1.contains("no input parameter `x`; it has none"), "{found:?}");
}

#[test]
fn a_case_can_insist_on_stubs() {
    let found = misses(
        "
workflow: {spec: {entrypoint: a, templates: [{name: a, container: {image: i, command: [c]}}]}}
unstubbed: error
expect: {phase: Succeeded}
",
    );
    assert!(found[0].1.contains("no stub is for the task of node `w`"), "{found:?}");
}

#[test]
fn people_stop_suspend_resume_and_restart() {
    passes(
        "
workflow:
  spec:
    entrypoint: main
    onExit: bye
    templates:
    - name: main
      steps: [[{name: one, template: work}], [{name: two, template: work}]]
    - {name: work, container: {image: i, command: [c]}}
    - {name: bye, container: {image: i, command: [c]}}
stubs: [{template: work, after: 10s, stopped: {after: 3s, exit: 0}}]
cases:
- name: suspended before the second step, it waits for an hour
  commands: [{at: 5s, do: suspend}, {at: 30m, do: restart}, {at: 1h, do: resume}, {at: 2h, do: stop, refused: {contains: completed}}]
  expect:
    phase: Succeeded
    duration: 1h10s
    nodes: {two: {started: 1h}}
    moments: [{at: 20m, absent: [two], explain: {'[1]': {contains: is suspended}}}]
- name: stopped, a task may take its time to end
  commands: [{at: 5s, do: stop}]
  expect:
    phase: Failed
    duration: 8s
    nodes: {one: {phase: Failed, finished: 8s}, w.onExit: Succeeded}
- name: terminated, nothing more runs
  commands: [{at: 5s, do: terminate}]
  expect: {phase: Failed, absent: ['*.onExit', two]}
- name: restarted at every turn, nothing changes
  commands: [{at: 0s, do: restart}, {at: 5s, do: restart}, {at: 10s, do: restart}, {at: 20s, do: restart}]
  expect: {phase: Succeeded, duration: 20s, tasks: 3}
",
    );
}

#[test]
fn several_runs_share_locks_and_their_limit_can_change() {
    passes(
        "
manifests:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: limits}, data: {workers: '1'}}
- apiVersion: argoproj.io/v1alpha1
  kind: Workflow
  metadata: {generateName: job-}
  spec:
    entrypoint: main
    synchronization: {semaphores: [{configMapKeyRef: {name: limits, key: workers}}]}
    templates: [{name: main, container: {image: i, command: [c]}}]
runs: [{}, {at: 1s}, {as: third, at: 2s}]
stubs: [{image: i, after: 1m}]
cases:
- name: one at a time
  expect:
    phase: Succeeded
    atOnce: 1
    order: [{before: [job-1, job-2, third]}]
    runs:
      job-2: {nodes: {job-2: {launched: 1m}}, moments: [{at: 30s, explain: {job-2: {contains: limits/workers}}}]}
- name: more room lets the others in
  commands:
  - {at: 10s, do: put, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: limits}, data: {workers: '3'}}}
  expect: {phase: Succeeded, atOnce: 3, order: [{together: [job-1, job-2, third]}]}
",
    );
}

#[test]
fn what_never_ends_is_looked_at_and_left() {
    passes(
        "
workflow: {spec: {entrypoint: a, templates: [{name: a, suspend: {}}]}}
expect: {phase: Running, nodes: {w: Suspend Running}, explain: {w: suspended until someone resumes it}}
",
    );
    passes(
        "
workflow: {spec: {entrypoint: a, templates: [{name: a, retryStrategy: {backoff: {duration: 1m}}, container: {image: i, command: [c]}}]}}
stubs: [{template: a, exit: 1}]
until: 10m30s
expect: {phase: Running, nodes: {w: {attempts: '>=10'}}}
",
    );
}

#[test]
fn what_admission_says_can_be_expected() {
    passes(
        "
workflow: {spec: {entrypoint: mian, templates: [{name: main, container: {image: i, command: [c]}, schedulerName: other}]}}
cases:
- name: refused with its place
  expect:
    rejected: [{code: OF1018, at: spec.entrypoint, message: {contains: mian}, line: 2}]
    warnings: [{code: OF1013}]
- name: started elsewhere it runs
  entrypoint: main
  expect: {phase: Succeeded}
",
    );
    let found = misses(
        "
workflow: {spec: {entrypoint: mian, templates: [{name: main, container: {image: i, command: [c]}}]}}
cases:
- {name: unexpected, expect: {phase: Succeeded}}
- {name: elsewhere, expect: {rejected: [{at: spec.templates}]}}
- {name: let in, entrypoint: main, expect: {rejected: true}}
",
    );
    assert!(found[0].1.contains("the manifests are rejected\nerror[OF1018]"), "{found:?}");
    assert!(found[1].1.contains("OF1018 at spec.entrypoint"), "{found:?}");
    assert!(found[2].1.contains("they are let in"), "{found:?}");
}

#[test]
fn containers_of_a_task_live_beside_each_other() {
    passes(
        "
workflow:
  spec:
    entrypoint: main
    templates:
    - name: main
      steps: [[{name: s, template: set}], [{name: p, template: pod}]]
    - name: set
      containerSet:
        containers:
        - {name: a, image: i, command: [c]}
        - {name: b, image: i, command: [c], dependencies: [a]}
        - {name: main, image: i, command: [c], dependencies: [b]}
    - name: pod
      container: {image: i, command: [c]}
      initContainers: [{name: before, image: i, command: [c]}]
      sidecars: [{name: side, image: i, command: [c]}]
cases:
- name: one after the other
  stubs:
  - {template: set, after: 10s, containers: {b: {after: 5s}}, progress: [{after: 12s, is: 1/2}]}
  - {template: pod, after: 1m, containers: {before: {after: 30s}}}
  expect:
    phase: Succeeded
    duration: 1m55s
    nodes:
      s: {type: Pod, phase: Succeeded, duration: 25s, progress: 2/2}
      '*s.*': {count: 3, phase: Succeeded, type: Container}
      w[0].s.b: {finished: 15s}
      p: {duration: 90s}
    moments:
    - {at: 13s, nodes: {'w[0].s.a': Succeeded, 'w[0].s.b': Running, 'w[0].s.main': Pending, s: {progress: 1/2}}}
- name: what depends on a container that fails never runs
  stubs: [{template: set, containers: {a: {exit: 2}}}]
  expect:
    phase: Failed
    nodes: {'w[0].s.a': Failed, 'w[0].s.b': {phase: Error, message: {contains: \"dependency 'a'\"}}}
- name: an init container that fails ends the task
  stubs: [{template: pod, containers: {before: {exit: 1, after: 3s}}}]
  expect: {phase: Failed, nodes: {p: {duration: 3s, message: {contains: 'before: Error (exit code 1)'}}}}
- name: told to end, all of them end
  stubs: [{template: set, after: 10s}]
  commands: [{at: 12s, do: stop}]
  expect: {phase: Failed, duration: 12s, nodes: {'w[0].s.a': Succeeded, 'w[0].s.b': Failed}}
",
    );
}

#[test]
fn daemons_serve_until_they_are_told_to_end_unless_a_stub_says_otherwise() {
    passes(
        "
workflow:
  spec:
    entrypoint: main
    templates:
    - name: main
      steps: [[{name: serve, template: server}], [{name: use, template: work}]]
    - {name: server, daemon: true, container: {image: i, command: [serve]}}
    - {name: work, container: {image: i, command: [c]}}
stubs: [{template: work, after: 1m}]
cases:
- name: it is there for as long as it is used
  expect: {phase: Succeeded, duration: 1m, order: [{together: [serve, use]}], nodes: {serve: Succeeded}}
- name: it comes up late
  stubs: [{template: server, pending: 30s}]
  expect: {phase: Succeeded, duration: 90s, nodes: {use: {started: 30s}}}
- name: it ends by itself
  stubs: [{template: server, exit: 0, after: 10s}]
  expect: {nodes: {serve: {phase: Failed, message: {contains: must not end by itself}}}}
",
    );
}

#[test]
fn what_runs_remember_outlives_a_restart() {
    passes(
        "
workflow:
  spec:
    entrypoint: main
    templates:
    - name: main
      steps: [[{name: a, template: work}], [{name: b, template: work}]]
    - name: work
      memoize: {key: k, maxAge: 1h, cache: {configMap: {name: c}}}
      container: {image: i, command: [c]}
      outputs: {parameters: [{name: p, valueFrom: {path: /tmp/p}}]}
stubs: [{template: work, after: 10s, parameters: {p: made}}]
runs: [{as: one}, {as: two, at: 20s}, {as: three, at: 2h}]
commands: [{at: 15s, do: restart}]
expect:
  phase: Succeeded
  tasks: 2
  runs:
    one: {tasks: 1, nodes: {b: {phase: Succeeded, outputs: {parameters: {p: made}}}}}
    two: {tasks: 0, duration: 0s}
    three: {tasks: 1}
",
    );
}

#[test]
fn what_is_asked_for_is_answered() {
    passes(
        "
workflow:
  spec:
    entrypoint: main
    templates:
    - name: main
      steps:
      - - {name: ask, template: ask}
      - - {name: use, template: use, arguments: {parameters: [{name: t, value: '{{steps.ask.outputs.result}}'}]}}
    - name: ask
      http: {url: 'https://example.com/x', method: POST, body: hello, successCondition: response.statusCode < 300}
    - {name: use, inputs: {parameters: [{name: t}]}, container: {image: i, command: [c], args: ['{{inputs.parameters.t}}']}}
cases:
- name: well
  stubs: [{template: ask, after: 3s, http: {status: 201, body: made}}]
  expect:
    phase: Succeeded
    duration: 3s
    nodes:
      ask: {given: {http: {url: {contains: example.com}, method: POST, body: hello}}}
      use: {given: {args: [made]}}
- name: well without a word
  stubs: [{template: ask, result: page}]
  expect: {phase: Succeeded, nodes: {use: {given: {args: [page]}}}}
- name: the condition does not hold
  stubs: [{template: ask, http: {status: 404}}]
  expect: {phase: Failed, nodes: {ask: Failed}, absent: [use]}
- name: nobody answers
  stubs: [{template: ask, refused: no route to it}]
  expect: {nodes: {ask: {phase: Error, message: {contains: no route}}}}
- name: told to end while it waits
  stubs: [{template: ask, never: true}]
  commands: [{at: 1m, do: stop}]
  expect: {phase: Failed, duration: 1m}
",
    );
}

#[test]
fn what_is_done_to_objects_is_answered() {
    passes(
        "
workflow:
  spec:
    entrypoint: main
    templates:
    - name: main
      resource:
        action: create
        successCondition: status.phase == Succeeded
        manifest: '{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: child}, spec: {}}'
      outputs: {parameters: [{name: phase, valueFrom: {jsonPath: '{.status.phase}'}}]}
cases:
- name: it is there
  stubs: [{template: main, object: {status: {phase: Succeeded}}}]
  expect: {phase: Succeeded, nodes: {w: {outputs: {parameters: {phase: Succeeded}}}}}
- name: its condition says it failed
  stubs: [{template: main, failed: child failed}]
  expect: {phase: Failed, message: {contains: child failed}}
",
    );
}

#[test]
fn custom_metrics_outlive_a_restart() {
    passes(
        "
workflow:
  spec:
    entrypoint: main
    templates:
    - name: main
      steps: [[{name: a, template: work}], [{name: b, template: work}]]
    - name: work
      metrics: {prometheus: [{name: done, help: h, labels: [{key: how, value: '{{status}}'}], counter: {value: '1'}}]}
      container: {image: i, command: [c]}
stubs: [{template: work, after: 10s}]
commands: [{at: 15s, do: restart}]
expect: {phase: Succeeded, metrics: {contains: 'done{how=\"Succeeded\"} 2', lacks: Failed}}
",
    );
}

#[test]
fn what_admission_refuses_can_be_run_all_the_same() {
    passes(
        "
workflow: {spec: {entrypoint: main, onExit: nobody, templates: [{name: main, container: {image: i, command: [c]}}]}}
unchecked: true
expect: {phase: Error, nodes: {w.onExit: {message: {contains: error in exit template execution}}}}
",
    );
}

#[test]
fn a_wrong_test_file_is_told_whole_and_nothing_is_played() {
    let stage = Stage::new();
    let file = stage.file(
        "w.test.yaml",
        "flie: x.yaml\nstubs:\n- exit: 1\ncases:\n- name: a\n  expect: {phase: Succeded, duration: soon}\n  commands: [{at: 1s, do: pause}]\n",
    );
    let other =
        stage.file("v.test.yaml", "file: nowhere.yaml\nstubs: [{exit: 1, signal: 9}]\ncases: [{name: a}, {name: a}]\n");
    let said = stage.octoflow(&["test", &file, &other]);
    assert_eq!((said.code, said.out.as_str()), (6, ""), "{said}");
    for wanted in [
        "w.test.yaml:1:1",
        "did you mean `file`?",
        "w.test.yaml:6:19",
        "did you mean `Succeeded`?",
        "`soon` is not a duration",
        "`pause` is not one of",
        "v.test.yaml:1:7",
        "there is no file",
        "which tasks it is for",
        "cannot end in two ways, `exit` and `signal`",
        "two cases are called `a`",
        "expects nothing",
        "nothing was tested",
    ] {
        assert!(said.err.contains(wanted), "{wanted} is missing\n{said}");
    }
}

#[test]
fn outcomes_are_told_to_people_and_programs() {
    let stage = Stage::new();
    let text = format!(
        "{RETRIED}
covers: [X1]
cases:
- {{name: good, expect: {{phase: Succeeded}}}}
- {{name: <bad & \"worse\">, expect: {{phase: Failed}}}}
- {{name: later, skip: not yet, covers: [X2]}}
"
    );
    stage.file("w.test.yaml", &text);
    let folder = stage.path("").to_str().unwrap().to_owned();
    let pretty = stage.octoflow(&["test", &folder]);
    assert_eq!(pretty.code, 1, "{pretty}");
    for wanted in
        ["ok   ", "FAIL ", "skip ", "(Succeeded after 3h15s)", "expected  Failed", "1 passed, 1 failed, 1 skipped"]
    {
        assert!(pretty.out.contains(wanted), "{wanted} is missing\n{pretty}");
    }
    let junit = stage.octoflow(&["test", &folder, "-o", "junit"]);
    for wanted in [
        "tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\"",
        "name=\"&lt;bad &amp; &quot;worse&quot;&gt;\"",
        "<skipped message=\"not yet\"/>",
        "<failure message=\"phase: expected Failed, actual Succeeded\">",
    ] {
        assert!(junit.out.contains(wanted), "{wanted} is missing\n{junit}");
    }
    let json: Value = serde_json::from_str(&stage.octoflow(&["test", &folder, "-o", "json"]).out).unwrap();
    assert_eq!(json[2]["covers"], json!(["X1", "X2"]));
    assert_eq!(json[0]["runs"], json!([{"name": "w", "phase": "Succeeded", "duration": "3h15s"}]));
    let listed = stage.good(&["test", &folder, "--list", "--filter", "good|later"]);
    assert_eq!(listed.out.lines().count(), 2, "{listed}");
    assert_eq!(stage.octoflow(&["test", &folder, "--filter", "good"]).code, 0);
    assert_eq!(stage.octoflow(&["test", &folder, "--filter", "nobody"]).code, 2);
    assert!(!stage.data_dir().exists(), "a test stores nothing");
}

#[test]
fn tests_beside_manifests_are_not_taken_for_manifests() {
    let stage = Stage::new();
    stage.file("w.yaml", crate::stage::one_step("w", "true"));
    stage.file("w.test.yaml", "file: w.yaml\nexpect: {phase: Succeeded}\n");
    let folder = stage.path("").to_str().unwrap().to_owned();
    assert_eq!(stage.good(&["test", &folder]).out.lines().count(), 2);
    stage.good(&["lint", &folder]);
    stage.good(&["run", "--dry-run", &folder]);
}

#[test]
fn editors_get_a_schema_of_test_files() {
    let stage = Stage::new();
    assert!(stage.good(&["schema"]).out.lines().any(|line| line == "WorkflowTest"));
    let schema = stage.json(&["schema", "workflowtest"]);
    assert_eq!(schema["additionalProperties"], json!(false));
    assert!(schema["properties"]["cases"].is_object() && schema.get("required").is_none(), "{schema}");
}

/// A template of one pod, and a flow in which `b` waits for a condition on `a`.
const FLOW: &str = "
manifests:
- apiVersion: flow.volcano.sh/v1alpha1
  kind: JobTemplate
  metadata: {name: a}
  spec: {tasks: [{name: main, template: {spec: {containers: [{name: main, image: i, command: [c]}]}}}]}
- apiVersion: flow.volcano.sh/v1alpha1
  kind: JobFlow
  metadata: {name: f}
  spec:
    flows:
    - name: a
    - {name: b, dependsOn: {targets: [a], probe: {tcpSocketList: [{taskName: main, port: 80}]}}}
";

/// The template of `b`, put in its place later.
const LATER: &str = "{apiVersion: flow.volcano.sh/v1alpha1, kind: JobTemplate, metadata: {name: b}, \
     spec: {tasks: [{name: main, template: {spec: {containers: [{name: main, image: i, command: [c]}]}}}]}}";

#[test]
fn a_flow_makes_its_jobs_waits_for_templates_and_goes_on_after_a_restart() {
    passes(&format!(
        "{FLOW}
stubs:
- {{node: probe-b-0, after: 15s}}
- {{run: f-a, after: 2h}}
commands:
- {{at: 30m, do: restart}}
- {{at: 1h, do: put, manifest: {LATER}}}
expect:
  phase: Succeed
  runs:
    f-a: {{phase: Completed, duration: 2h}}
    f-b: {{phase: Completed}}
  moments:
  - {{at: 10s, nodes: {{b: Pending}}, json: {{'status.entries[1].stage': Waiting}}}}
  - {{at: 20s, json: {{'status.entries[1].stage': Ordered}}, explain: {{b: {{contains: \"JobTemplate 'b' is missing\"}}}}}}
  - {{at: 61m, json: {{'status.entries[1].stage': Completed}}}}
"
    ));
}

#[test]
fn a_condition_that_never_holds_fails_the_flow_and_what_differs_is_told() {
    let found = misses(&format!(
        "{FLOW}
stubs:
- {{node: 'probe-*', never: true}}
expect:
  phase: Succeed
"
    ));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].1.contains("phase: Succeed / Failed: "), "{found:#?}");
}

#[test]
fn the_manifest_of_a_job_is_refused_as_it_would_be() {
    passes(
        "
manifests:
- apiVersion: batch.volcano.sh/v1alpha1
  kind: Job
  metadata: {name: j}
  spec: {minAvailable: 3, tasks: [{name: a, template: {spec: {containers: [{name: main, image: i}]}}}]}
expect:
  rejected: [{at: spec.minAvailable}]
",
    );
}

#[test]
fn a_kubernetes_job_and_a_task_set_are_played_too() {
    passes(
        "
manifests:
- apiVersion: batch/v1
  kind: Job
  metadata: {name: k}
  spec:
    completions: 2
    parallelism: 1
    template: {spec: {restartPolicy: Never, containers: [{name: main, image: i, command: [c]}]}}
stubs:
- {run: k, after: 10s, calls: [{exit: 1}, {exit: 0}]}
expect:
  runs:
    k: {phase: Complete, duration: 40s, tasks: 3, json: {status.failed: 1, status.succeeded: 2}}
",
    );
}
