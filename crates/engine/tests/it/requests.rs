//! Resource and data templates as the engine sees them: what is asked for, and what answers mean.

use octoflow_engine::{
    Capacity, Command,
    argo::{admit::admit, rerun::retry_manifest},
};
use octoflow_model::{
    RunId,
    location::Location,
    previous::PreviousRun,
    request::{Answer, ManifestText, ObjectAction, ObjectRequest, PatchKind, Request},
};
use serde_json::json;

use crate::{
    answer::{Script, answers, exit, never},
    done::Done,
    play::{Play, ROOMY},
    text::manifest,
};

const MAP: &str = "manifest: '{apiVersion: v1, kind: ConfigMap, metadata: {name: m-{{workflow.name}}}}'";

fn asked(done: &Done, name: &str) -> ObjectRequest {
    match done.tasks[name].call.as_deref() {
        Some(Request::Object(request)) => request.clone(),
        other => panic!("{name} asked {other:?}"),
    }
}

#[test]
fn aw19_every_action_becomes_a_request_with_its_variables_put_in() {
    let play = |fields: &str| {
        let spec = format!("templates: [{{name: main, resource: {{{fields}, {MAP}}}}}]");
        let done = Play::with(&spec, Script::default().on("w", answers(Answer::Object(json!({}))))).finish();
        assert_eq!(done.phase(), "Succeeded", "{}", done.node_message("w"));
        assert_eq!(done.node("w")["type"], "Pod");
        asked(&done, "w")
    };
    let request = play("action: create, setOwnerReference: true, successCondition: 'status.n > {{workflow.priority}}'");
    assert_eq!(request.action, ObjectAction::Create);
    assert_eq!(
        request.manifest,
        ManifestText::Inline("{apiVersion: v1, kind: ConfigMap, metadata: {name: m-w}}".to_owned())
    );
    assert_eq!(request.owner.map(|owner| (owner.name, owner.uid)), Some(("w".to_owned(), "u-1".to_owned())));
    assert_eq!((request.namespace.as_str(), request.failure), ("default", None));
    for (fields, action) in [
        ("action: get", ObjectAction::Get),
        ("action: apply", ObjectAction::Apply),
        ("action: delete", ObjectAction::Delete),
        ("action: replace", ObjectAction::Replace),
        ("action: patch", ObjectAction::Patch(PatchKind::Strategic)),
        ("action: patch, mergeStrategy: merge", ObjectAction::Patch(PatchKind::Merge)),
        ("action: patch, mergeStrategy: json", ObjectAction::Patch(PatchKind::Json)),
    ] {
        assert_eq!(play(fields).action, action);
    }
}

#[test]
fn a_run_that_was_retried_says_so_because_what_it_creates_is_its_own() {
    let spec = format!("templates: [{{name: main, resource: {{action: create, {MAP}}}}}]");
    let fails = || Script::default().on("w", answers(Answer::Failed("no".to_owned())));
    let first = Play::with(&spec, fails()).finish();
    assert_eq!((first.phase(), asked(&first, "w").retries), ("Failed", 0));
    let retried = |runs: &[u64]| {
        let fresh = retry_manifest(&first.object, &[]);
        let before = PreviousRun { runs: runs.iter().map(|run| RunId(*run)).collect(), ..PreviousRun::default() };
        asked(&Play::after(fresh.manifest, fresh.stored, before, fails(), ROOMY).finish(), "w").retries
    };
    assert_eq!((retried(&[7]), retried(&[7, 9])), (1, 2));
}

#[test]
fn aw15_answers_decide_the_node_and_outputs_are_taken_from_the_object() {
    let spec = format!(
        "
templates:
- {{name: main, steps: [[{{name: a, template: make}}], [{{name: b, template: echo, arguments: {{parameters: [{{name: m, value: '{{{{steps.a.outputs.parameters.p}}}}/{{{{steps.a.outputs.parameters.q}}}}/{{{{steps.a.outputs.parameters.d}}}}'}}]}}}}]]}}
- name: make
  resource: {{action: create, successCondition: status.succeeded > 0, failureCondition: status.failed > 3, {MAP}}}
  outputs:
    parameters:
    - {{name: p, valueFrom: {{jsonPath: '{{.status.list[*].n}}'}}}}
    - {{name: q, valueFrom: {{jqFilter: '.status | keys | length'}}}}
    - {{name: d, valueFrom: {{jsonPath: .nothing.here, default: none}}}}"
    );
    let object = json!({"status": {"list": [{"n": 1}, {"n": 2}], "succeeded": 1}});
    let done = Play::with(&spec, Script::default().on("a", answers(Answer::Object(object)))).finish();
    assert_eq!((done.phase(), done.said("b")), ("Succeeded", "1 2/2/none"));
    let failed = Answer::Failed("failure condition 'status.failed > 3' evaluated true".to_owned());
    let done = Play::with(&spec, Script::default().on("a", answers(failed))).finish();
    assert_eq!((done.phase(), done.node_phase("a")), ("Failed", "Failed"));
    let refused = Answer::Refused("kind Job is not kept here".to_owned());
    let done = Play::with(&spec, Script::default().on("a", answers(refused))).finish();
    assert_eq!(done.node_phase("a"), "Error");
}

#[test]
fn a_node_that_waits_for_another_run_takes_no_room_but_counts_as_a_pod() {
    let spec = format!(
        "
templates:
- {{name: main, steps: [[{{name: a, template: make}}, {{name: b, template: ok}}]]}}
- {{name: make, resource: {{action: create, {MAP}}}}}"
    );
    let script = || Script::default().on("a", answers(Answer::Object(json!({}))).after(60)).on("b", exit(0));
    let room = Capacity { slots: 1, cpu_milli: 1, memory_bytes: 1 };
    let done = Play::prepared(manifest(&spec), script(), room, &[]).finish();
    assert_eq!(done.starts[0].0, done.starts[1].0, "the machine is free for the other");
    let done = Play::with(&format!("parallelism: 1{spec}"), script()).finish();
    assert_ne!(done.starts[0].0, done.starts[1].0, "one pod at a time");
}

#[test]
fn a_waiting_node_is_ended_with_its_run_and_goes_on_after_a_restart() {
    let spec = format!("templates: [{{name: main, resource: {{action: create, {MAP}}}}}]");
    let mut play = Play::with(&spec, Script::default().on("w", never()));
    play.restart(ROOMY, true);
    play.command(Command::Terminate).unwrap();
    let done = play.finish();
    assert_eq!(done.node_message("w"), "workflow shutdown with strategy:  Terminate");
    let spec = format!("templates: [{{name: main, timeout: 5s, resource: {{action: create, {MAP}}}}}]");
    assert_eq!(Play::with(&spec, Script::default().on("w", never())).finish().node_phase("w"), "Failed");
}

#[test]
fn a_data_template_transforms_the_list_it_gets() {
    let spec = "
templates:
- {name: main, steps: [[{name: a, template: list}], [{name: b, template: echo, arguments: {parameters: [{name: m, value: '{{item}}'}]}, withParam: '{{steps.a.outputs.result}}'}]]}
- name: list
  inputs: {parameters: [{name: end, value: .pdf}]}
  data:
    source: {artifactPaths: {s3: {key: 'some/{{workflow.name}}'}}}
    transformation: [{expression: \"filter(data, {# endsWith '{{inputs.parameters.end}}'})\"}]";
    let keys = Answer::Listing(vec!["a.pdf".to_owned(), "b.txt".to_owned()]);
    let done = Play::with(spec, Script::default().on("a", answers(keys.clone()))).finish();
    assert_eq!(done.phase(), "Succeeded", "{}", done.message());
    assert_eq!(done.node("a")["outputs"]["result"], r#"["a.pdf"]"#);
    assert_eq!(done.said("b(0:a.pdf)"), "a.pdf");
    assert!(matches!(done.tasks["w[0].a"].call.as_deref(), Some(Request::Listing(list))
        if matches!(&list.location, Location::Local(at) if (at.namespace.as_str(), at.key.as_str()) == ("default", "some/w"))));
    let wrong = spec.replace("# endsWith", "#.x.y endsWith");
    let done = Play::with(&wrong, Script::default().on("a", answers(keys))).finish();
    assert_eq!(done.node_phase("a"), "Error");
    assert!(done.node_message("a").contains("cannot be evaluated"), "{}", done.node_message("a"));
}

#[test]
fn what_makes_no_sense_is_refused_before_it_runs() {
    let problems = |template: &str| {
        let spec = format!("templates: [{{name: main, {template}}}]");
        let admitted = admit(&manifest(&spec), &crate::play::Everything::default());
        admitted.expect_err(template).0.into_iter().map(|found| format!("{found}")).collect::<Vec<_>>().join("\n")
    };
    let with = |fields: &str| format!("resource: {{{fields}, {MAP}}}");
    for (template, part) in [
        (with("action: crate"), "did you mean `create`?"),
        (with("action: patch, mergeStrategy: smart"), "mergeStrategy 'smart' is not known"),
        (with("action: get, successCondition: 'status.n > many'"), "whole numbers"),
        (with("action: get, failureCondition: 'a in (b'"), "parentheses"),
        (with("action: delete, successCondition: a"), "not supported for delete action"),
        ("resource: {action: create}".to_owned(), "either manifest or manifestFrom must be specified"),
        ("resource: {action: create, manifest: '{a: ['}".to_owned(), "must be a valid yaml"),
        ("resource: {action: create, manifest: \"a: 1\\n---\\nb: 2\"}".to_owned(), "one object, not 2"),
        ("resource: {action: create, manifestFrom: {artifact: {name: x}}}".to_owned(), "no input artifact 'x'"),
        (
            format!("{}, outputs: {{parameters: [{{name: p, valueFrom: {{path: /x}}}}]}}", with("action: get")),
            "jsonPath or jqFilter must be specified for Resource",
        ),
        (
            format!(
                "{}, outputs: {{parameters: [{{name: p, valueFrom: {{jqFilter: '.a | nope'}}}}]}}",
                with("action: get")
            ),
            "`nope` is not known",
        ),
        (
            format!("{}, outputs: {{parameters: [{{name: p, valueFrom: {{jsonPath: '{{.a'}}}}]}}", with("action: get")),
            "jsonPath",
        ),
        (
            "container: {image: i}, outputs: {parameters: [{name: p, valueFrom: {jsonPath: '{.a}'}}]}".to_owned(),
            "path must be specified for Container",
        ),
        ("data: {}".to_owned(), "artifactPaths must say where to look"),
        ("data: {source: {artifactPaths: {gcs: {bucket: b, key: k}}}}".to_owned(), "leave out `bucket`"),
        (
            "data: {source: {artifactPaths: {s3: {key: k}}}, transformation: [{expression: 'dta'}]}".to_owned(),
            "can only use data",
        ),
        ("plugin: {print: {}}".to_owned(), "`plugin` is not supported"),
    ] {
        let found = problems(&template);
        assert!(found.contains(part), "{template}: {found}");
    }
    assert!(problems("plugin: {print: {}}").contains("`http` template"));
}
