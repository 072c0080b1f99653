//! HTTP templates: what is sent, and what responses mean.

use octoflow_engine::{Capacity, Command, argo::admit::admit, engine::Keyed};
use octoflow_model::{
    meta::KeyedData,
    order::Order,
    request::{Answer, HttpRequest, Request},
    task::EnvValue,
};

use crate::{
    answer::{Script, answers, never, responds},
    check::check,
    done::Done,
    inputs,
    play::Play,
    text::manifest,
};

const ONE: &str = "
templates:
- {name: main, steps: [[{name: a, template: ask}], [{name: b, template: echo, arguments: {parameters: [{name: m, value: '{{steps.a.outputs.result}}'}]}}]]}
- name: ask
  http: {url: 'http://example.org/x', successCondition: response.statusCode == 201}";

fn sent(done: &Done, name: &str) -> HttpRequest {
    match done.tasks[name].call.as_deref() {
        Some(Request::Http(request)) => request.clone(),
        other => panic!("{name} sent {other:?}"),
    }
}

#[test]
fn j26_a_condition_decides_and_the_body_is_the_result() {
    let done = Play::with(ONE, Script::default().on("a", responds(200, "x"))).finish();
    assert_eq!((done.phase(), done.node_phase("a")), ("Failed", "Failed"));
    assert_eq!(done.node_message("a"), "successCondition 'response.statusCode == 201' evaluated false");
    let done = Play::with(ONE, Script::default().on("a", responds(201, "made"))).finish();
    assert_eq!((done.phase(), done.said("b")), ("Succeeded", "made"));
    assert_eq!(done.node("a")["type"], "HTTP");
    assert_eq!(done.node("a")["outputs"], serde_json::json!({"result": "made"}));
    assert_eq!(done.status()["progress"], "2/2");
}

#[test]
fn j26_four_requests_start_together_and_wait_for_no_room() {
    let spec = "
templates:
- {name: main, steps: [[{name: a, template: ask}, {name: b, template: ask}, {name: c, template: ask}, {name: d, template: ask}, {name: e, template: ok}]]}
- {name: ask, http: {url: 'http://example.org/'}}";
    let room = Capacity { slots: 1, cpu_milli: 1, memory_bytes: 1 };
    let script = Script::by(|name| if name.ends_with('e') { crate::answer::exit(0) } else { responds(204, "") });
    let done = Play::prepared(manifest(spec), script, room, &[]).finish();
    assert_eq!(done.phase(), "Succeeded");
    let times: Vec<_> = done.starts.iter().map(|(at, _)| *at).collect();
    assert_eq!(times.len(), 5);
    assert!(times.iter().all(|at| *at == times[0]), "{:?}", done.starts);
}

#[test]
fn h07_requests_are_kept_back_by_pods_but_do_not_count_as_pods() {
    let spec = "
parallelism: 1
templates:
- {name: main, steps: [[{name: a, template: ask}, {name: b, template: ask}, {name: c, template: ok}, {name: d, template: ask}]]}
- {name: ask, http: {url: 'http://example.org/'}}";
    let script = Script::by(|name| if name.ends_with('c') { crate::answer::exit(0) } else { responds(200, "") });
    let done = Play::with(spec, script).finish();
    assert_eq!(done.phase(), "Succeeded");
    assert_eq!(done.started().len(), 4);
    // Three go at once; the last waits until the pod is over.
    assert_eq!(done.starts.iter().filter(|(at, _)| *at == done.starts[0].0).count(), 3);
}

#[test]
fn any_other_status_than_2xx_fails_by_itself() {
    let spec = "templates: [{name: main, http: {url: 'https://example.org'}}]";
    let done = Play::with(spec, Script::default().on("w", responds(301, ""))).finish();
    assert_eq!(done.phase(), "Failed");
    assert_eq!(done.node_message("w"), "received non-2xx response code: 301");
    let refused = Answer::Refused("connections to x are not allowed".to_owned());
    let done = Play::with(spec, Script::default().on("w", answers(refused))).finish();
    assert_eq!((done.phase(), done.node_message("w")), ("Error", "connections to x are not allowed"));
}

#[test]
fn i14_a_body_nobody_refers_to_is_not_kept() {
    let spec = "templates: [{name: main, steps: [[{name: a, template: ask}]]}, {name: ask, http: {url: 'http://h/'}}]";
    let done = Play::with(spec, Script::default().on("a", responds(200, "long"))).finish();
    assert!(done.node("a")["outputs"].is_null(), "{}", done.node("a"));
    assert!(!serde_json::to_string(&done.facts).unwrap().contains("long"));
}

#[test]
fn everything_of_the_request_may_hold_variables_and_has_defaults() {
    let spec = "
arguments: {parameters: [{name: host, value: example.org}, {name: t, value: '7'}]}
templates:
- {name: main, steps: [[{name: a, template: full}, {name: b, template: bare}, {name: c, template: bytes}]]}
- name: full
  http:
    url: 'http://{{workflow.parameters.host}}/{{workflow.name}}'
    method: put
    timeoutSeconds: '{{workflow.parameters.t}}'
    insecureSkipVerify: true
    headers: [{name: X-A, value: '{{workflow.parameters.host}}'}]
    body: '{\"n\": \"{{workflow.name}}\"}'
- {name: bare, http: {url: 'http://h/'}}
- {name: bytes, http: {url: 'http://h/', method: POST, bodyFrom: {bytes: aGk=}}}";
    let done = Play::with(spec, Script::by(|_| responds(200, ""))).finish();
    let full = sent(&done, "w[0].a");
    assert_eq!((full.method.as_str(), full.url.as_str()), ("PUT", "http://example.org/w"));
    assert_eq!((full.timeout.as_secs(), full.verify), (7, false));
    assert_eq!(full.headers, [("X-A".to_owned(), EnvValue::Plain("example.org".to_owned()))]);
    assert_eq!(full.body, br#"{"n": "w"}"#);
    let bare = sent(&done, "w[0].b");
    assert_eq!((bare.method.as_str(), bare.timeout.as_secs(), bare.verify, bare.body.len()), ("GET", 30, true, 0));
    assert_eq!(sent(&done, "w[0].c").body, b"hi");
}

#[test]
fn a_secret_goes_into_the_request_and_nowhere_else() {
    let spec = "
suspend: true
templates:
- name: main
  http:
    url: http://h/
    headers: [{name: Authorization, valueFrom: {secretKeyRef: {name: s, key: token}}}]
    successCondition: request.headers['Authorization'][0] == ''";
    let mut play = Play::with(spec, Script::default().on("w", responds(200, "")));
    let mut data = KeyedData::default();
    data.entries.insert("token".to_owned(), b"hush-hush".to_vec());
    play.input(inputs::object(Keyed::Secret, "s", data));
    play.command(Command::Resume { selector: None, supplied: Default::default() }).unwrap();
    let done = play.finish();
    assert_eq!(done.phase(), "Succeeded", "{}", done.node_message("w"));
    let request = sent(&done, "w");
    assert_eq!(request.headers[0].1.reveal(), "hush-hush");
    let told = format!("{:?}{}{}", request, done.object, serde_json::to_string(&done.facts).unwrap());
    assert!(!told.contains("hush-hush"));
    let done = Play::with(&spec.replace("suspend: true", ""), Script::default()).finish();
    assert_eq!(done.phase(), "Error");
    assert!(done.node_message("w").contains("Secret 's' with key 'token' not found"), "{}", done.node_message("w"));
}

#[test]
fn a_request_is_retried_like_everything_else() {
    let spec = "
templates:
- name: main
  retryStrategy: {limit: 2, retryPolicy: Always, expression: 'lastRetry.status == \"Error\"'}
  http: {url: 'http://h/'}";
    let script = Script::default()
        .on("w(0)", answers(Answer::Refused("no connection".to_owned())))
        .on("w(1)", responds(200, ""));
    let done = Play::with(spec, script).finish();
    assert_eq!(done.phase(), "Succeeded");
    assert_eq!(done.node_phase("w(0)"), "Error");
    assert_eq!(done.status()["progress"], "1/2");
}

#[test]
fn stopping_and_deadlines_end_a_request() {
    let spec = "templates: [{name: main, http: {url: 'http://h/'}}]";
    let mut play = Play::with(spec, Script::default().on("w", never()));
    play.command(Command::Stop).unwrap();
    assert!(play.orders.iter().any(|order| matches!(order, Order::Stop { .. })));
    let done = play.finish();
    assert_eq!((done.phase(), done.node_phase("w")), ("Failed", "Failed"));
    assert_eq!(done.node_message("w"), "workflow shutdown with strategy:  Stop");
    let spec = "templates: [{name: main, activeDeadlineSeconds: 5, http: {url: 'http://h/'}}]";
    let done = Play::with(spec, Script::default().on("w", never())).finish();
    assert_eq!(done.node_phase("w"), "Failed");
}

#[test]
fn a_request_under_way_when_the_engine_dies_is_believed_in_again() {
    let mut play = Play::with(ONE, Script::default().on("a", responds(201, "made")));
    play.restart(crate::play::ROOMY, true);
    assert_eq!(play.finish().said("b"), "made");
}

#[test]
fn what_cannot_be_asked_is_refused_before_it_runs() {
    let problems = |template: &str| {
        let spec = format!("templates: [{{name: main, {template}}}]");
        let admitted = admit(&manifest(&spec), &crate::play::Everything::default());
        admitted.expect_err(template).0.into_iter().map(|problem| problem.message).collect::<Vec<_>>().join("\n")
    };
    for (template, part) in [
        ("http: {}", "templates.main.http.url may not be empty"),
        ("http: {url: 'ftp://x'}", "does not begin with http:// or https://"),
        ("http: {url: 'http://x', method: 'GE T'}", "is no method"),
        ("http: {url: 'http://x', timeoutSeconds: soon}", "whole number of seconds"),
        ("http: {url: 'http://x', successCondition: 'response.statusCode ='}", "is wrong at character"),
        ("http: {url: 'http://x', successCondition: 'steps.a'}", "can only use request and response"),
        ("http: {url: 'http://x', body: a, bodyFrom: {bytes: aGk=}}", "both body and bodyFrom"),
        ("http: {url: 'http://x', bodyFrom: {bytes: '!'}}", "is not base64"),
        ("http: {url: 'http://x', headers: [{value: a}]}", "headers[0].name may not be empty"),
        ("http: {url: 'http://x', follow: true}", "follow"),
        ("http: {url: 'http://x/{{inputs.parameters.no}}'}", "failed to resolve {{inputs.parameters.no}}"),
        (
            "http: {url: 'http://x'}, outputs: {parameters: [{name: p, valueFrom: {path: /x}}]}",
            "HTTP templates have no output parameters",
        ),
        ("parallelism: 2, http: {url: 'http://x'}", "parallelism is only valid for steps and dag"),
    ] {
        let found = problems(template);
        assert!(found.contains(part), "{template}: {found}");
    }
}

#[test]
fn a_step_may_write_its_request_in_place() {
    check(
        "
templates:
- {name: main, steps: [[{name: a, inline: {http: {url: 'http://h/'}}}]]}
---
answers: {}
phase: Succeeded
all: {w: Steps Succeeded, 'w[0]': StepGroup Succeeded, 'w[0].a': HTTP Succeeded}",
    );
}
